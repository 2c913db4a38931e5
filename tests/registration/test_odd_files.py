"""Files of others that hold what Python cannot: edited to the letter, or refused and left alone."""

import json
from pathlib import Path

import pytest

from bridge.registration.client import KEYS, client
from bridge.registration.command import Wish, register, unregister
from bridge.registration.configfile import ConfigFile, FileError
from bridge.registration.jsontree import MAX_DEPTH
from bridge.registration.launch import Launch
from bridge.registration.registration import (
    Place,
    RegistrationError,
    carry_out,
    plan_register,
    plan_unregister,
)

LAUNCH = Launch(("/opt/xmpp-bridge",), Path("/home/me/.env"))
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
REFUSED = [DEEP, "[" * 400 + "]" * 400, "[" * 100_000 + "]" * 100_000, "NaN", "-Infinity"]
JSON_KEYS = [key for key in KEYS if key != "codex"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder; no client is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _place(home: Path, key: str) -> Place:
    place = Place(client(key, {}, home, "linux"), "xmpp")
    place.client.file.parent.mkdir(parents=True, exist_ok=True)
    return place


def _register(place: Place) -> None:
    carry_out(place, plan_register(place, LAUNCH), lambda text: None)


def _unregister(place: Place) -> None:
    carry_out(place, plan_unregister(place), lambda text: None)


def _left(place: Place) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in place.client.file.parent.iterdir()}


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("value", EDITED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_odd_values_of_others_stay_to_the_letter(
    key: str, value: str, newline: str, home: Path
) -> None:
    place = _place(home, key)
    text = f'\ufeff{{\n  "z": {value},\n  "{place.client.servers}": {{"o": {value}}}\n}}\n'
    before = text.replace("\n", newline).encode()
    place.client.file.write_bytes(before)
    _register(place)
    after = place.client.file.read_bytes()
    for piece in before.split(b'"o"'):
        assert piece.rstrip(b"}\r\n") in after
    _unregister(place)
    assert place.client.file.read_bytes() == before


@pytest.mark.parametrize("value", EDITED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_odd_values_in_our_own_entry_stay_to_the_letter(key: str, value: str, home: Path) -> None:
    place = _place(home, key)
    text = (
        f'{{"{place.client.servers}": {{"xmpp": {{ "command": "/old/xmpp-bridge",\n'
        f'  "timeout":{value}, "env": {{"TIA_ENV_PATH": "/old", "K": {value}}}}}}}}}\n'
    )
    place.client.file.write_text(text)
    _register(place)
    after = place.client.file.read_text()
    assert f'"timeout":{value}, "env": {{"K": {value}}}' in after
    assert '"/opt/xmpp-bridge"' in after
    assert plan_register(place, LAUNCH) == ()


@pytest.mark.parametrize("value", REFUSED)
@pytest.mark.parametrize("key", JSON_KEYS)
def test_what_cannot_be_read_back_is_refused_and_nothing_is_left_behind(
    key: str, value: str, home: Path
) -> None:
    place = _place(home, key)
    for text in (
        f'{{"z": {value}}}',
        f'{{"{place.client.servers}": {{"xmpp": {{"command": "/xmpp-bridge", "z": {value}}}}}}}',
    ):
        place.client.file.write_text(text)
        before = _left(place)
        for work in (_register, _unregister):
            with pytest.raises(RegistrationError) as caught:
                work(place)
            assert len(str(caught.value).splitlines()) <= 2
        assert _left(place) == before


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
    place = _place(home, "codex")
    for whole in (text, f'[mcp_servers.xmpp]\ncommand = "/xmpp-bridge"\n{text}'):
        place.client.file.write_text(whole)
        before = _left(place)
        for work in (_register, _unregister):
            with pytest.raises(RegistrationError):
                work(place)
        assert _left(place) == before


@pytest.mark.parametrize(
    "value",
    [
        "nan",
        "inf",
        "-inf",
        "1e999",
        "1979-05-27T07:32:00Z",
        "[" * MAX_DEPTH + "]" * MAX_DEPTH,
    ],
)
def test_codex_keeps_odd_values_to_the_letter(value: str, home: Path) -> None:
    place = _place(home, "codex")
    text = f"z = {value}\n"
    place.client.file.write_text(text)
    _register(place)
    assert place.client.file.read_text().startswith(text)
    _unregister(place)
    assert place.client.file.read_text() == text


def test_an_odd_value_in_our_entry_can_be_shown_or_is_refused_in_a_line(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "s.env").write_text(
        "XMPP_USERNAME=bot@localhost\nXMPP_PASSWORD=p\nMUC_ROOM=r@conference.localhost\n"
    )
    place = _place(home, "cursor")
    for value, code in ((r'"\ud800"', 0), ("1.50e2", 0), (LONG, 1), ("1e999", 1)):
        entry = f'{{"command": "/xmpp-bridge", "z": {value}}}'
        place.client.file.write_text(f'{{"mcpServers": {{"xmpp": {entry}}}}}')
        before = _left(place)
        wish = Wish("cursor", "xmpp", only_shown=True)
        found = register(
            wish,
            env_file=home / "s.env",
            approve_send=False,
            cwd=home,
            package_root=home / "package",
        )
        assert found == code
        assert len(capsys.readouterr().err.splitlines()) <= 2
        assert unregister(wish) == 0
        assert _left(place) == before


def test_a_copy_that_cannot_be_written_is_taken_away_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "config.json"
    path.write_text(json.dumps({}))
    with pytest.raises(UnicodeEncodeError):
        ConfigFile(path).replace("{}", "\ud800")
    monkeypatch.setattr("os.fchmod", _full)
    with pytest.raises(FileError, match="cannot be written: full"):
        ConfigFile(path).replace("{}", "{ }")
    assert [one.name for one in home.iterdir()] == ["config.json"]


def _full(*_: object) -> None:
    raise OSError(28, "full")
