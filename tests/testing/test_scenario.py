"""Scenario files as text: what is read, and how mistakes in them are told."""

from collections.abc import Mapping
from typing import Literal

import pytest

from bridge.testing.scenario import (
    Bot,
    Scenario,
    ScenarioError,
    ScenarioStep,
    Verbs,
    line_of,
    parse,
)


class Somebody:
    def say(self, text: str) -> None: ...

    def expect(
        self,
        text: str | None = None,
        *,
        pattern: str | None = None,
        from_: str | None = None,
        private: bool = False,
        within: float = 5.0,
    ) -> None: ...

    def role(self, nickname: str, role: Literal["none", "visitor"]) -> None: ...

    def leave(self) -> None: ...

    def configure(self, options: Mapping[str, str]) -> None: ...


VERBS: Verbs = {
    "say": Somebody.say,
    "expect": Somebody.expect,
    "role": Somebody.role,
    "configure": Somebody.configure,
    "leave": Somebody.leave,
}

FILE = """\
# A bot that answers.
[bot]
command = ["python", "bot.py"]
joins_as = "Robot"

[[step]]
actor = "Alice"
say = "!ping"

[[step]]
expect = { from = "Robot", pattern = "^pong", private = true, within = 3600 }

[[step]]
actor = "Bob"
[step.role]
nickname = "Robot"
role = "visitor"

[[step]]
configure = { "muc#roomconfig_roomname" = "Hall" }
"""


def test_a_file_is_a_bot_and_steps_each_with_its_actor() -> None:
    expected = {"from_": "Robot", "pattern": "^pong", "private": True, "within": 3600}
    options = {"options": {"muc#roomconfig_roomname": "Hall"}}
    assert parse(FILE, VERBS) == Scenario(
        (
            ScenarioStep("say", {"text": "!ping"}, "Alice"),
            ScenarioStep("expect", expected, ""),
            ScenarioStep("role", {"nickname": "Robot", "role": "visitor"}, "Bob"),
            ScenarioStep("configure", options, ""),
        ),
        Bot(("python", "bot.py"), "Robot"),
    )


def test_a_step_with_one_value_needs_no_table_and_one_with_none_is_true() -> None:
    for text, arguments in (('"pong"', {"text": "pong"}), ("{}", {})):
        step = ScenarioStep("expect", arguments, "")
        assert parse(f"[[step]]\nexpect = {text}", VERBS) == Scenario((step,))
    assert parse("[[step]]\nleave = true", VERBS).step == (ScenarioStep("leave", {}, ""),)


ONE_VERB = "line 6: step 1: exactly one of say, "
WITHIN = "line 11: step 2.expect.within: 0 to 3600 seconds are wanted"
MISTAKES = [
    ('joins_as = "Robot"\n', "", "line 2: bot: joins_as is missing"),
    ('"Robot"\n\n', "3\n\n", "line 4: bot.joins_as: a text is wanted"),
    ('["python", "bot.py"]', "[]", "line 3: bot.command: it is empty"),
    ('["python", "bot.py"]', '[\n"python",\n3]', "line 3: bot.command 2: a text is wanted"),
    ("[bot]", "[bott]", "line 2: bott: there is no such key; known are step, bot"),
    (
        'say = "!ping"',
        'shout = "!ping"',
        "line 8: step 1.shout: there is no such key; known are actor, say, ",
    ),
    ('say = "!ping"', "", ONE_VERB),
    ('say = "!ping"', 'say = """\n!ping"""\nexpect = {}', ONE_VERB),
    ('say = "!ping"', "say = true", "line 8: step 1.say: a text is wanted"),
    ('actor = "Alice"', "actor = 1", "line 7: step 1.actor: a text is wanted"),
    ("from =", "fro =", "line 11: step 2.expect.fro: there is no such key; known are text, "),
    ("private = true", "private = 1", "line 11: step 2.expect.private: true or false is wanted"),
    ("within = 3600", "within = true", "line 11: step 2.expect.within: a number is wanted"),
    ("within = 3600", "within = nan", WITHIN),
    ("within = 3600", "within = -1", WITHIN),
    ("within = 3600", "within = 3600.1", WITHIN),
    ('role = "visitor"', "", "line 15: step 3.role: role is missing"),
    (
        'role = "visitor"',
        '\n\nrole = "guest"',
        "line 19: step 3.role.role: one of none, visitor is wanted",
    ),
    ('say = "!ping"', "leave = 1", "line 8: step 1.leave: a table is wanted"),
    ('"Hall"', "1", "line 20: step 4.configure.muc#roomconfig_roomname: a text is wanted"),
    ("from =", "from = =", "Invalid value (at line 11, column 19)"),
    ("# A bot", "x = 2024-01-01\n# ", "line 1: x: there is no such key; known are step, bot"),
    ("[bot]", "step = 1\n[bot]", "Cannot overwrite a value (at line 7"),
    ("# A bot", "a\u202e = 1\n# ", "Expected '='"),
]
"""What is right in `FILE`, what is wrong in its place, and how what is told of it begins."""


@pytest.mark.parametrize(("right", "wrong", "told"), MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_key(right: str, wrong: str, told: str) -> None:
    assert right in FILE
    with pytest.raises(ScenarioError) as raised:
        parse(FILE.replace(right, wrong, 1), VERBS)
    assert str(raised.value).startswith(told)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: there is no [[step]]"),
        ("step = []", "line 1: step: it is empty"),
        ("step = 3", "line 1: step: a list is wanted"),
        ("step = [\n3]", "line 1: step 1: a table is wanted"),
        ("step = [{leave = true}]\nbot = 3", "line 2: bot: a table is wanted"),
        ('"a\\u202eb" = 1', "line 1: a\\u{202E}b: there is no such key"),
        (f"a = {'[' * 5000}", ""),
        (f"a = {'9' * 5000}", ""),
    ],
)
def test_what_is_no_scenario_at_all_is_told(text: str, told: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse(text, VERBS)
    assert str(raised.value).startswith(told)


def test_the_line_is_that_where_a_value_begins_however_it_is_written() -> None:
    text = 'a = 1\n[b]\nc = """\n\nx"""\nd = [\n 1,\n [2,\n 3]]\n[[e]]\n\n[[e]]\nf.g = 1'
    lines = {("b",): 2, ("b", "c"): 3, ("b", "d"): 6, ("e", 0): 10, ("e", 1, "f", "g"): 13}
    assert {path: line_of(text, path) for path in lines} == lines
    assert line_of(text, ()) == 1
