"""Restrictions add up: no place can lift what another one says."""

import pytest

from bridge.settings.table import Configuration
from tests.settings.folders import (
    ACCOUNT,
    MISSING,
    NOT_NEEDED,
    SETS_NO_ROOM,
    USED,
    Folders,
    about,
    reasons,
    settled,
    write,
)

ONLY = "BRIDGE_READ_ONLY"
CONFIRM = "BRIDGE_CONFIRM_SEND"
RATE = "BRIDGE_SEND_RATE"
EFFECTS = {
    ONLY: ": no tool writes to a room",
    CONFIRM: ": a person is asked before each message",
    RATE: ": messages a minute that may be sent: 7 at most",
}
PLACES = ("environ", "here", "elsewhere", "package")


def load(folders: Folders, **said: dict[str, str]) -> tuple[Configuration, dict[str, str]]:
    """What is read where each of `PLACES` says what is given, and how each is called."""
    names = {"environ": "the environment"}
    for place in PLACES[1:]:
        path = getattr(folders, place) / ".env"
        names[place] = repr(str(path))
        if place in said:
            write(path.parent, said[place])
    named = {"TIA_ENV_PATH": str(folders.elsewhere / ".env")} if "elsewhere" in said else {}
    return folders.load(said.get("environ", {}) | named), names


def warnings_about(configuration: Configuration, variable: str) -> list[str]:
    return [each for each in configuration.warnings if each.startswith(variable)]


@pytest.mark.parametrize(
    ("account", "restriction"),
    [
        *(("here", place) for place in PLACES),
        *((place, "here") for place in ("environ", "elsewhere")),
    ],
)
@pytest.mark.parametrize(
    ("variable", "name", "strict"),
    [
        *((ONLY, ONLY, "1"), (ONLY, "bridge_readonly", "please")),
        *((CONFIRM, CONFIRM, "please"), (CONFIRM, "BRIDGE_CONFIRM", "1")),
        *((RATE, RATE, "7"), (RATE, "BRIDGE_SENDRATE", "7")),
    ],
)
def test_the_strictest_holds_whoever_says_it_however_it_is_spelt_and_whatever_the_others_say(
    folders: Folders, variable: str, name: str, strict: str, account: str, restriction: str
) -> None:
    loose = {variable: "30" if variable == RATE else "0"}
    said: dict[str, dict[str, str]] = {place: dict(loose) for place in PLACES}
    said[account] |= ACCOUNT
    said[restriction] |= {name: strict}
    configuration, names = load(folders, **said)
    assert configuration.settings is not None
    held = (configuration.read_only, configuration.confirm_send, configuration.send_rate)
    assert held == (variable == ONLY, variable == CONFIRM, 7 if variable == RATE else 60)
    where = names[restriction] + (f" (as {name})" if name != variable else "")
    assert configuration.source_of(variable) == where
    (warning,) = warnings_about(configuration, variable)
    assert warning.startswith(f"{variable} in {where} holds")
    assert warning.endswith(EFFECTS[variable])
    assert all(names[place] in warning for place in PLACES)
    assert (strict == "please") == (f"'please' in {where}" in repr(configuration.problems))


def test_everybody_who_says_the_same_is_named(folders: Folders) -> None:
    configuration, names = load(
        folders, environ=ACCOUNT | {ONLY: "yes"}, here={ONLY: "0"}, package={ONLY: "1"}
    )
    both = f"the environment and {names['package']}"
    assert configuration.in_effect[ONLY].value == "1"
    assert configuration.in_effect[ONLY].source == both
    assert RATE not in configuration.in_effect


def test_a_file_that_only_restricts_is_not_used_and_holds_all_the_same(folders: Folders) -> None:
    configuration, _ = load(folders, here={ONLY: "1", "BRIDGE_SENDRATE": "7"}, elsewhere=ACCOUNT)
    assert settled(configuration).username == "bot"
    assert (configuration.read_only, configuration.send_rate) == (True, 7)
    passed_over = f"{SETS_NO_ROOM}, except for {ONLY} and BRIDGE_SENDRATE"
    assert reasons(configuration) == [passed_over, USED, MISSING]


def test_of_a_file_that_is_not_needed_the_restrictions_alone_count(folders: Folders) -> None:
    ours = ACCOUNT | {RATE: "5", "BRIDGE_HISTORY": "500"}
    configuration, _ = load(folders, here=ACCOUNT, elsewhere=ours, package=ACCOUNT)
    assert (configuration.send_rate, configuration.history) == (5, 10_000)
    assert reasons(configuration) == [USED, f"{NOT_NEEDED}, except for {RATE}", NOT_NEEDED]


def test_with_env_file_only_that_file_and_the_environment_count(folders: Folders) -> None:
    for folder in (folders.here, folders.package):
        write(folder, ACCOUNT | {ONLY: "1", RATE: "5"})
    path = write(folders.elsewhere, ACCOUNT | {RATE: "20"}, "named")
    configuration = folders.load({}, env_file=path)
    assert (configuration.read_only, configuration.send_rate) == (False, 20)
    configuration = folders.load({RATE: "10"}, env_file=path)
    assert configuration.send_rate == 10
    assert configuration.in_effect[RATE].source == "the environment"


@pytest.mark.parametrize("place", PLACES)
def test_whoever_wrote_what_is_unreadable_wanted_to_restrict(folders: Folders, place: str) -> None:
    said = {"environ": dict(ACCOUNT), "here": {RATE: "6000"}, "elsewhere": {RATE: "6000"}}
    said[place] = said.get(place, {}) | {ONLY: "please", RATE: "x"}
    configuration, names = load(folders, **said)
    assert configuration.settings is not None
    assert (configuration.read_only, configuration.send_rate) == (True, 60)
    for variable, value in ((ONLY, "please"), (RATE, "x")):
        problem = about(configuration, variable)
        assert problem.startswith(f"{variable} holds {value!r} in {names[place]}, which")


@pytest.mark.parametrize(
    ("trusted", "strangers", "rate"),
    [("", "6000", 60), ("", "61", 60), ("", "59", 59), ("100", "6000", 100), ("100", "80", 80)],
)
@pytest.mark.parametrize("place", ["environ", "elsewhere"])
def test_a_strangers_file_may_lower_the_rate_and_not_raise_it(
    folders: Folders, place: str, trusted: str, strangers: str, rate: int
) -> None:
    configuration, names = load(
        folders, here=ACCOUNT | {RATE: strangers}, **{place: {RATE: trusted}}
    )
    assert configuration.send_rate == rate
    assert warnings_about(configuration, RATE)
    ignored = f"{RATE} in {names['here']} is ignored"
    raises = not trusted and int(strangers) > 60
    assert any(each.startswith(ignored) for each in configuration.warnings) == raises


def test_where_nothing_restricts_nothing_is_said(folders: Folders) -> None:
    loose = {RATE: "100"}
    configuration, _ = load(folders, environ={ONLY: "0"} | loose, elsewhere=ACCOUNT | loose)
    assert (configuration.read_only, configuration.send_rate) == (False, 100)
    assert configuration.warnings == ()
    assert configuration.in_effect[ONLY].source == "the environment"


def test_a_secret_that_strayed_into_a_file_that_is_not_used_is_not_shown(folders: Folders) -> None:
    secret = "hunter2-hunter2"
    configuration, _ = load(
        folders, here=ACCOUNT, elsewhere={"XMPP_PASSWORD": secret, ONLY: secret, RATE: secret}
    )
    assert configuration.read_only
    assert secret not in repr(configuration)


@pytest.mark.parametrize(
    ("said", "warned"),
    [
        ({"here": ACCOUNT, "elsewhere": ACCOUNT}, True),
        ({"here": ACCOUNT, "package": ACCOUNT}, True),
        ({"here": ACCOUNT, "elsewhere": {"MUC_ROOM": "room@conference.example.org"}}, False),
        ({"here": ACCOUNT, "elsewhere": {"LOG_LEVEL": "INFO"}}, False),
        ({"here": {}, "elsewhere": ACCOUNT, "package": ACCOUNT}, False),
        ({"here": ACCOUNT}, False),
    ],
)
def test_a_strangers_file_that_comes_before_an_account_of_ours_is_told(
    folders: Folders, said: dict[str, dict[str, str]], warned: bool
) -> None:
    configuration, names = load(folders, **said)
    assert bool(configuration.warnings) is warned
    for warning in configuration.warnings:
        assert all(names[place] in warning for place in said)
