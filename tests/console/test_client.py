import json
import os
import re
import subprocess
import sys
from asyncio import to_thread
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.console.terminal import COMMAND, GREETING, SECONDS, Terminal
from tests.servers.server import XmppServer
from tests.servers.witness import Witness


def _environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), **(extra or {})}


def _run(
    home: Path,
    said: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [COMMAND, "client", *arguments],
        input=said,
        capture_output=True,
        text=True,
        cwd=home,
        env=_environment(home, environment),
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture
def nothing(tmp_path: Path) -> str:
    """An empty settings file, which keeps the checkout's own away."""
    path = tmp_path / "nothing.env"
    path.touch()
    return str(path)


def test_from_a_pipe_stdout_has_one_answer_a_line_and_the_greeting_is_on_stderr(
    tmp_path: Path,
) -> None:
    ran = _run(tmp_path, "hello\n\n  two words  \nlast without newline", "--sandbox")
    assert ran.stdout == "Echo: hello\nEcho: two words\nEcho: last without newline\n"
    assert ran.returncode == 0
    lines = ran.stderr.splitlines()
    greeted = lines.index(GREETING)
    assert any(line.startswith("[Client] in the room ") for line in lines[:greeted])
    assert any(line.startswith("[Server] ") for line in lines[:greeted])


def test_status_is_one_line_of_json_that_says_we_are_in(tmp_path: Path) -> None:
    ran = _run(tmp_path, "status\n", "--sandbox")
    (line,) = ran.stdout.splitlines()
    status = json.loads(line)
    assert status["connected"] is True
    assert ran.returncode == 0


def test_send_speaks_in_the_room(tmp_path: Path) -> None:
    ran = _run(tmp_path, "send hello,  everybody\n", "--sandbox")
    (line,) = ran.stdout.splitlines()
    sent = json.loads(line)
    assert (sent["sent"], sent["message"]) == (True, "hello,  everybody")
    assert ran.returncode == 0
    assert "(our own) hello,  everybody" in ran.stderr


def test_help_lists_the_commands(tmp_path: Path, nothing: str) -> None:
    ran = _run(tmp_path, "help\n", "--env-file", nothing)
    for command in ("status", "send", "help", "exit"):
        assert re.search(rf"^{command}\b", ran.stdout, re.MULTILINE)


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_what_follows_an_exit_is_not_read(word: str, tmp_path: Path, nothing: str) -> None:
    ran = _run(tmp_path, f"before\n{word}\nafter\n", "--env-file", nothing)
    assert (ran.stdout, ran.returncode) == ("Echo: before\n", 0)


@pytest.mark.parametrize("line", ["send", "send ", "status please", "exit now", "helpful"])
def test_what_only_looks_like_a_command_is_a_text(line: str, tmp_path: Path, nothing: str) -> None:
    ran = _run(tmp_path, f"{line}\n", "--env-file", nothing)
    assert ran.stdout == f"Echo: {line.strip()}\n"


def test_without_settings_it_greets_all_the_same_and_a_send_fails_with_the_reason(
    tmp_path: Path, nothing: str
) -> None:
    ran = _run(tmp_path, "hello\nsend hello\nstatus\n", "--env-file", nothing)
    echo, failed, status = ran.stdout.splitlines()
    assert echo == "Echo: hello"
    assert "unconfigured" in json.loads(failed)["error"]
    assert json.loads(status)["phase"] == "unconfigured"
    assert ran.returncode == 1
    assert "[Client] not in the room: settings are missing or wrong; status has all\n" in ran.stderr
    assert GREETING in ran.stderr


def test_a_server_that_is_not_there_is_a_verdict_too(tmp_path: Path) -> None:
    ran = _run(
        tmp_path,
        "hello\n",
        environment={
            "XMPP_SERVICE": "xmpp://127.0.0.1:1",
            "XMPP_USERNAME": "bot@localhost",
            "XMPP_PASSWORD": "bot-passes-4711",
            "MUC_ROOM": "room@conference.localhost",
        },
    )
    assert ran.stdout == "Echo: hello\n"
    assert "[Client] not in the room: Nothing listens at xmpp://127.0.0.1:1." in ran.stderr


async def test_it_takes_the_settings_of_the_bridge(xmpp_server: XmppServer, tmp_path: Path) -> None:
    settings = xmpp_server.environment()
    async with Witness(xmpp_server, xmpp_server.witness, settings["MUC_ROOM"], "W") as witness:
        ran = await to_thread(_run, tmp_path, "send from the client\n", environment=settings)
        assert json.loads(ran.stdout)["sent"] is True
        await witness.heard("from the client")
        await witness.left("McpDebug")


@pytest.mark.parametrize("stdin", ["closed", "empty"])
def test_without_input_it_greets_and_ends(stdin: str, tmp_path: Path, nothing: str) -> None:
    redirection = "<&-" if stdin == "closed" else "</dev/null"
    ran = subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", COMMAND, "client", "--env-file", nothing],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_environment(tmp_path),
        timeout=SECONDS,
        check=False,
    )
    assert (ran.stdout, ran.returncode) == ("", 0)
    assert GREETING in ran.stderr
    assert "Traceback" not in ran.stderr


def test_with_stdout_closed_it_says_so(tmp_path: Path, nothing: str) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", COMMAND, "client", "--env-file", nothing],
        input="hello\n",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=_environment(tmp_path),
        timeout=SECONDS,
        check=False,
    )
    assert (ran.stderr, ran.returncode) == (
        "[Client] stdout is closed, so no answer could be read\n",
        1,
    )


def test_a_reader_that_has_seen_enough_ends_it_in_one_line(tmp_path: Path, nothing: str) -> None:
    client = subprocess.Popen(
        [COMMAND, "client", "--env-file", nothing],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
        cwd=tmp_path,
        env=_environment(tmp_path),
    )
    with client:
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        client.stdin.write("first\n")
        assert client.stdout.readline() == "Echo: first\n"
        client.stdout.close()
        client.stdin.write("second\n")
        told = client.stderr.read()
        assert client.wait(SECONDS) == 1
    assert "[Client] nobody reads the answers any more" in told
    assert "Traceback" not in told
    assert "BrokenPipe" not in told


def test_answers_are_json_even_with_characters_nobody_sees(tmp_path: Path) -> None:
    ran = _run(tmp_path, "send a\u202eb\nx\u202ey\n", "--sandbox")
    sent, echo = ran.stdout.splitlines()
    assert json.loads(sent)["message"] == "a\\u{202E}b"
    assert echo == "Echo: x\\u{202E}y"


def test_a_command_that_does_not_start_is_one_plain_line(tmp_path: Path) -> None:
    ran = _run(tmp_path, "hello\n", "--", "/no/such/server", "--option")
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr == "[Client] /no/such/server does not start: No such file or directory\n"


def test_a_command_that_ends_at_once_is_one_plain_line(tmp_path: Path) -> None:
    ran = _run(tmp_path, "hello\n", "--", "true")
    assert (ran.stdout, ran.returncode) == ("", 1)
    assert ran.stderr == "[Client] the server ended without an answer\n"


def test_another_server_may_stand_behind_it(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server import MCPServer\n"
        "server = MCPServer('other')\n"
        "@server.tool()\n"
        "def echo(message: str) -> str:\n"
        "    return f'Other: {message}'\n"
        "server.run('stdio')\n",
        encoding="utf-8",
    )
    ran = _run(tmp_path, "hello\n", "--", sys.executable, str(server))
    assert ran.stdout == "Other: hello\n", ran.stderr
    assert ran.returncode == 0
    # It asks no other server for a status that only ours has.
    assert "[Client]" not in ran.stderr


@pytest.fixture
def terminal(tmp_path: Path, nothing: str) -> Iterator[Terminal]:
    """The client at a terminal that cannot move its cursor, without settings."""
    arguments = ["--env-file", nothing]
    with Terminal(tmp_path, arguments, term="dumb", stderr=subprocess.DEVNULL) as terminal:
        yield terminal


def test_at_a_terminal_it_greets_and_prompts_and_echoes(terminal: Terminal) -> None:
    assert terminal.until("echo> ") == f"{GREETING}\necho> "
    terminal.type("hello\n")
    assert re.search(r"\nEcho: hello\n\(\d+\.\d ms\)\necho> $", terminal.until("echo> "))
    terminal.type("help\n")
    assert "status" in terminal.until("echo> ")
    terminal.type("exit\n")
    assert terminal.end() == 0


def test_at_a_terminal_a_status_is_laid_out_and_a_failure_is_told_in_words(
    terminal: Terminal,
) -> None:
    terminal.until("echo> ")
    terminal.type("status\n")
    assert '\n  "connected": false,\n' in terminal.until("echo> ")
    terminal.type("send hello\n")
    assert "Condition: unconfigured" in terminal.until("echo> ")
    terminal.type("exit\n")
    assert terminal.end() == 1


def test_at_a_plain_terminal_ctrl_c_tells_how_to_leave_and_cancels_calls(tmp_path: Path) -> None:
    with Terminal(tmp_path, ["--sandbox"], {"LOG_LEVEL": "DEBUG"}, term="dumb") as terminal:
        terminal.until("\necho> ")
        terminal.type("half a line\x03")
        terminal.until("Ctrl-D leaves, and so does exit.\n")
        terminal.until("echo> ")  # perhaps after lines of the server's log
        terminal.type("/wait timeoutSeconds=50\n")
        terminal.until("'name': 'xmppWait'")
        terminal.type("\x03")
        terminal.until("(cancelled)\n")
        terminal.until("cancelled after")
        terminal.type("hello\n")
        terminal.until("Echo: hello")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_at_a_plain_terminal_news_stand_on_lines_of_their_own(tmp_path: Path) -> None:
    with Terminal(tmp_path, ["--sandbox"], term="dumb") as terminal:
        terminal.until("echo> ")
        terminal.type("send hi\n")
        terminal.until("<Echo> You said: hi\n")
        terminal.until("echo> ")  # perhaps after the answer, where the news were quicker
        assert "\x1b" not in terminal.written


def test_at_a_plain_terminal_arguments_are_asked_for(terminal: Terminal) -> None:
    terminal.until("echo> ")
    terminal.type("/call echo\n")
    terminal.until("  what to send back\n  message (string) *: ")
    terminal.type("hello\n")
    assert "\nEcho: hello\n" in terminal.until("echo> ")


def test_at_a_terminal_the_end_of_input_leaves(terminal: Terminal) -> None:
    terminal.until("echo> ")
    terminal.type("\x04")
    assert terminal.end() == 0
