"""The client as a script drives it: lines in, answers out, and an exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

from bridge.mcp import revisions
from bridge.mcp.revisions import Revision
from tests.client import hostile_server
from tests.client.piped import run
from tests.client.terminal import GREETING, SECONDS
from tests.e2e.bridge_process import COMMAND, run_in

OTHER_SERVER = Path(__file__).with_name("other_server.py")
"""A program of its own: to import it is to load the whole SDK."""


@pytest.fixture
def nothing(tmp_path: Path) -> str:
    """An empty settings file, which keeps the checkout's own away."""
    path = tmp_path / "nothing.env"
    path.touch()
    return str(path)


@pytest.fixture
def other(tmp_path: Path) -> list[str]:
    """What has the client start a server that is no bridge."""
    return ["--", *hostile_server.command(tmp_path, {"tools/call odd": ""})]


def test_from_a_pipe_stdout_has_one_answer_a_line_and_the_greeting_is_on_stderr(
    tmp_path: Path,
) -> None:
    said = "# a comment\nhello # world\n\n  # another\n  two words  \nexit\nafter"
    ran = run_in(tmp_path, COMMAND, "client", "--sandbox", said=said)
    assert ran.stdout == "Echo: hello # world\nEcho: two words\n"
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    greeted = lines.index(GREETING)
    assert any(line.startswith("[Client] in the room ") for line in lines[:greeted])
    assert any(line.startswith("[Server] ") for line in lines[:greeted])


def test_without_settings_it_greets_all_the_same_and_a_call_that_fails_is_an_error(
    tmp_path: Path, nothing: str
) -> None:
    wrong = ("nosuch", "call nosuch", "call xmppHistory limit=many", "call echo {", "call echo {}")
    lines = "".join(f"/{line}\nhello\n" for line in wrong)
    ran = run(tmp_path, f"send hello\nstatus\n{lines}", "--env-file", nothing)
    failed, status, *shown = ran.stdout.splitlines()
    assert "unconfigured" in json.loads(failed)["error"]
    assert json.loads(status)["phase"] == "unconfigured"
    assert all(json.loads(line)["error"] for line in shown[::2])
    assert shown[1::2] == ["Echo: hello"] * len(wrong)
    assert ran.returncode == 1
    assert "not in any room, phase unconfigured: settings are missing or wrong;" in ran.stderr
    assert GREETING in ran.stderr


def test_without_input_it_greets_and_ends_and_with_stdout_closed_it_says_so(
    tmp_path: Path, other: list[str]
) -> None:
    ran = run(tmp_path, "hello\n", *other, redirection="<&-")
    assert (ran.stdout, ran.stderr, ran.returncode) == ("", f"{GREETING}\n", 0)
    ran = run(tmp_path, "hello\n", *other, redirection=">&-")
    told = "xmpp-bridge: stdout is closed, so that nothing could be shown\n"
    assert (ran.stderr, ran.returncode) == (told, 1)


def test_a_reader_that_has_seen_enough_ends_it_in_one_line(
    tmp_path: Path, other: list[str]
) -> None:
    seen_enough = ("/bin/bash", "-c", 'set -o pipefail; "$@" | head -n 1', "bash")
    ran = run_in(tmp_path, *seen_enough, COMMAND, "client", *other, said="hello\n" * 1_000)
    assert (ran.returncode, ran.stdout) == (1, "Echo: there\n")
    assert "[Client] nobody reads the answers any more" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/no/such/server", "/no/such/server does not start: No such file or directory"),
        ("true", "the server ended without an answer"),
    ],
)
def test_a_command_that_is_no_server_is_one_plain_line(
    command: str, told: str, tmp_path: Path
) -> None:
    ran = run(tmp_path, "hello\n", "--", command, "--option")
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr == f"[Client] {told}\n"


def test_as_json_each_answer_is_the_result_as_it_came(tmp_path: Path) -> None:
    said = "hello\nsend a\u202eb\n/call echo {}\n/histroy\nhelp\n/call current_time\n"
    ran = run(tmp_path, said, "--sandbox", "--json", "--toolset", "samples")
    answers: list[Any] = [json.loads(line) for line in ran.stdout.splitlines()]
    hello, sent, refused, unclear, help_, time = answers
    assert hello == {"content": [{"type": "text", "text": "Echo: hello"}], "isError": False}
    assert sent["structuredContent"]["message"] == "a\u202eb"
    assert refused["isError"] is True
    assert "no command /histroy: history?;" in unclear["error"]
    assert "/status" in help_
    assert "interpret" in time["structuredContent"]
    assert ran.returncode == 1
    assert ran.stdout.isascii()


@pytest.mark.parametrize("revision", revisions.ALL, ids=lambda revision: revision.date)
@pytest.mark.parametrize("framing", ["headers", "lines"])
def test_it_speaks_every_revision_in_both_framings(
    framing: str, revision: Revision, tmp_path: Path, nothing: str
) -> None:
    options = ("--framing", framing, "--revision", revision.date, "--env-file", nothing)
    ran = run(tmp_path, "hello\n", *options, more={"LOG_LEVEL": "DEBUG"})
    assert ran.stdout == "Echo: hello\n"
    assert "phase unconfigured: settings are missing or wrong;" in ran.stderr
    assert f"[Server] <- {revision.date} tools/call id" in ran.stderr
    assert "[Client] -> tools/call id" in ran.stderr


def test_a_server_that_speaks_another_revision_than_the_one_wanted_is_given_up(
    tmp_path: Path,
) -> None:
    agreed = hostile_server.reply('{"protocolVersion":"2024-11-05\\u001b","capabilities":{}}')
    command = hostile_server.command(tmp_path, {"initialize": agreed})
    ran = run(tmp_path, "hello\n", "--revision", "2025-06-18", "--", *command)
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert "[Client] the server speaks 2024-11-05\\u{1B} instead of 2025-06-18" in ran.stderr


def test_another_server_is_served_as_well(tmp_path: Path) -> None:
    said = (
        "hello\n/call add first=2 second=3\n/call refuse\n/status\n/resources other://thing\n"
        "/prompts greet name=Ada\n/tools add\n/wait\n/tools\n/resources\n/prompts\n"
    )
    ran = run(tmp_path, said, "--", sys.executable, str(OTHER_SERVER))
    hello, added, refused, status, thing, prompt, tool, wait, *lists = ran.stdout.splitlines()
    for line, kind, name in zip(
        lists, ("tools", "resources", "prompts"), ("echo", "thing", "greet"), strict=True
    ):
        assert json.loads(line)[kind][0]["name"] == name
    assert hello == "Other: hello"
    assert json.loads(added) == {"sum": 5}
    assert "Error executing tool refuse" in json.loads(refused)["error"]
    assert "Unknown tool: xmppStatus" in json.loads(status)["error"]
    assert json.loads(thing)["contents"][0]["text"] == "a thing"
    assert json.loads(prompt)["messages"][0]["content"]["text"] == "Say hello to Ada."
    assert json.loads(tool)["name"] == "add"
    assert "Unknown tool: xmppWait" in json.loads(wait)["error"]
    assert ran.returncode == 1
    assert GREETING in ran.stderr
    # It asks no other server for a status that only ours has.
    ours = [line for line in ran.stderr.splitlines() if line.startswith("[Client]")]
    assert [line for line in ours if "still at work" not in line] == []  # on a busy machine


def test_ctrl_c_ends_a_script_and_cancels_its_call(tmp_path: Path, other: list[str]) -> None:
    with subprocess.Popen(
        [COMMAND, "client", *other],
        stdin=PIPE,
        stdout=DEVNULL,
        stderr=PIPE,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    ) as client:
        assert client.stdin is not None
        assert client.stderr is not None
        client.stdin.write("/call odd {}\n")
        client.stdin.flush()
        while client.stderr.readline() != "unanswered odd\n":
            assert client.poll() is None
        client.send_signal(signal.SIGINT)
        assert (client.stderr.read(), client.wait(SECONDS)) == ("cancelled\n", 130)
