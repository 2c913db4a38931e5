"""Entries that nothing can start, and copies that cannot be written."""

import json
from pathlib import Path

import pytest

from bridge.registration import KEYS
from bridge.registration.clients import client
from bridge.registration.entry import EntryLocation
from bridge.registration.errors import RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.register import carry_out, plan, register

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


def _unregister(location: EntryLocation) -> None:
    list(map(carry_out, plan(location, None)))


def _left(location: EntryLocation) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in location.client.file.parent.iterdir()}


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
    # JSON with escapes of Python's own is the user's to change.
    if "surrogate" in why:
        with pytest.raises(RegistrationError, match="left alone"):
            _unregister(location)
        assert _left(location) == before
    else:
        _unregister(location)
        assert json.loads(location.client.file.read_text("utf-8")) == {}


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
