import asyncio
import dataclasses
import itertools
import random
from typing import Any, cast

import pytest

from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError
from bridge.tools import paging, wait
from bridge.tools.entries import NOTICE
from bridge.tools.link import RoomLink
from bridge.xmpp.model.events import (
    ConnectionChanged,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    Phase,
    SubjectChanged,
)
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import LastError
from bridge.xmpp.muc.participant import Participant
from tests.mcp.sample_tools import QUIET, UNASKED
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    STATUS,
    Played,
    arguments,
    fitting,
    in_rooms,
)

TOOL = wait.xmpp_wait
TIMES = 100
ANSWER_SECONDS = 60.0
"""Limit for what should happen at once."""


async def _wait(
    room: Played | Participant, context: Context | None = None, /, **given: Any
) -> dict[str, Any]:
    link = RoomLink(cast("Participant", room))
    async with asyncio.timeout(ANSWER_SECONDS):
        waited = fitting(TOOL, await TOOL(link, context or QUIET, **arguments(TOOL, given)))
    told = "entry" in waited or waited["passed"]
    assert waited.get("notice") == (NOTICE if told else None)
    return waited


async def _armed(room: Played, number: int = 1) -> None:
    while len(room.listeners) < number:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0)


def _said(body: str, nickname: str = "Wilma", *, own: bool = False) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body, own=own)


async def test_a_wait_looks_first_at_what_came_after_its_cursor() -> None:
    played = Played()
    played.hear("before", "question", "answer", "later")
    waited = await _wait(played, since="epoch-2", timeoutSeconds=0)
    assert waited["matched"] is True
    assert waited["entry"]["body"] == "answer"
    assert waited["next"] == waited["entry"]["cursor"] == "epoch-3"
    assert (waited["seen"], waited["passed"], waited["phase"]) == (0, [], "joined")
    assert 0 <= waited["elapsedMs"] < ANSWER_SECONDS * 1000
    assert not {"gap", "outBecause"} & set(waited)
    assert not {"direction", "from", "type", "source"} & set(waited["entry"])
    assert (await _wait(played, since=waited["next"]))["entry"]["body"] == "later"


async def test_without_a_cursor_what_comes_while_the_pattern_is_compiled_counts() -> None:
    played = Played()
    played.hear("at once")
    waiting = asyncio.create_task(_wait(played, pattern="^at once$"))
    await asyncio.sleep(0)  # it has begun to compile, and does not listen yet
    assert played.listeners == []
    played.hear("at once")
    assert (await waiting)["entry"]["cursor"] == "epoch-2"


async def test_what_did_not_match_is_counted_and_the_last_five_are_shown() -> None:
    played = Played()
    played.hear(*"abcdefg")
    played.publish(OccupantJoined(f"{ROOM}/W", "W", "participant", "none"))
    waited = await _wait(played, since="epoch-0", contains="zebra", timeoutSeconds=0)
    assert (waited["matched"], "entry" in waited, waited["seen"]) == (False, False, 8)
    assert [each.get("body", each["kind"]) for each in waited["passed"]] == [*"defg", "join"]
    assert waited["next"] == "epoch-8"


async def test_only_messages_match_unless_kinds_says_otherwise() -> None:
    played = Played()
    played.publish(OccupantJoined(f"{ROOM}/W", "W", "participant", "none"))
    played.hear("hello")
    assert (await _wait(played, since="epoch-0"))["entry"]["kind"] == "message"
    joined = await _wait(played, since="epoch-0", kinds=["join", "leave"])
    assert (joined["entry"]["kind"], joined["seen"]) == ("join", 0)


async def test_our_own_messages_match_only_when_from_names_us() -> None:
    played = Played()
    played.publish(MessageSent(f"{ROOM}/McpDebug", "McpDebug", "mine", "m1"))
    played.publish(_said("mine", "McpDebug", own=True))
    waited = await _wait(played, since="epoch-0", timeoutSeconds=0)
    assert (waited["matched"], waited["seen"], waited["next"]) == (False, 1, "epoch-2")
    assert [each["heard"] for each in waited["passed"]] == [True]
    for name in ("McpDebug", f"{ROOM}/McpDebug"):
        back = await _wait(played, since="epoch-0", **{"from": name})
        assert (back["entry"]["heard"], back["entry"]["body"]) == (True, "mine")
    theirs = await _wait(played, since="epoch-0", timeoutSeconds=0, **{"from": "Wilma"})
    assert (theirs["matched"], theirs["seen"], "hint" in theirs) == (False, 1, False)
    misspelt = await _wait(played, since="epoch-0", timeoutSeconds=0, **{"from": "mcpdebug"})
    told = 'Nobody here is called "mcpdebug"; in the room is "McpDebug".'
    assert (misspelt["hint"], misspelt["notice"]) == (told, NOTICE)


async def test_a_cursor_that_is_none_is_refused_and_leaves_no_listener() -> None:
    played = Played()
    for cursor in ("never", "epoch-1"):
        with pytest.raises(ArgumentError, match="since is not a cursor"):
            await _wait(played, since=cursor)
    with pytest.raises(ArgumentError, match="pattern"):
        await _wait(played, pattern="(")
    assert played.listeners == []


async def test_what_is_evicted_before_a_wait_had_time_to_look_is_told() -> None:
    played = Played(journal=Journal("epoch", 2))
    waiting = asyncio.create_task(_wait(played, contains="answer"))
    await _armed(played)
    played.hear("answer", *"abcd")  # in one turn: it could not look in between
    await asyncio.sleep(0)  # it wakes, and looks too late
    await asyncio.sleep(0)
    played.hear("answer")
    waited = await waiting
    assert waited["gap"] == {"from": 1, "to": 3, "reason": "evicted"}
    assert (waited["entry"]["cursor"], waited["seen"]) == ("epoch-6", 2)


async def test_of_256_waits_each_is_answered_by_its_own_event() -> None:
    played = Played()
    waiting = [
        asyncio.create_task(_wait(played, contains=f"answer {number}.")) for number in range(256)
    ]
    await _armed(played, 256)
    for _ in range(10):
        played.hear("noise")
        await asyncio.sleep(0)  # whoever is woken reads the journal
    played.hear("answer 7.")
    waited = await waiting[7]
    assert (waited["entry"]["body"], waited["seen"]) == ("answer 7.", 10)
    assert (waited["next"], len(waited["passed"])) == ("epoch-11", 5)
    assert len(played.listeners) == 255
    waiting.pop(8).cancel()
    await asyncio.sleep(0)
    assert len(played.listeners) == 254
    for number in range(256):
        played.hear(f"answer {number}.")
    assert all(result["matched"] for result in await asyncio.gather(*waiting))


SILENT = MessageReceived(f"{ROOM}/Wilma", "Wilma", "", payload=("composing (chatstates)",))


async def test_a_wait_for_messages_goes_on_while_somebody_is_only_typing() -> None:
    played = Played()
    played.publish(SILENT)
    played.publish(SILENT._replace(payload=(), encrypted="OMEMO"))
    waited = await _wait(played, since="epoch-0")
    assert (waited["entry"]["encrypted"], waited["seen"]) == ("OMEMO", 1)
    assert waited["passed"][0]["payload"] == ["composing (chatstates)"]
    waited = await _wait(played, since="epoch-0", kinds=["message"])
    assert (waited["entry"]["payload"], waited["seen"]) == (["composing (chatstates)"], 0)


async def test_progress_is_told_while_nothing_comes_and_while_much_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wait, "PROGRESS_SECONDS", 0.01)
    played = Played()
    told: list[tuple[float, float | None, str | None]] = []
    enough = asyncio.Event()

    def report(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))
        if len(told) in {5, 10}:
            enough.set()

    context = Context(report, lambda *_: None, *UNASKED)
    waiting = asyncio.create_task(_wait(played, context, contains="answer", timeoutSeconds=15))
    await enough.wait()
    enough.clear()
    while not enough.is_set():  # events come far more often than progress is told
        played.hear("noise")
        await asyncio.sleep(0)
    played.hear("answer")
    await waiting
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})
    assert {total for _, total, _ in told} == {15}
    assert told[0][2] == "joined; 0 events passed by"
    assert told[-1][2] != told[0][2]


async def test_what_lies_behind_is_looked_at_within_the_waits_own_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A clock on which each event takes a millisecond to look at.
    milliseconds = itertools.count()
    monkeypatch.setattr("bridge.tools.wait._Wait._elapsed", lambda _: next(milliseconds) / 1000)
    played = Played()
    played.hear(*map(str, range(2_500)))
    cursor, looked_at = "epoch-0", []
    while not (waited := await _wait(played, since=cursor, contains="2499", timeoutSeconds=0))[
        "matched"
    ]:
        # Too many for one look: it says where to go on.
        looked_at.append(waited["seen"])
        cursor, milliseconds = waited["next"], itertools.count()
    assert (waited["entry"]["body"], looked_at) == ("2499", [1001, 1001])


@pytest.mark.parametrize("hurried", [True, False])
async def test_messages_that_come_as_the_wait_is_armed_are_each_told_once(
    hurried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing but the news itself is to wake it.
    monkeypatch.setattr(wait, "PROGRESS_SECONDS", 2 * ANSWER_SECONDS)
    if not hurried:  # others get their turn after each event that it looks at
        monkeypatch.setattr(paging, "SLICE_SECONDS", -1.0)
    participant = Participant(None, history=100)
    link = RoomLink(participant)
    loop = asyncio.get_running_loop()
    chance = random.Random(4711)  # noqa: S311 - for an order that is the same each time
    cursor = participant.journal.cursor

    def publish(body: str) -> None:
        participant.publisher.publish(_said(body))

    for number in range(TIMES):
        noise = chance.randrange(3)
        answers = [*(f"noise {each}" for each in range(noise)), f"answer {number}"]
        call = TOOL(link, QUIET, since=cursor, contains="answer", timeout_seconds=ANSWER_SECONDS)
        turns = chance.randrange(-2, 3)  # before it looks, in the turn before it starts, or later
        for body in answers if turns < 0 else ():
            if turns == -2:
                publish(body)
            else:
                loop.call_soon(publish, body)
        waiting = asyncio.create_task(call)
        for _ in range(turns):
            await asyncio.sleep(0)
        for body in answers if turns >= 0 else ():
            loop.call_soon(publish, body)
            if chance.random() < 0.3:  # the next in another turn
                await asyncio.sleep(0)
        waited = await waiting
        assert waited["entry"]["body"] == f"answer {number}"
        assert (waited["seen"], "gap" in waited) == (noise, False)
        cursor = waited["next"]
    assert cursor == participant.journal.cursor
    assert participant.publisher._listeners == []  # noqa: SLF001 - a leak shows nowhere else


async def test_only_what_comes_in_the_room_that_is_named_matches() -> None:
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    played.hear("behind us")
    waiting = asyncio.create_task(_wait(played, since="epoch-0", room="logs"))
    await _armed(played)
    played.hear("elsewhere")
    played.hear("elsewhere too", room=OTHER_LOBBY)
    played.publish(ConnectionChanged(Phase.WAITING), "")
    played.publish(SubjectChanged("s"), LOGS)
    played.hear("here", room=LOGS)
    waited = await waiting
    assert (waited["entry"]["body"], waited["entry"]["room"]) == ("here", LOGS)
    assert (waited["seen"], [each["kind"] for each in waited["passed"]]) == (1, ["subject"])
    assert waited["next"] == "epoch-6"
    assert played.listeners == []


async def test_the_phase_is_that_of_the_room_that_is_named() -> None:
    played = in_rooms(ROOM, LOGS)
    (logs,) = played.further
    logs.picture = dataclasses.replace(STATUS, phase=Phase.FAILED, last_error=LastError(FAULT, 0.0))
    for room in (None, ROOM):
        waited = await _wait(played, timeoutSeconds=0, room=room)
        assert (waited["phase"], "outBecause" in waited) == ("joined", False)
    waited = await _wait(played, timeoutSeconds=0, room=LOGS)
    assert waited["phase"] == "failed"
    assert waited["outBecause"].startswith(f"The bridge is not in the room {LOGS} (phase failed): ")
