import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.here import run_here
from tests.support.prerequisites import agent

Run = Callable[..., "subprocess.CompletedProcess[str]"]

FILES = {"codex": ".codex/config.toml", "claude": ".claude.json", "cursor": ".cursor/mcp.json"}
PASSWORD = "secret-of-this-room"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's folder, with a settings file in it that nobody else may read."""
    home = tmp_path / "home"
    home.mkdir()
    settings = (
        "XMPP_SERVICE=xmpp://127.0.0.1:1\nXMPP_USERNAME=bot@localhost\n"
        f"XMPP_PASSWORD={PASSWORD}\nMUC_ROOM=room@conference.localhost\n"
    )
    (home / "s.env").write_text(settings)
    (home / "s.env").chmod(0o600)
    return home


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Run:
    """Run the command as its user would, in an empty folder, without any client installed."""
    (tmp_path / "project").mkdir()

    def run(
        *arguments: str, program: str = COMMAND, **environ: str
    ) -> "subprocess.CompletedProcess[str]":
        told = {"HOME": str(home), "PATH": "/nowhere", **environ}
        project = tmp_path / "project"
        if program == COMMAND:
            ran = run_here(project, *arguments, **told)
        else:
            ran = run_in(project, program, *arguments, **told)
        assert "Traceback" not in ran.stderr
        assert PASSWORD not in ran.stdout + ran.stderr
        return ran

    return run


def test_the_file_of_a_client_is_written_tried_and_restored(run: Run, home: Path) -> None:
    client, env_file = "codex", str(home / "s.env")
    ran = run("register", client, "--env-file", env_file)
    assert (ran.returncode, ran.stderr) == (0, "")
    wrote, tried, standing, listed, restart = ran.stdout.splitlines()
    assert str(home / FILES[client]) in wrote
    assert tried == f"Started it once, with the settings in {env_file}."
    assert "room@conference.localhost, phase waiting" in standing
    assert restart.startswith("Restart ")
    assert {"echo", "xmppStatus", "xmppSend"} <= set(listed.rstrip(".").replace(",", "").split())
    written = (home / FILES[client]).read_text()
    assert (COMMAND in written, env_file in written, PASSWORD in written) == (True, True, False)
    again = run("register", client, "--env-file", env_file)
    assert "nothing was changed" in again.stdout
    assert "Restart" not in again.stdout
    assert run("unregister", client).returncode == 0
    assert [path for path in home.rglob("*") if path.is_file()] == [home / "s.env"]
    assert "nothing was changed" in run("unregister", client).stdout


def test_options_that_the_user_added_to_the_entry_are_kept_and_tried(run: Run, home: Path) -> None:
    register = ("register", "cursor", "--env-file", str(home / "s.env"))
    assert run(*register).returncode == 0
    path = home / FILES["cursor"]
    written = json.loads(path.read_text())
    added = ["--read-only", "--toolset=samples"]
    written["mcpServers"]["xmpp"]["args"] += added
    path.write_text(json.dumps(written))
    ran = run(*register)
    assert (ran.returncode, "xmppSend" in ran.stdout, "word_count" in ran.stdout) == (
        0,
        False,
        True,
    )
    assert f"It keeps {' '.join(added)}" in ran.stdout
    assert json.loads(path.read_text())["mcpServers"]["xmpp"]["args"][2:] == added
    written["mcpServers"]["xmpp"]["args"] += ["--toolset=nosuch"]
    path.write_text(json.dumps(written))
    refused = run(*register)
    assert (refused.returncode, "nosuch" in refused.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["codex"], "xmpp-bridge init"),
        (["codex", "--env-file", "nothing.env"], "xmpp-bridge init"),
        (["emacs"], "emacs"),
        (["codex", "--name", "x" * 65], "--name"),
    ],
)
def test_without_settings_or_a_client_it_exits_2(
    arguments: list[str], told: str, run: Run, home: Path
) -> None:
    ran = run("register", *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert told in ran.stderr
    assert not (home / ".codex").exists()


def test_a_registered_command_that_does_not_answer_exits_1(run: Run, home: Path) -> None:
    python = home / "xmpp-bridge"
    python.write_text("#!/bin/sh\necho broken >&2\n")
    python.chmod(0o755)
    entry = {"command": str(python), "args": []}
    (home / ".cursor").mkdir()
    (home / FILES["cursor"]).write_text(json.dumps({"mcpServers": {"xmpp": entry}}))
    program = (
        "import sys; sys.argv[0] = sys.argv.pop(1); from bridge.cli import main; sys.exit(main())"
    )
    ran = run(
        "-c", program, str(python), "register", "cursor", "--env-file", str(home / "s.env"),
        program=sys.executable,
    )  # fmt: skip
    assert ran.returncode == 1
    assert "does not answer: the server ended without an answer" in ran.stderr
    assert "Its last log line: broken" in ran.stderr


def test_the_real_codex_begins_no_session_without_a_required_server(run: Run, home: Path) -> None:
    codex = agent("codex")
    file = home / FILES["codex"]
    file.parent.mkdir()
    file.write_text(
        'model = "m"\nmodel_provider = "nobody"\nfeatures.plugins = false\n'
        '[model_providers.nobody]\nname = "nobody"\n'
        'base_url = "http://127.0.0.1:9/v1"\n'
    )
    run("register", "codex", "--env-file", str(home / "s.env"), "--approve-send", **codex)
    file.write_text(file.read_text().replace(f'"{COMMAND}"', '"/nowhere/xmpp-bridge"'))
    # Strict: an unknown key among those that we wrote would be another error.
    ran = run("--strict-config", "exec", "--skip-git-repo-check", "hello", program="codex", **codex)
    assert ran.returncode == 1
    assert "required MCP servers failed to initialize: xmpp" in ran.stderr


@pytest.mark.parametrize("moved", [False, True])
def test_the_real_claude_takes_the_entry_also_where_its_files_were_moved(
    moved: bool, run: Run, home: Path
) -> None:
    claude = agent("claude")
    file, settings = home / FILES["claude"], home / ".claude/settings.json"
    if moved:
        claude["CLAUDE_CONFIG_DIR"] = str(home / "moved")
        file, settings = home / "moved/.claude.json", home / "moved/settings.json"
        file.parent.mkdir()
    file.write_text('{"numStartups": 3, "mcpServers": {"o": {"command": "foo"}}}')
    named = ("--env-file", str(home / "s.env"))
    ran = run("register", "claude", *named, "--approve-send", **claude)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"Wrote mcpServers.xmpp into {file}")
    entry = {"type": "stdio", "alwaysLoad": True, "command": COMMAND, "args": [*named], "env": {}}
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers == {"o": {"command": "foo"}, "xmpp": entry}
    assert "xmpp:" in run("mcp", "list", program="claude", **claude).stdout
    assert json.loads(settings.read_text())["permissions"]["allow"] == ["mcp__xmpp__xmppSend"]
    gone = run("unregister", "claude", **claude)
    assert gone.stdout.startswith(f"Took mcpServers.xmpp out of {file}")
    assert json.loads(file.read_text())["mcpServers"] == {"o": {"command": "foo"}}
    assert not settings.exists()
