import json
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.registration.client import KEYS, client
from bridge.registration.configfile import FileError
from bridge.registration.launch import Launch
from bridge.registration.registration import (
    Place,
    RegistrationError,
    RunCommand,
    carry_out,
    entry_now,
    plan_register,
    plan_unregister,
)

LAUNCH = Launch(("/opt/xmpp-bridge",), Path("/home/me/.env"))
APPROVAL = "mcp__xmpp__xmppSend"


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in the PATH: no client is installed until a test puts one there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's folder."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def _place(home: Path, key: str, name: str = "xmpp") -> Place:
    return Place(client(key, {}, home, "linux"), name)


def _write(place: Place, text: str) -> None:
    place.client.file.parent.mkdir(parents=True, exist_ok=True)
    place.client.file.write_text(text)


def _register(place: Place, launch: Launch = LAUNCH, *, approve_send: bool = False) -> list[str]:
    said: list[str] = []
    carry_out(place, plan_register(place, launch, approve_send=approve_send), said.append)
    return said


def _plans(place: Place) -> list[Callable[[], object]]:
    return [lambda: plan_register(place, LAUNCH), lambda: plan_unregister(place)]


def _unregister(place: Place) -> list[str]:
    said: list[str] = []
    carry_out(place, plan_unregister(place), said.append)
    return said


def _install(programs: Path, name: str, script: str) -> None:
    path = programs / name
    path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
    path.chmod(0o755)


def _files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def _full(place: Place) -> str:
    """A file full of other people's entries, with comments where the client knows them."""
    match place.client.format:
        case "toml":
            return '# top\nmodel = "m" # why\n\n[mcp_servers.other] # o\ncommand = "foo"\n'
        case "json":
            return json.dumps({"z": 1, place.client.servers: {"other": {"url": "u"}}}, indent=4)
        case "jsonc":
            return (
                f'// top\n{{\n  "{place.client.servers}": {{\n    "other": {{}}, // o\n  }},\n}}\n'
            )


@pytest.mark.parametrize("key", KEYS)
def test_a_file_full_of_others_gets_ours_keeps_theirs_and_can_be_had_back(
    key: str, home: Path
) -> None:
    place = _place(home, key)
    _write(place, _full(place))
    (said,) = _register(place)
    assert str(place.client.file) in said
    assert entry_now(place) == ([*LAUNCH.words], {})
    assert Path(f"{place.client.file}.bak").read_text() == _full(place)
    _unregister(place)
    assert place.client.file.read_text() == _full(place)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("full", [True, False])
def test_a_second_run_changes_nothing_and_keeps_no_copy(key: str, full: bool, home: Path) -> None:
    place = _place(home, key)
    if full:
        _write(place, _full(place))
    assert _register(place)
    before = _files(home)
    assert plan_register(place, LAUNCH) == ()
    assert _register(place) == []
    assert _files(home) == before
    _unregister(place)
    before = _files(home)
    assert _unregister(place) == []
    assert _files(home) == before


@pytest.mark.parametrize("key", KEYS)
def test_planning_and_showing_touch_nothing(key: str, home: Path) -> None:
    place = _place(home, key)
    shown = "\n".join(step.shown(place) for step in plan_register(place, LAUNCH))
    assert all(word in shown for word in LAUNCH.words)
    assert str(place.client.file) in shown
    assert _files(home) == {}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("broken", ["[", "{", '{"a": ]}', "\x00", "= 3", "nonsense"])
def test_a_broken_file_is_left_alone_and_named(key: str, broken: str, home: Path) -> None:
    place = _place(home, key)
    _write(place, broken)
    for plan in _plans(place):
        with pytest.raises(RegistrationError, match="is broken") as caught:
            plan()
        assert str(place.client.file) in str(caught.value)
        assert len(str(caught.value).splitlines()) <= 2
    assert place.client.file.read_text() == broken


@pytest.mark.parametrize("key", ["claude", "claude-desktop"])
def test_comments_are_damage_to_a_client_that_does_not_know_them(key: str, home: Path) -> None:
    place = _place(home, key)
    _write(place, '{"mcpServers": {}} // mine')
    with pytest.raises(RegistrationError, match="is broken"):
        plan_register(place, LAUNCH)


@pytest.mark.parametrize("key", KEYS)
def test_a_read_only_file_is_left_alone_before_anything_is_run(
    key: str, home: Path, programs: Path
) -> None:
    for name in ("codex", "claude", "code"):
        _install(programs, name, f"touch {home}/was-run")
    place = _place(home, key)
    _write(place, _full(place))
    place.client.file.chmod(0o444)
    with pytest.raises(FileError, match="read-only"):
        plan_register(place, LAUNCH)
    assert set(_files(home)) == {str(place.client.file)}


@pytest.mark.parametrize("key", KEYS)
def test_a_directory_in_the_place_of_the_file_is_an_error(key: str, home: Path) -> None:
    place = _place(home, key)
    place.client.file.mkdir(parents=True)
    with pytest.raises(FileError, match="is a directory"):
        plan_register(place, LAUNCH)


@pytest.mark.parametrize("key", KEYS)
def test_somebody_elses_server_of_that_name_is_left_alone(key: str, home: Path) -> None:
    place = _place(home, key)
    text = (
        '[mcp_servers.xmpp]\ncommand = "uvx"\n'
        if key == "codex"
        else json.dumps({place.client.servers: {"xmpp": {"command": "uvx"}}})
    )
    _write(place, text)
    for plan in _plans(place):
        with pytest.raises(RegistrationError, match="--name"):
            plan()
    _register(_place(home, key, "xmpp-2"))
    assert place.present(place.client.file.read_text()) == {"command": "uvx"}


@pytest.mark.parametrize("servers", ["3", '"x"', "[1]"])
def test_servers_that_are_none_are_left_alone(servers: str, home: Path) -> None:
    for key in ("codex", "cursor"):
        place = _place(home, key)
        form = "mcp_servers = {}\n" if key == "codex" else '{{"mcpServers": {}}}'
        _write(place, form.format(servers))
        with pytest.raises(RegistrationError, match="no table"):
            plan_register(place, LAUNCH)


def test_what_the_user_added_to_our_entry_stays_when_the_bridge_moved(home: Path) -> None:
    place = _place(home, "codex")
    _register(place)
    text = place.client.file.read_text().replace(
        "required = true", "required = false\nstartup_timeout_sec = 3"
    )
    text = text.replace('/.env"]', '/.env", "--read-only"]')
    env = '[mcp_servers.xmpp.env]\nHTTP_PROXY = "p"\n'
    _write(place, text + env + "[mcp_servers.xmpp.tools.echo]\nenabled = true\n")
    _register(place, Launch(("/new/xmpp-bridge",), Path("/new/.env")))
    assert tomllib.loads(place.client.file.read_text())["mcp_servers"]["xmpp"] == {
        "command": "/new/xmpp-bridge",
        "required": True,
        "startup_timeout_sec": 3,
        "args": ["--env-file", "/new/.env", "--read-only"],
        "env": {"HTTP_PROXY": "p"},
        "tools": {"echo": {"enabled": True}},
    }


def test_arguments_of_an_older_command_go(home: Path) -> None:
    place = _place(home, "codex")
    _register(place, Launch(("/py", "-P", "-m", "bridge", "serve"), Path("/e")))
    serving = ["/py", "-P", "-m", "bridge", "serve"]
    assert entry_now(place)[0] == [*serving, "--env-file", "/e"]
    _register(place)
    assert entry_now(place)[0] == [*LAUNCH.words]


@pytest.mark.parametrize("key", KEYS)
def test_an_entry_of_a_former_version_is_ours_and_is_exchanged(key: str, home: Path) -> None:
    place = _place(home, key)
    former: dict[str, Any] = {
        "command": "/old/xmpp-bridge",
        "args": [],
        "env": {"TIA_ENV_PATH": "/old/.env", "HTTP_PROXY": "p"},
    }
    _write(place, place.edited(_full(place), former))
    _register(place)
    assert entry_now(place) == ([*LAUNCH.words], {"HTTP_PROXY": "p"})
    _write(place, place.edited(_full(place), former | {"env": {"TIA_ENV_PATH": "/old/.env"}}))
    _register(place)
    assert entry_now(place) == ([*LAUNCH.words], {})
    _write(place, place.edited(_full(place), former))
    _unregister(place)
    assert place.client.file.read_text() == _full(place)


def test_codex_gets_required_and_no_other_setting(home: Path) -> None:
    place = _place(home, "codex")
    _register(place)
    assert tomllib.loads(place.client.file.read_text()) == {
        "mcp_servers": {
            "xmpp": {
                "command": "/opt/xmpp-bridge",
                "required": True,
                "args": ["--env-file", "/home/me/.env"],
            }
        }
    }


def test_codex_is_told_to_approve_sending_and_nothing_else(home: Path) -> None:
    place = _place(home, "codex")
    _register(place, approve_send=True)
    entry = tomllib.loads(place.client.file.read_text())["mcp_servers"]["xmpp"]
    assert entry["tools"] == {"xmppSend": {"approval_mode": "approve"}}
    assert plan_register(place, LAUNCH, approve_send=True) == ()
    assert plan_register(place, LAUNCH) == ()  # asked for once, it stays
    _unregister(place)
    assert tomllib.loads(place.client.file.read_text()) == {}


def test_claude_code_is_told_in_its_settings_to_approve_sending_and_nothing_else(
    home: Path,
) -> None:
    place = _place(home, "claude")
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    text = '{\n  "permissions": {\n    "allow": ["Bash(ls:*)"],\n    "deny": []\n  }\n}\n'
    settings.write_text(text)
    _register(place, approve_send=True)
    assert json.loads(settings.read_text()) == {
        "permissions": {"allow": ["Bash(ls:*)", APPROVAL], "deny": []}
    }
    assert plan_register(place, LAUNCH, approve_send=True) == ()
    _unregister(place)
    assert settings.read_text() == text


def test_broken_settings_of_claude_code_stop_it_before_anything_is_done(home: Path) -> None:
    place = _place(home, "claude")
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{")
    with pytest.raises(RegistrationError, match=r"settings\.json is broken"):
        plan_register(place, LAUNCH, approve_send=True)
    assert not place.client.file.exists()


def test_a_command_that_rewrites_the_others_is_put_right(home: Path, programs: Path) -> None:
    place = _place(home, "codex")
    _write(place, _full(place))
    rewritten = (
        'model = "m"\n[mcp_servers]\n[mcp_servers.other]\ncommand = "foo"\n[mcp_servers.xmpp]\n'
        'command = "/opt/xmpp-bridge"\nargs = ["--env-file", "/home/me/.env"]\n'
    )
    _install(programs, "codex", f"cat >{place.client.file} <<'E'\n{rewritten}E")
    first, second = _register(place)
    shown = "codex mcp add xmpp -- /opt/xmpp-bridge --env-file /home/me/.env"
    assert first.startswith(f"Ran: {shown}")
    assert second.startswith("Wrote mcp_servers.xmpp")
    assert place.client.file.read_text().startswith(_full(place))
    assert {path.name for path in home.rglob("config*")} == {"config.toml", "config.toml.bak"}


def test_what_a_command_changed_elsewhere_is_left_as_the_command_left_it(
    home: Path, programs: Path
) -> None:
    place = _place(home, "codex")
    _write(place, _full(place))
    moved = 'migrated = true\n[mcp_servers.xmpp]\ncommand = "/opt/xmpp-bridge"\n'
    _install(programs, "codex", f"cat >{place.client.file} <<'E'\n{moved}E")
    _register(place)
    document = tomllib.loads(place.client.file.read_text())
    assert document["migrated"] is True
    assert document["mcp_servers"]["xmpp"]["args"] == ["--env-file", "/home/me/.env"]


@pytest.mark.parametrize(
    ("key", "program"), [("codex", "codex"), ("claude", "claude"), ("vscode", "code")]
)
def test_a_command_that_fails_is_quoted_and_leaves_no_copy(
    key: str, program: str, home: Path, programs: Path
) -> None:
    _install(programs, program, "echo 'WARNING: x' >&2; echo 'Error: \033no' >&2; exit 3")
    place = _place(home, key)
    _write(place, _full(place))
    with pytest.raises(RegistrationError, match=r"failed with exit code 3: Error: \\u\{1B\}no"):
        _register(place)
    assert _files(home) == {str(place.client.file): _full(place).encode()}


def test_a_command_that_cannot_be_run_is_an_error(home: Path, programs: Path) -> None:
    (programs / "codex").write_text("#!/nowhere/interpreter\n")
    (programs / "codex").chmod(0o755)
    with pytest.raises(RegistrationError, match="does not start"):
        _register(_place(home, "codex"))


def test_a_command_that_did_nothing_is_done_by_hand(home: Path, programs: Path) -> None:
    _install(programs, "code", "exit 0")
    place = _place(home, "vscode")
    _, wrote = _register(place)
    assert wrote.startswith("Wrote servers.xmpp into")
    assert stat.S_IMODE(place.client.file.stat().st_mode) == 0o600
    assert json.loads(place.client.file.read_text()) == {
        "servers": {
            "xmpp": {
                "type": "stdio",
                "command": "/opt/xmpp-bridge",
                "args": ["--env-file", "/home/me/.env"],
            }
        }
    }


def test_an_entry_that_is_there_is_not_given_to_a_command_that_would_refuse_or_forget(
    home: Path, programs: Path
) -> None:
    for name in ("codex", "claude", "code"):
        _install(programs, name, "exit 3")
    for key in ("codex", "claude", "vscode"):
        place = _place(home, key)
        old: dict[str, Any] = {"command": "/old/xmpp-bridge"}
        _write(place, place.edited(None, old))
        steps = plan_register(place, LAUNCH)
        assert not [step for step in steps if isinstance(step, RunCommand)]
        _register(place)
        assert entry_now(place)[0] == [*LAUNCH.words]


def test_an_entry_that_the_client_did_not_keep_is_missed(home: Path) -> None:
    with pytest.raises(RegistrationError, match="did not keep"):
        entry_now(_place(home, "codex"))
