"""What the tools say of how long something took, if the machine's clock was set meanwhile."""

import re
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.store.clock import Instant, boot, steady
from bridge.store.database import Happened, Observer
from bridge.store.sqlite import open_file
from bridge.text import iso
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.occupants import xmpp_occupants
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    encode,
)
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.room import RoomStatus
from bridge.xmpp.muc.participant import Participant
from tests.servers.postgresql import Postgresql
from tests.store import shelf as shelves
from tests.store.shelf import ACCOUNT, SETTINGS, Shelf
from tests.tools.played import LOGS, ROOM, fitting
from tests.tools.standing import Standing
from tests.xmpp.elements import append, parsed

BEGAN = Instant.now()
OURS = Observer(ACCOUNT, "McpDebug-send", "former")
ROBOT, OTHER = f"{ROOM}/Robot", LOGS.lower()
SENT = MessageSent(f"{ROOM}/McpDebug", "McpDebug", "!ping", "m1")
HEARD = MessageReceived(f"{ROOM}/McpDebug", "McpDebug", "!ping", id="m1", own=True)
ASIDE = "<message from='robot@example/r' type='chat'><body>pong</body></message>"
BROKE = OccupantLeft(ROBOT, "Robot", codes=frozenset({333}))
CAME = OccupantJoined(ROBOT, "Robot", "participant", "none")
MUTE = OccupantChanged(ROBOT, "Robot", "visitor", "none", former_role="participant")

Step = float | Event | str | None
"""So many seconds pass; or an event happens; or a stanza comes; or, for None, the clock is set."""


class Room(Standing):
    """The default room, where the events say who is there."""

    def status(self) -> RoomStatus:
        seen = self.room.status()
        return replace(self.picture, occupants=seen.occupants, departures=seen.departures)


def _said(who: str, body: str, room: str = ROOM) -> MessageReceived:
    return MessageReceived(f"{room}/{who}", who, body)


ASKED: list[Step] = [30.0, _said("Ann", "!time")]
ANSWERED: list[Step] = [0.2, _said("Robot", "noon")]
BOTH = ASKED + ANSWERED
PULSE: list[Step] = [60.0, _said("Robot", "all is well")]
AGAIN: list[Step] = [0.2, _said("Robot", "eh?")]
COMES: list[Step] = [300.0, BROKE, 5.0, CAME]
PAIR: list[Step] = [0.3, _said("Robot", "a"), 0.3, _said("Eve", "b")]
PEOPLE: list[Step] = [50.0, _said("Robot", "a"), 70.0, _said("Eve", "b")]
STORIES: dict[str, list[Step]] = {
    "an answer": [SENT, HEARD, None, 0.3, _said("Robot", "pong")],
    "a late answer": [SENT, HEARD, None, 8.0, _said("Robot", "pong")],
    "an answer before": [SENT, HEARD, 0.3, _said("Robot", "pong"), None, 9.0],
    "no answer yet": [SENT, HEARD, None, 3.0],
    "an answer in the other room": [SENT, HEARD, None, 0.3, _said("Robot", "pong", OTHER), 20.0],
    "talk in the other room": [SENT, HEARD, None, 500.0, _said("Robot", "pong", OTHER)],
    "an answer to the address": [SENT, HEARD, None, 0.4, ASIDE, 9.0],
    "a fall over a message": [SENT, HEARD, None, 0.2, BROKE, 5.0, CAME],
    "a fall long after it": [SENT, HEARD, None, 99.0, BROKE, 5.0, CAME],
    "it came after the question": [9.0, BROKE, SENT, HEARD, None, 5.0, CAME],
    "it came before the question": [9.0, BROKE, CAME, None, 5.0, SENT, HEARD],
    "it comes and goes": [*COMES * 2, None, *COMES * 2],
    "it came and went before": [*COMES * 4, 4_000.0, _said("Robot", "hi"), None],
    "it was watched for 20 s": [9.0, _said("Robot", "hi"), None, 11.0],
    "it speaks every minute": [*PULSE * 4, None, *PULSE * 4],
    "it spoke every minute": [*PULSE * 8, None, 5.0],
    "programs answer each other": [*PAIR * 6, None, *PAIR * 6],
    "people answer each other": [*PEOPLE * 6, None, *PEOPLE * 6],
    "it answers itself": [*AGAIN * 5, None, *AGAIN * 5],
    "it answers another": [*BOTH * 2, *ASKED, None, *ANSWERED, *BOTH],
    "it left another out": [*BOTH * 4, _said("Bob", "!time"), None, 60.0],
    "it lost its voice": [_said("Robot", "hi"), 20.0, MUTE, None, 20.0, _said("Robot", "hi")],
    "it answers the history": [
        *(_said("Bob", "!time a1b2"), _said("Bob", "!sun c3d4"), 5.0, BROKE, 9.0, CAME, None, 0.3),
        *(_said("Robot", "!time a1b2: no"), _said("Robot", "!sun c3d4: no"), 9.0),
    ],
    "another left": [9.0, OccupantLeft(f"{ROOM}/Ann", "Ann"), 600.0, None],
    "another left long ago": [9.0, OccupantLeft(f"{ROOM}/Ann", "Ann"), 7_200.0, None],
}


async def _told(
    story: list[Step], jump: float, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, object]:
    """What xmppDiagnose says without its times, and who has left lately."""
    passed = ahead = 0.0
    played = Room()
    further = Room(room_jid=OTHER, journal=played.journal)
    played.further = (further,)

    def now() -> Instant:
        return Instant.of(BEGAN + passed + ahead, BEGAN.steady + passed)

    own = OccupantJoined(f"{ROOM}/McpDebug", "McpDebug", "participant", "none", self_=True)
    others = [replace(CAME, from_=f"{ROOM}/{who}", sender=who) for who in ("Ann", "Bob", "Eve")]
    for came in (own, replace(CAME, jid="robot@example/r"), *others):
        played.room.apply(played.journal.append(came, now(), ROOM, earlier=True))
    for step in story:
        match step:
            case float(seconds):
                passed += seconds
            case None:
                ahead += jump
            case str(stanza):
                append(played.trace, "in", "1", parsed(stanza), now())
            case event:
                said_in = OTHER if str(getattr(event, "from_", "")).startswith(OTHER) else ROOM
                played.publish(event, said_in, at=now())
    passed += 1.0
    monkeypatch.setattr(Instant, "now", now)
    diagnosed = fitting(xmpp_diagnose, await xmpp_diagnose(played.link, "Robot", ROOM))
    left = fitting(xmpp_occupants, xmpp_occupants(played.link, room=ROOM)).get("left", [])
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\d+\.\d{3} ms", "", repr(diagnosed))
    return text, [it["nickname"] for it in left]


@pytest.mark.parametrize("jump", [5.0, 60.0, 3_600.0, 86_400.0, -5.0, -60.0, -3_600.0, -86_400.0])
@pytest.mark.parametrize("story", STORIES)
async def test_what_is_said_does_not_depend_on_how_the_clock_was_set(
    story: str, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = await _told(STORIES[story], 0.0, monkeypatch)
    assert await _told(STORIES[story], jump, monkeypatch) == straight


def _recorded(folder: Path, began: Instant) -> tuple[Shelf, Room]:
    """A store without events, and a room that the bridge and Robot were in when the run `began`."""
    shelf, played = Shelf(folder / "rooms.db"), Room()
    played.reader, played.settings = shelf.reader, SETTINGS
    for came in (replace(CAME, self_=True, from_=f"{ROOM}/McpDebug", sender="McpDebug"), CAME):
        played.room.apply(played.journal.append(came, began, ROOM, earlier=True))
    return shelf, played


async def test_what_a_former_run_recorded_is_compared_by_the_clock_that_is_not_set(
    tmp_path: Path,
) -> None:
    now = Instant.now()
    shelf, played = _recorded(tmp_path, now)
    story: tuple[tuple[float, float, Event], ...] = (
        *((60.0, 660.0, SENT), (59.9, 659.9, HEARD)),
        (59.8, 59.8, _said("Robot", "pong")),
    )
    with shelf.opened() as database, database.transaction():
        for seen, at, event in story:  # the clock was set forth by ten minutes
            entry = Happened(now - at, ROOM, encode(event), event is not SENT, seen=now - seen)
            database.append(OURS, [entry])
    result = fitting(xmpp_diagnose, await xmpp_diagnose(played.link, "Robot", ROOM))
    assert result["answers"][0]["answerMs"] == pytest.approx(100, abs=2)
    assert result["outcome"] == "well"


def test_an_event_gets_its_time_by_both_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    participant = Participant(None)
    first = participant.publisher.publish(CAME)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    later = participant.publisher.publish(CAME)
    assert iso(later.at) == iso(0.0)
    assert 0.0 <= later.at - first.at < 5.0


@pytest.mark.parametrize("off", [28_800.0, -2 * steady()], ids=["behind", "ahead"])
async def test_what_was_recorded_before_the_machine_was_started_is_compared_by_the_wall_clock(
    off: float, tmp_path: Path
) -> None:
    now = Instant.now()
    shelf, played = _recorded(tmp_path, now)
    with shelf.opened() as database, database.transaction():
        for ago, event in ((600.0, SENT), (599.9, HEARD)):
            database.append(OURS, [Happened(now - ago, ROOM, encode(event), event is not SENT)])
        # The machine's clock was wrong when the file was first opened after the start.
        ahead = time.time() - steady() - off
        database.all("UPDATE file SET boot = ?, ahead = ?", (boot(), ahead))
    result = fitting(xmpp_diagnose, await xmpp_diagnose(played.link, "Robot", ROOM))
    assert re.search(r"said (599|60\d)\.\d s ago", result["verdict"])


@pytest.mark.parametrize("back", [0.0, 3_500.0])
async def test_what_this_run_recorded_happened_once_though_the_clock_was_set_back(
    back: float, tmp_path: Path
) -> None:
    now = Instant.now()
    shelf, played = _recorded(tmp_path, Instant.of(now - 100.0 + back, now.steady - 100.0))
    us = Observer(ACCOUNT, "McpDebug", played.journal.numbering.epoch)
    with shelf.opened() as database, database.transaction():
        for ago, event in ((45.0, BROKE), (40.0, CAME), (35.0, BROKE), (30.0, CAME)):
            at = Instant.of(now - ago, now.steady - ago)
            played.publish(event, ROOM, at=at)
            database.append(us, [Happened(at, ROOM, encode(event), shared=True)])
    result = fitting(xmpp_diagnose, await xmpp_diagnose(played.link, "Robot", ROOM))
    assert "comes and goes" not in str(result)


async def test_a_row_of_a_database_is_compared_by_the_databases_clock(
    postgresql: Postgresql, tmp_path: Path
) -> None:
    team, now = postgresql.team(tmp_path), Instant.now()
    shelf = Shelf(team)
    shelf.say("hi", at=now - 60.0)
    with closing(open_file(team)) as file, file.transaction():
        file.all("UPDATE file SET boot = ?, ahead = ahead - 600", (boot(),))
    walk = await shelf.reader.walk([shelves.ROOM], EventFilter())
    (record,) = [walk.record(row) async for row in walk]
    assert now - record.at == pytest.approx(60.0, abs=2.0)
