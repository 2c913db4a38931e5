"""Files of others that hold what Python cannot: edited to the letter, or refused and left alone."""

import json
from pathlib import Path

import pytest

from bridge.registration import KEYS
from bridge.registration.clients import client
from bridge.registration.entry import EntryLocation
from bridge.registration.errors import RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.jsonfile import MAX_DEPTH
from bridge.registration.launch import launch_command
from bridge.registration.register import (
    carry_out,
    plan,
    register,
    unregister,
)

LAUNCH = launch_command(("/opt/xmpp-bridge",), Path("/home/me/.env"))
LONG = "7" * 5000
DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
EDITED = [
    LONG,
    f"-{LONG}",
    "1e999",
    "-1.5e+999",
    "1" * 400 + ".5",
    "1e99999999999999999999999",
    r'"\ud800"',
    r'{"\udfff": "\ud800x"}',
    '{"a": 1, "a": 2}',
    "1.50e2",
    "-0",
    r'"\u0000\u202e"',
    "[" * (MAX_DEPTH - 4) + "]" * (MAX_DEPTH - 4),
]
"""Values that a client may well have in its file."""
NO_VARIABLE = [r'"\ud800"', r'"\u0000\u202e"']
"""Those of them that no process can have in its environment."""
REFUSED = [DEEP, "[" * 400 + "]" * 400, "[" * 100_000 + "]" * 100_000, "NaN", "-Infinity"]
JSON_KEYS = [key for key in KEYS if key != "codex"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder; no client is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _location(home: Path, key: str) -> EntryLocation:
    location = EntryLocation(client(key, {}, home, "linux"), "xmpp")
    location.client.file.parent.mkdir(parents=True, exist_ok=True)
    return location


def _register(location: EntryLocation) -> None:
    list(carry_out(location, plan(location, LAUNCH)))


def _unregister(location: EntryLocation) -> None:
    list(carry_out(location, plan(location, None)))


def _left(location: EntryLocation) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in location.client.file.parent.iterdir()}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("value", EDITED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_odd_values_of_others_stay_to_the_letter(
    key: str, value: str, newline: str, home: Path
) -> None:
    location = _location(home, key)
    text = f'\ufeff{{\n  "z": {value},\n  "{location.client.servers}": {{"o": {value}}}\n}}\n'
    before = text.replace("\n", newline).encode()
    location.client.file.write_bytes(before)
    _register(location)
    after = location.client.file.read_bytes()
    for piece in before.split(b'"o"'):
        assert piece.rstrip(b"}\r\n") in after
    _unregister(location)
    assert location.client.file.read_bytes() == before


@pytest.mark.parametrize("value", EDITED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_odd_values_in_our_own_entry_stay_to_the_letter(key: str, value: str, home: Path) -> None:
    location = _location(home, key)
    passed = '"x"' if value in NO_VARIABLE else value
    text = (
        f'{{"{location.client.servers}": {{"xmpp": {{ "command": "/old/xmpp-bridge",\n'
        f'  "timeout":{value}, "env": {{"TIA_ENV_PATH": "/old", "K": {passed}}}}}}}}}\n'
    )
    location.client.file.write_text(text)
    _register(location)
    after = location.client.file.read_text()
    assert f'"timeout":{value}, "env": {{"K": {passed}}}' in after
    assert '"/opt/xmpp-bridge"' in after
    assert plan(location, LAUNCH).edits == []


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_what_cannot_be_read_back_is_refused_and_nothing_is_left_behind(
    key: str, value: str, home: Path
) -> None:
    location = _location(home, key)
    for text in (
        f'{{"z": {value}}}',
        f'{{"{location.client.servers}": {{"xmpp": {{"command": "/xmpp-bridge", "z": {value}}}}}}}',
    ):
        location.client.file.write_text(text)
        before = _left(location)
        for work in (_register, _unregister):
            with pytest.raises(RegistrationError) as caught:
                work(location)
            assert len(str(caught.value).splitlines()) <= 2
        assert _left(location) == before


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ({"env": {"A=B": "x"}}, 'the variable "A=B" in its env has a = in its name'),
        ({"env": {"=": ""}}, 'the variable "=" in its env has a = in its name'),
        ({"env": {"A": "hush\0"}}, 'the variable "A" in its env has a NUL'),
        ({"env": {"A\0": "x"}}, 'the variable "A\\\\u{0}" in its env has a NUL'),
        ({"env": {"A": "hush\ud800"}}, 'the variable "A" in its env has a lone surrogate'),
        ({"env": {"\udcff": "x"}}, "in its env has a lone surrogate"),
        ({"args": ["serve", "--only", "a\0"]}, "an argument has a NUL"),
        ({"args": ["serve", "\udfff"]}, "an argument has a lone surrogate"),
    ],
)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_an_entry_that_nothing_can_start_is_refused_in_one_line_and_left_as_it_was(
    key: str, odd: dict[str, object], why: str, home: Path
) -> None:
    location = _location(home, key)
    entry = {"command": "/opt/xmpp-bridge", "args": ["serve"], "env": {"B": "y"}} | odd
    text = json.dumps({location.client.servers: {"xmpp": entry}})
    location.client.file.write_text(text, "utf-8")
    before = _left(location)
    for only_shown in (False, True):
        with pytest.raises(RegistrationError) as refused:
            register(location, home / ".env", approve_send=False, only_shown=only_shown)
        told = str(refused.value)
        assert why in told
        assert str(location.client.file) in told
        assert "hush" not in told
        assert told.splitlines() == [told]
        told.encode()
    assert _left(location) == before
    _unregister(location)
    assert (
        "xmpp" not in json.loads(location.client.file.read_text("utf-8"))[location.client.servers]
    )


@pytest.mark.parametrize(
    "text",
    [
        f"a = {LONG}",
        f"a = {DEEP}",
        f"a = {'[' * 500}{']' * 500}",
        f"a = [{LONG}, 1]",
        "a = '\x00'",
    ],
)
def test_codex_gets_the_same_plain_refusal(text: str, home: Path) -> None:
    location = _location(home, "codex")
    for whole in (text, f'[mcp_servers.xmpp]\ncommand = "/xmpp-bridge"\n{text}'):
        location.client.file.write_text(whole)
        before = _left(location)
        for work in (_register, _unregister):
            with pytest.raises(RegistrationError):
                work(location)
        assert _left(location) == before


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1979-05-27T07:32:00Z",
        "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1),
    ],
)
def test_codex_keeps_odd_values_to_the_letter(value: str, home: Path) -> None:
    location = _location(home, "codex")
    text = f"z = {value}\n"
    location.client.file.write_text(text)
    _register(location)
    assert location.client.file.read_text().startswith(text)
    _unregister(location)
    assert location.client.file.read_text() == text


@pytest.mark.parametrize("value", EDITED)
def test_an_odd_value_in_our_entry_can_be_shown(home: Path, value: str) -> None:
    (home / "s.env").write_text(
        "XMPP_USERNAME=bot@localhost\nXMPP_PASSWORD=p\nMUC_ROOM=r@conference.localhost\n"
    )
    location = _location(home, "cursor")
    entry = f'{{"command": "/xmpp-bridge", "z": {value}}}'
    location.client.file.write_text(f'{{"mcpServers": {{"xmpp": {entry}}}}}')
    before = _left(location)
    register(location, home / "s.env", approve_send=False, only_shown=True)
    unregister(location, only_shown=True)
    assert _left(location) == before


def test_a_copy_that_cannot_be_written_is_taken_away_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "config.json"
    path.write_text(json.dumps({}))
    with pytest.raises(UnicodeEncodeError):
        ConfigFile(path).replace("{}", "\ud800")
    monkeypatch.setattr("os.fchmod", _full)
    with pytest.raises(RegistrationError, match="cannot be written: full"):
        ConfigFile(path).replace("{}", "{ }")
    assert [one.name for one in home.iterdir()] == ["config.json"]


def _full(*_: object) -> None:
    raise OSError(28, "full")
