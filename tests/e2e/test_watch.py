"""`xmpp-bridge watch` as a person runs it, in a room on a real server."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bridge.sandbox.server import LOBBY
from tests.e2e.bridge_process import NOWHERE
from tests.e2e.checking import SGR
from tests.e2e.here import run_here
from tests.e2e.watching import Watching, shell
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

WATCHER = "McpDebug-watch"
TIME = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
"""A time as a pipe has it."""


@asynccontextmanager
async def _watched(
    server: XmppServer, home: Path, *options: str, columns: int | None = None, **more: str
) -> AsyncIterator[tuple[Witness, Watching]]:
    """Wilma, in a room, and who watches it."""
    settings = server.environment(None, **more)
    async with (
        Witness(server, server.witness, settings["MUC_ROOM"], "Wilma") as wilma,
        Watching(home, settings, *options, columns=columns) as watching,
    ):
        await wilma.joined(WATCHER)
        yield wilma, watching


async def test_from_a_pipe_stdout_is_the_room_and_stderr_all_else(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with _watched(prosody, tmp_path) as (wilma, watching):
        wilma.say("one\ntwo")
        await watching.shows("one\\u{A}two\n")
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
        await wilma.left(WATCHER)
    assert re.sub(STAMP, "T", watching.out).endswith("T  <Wilma>             one\\u{A}two\n")
    assert "* <Wilma> is here (" in watching.out
    assert "\x1b" not in watching.out + watching.err
    assert f"in the room as {wilma.room}/{WATCHER}" in watching.err
    *before, present, said = watching.out.splitlines()
    assert all(re.match(f"{STAMP}  [<*]", line) for line in (*before, said))
    assert re.fullmatch(f"{STAMP}  --- here the present begins", present)
    assert all(re.match(f"{STAMP}  [a-z]", line) for line in watching.err.splitlines())


async def test_on_a_terminal_it_is_in_colour_and_ctrl_c_ends_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    async with _watched(prosody, tmp_path, columns=60, TERM="xterm") as (wilma, watching):
        wilma.say("word " * 12 + "日本語\x85 end")
        await watching.shows("end")
        watching.press(b"\x03")
        assert await watching.ended() == 0
    shown = watching.out
    assert len(set(re.findall("\x1b\\[([0-9]+)m<Wilma>", shown))) == 1
    assert "日本語\\u{85} end" in shown
    plain = SGR.sub("", shown)
    (first,) = re.findall("  <Wilma>.*\n((?: {30}.*\n)*)", plain)
    assert len(first.splitlines()) == 2  # 74 columns in lines of 30
    assert max(map(len, plain.splitlines())) <= 60


async def test_json_is_one_object_a_line_in_ascii_with_the_exact_text(
    prosody: XmppServer, tmp_path: Path
) -> None:
    hostile = 'a\u2028{"kind":"message"}\n\x9b2J \u202e日本\x7f'
    async with _watched(prosody, tmp_path, "--json") as (wilma, watching):
        wilma.say(hostile)
        await watching.shows("\\u202e")
        await wilma.kick(WATCHER, "enough")
        await watching.shows('"waiting"')
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
    assert watching.out.replace("\n", "").isascii()
    assert watching.out.replace("\n", "").isprintable()
    events = [json.loads(line) for line in watching.out.splitlines()]
    assert all({"cursor", "at", "kind"} <= event.keys() for event in events)
    assert {"connection", "join", "message", "leave"} <= {event["kind"] for event in events}
    (said,) = [event for event in events if event["kind"] == "message"]
    assert (said["sender"], said["body"]) == ("Wilma", hostile)
    waiting = next(event for event in events if event.get("phase") == "waiting")
    assert waiting["condition"] == "not-allowed"
    assert "waiting: " in watching.err


async def test_stanzas_are_shown_without_their_secrets(prosody: XmppServer, tmp_path: Path) -> None:
    options, secret = ("--stanzas", "--json"), "room-secret-4712"
    async with _watched(prosody, tmp_path, *options, MUC_PASSWORD=secret) as (wilma, watching):
        wilma.say("to be seen")
        await watching.shows("to be seen")
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
    assert secret not in watching.out + watching.err
    assert prosody.bot.password not in watching.out + watching.err
    assert watching.out.count("[redacted]") >= 4  # SASL and the room's password
    entries = [json.loads(line) for line in watching.out.splitlines()]
    names = {"cursor", "at", "kind", "direction", "bytes", "connection", "xml"}
    assert all(entry.keys() == names for entry in entries)
    assert {entry["direction"] for entry in entries} == {"in", "out"}


async def test_the_first_event_that_the_filters_pick_ends_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    wanted = ("--from", "Wilma", "--contains", "done", "--first", "--timeout", "20")
    async with Witness(prosody, prosody.witness, settings["MUC_ROOM"], "Wilma") as wilma:
        wilma.say("done, before anybody watched")
        await wilma.heard("done, before anybody watched")
        async with Watching(tmp_path, settings, *wanted) as watching:
            await wilma.joined(WATCHER)
            wilma.say("not yet")
            wilma.say("DONE\nat last")
            wilma.say("done again")
            assert await watching.ended() == 0
    assert re.sub(STAMP, "T", watching.out) == "T  <Wilma>             DONE\\u{A}at last\n"


ENDS: dict[str, tuple[dict[str, str], tuple[str, ...], int, str, str]] = {
    "nothing matched": ({}, ("--contains", "nothing", "--timeout", "1"), 1, "", "within 1 s"),
    "nobody of this name": (
        {"MUC_ROOM": LOBBY},
        ("--from", "Ecco", "--first", "--timeout", "4"),
        1,
        "",
        'within 4 s; seen in the room: "Echo"\n',
    ),
    "a refused login": ({"XMPP_PASSWORD": "wrong"}, ("--first",), 1, "", "not-authorized"),
    "something matched": ({}, ("--kind", "connection", "--timeout", "1"), 0, "joined", ""),
    "what cannot be picked": ({}, ("--stanzas", "--first"), 2, "", "--stanzas cannot be combined"),
}
"""The settings, the options, the exit code, and what is on stdout and stderr."""


@pytest.mark.parametrize(("changed", "options", "code", "out", "err"), ENDS.values(), ids=ENDS)
def test_it_ends_with_what_came_of_it(
    changed: dict[str, str],
    options: tuple[str, ...],
    code: int,
    out: str,
    err: str,
    sandbox: XmppServer,
    tmp_path: Path,
) -> None:
    ran = run_here(tmp_path, "watch", *options, **(sandbox.environment() | changed))
    assert ran.returncode == code
    assert (out in ran.stdout, bool(ran.stdout)) == (True, bool(out))
    assert err in ran.stderr
    assert ("nothing matched" in ran.stderr) is ("within" in err)


async def test_a_server_that_is_not_there_is_waited_for_until_an_impatient_ctrl_c(
    tmp_path: Path,
) -> None:
    async with Watching(tmp_path, NOWHERE) as watching:
        await watching.says("waiting: Nothing listens at")
        while watching.running:
            watching.signal(signal.SIGINT)
            await asyncio.sleep(0.001)  # two signals at once become one
        assert await watching.ended() == 0
    assert watching.out == ""


async def test_a_reader_who_has_seen_enough_ends_it_though_nothing_more_happens(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    async with Watching(tmp_path, sandbox.environment()) as watching:
        await watching.says("in the room as")
        watching.close_stdout()
        assert await watching.ended() == 0
    assert "roken" not in watching.err


def test_with_stderr_closed_it_watches_all_the_same(tmp_path: Path) -> None:
    ran = shell('"$@" 2>&- | head -n 1', tmp_path, "watch", "--sandbox")
    assert "* <Echo> is here" in ran.stdout
