"""The frontend at a terminal that cannot move its cursor, and the signals that end a command."""

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.views.termination import call_on_termination
from tests.client.terminal import GREETING, Terminal


@pytest.mark.parametrize("ignored", [False, True], ids=["usual", "nohup"])
async def test_a_hangup_is_acted_on_unless_it_is_ignored(ignored: bool) -> None:
    loop = asyncio.get_running_loop()
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    heard: asyncio.Queue[int] = asyncio.Queue()
    if ignored:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        call_on_termination(heard.put_nowait)
        assert (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN) == ignored
        for number in before if not ignored else (signal.SIGTERM,):
            os.kill(os.getpid(), number)
            async with asyncio.timeout(10):
                assert await heard.get() == number
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@pytest.fixture
def terminal(tmp_path: Path, nothing: str) -> Iterator[Terminal]:
    """The client at a terminal that cannot move its cursor, without settings."""
    arguments = ["--env-file", nothing]
    with Terminal(tmp_path, arguments, term="dumb", stderr=subprocess.DEVNULL) as terminal:
        yield terminal


def test_at_a_terminal_it_greets_and_prompts_and_echoes(terminal: Terminal) -> None:
    assert terminal.until("echo> ") == f"{GREETING}\necho> "
    terminal.type("hello\n")
    assert re.search(
        r"\nEcho: hello\n\(\d+\.\d ms; not said in the room\)\necho> $", terminal.until("echo> ")
    )
    terminal.type("help\n")
    assert "status" in terminal.until("echo> ")
    terminal.type("exit\n")
    assert terminal.end() == 0


def test_at_a_plain_terminal_ctrl_c_tells_how_to_leave_and_cancels_calls(tmp_path: Path) -> None:
    with Terminal(tmp_path, ["--sandbox"], {"LOG_LEVEL": "DEBUG"}, term="dumb") as terminal:
        terminal.until("\necho> ")
        terminal.type("half a line\x03")
        terminal.until("\necho> ")
        terminal.type("\x03")
        terminal.until("Ctrl-D leaves, and so does exit.\n")
        terminal.until("echo> ")  # perhaps after lines of the server's log
        terminal.type("/wait timeoutSeconds=50\n")
        terminal.until("'name': 'xmppWait'")
        terminal.type("\x03")
        terminal.until("(cancelled)\n")
        terminal.until("cancelled after")
        terminal.type("hello\n")
        terminal.until("Echo: hello")
        terminal.until("echo> ")
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
    terminal.until("  after `Echo: `\n  message (string): ")
    terminal.type("hello\n")
    terminal.until("  as it is\n  text (string): ")
    terminal.type("\n")
    assert "\nEcho: hello\n" in terminal.until("echo> ")
