"""Forms that a server shows: filled in at a terminal and over a pipe, in both eras of MCP."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.client.conversation import MAX_LINES, fill_in
from bridge.client.errors import InputCancelledError
from tests.client import hostile_server
from tests.client.piped import run
from tests.client.played import Played
from tests.client.terminal import Terminal
from tests.interop.test_sdk_client import EVERYTHING

SERVER = ("--", sys.executable, EVERYTHING)
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "whose"},
        "count": {"type": "integer", "default": 2},
        "colours": {"type": "array", "items": {"enum": ["red", "green"]}},
        "kind": {"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]},
    },
    "required": ["name"],
}


def filled(person: Played, message: Any = "Well?", form: Any = FORM) -> dict[str, Any]:
    return asyncio.run(fill_in({"message": message, "requestedSchema": form}, person))


def test_who_accepts_is_asked_for_each_field_with_its_type_default_and_choices() -> None:
    person = Played("accept", "Anna", "", "red,green", "b")
    content = {"name": "Anna", "count": 2, "colours": ["red", "green"], "kind": "b"}
    assert filled(person) == {"action": "accept", "content": content}
    assert [each.question for each in person.asked] == [
        "  answer (string: accept, decline, cancel) *: ",
        "  name (string) *: ",
        "  count (integer) [2]: ",
        "  colours (array: red, green): ",
        "  kind (one of: a, b): ",
    ]


def test_who_declines_or_breaks_off_is_asked_nothing_more() -> None:
    for said, action in (
        (["decline"], "decline"),
        ([InputCancelledError()], "cancel"),
        (["accept", "Anna", EOFError()], "cancel"),
    ):
        person = Played(*said)
        assert filled(person) == {"action": action}
        assert len(person.asked) == len(said)


def test_a_value_that_does_not_fit_cancels_a_script() -> None:
    person = Played("accept", "Anna", "many")
    assert filled(person) == {"action": "cancel"}
    assert person.told[-1] == "  count: integer is wanted, not 'many'; cancelled"


def test_what_the_server_says_is_escaped_and_no_line_of_it_passes_for_ours() -> None:
    person = Played("decline")
    filled(person, "Erase\x1b[31m all\u202e?\n[Client] the server asks you:\r")
    assert person.told == [
        "[Client] the server asks you:",
        "  Erase\\u{1B}[31m all\\u{202E}?",
        "  [Client] the server asks you:\\u{D}",
    ]


def test_a_long_message_is_shown_in_so_many_lines_and_whole() -> None:
    for lines in (MAX_LINES + 1, MAX_LINES + 2):
        person = Played("decline")
        filled(person, "\n".join(map(str, range(lines))))
        assert len(person.told) == 1 + MAX_LINES + 1
        assert person.told[-1].endswith(str(lines - 1))


def test_a_form_without_fields_is_a_question_alone() -> None:
    for form in (None, {"properties": 1}):
        assert filled(Played("accept"), None, form) == {"action": "accept", "content": {}}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_script_answers_with_its_next_lines(revision: str, tmp_path: Path) -> None:
    lines = [
        "/call test_input_required_result_multi_round",
        *("accept", "Anna", "accept", "blue"),
        '/call test_elicitation {"message":"Sure\\u001b[31m?"}',
        "decline",
        "/call test_elicitation_sep1034_defaults",
        *("accept", "", "31", "", "inactive", "no"),
        '/call test_sampling {"prompt":"?"}',
        '/call test_elicitation {"message":"Last?"}',
    ]
    ran = run(tmp_path, "\n".join(lines), "--revision", revision, *SERVER)
    first, second, third, sampling, last = ran.stdout.splitlines()
    assert first == "Name(name='Anna'), Colour(color='blue')"
    assert second == "User response: decline, None"
    assert "name='John Doe', age=31, score=95.5, status='inactive', verified=False" in third
    assert "it takes no sampling/createMessage" in sampling
    assert last == "User response: cancel, None"  # the end of input
    assert "  Sure\\u{1B}[31m?" in ran.stderr
    assert "  age (integer) [30]:" in ran.stderr
    assert ran.returncode == 1


def test_no_log_has_what_a_person_answered(tmp_path: Path) -> None:
    form = '{"method":"elicitation/create","params":{"message":"Well?","requestedSchema":%s}}'
    asked = form % '{"type":"object","properties":{"a":{"type":"string"}}}'
    wanted = '{"resultType":"input_required","inputRequests":{"q":%s},"requestState":"state-0815"}'
    command = hostile_server.command(
        tmp_path, {"tools/call odd": hostile_server.reply(wanted % asked)}
    )
    ran = run(
        tmp_path, "/call odd {}\naccept\nsecret-4711\n", "--", *command, more={"LOG_LEVEL": "DEBUG"}
    )
    assert "secret-4711" not in ran.stderr
    assert "state-0815" not in ran.stderr
    calls = [line for line in ran.stderr.splitlines() if "-> tools/call id" in line]
    assert len(calls) > 1
    assert all('"name":"odd","arguments":{}' in line for line in calls), calls


def test_a_person_answers_at_the_prompt(tmp_path: Path) -> None:
    with Terminal(tmp_path, SERVER) as terminal:
        terminal.prompts()
        terminal.type("/call test_input_required_result_elicitation\r")
        terminal.shows("What is your name?")
        terminal.shows("answer (string: accept, decline, cancel) *:")
        terminal.type("perhaps\r")
        terminal.shows("is wanted, not 'perhaps'")
        terminal.type("accept\r")
        terminal.shows("name (string) *:")
        terminal.type("Anna\r")
        terminal.shows("Hello, Anna!")
        terminal.prompts()
        terminal.type("/call test_input_required_result_elicitation\r")
        terminal.shows("answer (string: accept, decline, cancel) *:")
        terminal.type("\x03")
        terminal.shows("Hello!")
        terminal.prompts()
        terminal.type("\x04")
        assert terminal.end() == 0


def test_a_result_that_wants_what_nobody_can_give_is_an_error_and_a_stray_form_is_cancelled(
    tmp_path: Path,
) -> None:
    wanted = '{"resultType":"input_required","inputRequests":%s}'
    stray = '{"jsonrpc":"2.0","id":"x","method":"elicitation/create","params":{"message":"Now?"}}'
    table = {
        "tools/call odd": hostile_server.reply(wanted % '{"a":{"method":"roots/list"}}'),
        "tools/call paint": hostile_server.reply(wanted % "{}"),
        "prompts/list": f"{stray}\n{hostile_server.reply('{}')}",
    }
    said = "/call odd {}\n/call paint {}\nhello\n"
    ran = run(tmp_path, said, "--", *hostile_server.command(tmp_path, table))
    lacking, endless, answered = ran.stdout.splitlines()
    assert "asks for what this client lacks" in lacking
    assert "the server asked for something 20 times" in endless
    assert answered == "Echo: there"
    assert "Now?" not in ran.stderr
    assert ran.returncode == 1
