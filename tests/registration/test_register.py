import json
import stat
import tomllib
from math import inf
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from bridge.registration import KEYS
from bridge.registration.clients import client
from bridge.registration.entry import EntryLocation
from bridge.registration.errors import RegistrationError
from bridge.registration.formats import edited
from bridge.registration.register import carry_out, plan, register
from bridge.settings.table import SECRETS
from tests.registration.written import JSON_FILES, TOML_FILES

LAUNCH = ("/opt/xmpp-bridge", "--env-file", "/home/me/.env")
APPROVAL = "mcp__xmpp__xmppSend"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _location(home: Path, key: str, name: str = "xmpp") -> EntryLocation:
    return EntryLocation(client(key, {}, home, "linux"), name)


def _write(location: EntryLocation, text: str) -> None:
    location.client.file.parent.mkdir(parents=True, exist_ok=True)
    location.client.file.write_text(text)


def _register(location: EntryLocation, launch: tuple[str, ...] = LAUNCH) -> list[str]:
    return list(map(carry_out, plan(location, launch)))


def _unregister(location: EntryLocation) -> None:
    list(map(carry_out, plan(location, None)))


def _command(location: EntryLocation) -> list[str]:
    entry = location.read(location.client.file.read_text())
    assert entry is not None
    return [entry["command"], *entry["args"]]


def _files(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def _full(location: EntryLocation) -> str:
    """A file full of other people's entries, with comments where the format has them."""
    if location.client.format == "toml":
        return '# top\nmodel = "m" # why\n\n[mcp_servers.other] # o\ncommand = "foo"\n'
    return json.dumps({"z": 1, location.client.servers: {"other": {"url": "u"}}}, indent=4)


def _with(location: EntryLocation, text: str, entry: dict[str, Any]) -> str:
    return edited(text, location.client.format, location.changes(None, entry))


@pytest.mark.parametrize("key", KEYS)
def test_whatever_is_in_a_file_stays_and_it_is_restored_byte_for_byte(key: str, home: Path) -> None:
    location = _location(home, key)
    file, servers = location.client.file, location.client.servers
    for text in (TOML_FILES if key == "codex" else JSON_FILES).values():
        file.parent.mkdir(parents=True, exist_ok=True)
        before = text.replace("mcpServers", servers).encode()
        for said in ("Wrote", "Wrote", "Took"):
            if said == "Took":
                (line,) = map(carry_out, plan(location, None))
            else:
                file.write_bytes(before)
                (line,) = _register(location)
                assert _command(location) == [*LAUNCH]
            assert line.startswith(f"{said} {location.path} ")
            assert str(file) in line
        assert file.read_bytes() == before
        # The first original is kept, and the second run found that it is.
        assert Path(f"{file}.bak").read_bytes() == before
        assert len([*file.parent.glob(f"{file.name}.bak*")]) == 2
        for path in file.parent.glob(f"{file.name}*"):
            path.unlink()


@pytest.mark.parametrize("key", KEYS)
def test_a_file_that_was_made_for_the_entry_goes_with_it(key: str, home: Path) -> None:
    location = _location(home, key)
    _register(location)
    (line,) = map(carry_out, plan(location, None))
    assert "is gone" in line
    assert _files(home) == {}
    assert plan(location, None) == []


def test_what_others_wrote_since_stays_when_the_entry_goes(home: Path) -> None:
    location = _location(home, "vscode")
    _write(location, '{\n  "servers": {} // none\n}\n')
    _register(location)
    changed = location.client.file.read_text().replace("{\n  ", '{\n  "theme": "dark",\n  ', 1)
    _write(location, changed)
    _unregister(location)
    text = '{\n  "theme": "dark",\n  "servers": {} // none\n}\n'
    assert location.client.file.read_text() == text


def test_what_is_to_be_written_is_shown_and_a_second_run_changes_nothing(home: Path) -> None:
    location = _location(home, "codex")
    shown = "\n".join(edit.by_hand for edit in plan(location, LAUNCH))
    assert all(word in shown for word in (*LAUNCH, str(location.client.file)))
    assert _files(home) == {}
    for launch in (LAUNCH, None):
        assert [*map(carry_out, plan(location, launch))]
        before = _files(home)
        assert plan(location, launch) == []
        assert _files(home) == before


@pytest.mark.parametrize("key", KEYS)
def test_secrets_in_an_entry_of_ours_stay_in_it_and_are_not_shown(key: str, home: Path) -> None:
    location = _location(home, key)
    env = dict.fromkeys(SECRETS, "hush-hush") | {"HTTP_PROXY": "p"}
    _write(location, _with(location, "", {"command": "/old/xmpp-bridge", "args": [], "env": env}))
    (edit,) = plan(location, LAUNCH)
    assert "hush" not in edit.by_hand
    assert all(word in edit.by_hand for word in (*SECRETS, "***", "HTTP_PROXY"))
    carry_out(edit)
    held = location.read(location.client.file.read_text())
    assert held is not None
    assert held["env"] == env


@pytest.mark.parametrize("key", ["codex", "cursor"])
@pytest.mark.parametrize("broken", ["[", "\x00", "[" * 100_000])
def test_a_broken_file_is_left_and_all_is_shown(key: str, broken: str, home: Path) -> None:
    location = _location(home, key)
    _write(location, broken)
    before = _files(home)
    for launch, by_hand in ((LAUNCH, LAUNCH[0]), (None, location.path)):
        with pytest.raises(RegistrationError, match="was left alone: it ") as caught:
            plan(location, launch)
        assert str(location.client.file) in str(caught.value)
        assert len(str(caught.value).splitlines()) == 2
        assert by_hand in caught.value.by_hand
    assert _files(home) == before


@pytest.mark.parametrize("key", KEYS)
def test_a_file_that_would_lose_comments_is_left_and_all_is_shown(key: str, home: Path) -> None:
    location = _location(home, key)
    old = {"command": "/old/xmpp-bridge", "args": ["--env-file", "/e", "--read-only"]}
    mark = "#" if key == "codex" else "//"
    text = _with(location, "", old).replace('"/e",', f'"/e", {mark} why\n')
    text = text.replace('"--env-file",', f'"--env-file", {mark} where\n')
    _write(location, text)
    with pytest.raises(RegistrationError, match="was left alone: comments ") as caught:
        _register(location)
    assert '"--read-only"' in caught.value.by_hand
    assert _files(home) == {str(location.client.file): text.encode()}
    _unregister(location)
    assert location.read(location.client.file.read_text()) is None


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "args",
    [
        ["--read-only", "--env-file", "/home/me/.env"],
        ["serve", "--toolset=a", "--env-file", "/home/me/.env", "--read-only"],
    ],
)
def test_a_file_is_not_rewritten_to_change_an_order(args: list[str], key: str, home: Path) -> None:
    location = _location(home, key)
    _register(location)
    entry = location.read(location.client.file.read_text())
    assert entry is not None
    entry = dict(reversed(entry.items())) | {"args": args}
    _write(location, _with(location, "", entry))
    assert plan(location, LAUNCH) == []
    # A path that only seems to be the option's is none.
    odd = ["/home/me/.env", "--env-file", "--read-only"]
    _write(location, _with(location, "", entry | {"args": odd}))
    assert plan(location, LAUNCH) != []


def test_the_time_for_a_file_grows_no_faster_than_the_file(home: Path) -> None:
    """What is quadratic takes 64 times as long for eight times as many projects."""
    location = _location(home, "codex")
    project = '[projects."/home/me/{}"]\ntrust_level = "trusted"\n\n'
    prompt = 'developer_instructions = """\n' + "be [kind]\\n\n" * 500 + '"""\n'
    notify = "notify = [\n" + "  'x',\n" * 500 + "]\n\n"
    took = dict[int, float]()
    for count in (100, 800, 100, 800):
        _write(location, before := prompt + notify + "".join(map(project.format, range(count))))
        began = process_time()
        _register(location)
        _unregister(location)
        took[count] = min(process_time() - began, took.get(count, inf))
        assert location.client.file.read_text() == before
    assert took[800] < 2 * 8 * took[100]


def test_a_read_only_file_is_left_alone_and_what_to_write_is_shown(home: Path) -> None:
    location = _location(home, "codex")
    _write(location, _full(location))
    location.client.file.chmod(0o444)
    with pytest.raises(RegistrationError, match="read-only") as caught:
        plan(location, LAUNCH)
    assert LAUNCH[0] in caught.value.by_hand
    assert set(_files(home)) == {str(location.client.file)}


@pytest.mark.parametrize("key", KEYS)
def test_somebody_elses_server_of_that_name_is_left_alone(key: str, home: Path) -> None:
    location = _location(home, key)
    _write(location, _with(location, "", {"command": "uvx"}))
    for launch in (LAUNCH, None):
        with pytest.raises(RegistrationError, match="--name"):
            plan(location, launch)
    _register(_location(home, key, "xmpp-2"))
    assert location.read(location.client.file.read_text()) == {"command": "uvx"}


@pytest.mark.parametrize(
    "odd",
    [
        *({"env": {name: "x"}} for name in ("A=B", "=", "A\0")),
        *({"env": {"A": value}} for value in ("hush\0", "hush\ud800")),
        {"args": ["serve", "--only", "a\0"]},
    ],
)
def test_an_entry_that_nothing_can_start_is_told_in_words_and_the_file_left_as_it_was(
    odd: dict[str, object], home: Path
) -> None:
    location = _location(home, "cursor")
    entry = {"command": "/opt/xmpp-bridge", "args": ["serve"], "env": {"B": "y"}} | odd
    _write(location, json.dumps({"mcpServers": {"xmpp": entry}}))
    before = _files(home)
    told = "nothing was changed: .*does not start: |was left alone"
    for settings in (".env", "\udcff.env"):
        with pytest.raises(RegistrationError, match=told) as error:
            register(location, home / settings, approve_send=False, only_shown=False)
        assert "hush" not in str(error.value)
        assert len(str(error.value).splitlines()) <= 2
        assert _files(home) == before


OURS = {"command": "/opt/xmpp-bridge", "args": ["--env-file", "/home/me/.env"]}


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("vscode", {"type": "stdio", **OURS}),
        ("codex", {"required": True, **OURS}),
        # Claude Code is told to load our tools before the first prompt.
        ("claude", {"type": "stdio", "alwaysLoad": True, "env": {}, **OURS}),
    ],
)
def test_an_entry_has_what_its_client_wants_and_a_new_file_is_its_owners_alone(
    key: str, entry: dict[str, object], home: Path
) -> None:
    location = _location(home, key)
    _register(location)
    file = location.client.file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    written = (tomllib if key == "codex" else json).loads(file.read_text())
    assert written == {location.client.servers: {"xmpp": entry}}
    if key == "claude":  # who does not want the tools loaded first is not asked again
        entry |= {"alwaysLoad": False}
        file.write_text(json.dumps({"mcpServers": {"xmpp": entry}}))
        assert plan(location, LAUNCH) == []


def test_what_the_user_added_to_our_entry_stays_when_the_bridge_moved(home: Path) -> None:
    location = _location(home, "codex")
    older = ("/py", "-P", "-m", "bridge", "serve", "--env-file", "/e")
    _register(location, older)
    assert _command(location) == [*older]
    _register(location)
    text = location.client.file.read_text().replace(
        "required = true", "required = false\nstartup_timeout_sec = 3"
    )
    text = text.replace('/.env"]', '/.env", "--read-only"]')
    env = '[mcp_servers.xmpp.env]\nHTTP_PROXY = "p"\n'
    _write(location, text + env + "[mcp_servers.xmpp.tools.echo]\nenabled = true\n")
    _register(location, ("/new/xmpp-bridge", "--env-file", "/new/.env"))
    assert tomllib.loads(location.client.file.read_text())["mcp_servers"]["xmpp"] == {
        "command": "/new/xmpp-bridge",
        "required": True,
        "startup_timeout_sec": 3,
        "args": ["--env-file", "/new/.env", "--read-only"],
        "env": {"HTTP_PROXY": "p"},
        "tools": {"echo": {"enabled": True}},
    }


def test_codex_is_told_to_approve_sending_and_nothing_else(home: Path) -> None:
    location = _location(home, "codex")
    list(map(carry_out, plan(location, LAUNCH, approve_send=True)))
    entry = tomllib.loads(location.client.file.read_text())["mcp_servers"]["xmpp"]
    assert entry["tools"] == {"xmppSend": {"approval_mode": "approve"}}
    assert plan(location, LAUNCH, approve_send=True) == []
    assert plan(location, LAUNCH) == []  # asked for once, it stays
    _unregister(location)
    assert not location.client.file.exists()


def test_claude_code_is_told_in_its_settings_to_approve_sending_alone(home: Path) -> None:
    location = _location(home, "claude")
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{")
    with pytest.raises(RegistrationError, match=r"settings\.json was left alone: it cannot be"):
        plan(location, LAUNCH, approve_send=True)
    assert not location.client.file.exists()
    text = json.dumps({"permissions": {"allow": ["Bash(ls:*)"], "deny": []}}, indent=2)
    settings.write_text(text)
    list(map(carry_out, plan(location, LAUNCH, approve_send=True)))
    assert json.loads(settings.read_text()) == {
        "permissions": {"allow": [APPROVAL, "Bash(ls:*)"], "deny": []}
    }
    assert plan(location, LAUNCH, approve_send=True) == []
    _unregister(location)
    assert settings.read_text() == text
