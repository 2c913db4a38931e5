"""The frontend at a terminal that cannot move its cursor, and the signals that end a command."""

import asyncio
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from bridge.views.termination import call_on_termination
from tests.client import hostile_server
from tests.client.terminal import ECHOING, GREETING, Terminal


@pytest.mark.parametrize("ignored", [False, True], ids=["usual", "nohup"])
async def test_a_hangup_is_acted_on_unless_it_is_ignored(ignored: bool) -> None:
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
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


def test_at_a_plain_terminal_it_greets_and_prompts_and_asks_for_arguments(tmp_path: Path) -> None:
    painted = {"tools/call paint": hostile_server.structured('{"a":1}')}
    command = ["--", *hostile_server.command(tmp_path, painted)]
    with Terminal(tmp_path, command, term="dumb", stderr=subprocess.DEVNULL) as terminal:
        assert terminal.until("echo> ") == f"{GREETING}\necho> "
        terminal.type("hello\n")
        assert re.search(r"\nEcho: there\n\(\d+\.\d ms\)\necho> $", terminal.until("echo> "))
        terminal.type("/call paint\n")
        terminal.until("  colour (string: red, green) *: ")
        terminal.type("red\n")
        terminal.until("  one above the other\n  layers (integer) *: ")
        terminal.type("2\n")
        terminal.until("  glossy (boolean) [false]: ")
        terminal.type("\n")
        assert "\na: 1\n" in terminal.until("echo> ")
        terminal.type("help\n")
        assert "status" in terminal.until("echo> ")
        terminal.type("exit\n")
        assert terminal.end() == 0


def test_at_a_plain_terminal_news_have_their_lines_and_ctrl_c_cancels_calls(tmp_path: Path) -> None:
    debug = {"LOG_LEVEL": "DEBUG"}
    # So wide that no line of the log is broken where the test looks.
    with Terminal(tmp_path, ECHOING, debug, term="dumb", columns=500) as terminal:
        terminal.until("\necho> ")
        terminal.type("half a line\x03")
        terminal.until("half a line\r\n")  # a line of the server's log has the prompt, too
        terminal.until("echo> ")
        terminal.type("\x03")
        terminal.until("Ctrl-D leaves, and so does exit.\n")
        terminal.until("echo> ")  # perhaps after lines of the server's log
        terminal.type("send hi\n")
        terminal.until("<Echo> You said: hi\n")
        terminal.until("echo> ")  # perhaps after the answer, where the news were quicker
        terminal.type("/wait timeoutSeconds=50\n")
        terminal.until('"name":"xmppWait"')
        terminal.type("\x03")
        terminal.until("(cancelled)\n")
        terminal.until("cancelled after")
        terminal.type("hello\n")
        terminal.until("not said in the room)\n")
        terminal.until("echo> ")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "\x1b" not in terminal.written
