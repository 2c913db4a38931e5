"""The command `log`, on a store that other processes write."""

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from bridge.store.database import Observer, TracedXml
from bridge.testing.collector import VERBS
from bridge.testing.scenario import parse
from bridge.text import iso
from bridge.xmpp.model.events import (
    ConnectionChanged,
    MessageReceived,
    MessageSent,
    OccupantLeft,
    Phase,
)
from bridge.xmpp.model.faults import Fault
from tests.e2e.bridge_process import COMMAND, run_in
from tests.e2e.checking import SGR
from tests.e2e.here import run_here
from tests.e2e.watching import Watching
from tests.store.damaged import damage
from tests.store.shelf import ACCOUNT, ROOM, Shelf

SECONDS = 60.0
OWN = Observer(ACCOUNT, "McpDebug", "own")
SETTINGS = {
    "TZ": "UTC",
    "XMPP_USERNAME": ACCOUNT,
    "XMPP_PASSWORD": "secret-of-the-account",
    "MUC_ROOM": f"{ROOM},logs@conference.example",
}


def _log(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return run_here(home, "log", *arguments, **SETTINGS, **more)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """The store where `record` keeps it, and what happened last night."""
    made = Shelf(tmp_path / ".local/state/xmpp-bridge/rooms.db")
    made.say("hello", at=1)
    kick = OccupantLeft(
        f"{ROOM}/Robot", "Robot", codes=frozenset({307}), actor="Mallory", reason="enough\u202e"
    )
    made.put(kick, at=2)
    made.say("of the logs", at=3, room="logs@conference.example")
    made.put(ConnectionChanged(Phase.RESOLVING), at=4, room="", by=OWN, shared=False)
    fault = Fault("connection-refused", "Nothing listens.", "Check XMPP_SERVICE.")
    made.put(ConnectionChanged(Phase.WAITING, fault), at=5, room="", by=OWN, shared=False)
    made.put(MessageSent(f"{ROOM}/McpDebug", "McpDebug", "heard", "1"), at=6, by=OWN, shared=False)
    made.put(MessageReceived(f"{ROOM}/McpDebug", "McpDebug", "heard", id="1"), at=6)
    made.put(MessageSent(f"{ROOM}/McpDebug", "McpDebug", "lost", "2"), at=7, by=OWN, shared=False)
    made.say("of nobody's business", at=8, room="secret@conference.example")
    return made


def test_what_was_recorded_is_shown_in_one_line_an_event_oldest_first(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.say("recorded late", at=7.5)
    shown = _log(tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.splitlines() == [
        f"{iso(1)} {ROOM}: <Wilma> hello",
        f"{iso(2)} {ROOM}: * <Robot> left by <Mallory> [307]: enough\\u{{202E}}",
        f"{iso(3)} logs@conference.example: <Wilma> of the logs",
        f"{iso(5)} [{OWN}] waiting: Nothing listens. [connection-refused] Check XMPP_SERVICE.",
        f"{iso(6)} {ROOM}: <McpDebug> heard",
        f"{iso(7)} [{OWN}] {ROOM}: sending, id 2: lost",
        f"{iso(7.5)} {ROOM}: <Wilma> recorded late",
    ]


def test_json_has_the_exact_form_of_everything(shelf: Shelf, tmp_path: Path) -> None:
    shown = _log(tmp_path, "--json")
    told = [json.loads(line) for line in shown.stdout.splitlines()]
    assert shown.stdout.isascii()
    assert [each["at"] for each in told] == [iso(at) for at in (1, 2, 3, 4, 5, 6, 6, 7)]
    kick = {"room": ROOM, "kind": "leave", "codes": [307], "reason": "enough\u202e"}
    assert kick.items() <= told[1].items()
    assert told[3]["observer"] == f"{ACCOUNT} as McpDebug"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--from", "Robot", "--from", "Wilma", "--limit", "2"), ["<Robot> left", "of the logs"]),
        (("--kind", "leave,error", "--kind", "gap", "--room", "lobby"), ["<Robot> left"]),
        (("--until", "-1m", "--limit", "3"), ["waiting", "<McpDebug> heard", "lost"]),
    ],
)
def test_times_and_filters_narrow_what_is_shown(
    shelf: Shelf, tmp_path: Path, arguments: tuple[str, ...], shown: list[str]
) -> None:
    lines = _log(tmp_path, *arguments).stdout.splitlines()
    assert all(part in line for line, part in zip(lines, shown, strict=True)), lines


async def test_on_a_terminal_long_events_are_laid_out(shelf: Shelf, tmp_path: Path) -> None:
    shelf.say(f"one\ntwo {'words ' * 10}", at=90_000)
    environment = SETTINGS | {"TZ": "Etc/GMT-2", "TERM": "xterm"}
    async with Watching(tmp_path, environment, "--limit", "1", command="log", columns=60) as log:
        assert await log.ended() == 0
    date, room, first, *rest = SGR.sub("", log.out).splitlines()
    assert (date, room) == ("--- 1970-01-02", f"--- {ROOM}")
    assert first.startswith("01:00:00  <Wilma>  ")
    assert first.endswith("  one")
    assert [len(line) <= 60 and line.startswith("   ") for line in rest] == [True] * 3
    assert SGR.sub("", log.out) != log.out


def test_the_report_has_who_was_there_what_happened_and_how_connecting_went(
    shelf: Shelf, tmp_path: Path
) -> None:
    xml = f"<message from='{ROOM}/McpDebug' id='1'><body>heard</body></message>"
    with shelf.opened() as database, database.transaction():
        database.append_stanzas(OWN, [TracedXml(6.0, "in", "1", xml)])
    report = tmp_path / "page.json"
    shown = _log(tmp_path, "--report", str(report))
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")
    page = json.loads(report.read_text())
    rooms = {part["title"]: part for part in page["parts"]}
    assert [part["kind"] for part in page["parts"]] == ["room", "room", "connection"]
    lobby, connection = rooms[ROOM], rooms[str(OWN)]
    lanes = {lane["name"]: lane["spans"] for lane in lobby["lanes"]}
    assert lanes["Wilma"] == [{"from": 1_000, "before": True}]
    assert lanes["Robot"][0]["left"] == "kicked by <Mallory>: enough\\u{202E}"
    heard = next(event for event in lobby["events"] if event.get("body") == "heard")
    assert heard["stanzas"] == [xml]
    assert [bar["name"] for bar in connection["stages"]] == ["resolving", "waiting"]
    # A filter picks what is listed, and not who was there.
    assert _log(tmp_path, "--kind", "message", "--report", str(report)).returncode == 0
    lobby, *_ = json.loads(report.read_text())["parts"]
    assert {event["kind"] for event in lobby["events"]} == {"message"}
    assert "Robot" in [lane["name"] for lane in lobby["lanes"]]


def test_a_stretch_becomes_a_scenario_that_reads_as_it_is_meant(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.say("!ping", at=20)
    shelf.put(MessageReceived(f"{ROOM}/Robot", "Robot", "pong"), at=20.5)
    shelf.say("!ping", at=100)
    room = ("--room", ROOM)
    told = _log(tmp_path, "--as-scenario", f"{iso(10)}..{iso(200)}", *room)
    assert (told.returncode, told.stderr) == (0, "")
    steps = parse(told.stdout, VERBS).step
    assert [(step.actor, step.verb) for step in steps] == [
        *[("Wilma", "say"), ("Wilma", "expect")] * 2,
    ]
    assert steps[3].arguments == {"from_": "Robot", "within": 5}
    read = _log(tmp_path, "--as-scenario", f"{iso(10)}..{iso(200)}", *room, "--pseudonyms")
    assert ("For reading only" in read.stdout, "Wilma" in read.stdout) == (True, False)
    nothing = _log(tmp_path, "--as-scenario", f"{iso(300)}..{iso(400)}", *room)
    assert (nothing.returncode, nothing.stdout) == (1, "")
    for wrong in (room[:0], (*room, "--json")):
        refused = _log(tmp_path, "--as-scenario", f"{iso(10)}..{iso(200)}", *wrong)
        assert (refused.returncode, refused.stdout) == (2, "")


def test_stanzas_are_those_of_the_account(shelf: Shelf, tmp_path: Path) -> None:
    with shelf.opened() as database, database.transaction():
        database.append_stanzas(OWN, [TracedXml(1.0, "in", "1", "<message>\n\u202e</message>")])
    assert _log(tmp_path, "--stanzas").stdout == (
        f"{iso(1)} <-- <message>\\u{{A}}\\u{{202E}}</message>\n"
    )
    told = json.loads(_log(tmp_path, "--stanzas", "--json").stdout)
    assert (told["kind"], told["direction"], told["connection"]) == ("stanza", "in", "1")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("--kind", "gap"), 1, f"nothing recorded matches; records begin at {iso(1)}"),
        (("--from", "mcpdebug"), 1, f'records begin at {iso(1)}; they have "McpDebug"'),
        (
            ("--stanzas",),
            1,
            "no stanzas were recorded; BRIDGE_STORE_STANZAS says whether `record` does",
        ),
        (("--follow", "--until", "now"), 2, "--follow cannot be combined with --until"),
        (("--report", "p.html", "--json"), 2, "--report cannot be combined with --follow, --json"),
        (("--report", "p.html", "--kind", "gap"), 1, "nothing recorded matches"),
        (("--report", ".local/state/xmpp-bridge/rooms.db"), 2, "rooms.db' is read for a report"),
        (("--since", "soon"), 2, "is no time"),
        (("--since", "1h", "--until", "2h"), 2, "end before that"),
        (("--as-scenario", "23:59..00:01", "--room", ROOM), 2, "end before that"),
        (("--as-scenario", "", "--room", ROOM), 2, "FROM..TO"),
        (("--stanzas", "--from", "W"), 2, "--stanzas cannot be combined with filters"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_line(
    shelf: Shelf, tmp_path: Path, arguments: tuple[str, ...], code: int, why: str
) -> None:
    shown = _log(tmp_path, *arguments)
    assert (shown.returncode, shown.stdout) == (code, "")
    assert why in shown.stderr.splitlines()[-1]


def test_without_a_store_it_says_where_it_looked_and_makes_none(tmp_path: Path) -> None:
    shown = _log(tmp_path)
    assert (shown.returncode, shown.stdout) == (1, "")
    path = tmp_path / ".local/state/xmpp-bridge/rooms.db"
    assert shown.stderr == (
        f"xmpp-bridge: '{path}' does not exist; `xmpp-bridge record` makes it\n"
    )
    assert not (tmp_path / ".local").exists()
    assert "'/x.db' does not exist" in _log(tmp_path, BRIDGE_STORE="/x.db").stderr
    Shelf(path)
    assert f"'{path}' is empty; `xmpp-bridge record`" in _log(tmp_path).stderr


def test_a_reader_who_leaves_is_no_failure(shelf: Shelf, tmp_path: Path) -> None:
    shelf.say(*("x" * 1_000 for _ in range(2_000)), at=9)
    for more in ("", " --follow --since 1970-01-01"):
        script = f"set -o pipefail; {COMMAND} log{more} | head -n 1"
        left = run_in(tmp_path, "/bin/bash", "-c", script, **SETTINGS)
        assert (left.returncode, left.stdout.count("\n"), left.stderr) == (0, 1, "")


async def test_following_begins_with_the_newest_and_shows_what_others_record(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.say(*map(str, range(20)), at=9)
    async with Watching(tmp_path, SETTINGS, "--follow", command="log") as log:
        await log.shows("19\n")
        shown = [line.split()[-1] for line in log.out.splitlines()]
        assert shown == [str(number) for number in range(10, 20)]
        for said in ("then", "and then"):
            await asyncio.to_thread(shelf.say, said, at=10)
            await log.shows(f"{iso(10)} {ROOM}: <Wilma> {said}\n")
        log.signal(signal.SIGINT)
        assert (await log.ended(), len(log.out.splitlines()), log.err) == (0, 12, "")


async def test_following_says_whom_a_misspelt_name_may_mean(shelf: Shelf, tmp_path: Path) -> None:
    shelf.say("hello", at=9)
    given = ("--follow", "--from", "wilma")
    async with Watching(tmp_path, SETTINGS, *given, command="log") as log:
        await log.says('no records match so far; they have "Wilma"')


async def test_following_ends_where_an_older_store_takes_the_place_of_what_was_shown(
    shelf: Shelf, tmp_path: Path
) -> None:
    older = tmp_path / "older.db"
    older.write_bytes(shelf.path.read_bytes())
    shelf.say("later", at=9)
    async with Watching(tmp_path, SETTINGS, "--follow", command="log") as log:
        await log.shows("later")
        older.rename(shelf.path)
        assert await log.ended() == 1
    (line,) = log.err.splitlines()
    assert str(shelf.path) in line


def test_rows_that_cannot_be_read_are_left_out_and_counted_on_stderr(
    shelf: Shelf, tmp_path: Path
) -> None:
    damage(shelf.path, "entries", 1, "event", "'{'")
    damage(shelf.path, "entries", 2, "event", """'{"kind":"leave","codes":"307"}'""")
    damage(shelf.path, "entries", 3, "at", "'never'")
    shown = _log(tmp_path)
    assert shown.returncode == 0
    assert "heard" in shown.stdout
    assert "hello" not in shown.stdout
    (line,) = shown.stderr.splitlines()
    assert line.startswith("WARNING: 3 rows of the store cannot be read")
