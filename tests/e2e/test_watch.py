"""`xmpp-bridge watch` as a person runs it, in a room on a real server."""

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.e2e.bridge_process import NOWHERE
from tests.e2e.watching import Watching, shell
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

WATCHER = "McpDebug-watch"
TIME = "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
STAMP = f"2[0-9]{{3}}-[01][0-9]-[0-3][0-9]T{TIME}Z"
"""A time as a pipe has it."""


@asynccontextmanager
async def _room(server: XmppServer, settings: dict[str, str]) -> AsyncIterator[Witness]:
    async with Witness(server, server.witness, settings["MUC_ROOM"], "Wilma") as wilma:
        yield wilma


def _without_times(text: str) -> str:
    return re.sub(STAMP, "T", text)


async def test_from_a_pipe_stdout_is_the_room_and_stderr_all_else(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    async with (
        _room(prosody, settings) as wilma,
        Watching(tmp_path, settings) as watching,
    ):
        await wilma.joined(WATCHER)
        wilma.say("one\ntwo")
        await watching.shows("one\\u{A}two\n")
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
        await wilma.left(WATCHER)
    assert _without_times(watching.out).endswith("T  <Wilma>             one\\u{A}two\n")
    assert "* <Wilma> is here (" in watching.out
    assert "\x1b" not in watching.out + watching.err
    assert f"in the room as {settings['MUC_ROOM']}/{WATCHER}" in watching.err
    assert all(re.match(f"{STAMP}  [<*]", line) for line in watching.out.splitlines())
    assert all(re.match(f"{STAMP}  [a-z]", line) for line in watching.err.splitlines())


async def test_on_a_terminal_it_is_in_colour_and_ctrl_c_ends_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    async with (
        _room(prosody, settings) as wilma,
        Watching(tmp_path, settings | {"TERM": "xterm"}, columns=60) as watching,
    ):
        await wilma.joined(WATCHER)
        wilma.say("word " * 12 + "end")
        await watching.shows("end")
        async with Witness(prosody, prosody.bot, settings["MUC_ROOM"], "Fred") as fred:
            await wilma.joined("Fred")
            fred.say("日本語\x85 hello")
            await watching.shows("hello")
            await wilma.kick("Fred", "enough")
            await watching.shows("enough")
        watching.press(b"\x03")
        assert await watching.ended() == 0
    shown = watching.out
    (wilma_colour,) = set(re.findall("\x1b\\[([0-9]+)m<Wilma>", shown))
    assert wilma_colour not in {"2", "31", "91"}
    assert re.search("\x1b\\[2m\\* <Fred> is here \\(participant, none\\)\x1b\\[0m", shown)
    assert re.search("\x1b\\[2m\\* <Fred> left[^\n]*\\[307\\]: enough\x1b\\[0m", shown)
    assert "日本語\\u{85} hello" in shown
    plain = re.sub("\x1b\\[[0-9]+m", "", shown)
    (first,) = re.findall("  <Wilma>.*\n((?: {30}.*\n)*)", plain)
    assert len(first.splitlines()) == 2  # 63 characters in lines of 30
    assert max(map(len, plain.splitlines())) <= 60


async def test_json_is_one_object_a_line_in_ascii_with_the_exact_text(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    hostile = 'a\u2028{"kind":"message"}\n\x9b2J \u202e日本\x7f'
    async with (
        _room(prosody, settings) as wilma,
        Watching(tmp_path, settings, "--json") as watching,
    ):
        await wilma.joined(WATCHER)
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


@pytest.mark.parametrize("how", [("--stanzas",), ("--stanzas", "--json")])
async def test_stanzas_are_shown_without_their_secrets(
    how: tuple[str, ...], prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment(MUC_PASSWORD="room-secret-4712")
    async with (
        _room(prosody, settings) as wilma,
        Watching(tmp_path, settings, *how) as watching,
    ):
        await wilma.joined(WATCHER)
        wilma.say("12:00:00  <-- 40 bytes\n12:00:00  --> forged\u202e")
        await watching.shows("forged")
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
    shown = watching.out
    for secret in (prosody.bot.password, "room-secret-4712"):
        assert secret not in shown + watching.err
    assert shown.count("[redacted]") >= 4  # SASL and the room's password
    if "--json" in how:
        entries = [json.loads(line) for line in shown.splitlines()]
        names = {"cursor", "at", "kind", "direction", "bytes", "connection", "xml"}
        assert all(entry.keys() == names for entry in entries)
        assert {entry["direction"] for entry in entries} == {"in", "out"}
        assert shown.isascii()
    else:
        heads = [line for line in shown.splitlines() if not line.startswith("    ")]
        assert all(
            re.fullmatch(f"{TIME}  (<--|-->) [0-9]+ bytes, connection 1", head) for head in heads
        )
        assert "    12:00:00  --&gt; forged\\u{202E}" in shown
    assert "in the room as" in watching.err


async def test_the_first_event_that_the_filters_pick_ends_it(
    prosody: XmppServer, tmp_path: Path
) -> None:
    settings = prosody.environment()
    wanted = ("--from", "Wilma", "--contains", "done", "--first", "--timeout", "20")
    async with _room(prosody, settings) as wilma:
        wilma.say("done, before anybody watched")
        await wilma.heard("done, before anybody watched")
        async with Watching(tmp_path, settings, *wanted) as watching:
            await wilma.joined(WATCHER)
            wilma.say("not yet")
            wilma.say("DONE\nat last")
            wilma.say("done again")
            assert await watching.ended() == 0
    assert _without_times(watching.out) == "T  <Wilma>             DONE\\u{A}at last\n"


async def test_where_nothing_is_picked_in_time_it_ends_with_1(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment()
    async with Watching(tmp_path, settings, "--contains", "nothing", "--timeout", "1") as watching:
        assert await watching.ended() == 1
    assert watching.out == ""
    assert watching.err.splitlines()[-1] == "xmpp-bridge: nothing matched within 1 s"


async def test_a_refused_login_is_not_told_as_nothing_that_matched(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    settings = sandbox.environment(XMPP_PASSWORD="wrong-4711-wrong")
    async with Watching(tmp_path, settings, "--first", "--timeout", "20") as watching:
        assert await watching.ended() == 1
    assert "nothing matched" not in watching.err
    assert "not-authorized" in watching.err


async def test_whatever_was_picked_within_the_time_it_ends_with_0(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    arguments = ("--kind", "connection", "--json", "--timeout", "1")
    async with Watching(tmp_path, sandbox.environment(), *arguments) as watching:
        assert await watching.ended() == 0
    assert {json.loads(line)["kind"] for line in watching.out.splitlines()} == {"connection"}
    assert "nothing matched" not in watching.err


async def test_what_cannot_be_picked_is_a_usage_error(sandbox: XmppServer, tmp_path: Path) -> None:
    async with Watching(tmp_path, sandbox.environment(), "--stanzas", "--first") as watching:
        assert await watching.ended() == 2
    assert "--stanzas cannot be combined with filters, --first" in watching.err
    assert (watching.out, "Traceback" in watching.err) == ("", False)


async def test_a_server_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    async with Watching(tmp_path, NOWHERE) as watching:
        await watching.says("waiting: Nothing listens at")
        watching.signal(signal.SIGINT)
        assert await watching.ended() == 0
    assert watching.out == ""


async def test_an_impatient_ctrl_c_after_the_first_changes_nothing(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    async with Watching(tmp_path, sandbox.environment()) as watching:
        await watching.says("in the room as")
        while watching.running:
            watching.signal(signal.SIGINT)
            await asyncio.sleep(0.001)  # two signals at once become one
        assert await watching.ended() == 0


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
