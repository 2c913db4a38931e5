"""Values that are probably not what was meant, and files that too many can read."""

from pathlib import Path

import pytest

from tests.settings.folders import ACCOUNT, PASSWORD, Folders, settled, write

SECOND = "battery-staple"


def warnings_of(folders: Folders, text: str, mode: int = 0o600) -> list[str]:
    """The warnings about a file with the account and this text after it."""
    others = {name: value for name, value in ACCOUNT.items() if not text.startswith(name)}
    account = "".join(f"{name}={value}\n" for name, value in others.items())
    path = write(folders.package, account + text)
    path.chmod(mode)
    configuration = folders.load({})
    assert settled(configuration).username == "bot"
    return [warning.replace(repr(str(path)), "FILE") for warning in configuration.warnings]


@pytest.mark.parametrize(
    "value",
    [
        "${X}",
        "${env:BOT_PASSWORD}",
        "${input:password}",
        "%BOT_PASSWORD%",
        "{{ password }}",
        "${{ secrets.PASSWORD }}",
        "$(pass show bot)",
        "$env:PASSWORD",
        "$BOT_PASSWORD",
    ],
)
@pytest.mark.parametrize("name", ["XMPP_PASSWORD", "MUC_PASSWORD", "MCP_BOT_NICKNAME"])
def test_a_placeholder_that_was_not_replaced_is_a_warning(
    folders: Folders, name: str, value: str
) -> None:
    (warning,) = warnings_of(folders, f"{name}='{value}'\n")
    assert warning.startswith(f"{name} in FILE looks like a placeholder")
    assert value not in warning
    (warning,) = folders.load(ACCOUNT | {name: value}).warnings
    assert warning.startswith(f"{name} in the environment looks like a placeholder")


def test_a_placeholder_within_a_value_is_a_warning_unless_the_value_is_a_secret(
    folders: Folders,
) -> None:
    (warning,) = warnings_of(folders, "MUC_ROOM=${ROOM}@conference.example.org\n")
    assert warning.startswith("MUC_ROOM in FILE looks like a placeholder")
    for value in ("a${b}c", "$1", "$ab", "100%", "%41b%", "%a b%", "{x}", "a%B%"):
        assert warnings_of(folders, f"XMPP_PASSWORD='{value}'\n") == []


@pytest.mark.parametrize("name", ["XMPP_PASSWORD", "MUC_PASSWORD", "MCP_BOT_NICKNAME"])
@pytest.mark.parametrize(
    "quotes",
    [
        "\u201c\u201d",
        "\u201e\u201c",
        "\u2018\u2019",
        "\u201a\u2018",
        "\xab\xbb",
        "\u201d\u201d",
        "\uff02\uff02",
        '\u201c"',
    ],
)
def test_a_typographic_quotation_mark_at_the_beginning_is_a_warning(
    folders: Folders, name: str, quotes: str
) -> None:
    (warning,) = warnings_of(folders, f"{name}={quotes[0]}{SECOND}{quotes[1]}\n")
    assert warning.startswith(f"{name} in FILE begins with a typographic quotation mark")
    assert SECOND not in warning
    for value in (f"'{SECOND}'", f'"{SECOND}"', f"it{quotes[0]}s", f"'\"{SECOND}\"'"):
        assert warnings_of(folders, f"{name}={value}\n") == []


@pytest.mark.parametrize(
    ("line", "is_warning"),
    [
        (f"XMPP_PASSWORD={PASSWORD} #{SECOND}", True),
        (f"XMPP_PASSWORD={PASSWORD}\t# {SECOND}", True),
        (f"XMPP_PASSWORD = {PASSWORD} {SECOND} #", True),
        (f"export MUC_PASSWORD={PASSWORD} # {SECOND}", True),
        ("MCP_BOT_NICKNAME=Bot #2", True),
        ("MCP_BOT_NICKNAME=Bot # the second", False),
        ("LOG_LEVEL=DEBUG  # for now", False),
        (f"XMPP_PASSWORD='{PASSWORD} #{SECOND}'", False),
        (f"XMPP_PASSWORD='{PASSWORD}' # {SECOND}", False),
        (f'XMPP_PASSWORD="{PASSWORD}" #{SECOND}', False),
        (f"XMPP_PASSWORD={PASSWORD}#{SECOND}", False),
        (f"XMPP_PASSWORD={PASSWORD} #{SECOND}\nXMPP_PASSWORD={PASSWORD}", False),
        (f"# XMPP_PASSWORD={PASSWORD} #{SECOND}", False),
        ("FOREIGN=1 #2", False),
    ],
)
def test_a_value_that_was_cut_as_before_a_comment_is_a_warning(
    folders: Folders, line: str, is_warning: bool
) -> None:
    warnings = warnings_of(folders, f"{line}\n")
    name = line.removeprefix("export ").partition("=")[0].strip()
    assert [warning.partition(" was cut at ' #'")[0] for warning in warnings] == (
        [f"{name} in FILE"] if is_warning else []
    )
    assert not any(secret in warning for warning in warnings for secret in (PASSWORD, SECOND))


@pytest.mark.parametrize(
    ("mode", "is_warning"),
    [(0o600, False), (0o400, False), (0o644, True), (0o604, True), (0o640, True), (0o622, False)],
)
def test_a_password_that_others_can_read_is_a_warning(
    folders: Folders, mode: int, is_warning: bool
) -> None:
    warnings = warnings_of(folders, f"LLM_API_KEY={SECOND}\n", mode)
    exposed = [
        f"XMPP_PASSWORD and LLM_API_KEY in FILE can be read by {others}"
        for others in (["other users of this machine: chmod 600 FILE"] if is_warning else [])
    ]
    assert warnings == exposed


def test_the_password_in_the_url_of_a_store_is_one_too(folders: Folders) -> None:
    account = {name: value for name, value in ACCOUNT.items() if name != "XMPP_PASSWORD"}
    url = f"BRIDGE_STORE=postgresql://bot:{SECOND}@localhost/x\n"
    path = write(folders.package, url + f"MUC_ROOM={account['MUC_ROOM']}\n")
    path.chmod(0o644)
    (warning,) = folders.load(ACCOUNT).warnings
    assert warning.startswith(f"BRIDGE_STORE in {str(path)!r} can be read by other users")
    write(folders.package, account).chmod(0o644)
    assert folders.load(ACCOUNT).warnings == ()


def test_a_file_that_is_not_used_gets_no_such_warning(folders: Folders) -> None:
    write(folders.here, ACCOUNT)
    named: Path = write(folders.package, ACCOUNT | {"MCP_BOT_NICKNAME": "${X}"})
    named.chmod(0o644)
    (warning,) = folders.load({}).warnings
    assert "placeholder" not in warning
    assert "can be read" not in warning
