"""Which `.env` is used, and how it is read."""

from pathlib import Path

import pytest

from bridge.settings.load import DECIDING, RESTRICTIONS
from bridge.settings.sources import MAX_LINES_NAMED, Candidate
from bridge.settings.table import VARIABLES
from bridge.settings.values import Secret
from tests.settings.folders import (
    ACCOUNT,
    MISSING,
    NAMED_IS_MISSING,
    NOT_NEEDED,
    REQUIRED,
    SAYS_NOTHING,
    SETS_NO_ROOM,
    USED,
    Folders,
    reasons,
    settled,
    write,
    written,
)

PASSED_OVER = {*VARIABLES} - DECIDING - {*RESTRICTIONS}
"""The variables that make no file used, nor count where it is not."""


def test_the_first_file_that_says_something_is_used_alone(folders: Folders) -> None:
    here = write(folders.here, {**ACCOUNT, "XMPP_USERNAME": "here@example.org"})
    write(folders.package, {**ACCOUNT, "MCP_BOT_NICKNAME": "package"})
    named = write(folders.elsewhere, ACCOUNT, "named")
    configuration = folders.load({"TIA_ENV_PATH": str(named)})
    assert settled(configuration).username == "here"
    assert settled(configuration).nickname == "McpDebug"
    assert configuration.env_file == str(here)
    assert configuration.candidates == (
        Candidate(str(here), USED),
        Candidate(str(named), NOT_NEEDED),
        Candidate(str(folders.package / ".env"), NOT_NEEDED),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", SAYS_NOTHING),
        ("DATABASE_URL=x\nMUC_ROOM=\n", SAYS_NOTHING),
        ("MUC_ROOM=\nLOG_LEVEL=DEBUG\n", SETS_NO_ROOM),
        ("".join(f"{name}=1\n" for name in VARIABLES if name in PASSED_OVER), SETS_NO_ROOM),
    ],
)
def test_another_projects_file_does_not_hide_ours(folders: Folders, text: str, reason: str) -> None:
    write(folders.here, text)
    named = write(folders.elsewhere, ACCOUNT)
    configuration = folders.load({"TIA_ENV_PATH": str(named)})
    assert settled(configuration).username == "bot"
    assert configuration.log_level == "INFO"
    assert configuration.env_file == str(named)
    assert reasons(configuration) == [reason, USED, MISSING]


def test_a_file_that_is_named_counts_with_any_variable_of_ours(folders: Folders) -> None:
    write(folders.package, {"LOG_LEVEL": "DEBUG"})
    assert folders.reasons({}) == [MISSING, SETS_NO_ROOM]
    write(folders.package, ACCOUNT)
    environ = {"TIA_ENV_PATH": str(folders.elsewhere / ".env")}
    for name in VARIABLES:
        write(folders.elsewhere, {name: "1"})
        assert folders.reasons(environ) == [MISSING, USED, NOT_NEEDED]
    write(folders.elsewhere, {"DATABASE_URL": "1"})
    assert folders.reasons(environ) == [MISSING, SAYS_NOTHING, USED]
    for name in ("XMPP_SERVICE", "XMPP_DOMAIN", *REQUIRED):  # of another, one of these is enough
        write(folders.here, {name: "x"})
        assert folders.reasons({}) == [USED, NOT_NEEDED]


@pytest.mark.parametrize(
    ("environ", "file"),
    [
        ({"HOME": "{root}"}, ".config/xmpp-bridge.env"),
        ({"HOME": "/nowhere", "XDG_CONFIG_HOME": "{root}/x"}, "x/xmpp-bridge.env"),
        ({"HOME": "{root}", "XDG_CONFIG_HOME": "here"}, ".config/xmpp-bridge.env"),
    ],
)
def test_the_users_own_file_is_the_last_and_fully_trusted(
    folders: Folders, environ: dict[str, str], file: str
) -> None:
    root = folders.here.parent
    environ = {name: value.format(root=root) for name, value in environ.items()}
    path = root / file
    path.parent.mkdir()
    write(path.parent, ACCOUNT | {"BRIDGE_STORE": "rooms.db"}, path.name)
    configuration = folders.load(environ | {"XMPP_PASSWORD": "another"})
    assert configuration.env_file == str(path)
    assert settled(configuration).username == "bot"
    assert (configuration.trusted, configuration.store) == (True, path.parent / "rooms.db")
    assert reasons(configuration) == [MISSING, MISSING, USED]
    write(folders.package, ACCOUNT | {"XMPP_USERNAME": "package@example.org"})
    configuration = folders.load(environ)
    assert (settled(configuration).username, configuration.warnings) == ("package", ())
    assert reasons(configuration) == [MISSING, USED, NOT_NEEDED]
    (folders.here / ".env").symlink_to(path)
    assert folders.load(environ).candidates == (
        Candidate(str(path), USED),
        Candidate(str(folders.package / ".env"), NOT_NEEDED),
    )


@pytest.mark.parametrize("named", ["nowhere.env", ".", "empty.env"])
def test_a_typing_mistake_in_tia_env_path_leads_into_no_other_room(
    folders: Folders, named: str
) -> None:
    write(folders.elsewhere, ACCOUNT | {"BRIDGE_READ_ONLY": "1"}, "xmpp-bridge.env")
    write(folders.here, "", "empty.env")
    environ = {"XDG_CONFIG_HOME": str(folders.elsewhere), "TIA_ENV_PATH": named}
    configuration = folders.load(environ)
    if named == "empty.env":  # it can be read, and sets nothing
        assert reasons(configuration) == [MISSING, SAYS_NOTHING, MISSING, USED]
        return
    assert configuration.settings is None
    assert configuration.read_only is True
    assert reasons(configuration)[-1] == f"{NAMED_IS_MISSING}, except for BRIDGE_READ_ONLY"
    assert any("TIA_ENV_PATH names" in warning for warning in configuration.warnings)


@pytest.mark.parametrize("home", [None, "", "here", "~"])
def test_a_users_file_is_not_sought_in_the_current_directory(
    folders: Folders, home: str | None
) -> None:
    for folder in (folders.here, folders.here / "here", folders.here / "~"):
        (folder / ".config").mkdir(parents=True)
        write(folder / ".config", ACCOUNT, "xmpp-bridge.env")
    environ = {} if home is None else {"HOME": home}
    assert folders.reasons(environ) == [MISSING, MISSING]


def test_the_environment_wins_one_by_one_and_blank_is_unset(folders: Folders) -> None:
    write(folders.package, {**ACCOUNT, "BRIDGE_HISTORY": "500", "LOG_LEVEL": "ERROR"})
    configuration = folders.load({"BRIDGE_HISTORY": "600", "LOG_LEVEL": "  "})
    assert (configuration.history, configuration.log_level) == (600, "ERROR")


def test_a_relative_path_starts_in_the_folder_of_whoever_names_it(folders: Folders) -> None:
    write(folders.elsewhere, "certificate", "ca.pem")
    named = write(
        folders.elsewhere, {**ACCOUNT, "XMPP_TLS_CA_FILE": "ca.pem", "BRIDGE_STORE": "~/rooms.db"}
    )
    for path, home in ((" ../elsewhere/.env ", "/home/bot"), ("~/.env", str(named.parent))):
        configuration = folders.load({"TIA_ENV_PATH": path, "HOME": home})
        assert (
            settled(configuration).tls_ca_file
            == Path(configuration.env_file or "").parent / "ca.pem"
        )
        assert configuration.store == Path(home) / "rooms.db"


def test_tia_env_path_counts_in_the_process_environment_only(folders: Folders) -> None:
    write(folders.here, {"TIA_ENV_PATH": str(write(folders.elsewhere, ACCOUNT))})
    assert folders.load({}).env_file is None
    assert folders.load({"TIA_ENV_PATH": "  "}).warnings == ()


def test_nothing_is_expanded(folders: Folders) -> None:
    write(folders.package, 'XMPP_PASSWORD="${HOME}"\nMUC_PASSWORD=$HOME\n')
    configuration = folders.load(
        {**ACCOUNT, "XMPP_PASSWORD": "", "HOME": "/home/bot", "MCP_BOT_NICKNAME": "${HOME}"}
    )
    assert settled(configuration).password == Secret("${HOME}")
    assert settled(configuration).room_password == Secret("$HOME")
    assert settled(configuration).nickname == "${HOME}"


def test_byte_order_mark_and_carriage_returns_are_tolerated(folders: Folders) -> None:
    text = "\ufeff" + written(ACCOUNT).replace("\n", "\r\n") + "export BOT_NICKNAME=Bot\r\n"
    write(folders.here, text)
    assert settled(folders.load({})).nickname == "Bot"


@pytest.mark.parametrize("rubbish", [1, MAX_LINES_NAMED, MAX_LINES_NAMED + 1])
def test_lines_that_cannot_be_read_are_named_in_a_warning_but_not_without_end(
    rubbish: int, folders: Folders, capfd: pytest.CaptureFixture[str]
) -> None:
    write(folders.here, "MUC_ROOM\n=\n")
    assert folders.load({}).warnings == ()  # it need not be ours
    path = write(
        folders.package,
        f"# ours\r\n\r\n{written(ACCOUNT)}" + "=secret\r\n" * (rubbish - 1) + 'NAME="secret\r\n',
    )
    (warning,) = folders.load({}).warnings
    named = ", ".join(str(6 + number) for number in range(min(rubbish, MAX_LINES_NAMED)))
    named += " and more" * (rubbish > MAX_LINES_NAMED)
    assert warning.startswith(f"'{path}': line{'s' * (rubbish > 1)} {named} ignored: ")
    assert "quotation mark" in warning
    assert "secret" not in warning
    assert capfd.readouterr() == ("", "")


def test_a_line_that_gives_a_variable_another_value_is_named_in_a_warning(
    folders: Folders,
) -> None:
    again = "# ours\nXMPP_PASSWORD=secret\nBOT_NICKNAME=Bot\nBOT_NICKNAME='Bot'\n"
    path = write(folders.package, written(ACCOUNT) + again)
    configuration = folders.load({})
    line = len(ACCOUNT) + 2
    place = "in place of the same variable above"
    assert configuration.warnings == (f"'{path}': line {line} in effect {place}",)
    assert settled(configuration).password == Secret("secret")


def test_env_file_names_the_one_file_outright(folders: Folders) -> None:
    write(folders.here, ACCOUNT)
    write(folders.package, ACCOUNT)
    path = write(folders.elsewhere, {"LOG_LEVEL": "ERROR"})
    configuration = folders.load(ACCOUNT | {"TIA_ENV_PATH": "nowhere"}, env_file=path)
    assert configuration.warnings == ()
    assert configuration.candidates == (Candidate(str(path), USED),)
    assert configuration.env_file == str(path)
    assert configuration.log_level == "ERROR"
    assert folders.load({}, env_file=Path("../elsewhere/.env")).log_level == "ERROR"
