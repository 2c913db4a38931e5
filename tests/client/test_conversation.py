"""The client as a script drives it: lines in, answers out, and an exit code."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridge.client.conversation import SENDING_LINE
from bridge.mcp import revisions
from tests.client import other_server
from tests.client.piped import Piped, children, run, run_in_shell
from tests.client.terminal import GREETING

OTHER = ("--", *other_server.COMMAND)


def test_from_a_pipe_stdout_has_one_answer_a_line_and_the_greeting_is_on_stderr(
    tmp_path: Path,
) -> None:
    said = "# a comment\nhello # world\n\n  # another\n  two words  \nexit\nafter"
    ran = run(tmp_path, said, "--sandbox")
    assert ran.stdout == "Echo: hello # world\nEcho: two words\n"
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    greeted = lines.index(GREETING)
    assert any(line.startswith("[Client] in the room ") for line in lines[:greeted])
    assert any(line.startswith("[Server] ") for line in lines[:greeted])


@pytest.mark.parametrize(
    ("event", "hidden"),
    [
        ("T sending, id c3: hi", True),
        ("T lobby@muc.example: sending, id c3: hi", True),
        ("T <Ann: sending, id c3> hi", False),
        ("T *: sending, id c3: is here", False),
        ("T lobby@muc.example: <Ann: sending, id c3> hi", False),
    ],
)
def test_only_our_own_sending_is_left_to_its_reflection(event: str, hidden: bool) -> None:
    assert bool(SENDING_LINE.match(event)) is hidden


def test_without_settings_it_greets_all_the_same_and_a_send_fails_with_the_reason(
    tmp_path: Path, nothing: str
) -> None:
    ran = run(tmp_path, "hello\nsend hello\nstatus\n", "--env-file", nothing)
    echo, failed, status = ran.stdout.splitlines()
    assert echo == "Echo: hello"
    assert "unconfigured" in json.loads(failed)["error"]
    assert json.loads(status)["phase"] == "unconfigured"
    assert ran.returncode == 1
    assert "not in the room: settings are missing or wrong; type status to see which" in ran.stderr
    assert GREETING in ran.stderr


def test_without_input_it_greets_and_ends_and_with_stdout_closed_it_says_so(
    tmp_path: Path, nothing: str
) -> None:
    ran = run_in_shell(tmp_path, "<&-", "--env-file", nothing)
    assert (ran.stdout, ran.returncode) == ("", 0)
    assert GREETING in ran.stderr
    assert "Traceback" not in ran.stderr
    ran = run_in_shell(tmp_path, ">&-", "--env-file", nothing)
    told = "xmpp-bridge: stdout is closed, so that nothing could be shown\n"
    assert (ran.stderr, ran.returncode) == (told, 1)


def test_a_reader_that_has_seen_enough_ends_it_in_one_line(tmp_path: Path, nothing: str) -> None:
    client = Piped(tmp_path, "--env-file", nothing)
    client.say("first")
    assert client.stdout.readline() == "Echo: first\n"
    client.stdout.close()
    client.say("second")
    code, told = client.end()
    assert code == 1
    assert "[Client] nobody reads the answers any more" in told
    assert "Traceback" not in told
    assert "BrokenPipe" not in told


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


def _lines(ran: "subprocess.CompletedProcess[str]") -> list[Any]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_as_json_each_answer_is_the_result_as_it_came(tmp_path: Path) -> None:
    said = "hello\nsend a\u202eb\n/call echo {}\n/nosuch\nhelp\n/bare on\nhello\n"
    ran = run(tmp_path, said, "--sandbox", "--json")
    hello, sent, refused, unclear, help_, _, bare = _lines(ran)
    assert hello == {"content": [{"type": "text", "text": "Echo: hello"}], "isError": False}
    assert sent["structuredContent"]["message"] == "a\u202eb"
    assert refused["isError"] is True
    assert "no command /nosuch" in unclear["error"]
    assert "status" in help_
    assert bare == {"content": [{"type": "text", "text": "Echo: hello"}]}
    assert ran.returncode == 1
    assert ran.stdout.isascii()


def test_a_call_that_fails_is_an_error_and_the_exit_code(tmp_path: Path) -> None:
    wrong = ("nosuch", "call nosuch", "call xmppHistory limit=many", "call echo {", "call echo {}")
    ran = run(tmp_path, "".join(f"/{line}\nhello\n" for line in wrong), "--sandbox")
    assert all(json.loads(line)["error"] for line in ran.stdout.splitlines()[::2])
    assert ran.stdout.splitlines()[1::2] == ["Echo: hello"] * len(wrong)
    assert ran.returncode == 1
    ran = run(tmp_path, "send hello\n", "--sandbox", more={"BRIDGE_READ_ONLY": "1"})
    assert "withheld by BRIDGE_READ_ONLY in the environment" in json.loads(ran.stdout)["error"]


def test_it_speaks_every_revision_both_framings_and_bare(tmp_path: Path) -> None:
    said = "".join(
        f"/framing {framing}\n/revision {one.date}\nhello\n/bare on\nhello\n/bare off\n"
        for framing in ("headers", "lines")
        for one in revisions.ALL
    )
    said += "/framing\n/revision\n/bare\n"
    ran = run(tmp_path, said, "--sandbox", more={"LOG_LEVEL": "DEBUG"})
    assert ran.stdout.splitlines().count("Echo: hello") == 20
    framing, speaking, bare = ran.stdout.splitlines()[-3:]
    assert framing == "framing: newline-delimited"
    assert speaking == f"speaking MCP {revisions.ALL[-1].date}"
    assert bare.startswith("speaking bare JSON-RPC")
    assert ran.returncode == 0
    for revision in revisions.ALL:
        assert f"[Server] <- {revision.date} tools/call id" in ran.stderr
    assert "[Server] <- bare echo id" in ran.stderr
    assert "[Client] -> tools/call id" in ran.stderr


def test_a_raw_request_is_answered_as_it_came(tmp_path: Path) -> None:
    said = (
        '/raw {"jsonrpc":"2.0","id":"mine","method":"ping"}\n'
        '/raw {"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        "/raw {nonsense\n"
        "/revision 2025-03-26\n"
        '/raw [{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n'
        "/revision 2025-11-25\n"
        '/raw [{"jsonrpc":"2.0","id":1,"method":"ping"}]\n'
    )
    ran = run(tmp_path, said, "--sandbox", "--json")
    ping, sent, malformed, _, batch, _, refused = _lines(ran)
    assert ping == {"jsonrpc": "2.0", "id": "mine", "result": {}}
    assert "nothing answers" in sent["text"]
    assert (malformed["id"], malformed["error"]["code"]) == (None, -32700)
    assert [one["id"] for one in batch] == [1, 2]
    assert refused["error"]["code"] == -32600
    assert ran.returncode == 1


def test_another_server_is_served_as_well(tmp_path: Path) -> None:
    said = (
        "hello\n/call add first=2 second=3\n/call refuse\n/status\n/resources other://thing\n"
        "/prompts greet name=Ada\n/tools add\n/wait\n/tools\n/resources\n/prompts\n"
    )
    ran = run(tmp_path, said, *OTHER)
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
    assert "[Client]" not in ran.stderr  # it asks no other server for a status that only ours has


def test_ctrl_c_ends_a_script_and_cancels_its_call(tmp_path: Path) -> None:
    client = Piped(tmp_path, *OTHER)
    client.say("/call sleep seconds=60")
    while client.stderr.readline() != "asleep\n":
        assert client.process.poll() is None
    client.process.send_signal(signal.SIGINT)
    code, told = client.end()
    assert code == 130
    assert "awake" in told
    assert "Traceback" not in told


def test_a_server_that_ends_while_nothing_is_asked_is_told_at_once(tmp_path: Path) -> None:
    client = Piped(tmp_path, *OTHER)
    client.say("/call add first=1 second=2")
    assert json.loads(client.stdout.readline()) == {"sum": 3}
    (child,) = children(client.process.pid)
    os.kill(child, signal.SIGKILL)
    code, told = client.end()
    assert code == 1
    assert "[Client] the server ended: killed by signal 9\n" in told
