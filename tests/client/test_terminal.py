"""The client at a terminal that can move its cursor, line editing and all."""

import json
import os
import re
import signal
from asyncio import to_thread
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from xml.etree.ElementTree import Element

import pytest

from tests.client import hostile_server
from tests.client.piped import children
from tests.client.terminal import ECHOING, Terminal
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

TAB = "\t"
CTRL_C = "\x03"
CTRL_D = "\x04"
ENTER = "\r"
UP = "\x1b[A"
COLOUR = "  colour (string: red, green) *: "


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    """The client in the sandbox's room."""
    with Terminal(tmp_path_factory.mktemp("home"), ECHOING) as terminal:
        terminal.prompts()
        yield terminal


@pytest.fixture
def sandboxed(shared: Terminal) -> Terminal:
    """That client with an empty screen and an empty line."""
    shared.clear()
    shared.type(f"{CTRL_C}{ENTER}")
    shared.prompts()
    return shared


@pytest.fixture
def table() -> dict[str, str]:
    """What the server of `terminal` answers otherwise than others do."""
    painted = hostile_server.reply('{"content":[{"type":"text","text":"painted"}]}')
    said = json.dumps({"role": "user", "content": {"type": "text", "text": "Hello\x1b[31m."}})
    return {
        "tools/call odd": "",
        "tools/call paint": painted,
        "prompts/get odd": hostile_server.reply(f'{{"messages":[{said}]}}'),
    }


@pytest.fixture
def terminal(table: dict[str, str], tmp_path: Path) -> Iterator[Terminal]:
    """The client of a server that is no bridge."""
    with Terminal(tmp_path, ["--", *hostile_server.command(tmp_path, table)]) as terminal:
        terminal.prompts()
        yield terminal
    assert "Traceback" not in terminal.written


def test_tab_completes_commands_tools_arguments_and_nicknames(sandboxed: Terminal) -> None:
    sandboxed.type(f"/hi{TAB}")
    sandboxed.prompts("/history")
    sandboxed.type(f" lim{TAB}")
    sandboxed.prompts("/history limit=")
    sandboxed.type(CTRL_C)
    sandboxed.prompts()
    sandboxed.type(f"/call xmppO{TAB}")
    sandboxed.prompts("/call xmppOccupants")
    sandboxed.type(f" ni{TAB}Ec{TAB}")
    sandboxed.prompts("/call xmppOccupants nickname=Echo")
    sandboxed.type(ENTER)
    sandboxed.shows("nickname Echo")
    sandboxed.prompts()
    sandboxed.type(f"send Mc{TAB}")
    sandboxed.prompts("send McpDebug")


async def test_what_is_said_in_the_room_appears_above_the_line_being_typed(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    with Terminal(tmp_path, [], settings) as terminal:
        await to_thread(terminal.prompts)
        async with Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "W") as witness:
            await to_thread(terminal.tells, "* <W> is here")
            terminal.type("half a li")
            await to_thread(terminal.prompts, "half a li")
            witness.say("from \x85 elsewhere")
            await to_thread(terminal.tells, "<W> from \\u{85} elsewhere")
            await to_thread(terminal.prompts, "half a li")
            terminal.type(f"ne{ENTER}")
            await to_thread(terminal.shows, "Echo: half a line")
            await to_thread(terminal.prompts)
            terminal.type(f"/occupants W{TAB}{ENTER}")
            await to_thread(terminal.shows, "nickname W,")
            await to_thread(terminal.prompts)
        await to_thread(terminal.tells, "* <W> left")
        terminal.type(CTRL_D)
        assert await to_thread(terminal.end) == 0
    # The news and the server's log both tell it; one of them is enough.
    assert len([each for each in terminal.screen.lines if "elsewhere" in each]) == 1


@pytest.mark.parametrize("level", ["", "ERROR"])
async def test_every_room_and_kind_is_shown_once_whatever_the_server_logs(
    level: str, sandbox: XmppServer, tmp_path: Path
) -> None:
    lobby, logs = sandbox.room(), sandbox.room()
    settings = sandbox.environment(MUC_ROOM=f"{lobby},{logs}", LOG_LEVEL=level)
    with Terminal(tmp_path, [], settings, columns=160) as terminal:
        await to_thread(terminal.prompts)
        async with Witness(sandbox, sandbox.witness, logs, "W") as witness:
            await to_thread(terminal.tells, f"{logs}: * <W> is here")
            witness.say("an ERROR")
            await to_thread(terminal.tells, f"{logs}: <W> an ERROR")
            mute = witness.client.make_message(logs, mtype="groupchat")
            mute.append(Element("{urn:example}answer"))
            mute.send()
            await to_thread(terminal.tells, f"{logs}: <W> (no body: answer (urn:example))")
            witness.client.send_presence(pto=f"{logs}/W", pshow="away")
            await to_thread(terminal.tells, f"{logs}: * <W> is now (participant, none, away)")
        await to_thread(terminal.tells, f"{logs}: * <W> left")
        terminal.type(f"send to the lobby{ENTER}")
        await to_thread(terminal.tells, f"{lobby}: <McpDebug> (our own) to the lobby")
        await to_thread(terminal.prompts)
        terminal.type(CTRL_D)
        assert await to_thread(terminal.end) == 0
    lines = terminal.screen.lines
    assert len([line for line in lines if "an ERROR" in line]) == 1
    assert not [line for line in lines if "sending, id" in line]


def test_in_the_newest_revision_the_room_is_followed_as_well(tmp_path: Path) -> None:
    with Terminal(tmp_path, ["--revision", "2026-07-28", *ECHOING]) as terminal:
        terminal.prompts()
        terminal.type(f"send anybody?{ENTER}")
        terminal.tells("<Echo> You said: anybody?")
        lines = terminal.screen.lines
        assert not [line for line in lines if re.match(r"\[Server\].* You said", line)]


def test_where_stderr_is_a_file_it_has_the_whole_log_and_ctrl_c_cancels_the_call_in_flight(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as stderr,
        Terminal(tmp_path, ECHOING, {"LOG_LEVEL": "DEBUG"}, stderr=stderr) as terminal,
    ):
        terminal.prompts()
        terminal.type(f"send hi{ENTER}")
        terminal.tells("<Echo> You said: hi")
        terminal.shows("lobby@rooms.localhost sent it back after ")
        terminal.prompts()
        terminal.type(f"/wait timeoutSeconds=50{ENTER}")
        _await_line(log, "<- 2025-11-25 tools/call", "timeoutSeconds")
        terminal.type(CTRL_C)
        terminal.shows("(cancelled)")
        terminal.prompts()
        _await_line(log, "-- 2025-11-25 tools/call", "cancelled after")
        terminal.type(f"hello{ENTER}")
        terminal.shows("Echo: hello")
        terminal.prompts()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert "[Server]" not in terminal.written
    written = log.read_text("utf-8")
    assert "[Client] -> notifications/cancelled" in written
    assert re.search(r"(?m)^\[Server\] \S+Z sending, id \S+: hi$", written)
    assert re.search(r"(?m)^\[Server\] \S+Z <Echo> You said: hi$", written)


def _await_line(log: Path, *words: str) -> None:
    deadline = monotonic() + 20
    while not any(all(w in line for w in words) for line in log.read_text("utf-8").splitlines()):
        assert monotonic() < deadline, log.read_text("utf-8")


def test_ctrl_c_empties_the_line_and_at_an_empty_one_tells_how_to_leave(
    terminal: Terminal,
) -> None:
    terminal.type(f"never mind{CTRL_C}")
    terminal.prompts()
    assert "Ctrl-D" not in terminal.written
    terminal.type(CTRL_C)
    terminal.shows("Ctrl-D leaves")
    terminal.prompts()
    terminal.type(CTRL_D)
    assert terminal.end() == 0


def test_an_empty_line_is_no_required_text(sandboxed: Terminal) -> None:
    sandboxed.type(f"/call xmppPing{ENTER}")
    sandboxed.asks("  target (string) *: ")
    sandboxed.type(ENTER)
    sandboxed.shows("target is required")
    sandboxed.asks("  target (string) *: ")
    sandboxed.type(CTRL_C)
    sandboxed.shows("(not called)")


def test_arguments_are_asked_for_from_the_schema(terminal: Terminal) -> None:
    terminal.type(f"/call paint{ENTER}")
    terminal.asks(COLOUR)
    terminal.type(f"blue{ENTER}")
    terminal.shows("is wanted, not 'blue'")
    terminal.asks(COLOUR)
    terminal.type(f"gr{TAB}")
    terminal.asks(f"{COLOUR}green")
    terminal.type(ENTER)
    terminal.shows("  one above the other")
    terminal.asks("  layers (integer) *: ")
    terminal.type(ENTER)
    terminal.shows("layers is required")
    terminal.asks("  layers (integer) *: ")
    terminal.type(f"2{ENTER}")
    terminal.asks("  glossy (boolean) [false]: ")
    terminal.type(f"yes{ENTER}")
    terminal.shows("painted")
    terminal.prompts()
    terminal.type(f"/call paint{ENTER}")
    terminal.asks(COLOUR)
    terminal.type(CTRL_C)
    terminal.shows("(not called)")
    terminal.prompts()
    terminal.type(f"/prompts odd{ENTER}")
    terminal.asks("  who (string): ")
    terminal.type(f"Ada{ENTER}")
    # What a server writes cannot colour, or move the cursor of, our terminal.
    terminal.shows("user: Hello\\u{1B}[31m.")


def test_a_server_that_dies_while_one_types_is_told_in_one_line(terminal: Terminal) -> None:
    terminal.type("half a li")
    terminal.prompts("half a li")
    (child,) = children(terminal.process.pid)
    os.kill(child, 9)
    terminal.shows("[Client] the server ended: killed by signal 9")
    assert terminal.end() == 1


def test_what_was_typed_can_be_had_again_in_the_next_session_too(tmp_path: Path) -> None:
    command = ["--", *hostile_server.command(tmp_path, {})]
    settings = {"XDG_STATE_HOME": str(tmp_path / "state"), "MUC_PASSWORD": "open-sesame"}
    with Terminal(tmp_path, command, settings) as terminal:
        for line in ("first", "/call paint password=x", "open-sesame", "second"):
            terminal.prompts()
            terminal.type(f"{line}{ENTER}")
            terminal.until("no argument" if "=" in line else "Echo: there")
        terminal.prompts()
        terminal.type(UP)
        terminal.prompts("second")
        terminal.type(f"{CTRL_C}{CTRL_D}")
        assert terminal.end() == 1  # a call was refused
    path = tmp_path / "state" / "xmpp-bridge" / "history"
    kept = path.read_text()
    assert ("+first\n" in kept, "+second\n" in kept, "sesame" in kept, "=x" in kept) == (
        *(True, True),
        *(False, False),
    )
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    with Terminal(tmp_path, command, settings) as terminal:
        terminal.prompts()
        terminal.type(f"{UP}{UP}")
        terminal.prompts("first")
        terminal.type(f"{CTRL_C}{CTRL_D}")
        assert terminal.end() == 0


def test_pasted_lines_are_carried_out_one_by_one_and_alt_enter_inserts_a_line_into_one(
    sandboxed: Terminal,
) -> None:
    sandboxed.type("\x1b[200~one\ntwo\x1b[201~" + ENTER)
    sandboxed.shows("Echo: one")
    sandboxed.shows("Echo: two")
    sandboxed.prompts()
    sandboxed.type(f"send three\x1b{ENTER}four{ENTER}")
    sandboxed.tells("<McpDebug> (our own) three\\u{A}four")
    assert "Echo: four" not in sandboxed.written


def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    assert terminal.modes != terminal.modes_before
    terminal.process.send_signal(signal.SIGTERM)
    assert terminal.end() == 128 + signal.SIGTERM
    assert terminal.modes == terminal.modes_before


def test_it_ends_when_its_terminal_is_closed_even_while_a_call_runs(terminal: Terminal) -> None:
    started = children(terminal.process.pid)
    terminal.type(f"/call odd {{}}{ENTER}")
    terminal.shows("unanswered odd")
    terminal.hang_up()
    terminal.process.wait(20)
    assert not [each for each in started if Path(f"/proc/{each}").exists()]


def test_what_is_typed_while_a_call_runs_is_said_to_be_queued_and_answered_then(
    sandboxed: Terminal,
) -> None:
    sandboxed.type(f"/wait timeoutSeconds=2{ENTER}")
    sandboxed.shows("echo> /wait")
    sandboxed.type("hello\r")
    sandboxed.shows("(queued until the call that runs has ended")
    assert "Echo: hello" not in sandboxed.written
    sandboxed.shows("Echo: hello")
    assert sandboxed.written.count("(queued") == 1
    sandboxed.prompts()


def test_in_the_sandbox_a_line_is_said_as_it_was_typed_and_commands_begin_with_a_slash(
    tmp_path: Path,
) -> None:
    with Terminal(tmp_path, ["--sandbox"]) as chat:
        chat.prompts()
        chat.type(f"  hello  room=x{ENTER}")
        chat.tells("<Echo> You said:   hello  room=x")
        chat.prompts()
        chat.type(f"//me waves{ENTER}")
        chat.tells("<McpDebug> (our own) /me waves")
        chat.prompts()
        assert "Said in the room" not in chat.written
        for word in ("help", "history", "exit", "send hello"):
            chat.clear()
            chat.type(f"{word}{ENTER}")
            chat.tells(f"<Echo> You said: {word}")
            chat.shows("Said in the room; /help shows the commands.")
            chat.prompts()
        chat.type(f"/he{TAB}{ENTER}")
        chat.shows("TEXT                 say TEXT in the room")
        chat.prompts()
        chat.type(f"Ec{TAB}")
        chat.prompts("Echo")
        chat.type(f"{CTRL_C}/exit{ENTER}")
        assert chat.end() == 0
    assert "not said in the room" not in chat.written


async def test_the_history_of_the_room_stands_together_above_the_first_prompt(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with Witness(sandbox, sandbox.witness, settings["MUC_ROOM"], "W") as witness:
        for number in range(3):
            witness.say(f"before {number}")
            await witness.heard(f"before {number}")
        with Terminal(tmp_path, [], settings) as terminal:
            await to_thread(terminal.prompts)
            lines = [line for line in terminal.screen.lines if line.strip()]
    present = lines.index("--- here the present begins")
    assert [line.rpartition(") ")[2] for line in lines[present - 3 : present]] == [
        f"before {number}" for number in range(3)
    ]
    assert lines[present + 1] == "echo>"
