"""Entries that nothing can start, and copies that cannot be written."""

import json
from pathlib import Path

import pytest

from bridge.registration import KEYS
from bridge.registration.clients import client
from bridge.registration.entry import EntryLocation
from bridge.registration.errors import RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.register import register


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


def _left(location: EntryLocation) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in location.client.file.parent.iterdir()}


@pytest.mark.parametrize(
    "odd",
    [
        {"env": {"A=B": "x"}},
        {"env": {"=": ""}},
        {"env": {"A": "hush\0"}},
        {"env": {"A\0": "x"}},
        {"args": ["serve", "--only", "a\0"]},
        {"env": {"A": "hush\ud800"}},
    ],
)
def test_an_entry_that_nothing_can_start_is_told_in_words_and_the_file_left_as_it_was(
    odd: dict[str, object], home: Path
) -> None:
    location = _location(home, "cursor")
    entry = {"command": "/opt/xmpp-bridge", "args": ["serve"], "env": {"B": "y"}} | odd
    location.client.file.write_text(json.dumps({"mcpServers": {"xmpp": entry}}), "utf-8")
    before = _left(location)
    told = "nothing was changed: .*does not start: |was left alone"
    with pytest.raises(RegistrationError, match=told) as error:
        register(location, home / ".env", approve_send=False, only_shown=False)
    assert "hush" not in str(error.value)
    assert len(str(error.value).splitlines()) <= 2
    assert _left(location) == before


@pytest.mark.parametrize("key", KEYS)
def test_a_path_that_no_file_can_hold_leaves_the_file_as_it_was(key: str, home: Path) -> None:
    location = _location(home, key)
    with pytest.raises(RegistrationError, match="left alone: it cannot be read or written"):
        register(location, home / "\udcff.env", approve_send=False, only_shown=False)
    assert _left(location) == {}


def test_a_copy_that_is_not_whole_goes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
