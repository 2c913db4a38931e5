"""The client as a script drives it: lines in, answers out, and an exit code."""

import json
import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.console.terminal import COMMAND, GREETING, SECONDS
from tests.e2e.bridge_process import TOOLS
from tests.servers.server import XmppServer

OTHER = """
import asyncio, sys
from mcp.server import MCPServer
server = MCPServer('other')
@server.tool()
def echo(message: str) -> str:
    return f'Other: {message}'
@server.tool()
def add(first: int, second: int) -> dict[str, int]:
    return {'sum': first + second}
@server.tool()
def refuse() -> str:
    raise ValueError('never')
@server.tool()
async def sleep() -> str:
    print('asleep', file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(60)  # until somebody cancels it
    finally:
        print('awake', file=sys.stderr, flush=True)
    return 'slept'
@server.resource('other://thing')
def thing() -> str:
    return 'a thing'
@server.prompt()
def greet(name: str) -> str:
    return f'Say hello to {name}.'
server.run('stdio')
"""


@pytest.fixture
def other(tmp_path: Path) -> list[str]:
    """The arguments that put a server of the official SDK behind the client."""
    path = tmp_path / "other.py"
    path.write_text(OTHER, encoding="utf-8")
    return ["--", sys.executable, str(path)]


def _run(
    home: Path, said: str, *arguments: str, **environment: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, "client", *arguments],
        input=said,
        capture_output=True,
        text=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        timeout=SECONDS,
        check=False,
    )


def _lines(ran: "subprocess.CompletedProcess[str]") -> list[Any]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_comments_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    ran = _run(tmp_path, "# a comment\n\n  # another\nhello # world\n", "--sandbox")
    assert (ran.stdout, ran.returncode) == ("Echo: hello # world\n", 0)


def test_every_tool_of_the_bridge_can_be_called(tmp_path: Path) -> None:
    said = (
        "/status\n/send hi\n/history limit=1\n/wait timeoutSeconds=0\n/occupants Echo\n"
        "/ping\n/ping Echo\n/info\n/info room\n/check\n"
        '/trace presence limit=1\n/call echo message=\'a b\'\n/call echo {"message": "c"}\n'
    )
    ran = _run(tmp_path, said, "--sandbox")
    answers = iter(ran.stdout.splitlines())
    status, sent, history, waited, occupants = islice(answers, 5)
    server, echo, about_server, about_room, check, trace, *echoes = answers
    assert json.loads(status)["connected"] is True
    assert json.loads(sent)["sent"] is True
    assert len(json.loads(history)["entries"]) == 1
    assert json.loads(waited)["matched"] is False
    assert [one["nickname"] for one in json.loads(occupants)["occupants"]] == ["Echo"]
    assert json.loads(server)["reachable"] is True
    assert json.loads(echo)["address"] == "lobby@rooms.localhost/Echo"
    assert json.loads(about_server)["address"] == "localhost"
    assert json.loads(about_room)["room"]["public"] is True
    assert json.loads(check)["ok"] is True
    assert "<presence" in json.loads(trace)["entries"][0]["xml"]
    assert echoes == ["Echo: a b", "Echo: c"]
    assert ran.returncode == 0
    assert "(our own) hi" in ran.stderr


def test_what_the_bridge_has_beside_tools_is_listed_read_and_filled_in(tmp_path: Path) -> None:
    said = (
        "/tools\n/tools xmppPing\n/resources\n/resources bridge://status\n"
        "/prompts\n/prompts diagnose-room nickname=Echo\n/framing\n/revision\n/bare\n"
    )
    ran = _run(tmp_path, said, "--sandbox")
    tools, tool, resources, status, prompts, prompt, *switches = ran.stdout.splitlines()
    assert len(json.loads(tools)["tools"]) == len(TOOLS)
    assert json.loads(tool)["name"] == "xmppPing"
    assert "bridge://status" in [one["uri"] for one in json.loads(resources)["resources"]]
    assert json.loads(json.loads(status)["contents"][0]["text"])["connected"] is True
    assert "diagnose-room" in [one["name"] for one in json.loads(prompts)["prompts"]]
    assert "Echo" in json.loads(prompt)["messages"][0]["content"]["text"]
    assert switches == [
        "framing: newline-delimited",
        "speaking MCP 2025-11-25",
        "speaking bare JSON-RPC, and MCP 2025-11-25 for what is no tool",
    ]
    assert ran.returncode == 0


def test_it_meets_real_servers(xmpp_server: XmppServer, tmp_path: Path) -> None:
    ran = _run(tmp_path, "send hi\n/occupants\n", "--json", **xmpp_server.environment())
    sent, occupants = _lines(ran)
    assert sent["structuredContent"]["sent"] is True
    assert occupants["structuredContent"]["count"] == 1
    assert ran.returncode == 0


def test_as_json_each_answer_is_the_result_as_it_came(tmp_path: Path) -> None:
    said = "hello\nsend a\u202eb\n/call echo {}\n/nosuch\nhelp\n/bare on\nhello\n"
    ran = _run(tmp_path, said, "--sandbox", "--json")
    hello, sent, refused, unclear, help_, _, bare = _lines(ran)
    assert hello == {"content": [{"type": "text", "text": "Echo: hello"}], "isError": False}
    assert sent["structuredContent"]["message"] == "a\u202eb"
    assert refused["isError"] is True
    assert "no command /nosuch" in unclear["error"]
    assert "status" in help_
    assert bare == {"content": [{"type": "text", "text": "Echo: hello"}]}
    assert ran.returncode == 1
    assert ran.stdout.isascii()


@pytest.mark.parametrize(
    "line",
    ["/nosuch", "/call nosuch", "/call xmppHistory limit=many", "/call echo {", "/call echo {}"],
)
def test_a_call_that_fails_is_an_error_and_the_exit_code(line: str, tmp_path: Path) -> None:
    ran = _run(tmp_path, f"{line}\nhello\n", "--sandbox")
    failed, echo = ran.stdout.splitlines()
    assert json.loads(failed)["error"]
    assert (echo, ran.returncode) == ("Echo: hello", 1)


def test_it_speaks_every_revision_both_framings_and_bare(tmp_path: Path) -> None:
    said = "".join(
        f"/framing {framing}\n/revision {date}\nhello\n/tools echo\n/bare on\nhello\n/bare off\n"
        for framing in ("headers", "lines")
        for date in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    )
    ran = _run(tmp_path, said, "--sandbox", LOG_LEVEL="DEBUG")
    assert ran.stdout.splitlines().count("Echo: hello") == 20
    assert ran.returncode == 0
    for dialect in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"):
        assert f"[Server] <- {dialect} tools/call id" in ran.stderr
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
    ran = _run(tmp_path, said, "--sandbox", "--json")
    ping, sent, malformed, _, batch, _, refused = _lines(ran)
    assert ping == {"jsonrpc": "2.0", "id": "mine", "result": {}}
    assert "nothing answers" in sent["text"]
    assert (malformed["id"], malformed["error"]["code"]) == (None, -32700)
    assert [one["id"] for one in batch] == [1, 2]
    assert refused["error"]["code"] == -32600
    assert ran.returncode == 1


def test_another_server_is_served_as_well(other: list[str], tmp_path: Path) -> None:
    said = (
        "hello\n/call add first=2 second=3\n/call refuse\n/status\n/resources other://thing\n"
        "/prompts greet name=Ada\n/tools add\n/wait\n"
    )
    ran = _run(tmp_path, said, *other)
    hello, added, refused, status, thing, prompt, tool, wait = ran.stdout.splitlines()
    assert hello == "Other: hello"
    assert json.loads(added) == {"sum": 5}
    assert "Error executing tool refuse" in json.loads(refused)["error"]
    assert "no tool xmppStatus" in json.loads(status)["error"]
    assert json.loads(thing)["contents"][0]["text"] == "a thing"
    assert json.loads(prompt)["messages"][0]["content"]["text"] == "Say hello to Ada."
    assert json.loads(tool)["name"] == "add"
    assert "no tool xmppWait" in json.loads(wait)["error"]
    assert ran.returncode == 1
    assert GREETING in ran.stderr


def test_another_server_is_spoken_to_in_the_newest_revision(
    other: list[str], tmp_path: Path
) -> None:
    ran = _run(tmp_path, "/revision 2026-07-28\nhello\n", *other)
    # Its SDK keeps a connection to the era that it began in, or does not: either is an answer.
    revision, hello = ran.stdout.splitlines()
    assert hello == "Other: hello"
    assert "2026-07-28" in revision or "error" in revision


def test_ctrl_c_ends_a_script_and_cancels_its_call(other: list[str], tmp_path: Path) -> None:
    client = subprocess.Popen(
        [COMMAND, "client", *other],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    with client:
        assert client.stdin is not None
        assert client.stderr is not None
        client.stdin.write("/call sleep\n")
        client.stdin.flush()
        while client.stderr.readline() != "asleep\n":
            assert client.poll() is None
        client.send_signal(signal.SIGINT)
        told = client.stderr.read()
        assert client.wait(SECONDS) == 130
    assert "awake" in told
    assert "Traceback" not in told


def test_a_server_that_writes_nonsense_is_told_of(tmp_path: Path) -> None:
    program = (
        "import sys, json\n"
        "print('starting up \\x1b[31m', flush=True)\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' in asked:\n"
        "        reply = {'jsonrpc': '2.0', 'id': asked['id'], 'result': {}}\n"
        "        print(json.dumps(reply), flush=True)\n"
    )
    ran = _run(tmp_path, "/tools\n", "--", sys.executable, "-c", program)
    assert "[Client] on the server's stdout is no message" in ran.stderr
    assert "\x1b" not in ran.stderr
    assert json.loads(ran.stdout) == {"tools": []}
    assert ran.returncode == 0


def test_a_server_that_ends_while_nothing_is_asked_is_told_at_once(tmp_path: Path) -> None:
    told_to_end = tmp_path / "end"
    os.mkfifo(told_to_end)
    ends = "import os, sys, threading\ndef end():\n    open(sys.argv[1]).read()\n    os._exit(4)\n"
    program = f"{ends}threading.Thread(target=end, daemon=True).start()\n{OTHER}"
    client = subprocess.Popen(
        [COMMAND, "client", "--", sys.executable, "-c", program, str(told_to_end)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    with client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        client.stdin.write("/call add first=1 second=2\n")
        client.stdin.flush()
        assert json.loads(client.stdout.readline()) == {"sum": 3}
        told_to_end.write_text("")
        assert "[Client] the server ended: exit code 4\n" in client.stderr.read()
        assert client.wait(SECONDS) == 1
