import pytest

from bridge.settings.load import MAX_SHOWN
from bridge.settings.table import HISTORIES, SEND_RATES
from bridge.settings.values import MAX_JID_PART_BYTES
from tests.settings.folders import ACCOUNT, PASSWORD, Folders, about, settled
from tests.settings.wrong import NO_MATTER_OF_THE_PARTICIPANT, SECRET_VARIABLES, WRONG


@pytest.mark.parametrize(("variable", "value", "advice"), WRONG)
def test_a_wrong_value_is_named_with_what_would_be_right(
    folders: Folders, variable: str, value: str, advice: str
) -> None:
    configuration = folders.load({**ACCOUNT, variable: value})
    (problem,) = configuration.problems
    assert str(problem).startswith(f"{variable} ")
    assert advice in str(problem)
    assert "would be right" in str(problem)
    assert str(problem).isprintable()
    if variable in SECRET_VARIABLES:
        assert value not in str(problem)
    participates = not NO_MATTER_OF_THE_PARTICIPANT.match(variable)
    assert (configuration.settings is None) == participates


@pytest.mark.parametrize("character", list("\"&'/:<>@ \t\n\x7f"))
def test_what_no_local_part_has_is_refused_in_rooms_too(folders: Folders, character: str) -> None:
    room = f"r{character}m@conference.example.org"
    assert folders.load({**ACCOUNT, "MUC_ROOM": room}).settings is None
    if character != "@":
        name = f"b{character}t"
        environ = {**ACCOUNT, "XMPP_DOMAIN": "example.org", "XMPP_USERNAME": name}
        assert folders.load(environ).settings is None


def test_every_problem_is_named_at_once(folders: Folders) -> None:
    environ = {variable: value for variable, value, _ in WRONG}
    environ |= {"XMPP_DOMAIN": "a b", "TIA_ENV_PATH": "nowhere"}
    named = [problem.variable for problem in folders.load(environ).problems]
    # BOT_NICKNAME is not read where MCP_BOT_NICKNAME is set; TIA_ENV_PATH is judged elsewhere.
    assert sorted(named) == sorted(environ.keys() - {"BOT_NICKNAME", "TIA_ENV_PATH"})


def test_a_secret_among_the_names_of_toolsets_is_not_shown(folders: Folders) -> None:
    environ = {**ACCOUNT, "BRIDGE_TOOLSETS": f"samples,{PASSWORD},a:{PASSWORD}"}
    configuration = folders.load(environ)
    assert configuration.toolsets == ("samples", "***", "a:***")
    assert PASSWORD not in repr(configuration)


def test_nothing_set_at_all_names_what_is_needed(folders: Folders) -> None:
    configuration = folders.load({"XMPP_PASSWORD": "  \t "})
    assert configuration.settings is None
    named = [problem.variable for problem in configuration.problems]
    assert named == ["XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM", "XMPP_DOMAIN"]
    assert all("is not set" in problem.message for problem in configuration.problems)
    # Of what might name the domain, and is wrong, it is said that it is wrong.
    environ = {**ACCOUNT, "XMPP_USERNAME": "bot", "XMPP_SERVICE": "nonsense:"}
    assert [problem.variable for problem in folders.load(environ).problems] == ["XMPP_SERVICE"]


def test_a_bad_value_leaves_its_default_and_a_restriction_in_force(folders: Folders) -> None:
    bad = dict.fromkeys(
        ("BRIDGE_SEND_RATE", "BRIDGE_HISTORY", "LOG_LEVEL", "BRIDGE_READ_ONLY"), "x"
    )
    configuration = folders.load(ACCOUNT | bad)
    assert len(configuration.problems) == 4
    assert (configuration.send_rate, configuration.history) == (60, 10_000)
    assert (configuration.log_level, configuration.read_only) == ("INFO", True)
    assert configuration.settings is not None


@pytest.mark.parametrize(
    ("variable", "bounds"), [("BRIDGE_SEND_RATE", SEND_RATES), ("BRIDGE_HISTORY", HISTORIES)]
)
def test_a_number_may_be_at_its_bounds(folders: Folders, variable: str, bounds: range) -> None:
    def problems(number: int) -> int:
        return len(folders.load({**ACCOUNT, variable: str(number)}).problems)

    low, high = bounds[0], bounds[-1]
    assert [problems(n) for n in (low - 1, low, high, high + 1)] == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("XMPP_USERNAME", "{}@example.org"),
        ("XMPP_USERNAME", "bot@{}"),
        ("MUC_ROOM", "{}@conference.example.org"),
        ("MUC_ROOM", "room@{}"),
        ("MCP_BOT_NICKNAME", "{}"),
    ],
)
def test_a_part_of_a_jid_has_up_to_1023_bytes(folders: Folders, variable: str, value: str) -> None:
    longest = ("é" * 25 + ".") * 20 + "org"
    assert len(longest.encode()) == MAX_JID_PART_BYTES == 1023
    settled(folders.load({**ACCOUNT, variable: value.format(longest)}))
    problem = about(folders.load({**ACCOUNT, variable: value.format(longest + "x")}), variable)
    assert "1,024 bytes" in problem


def test_a_problem_shows_no_more_than_the_start_of_a_long_value(folders: Folders) -> None:
    at_the_edge, beyond = "x" * MAX_SHOWN, "x" * MAX_SHOWN + "y"
    assert f"'{at_the_edge}'" in about(folders.load({"MUC_ROOM": at_the_edge}), "MUC_ROOM")
    shown = about(folders.load({"MUC_ROOM": beyond}), "MUC_ROOM")
    assert f"'{at_the_edge}…'" in shown
