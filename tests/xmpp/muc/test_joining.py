"""What decides an attempt to enter a room, and what a silence is taken for."""

import asyncio
from xml.etree.ElementTree import Element

import pytest

from bridge.wire.names import DISCO_INFO, MUC, PING
from bridge.xmpp.link.connection import DEADLINES
from bridge.xmpp.model.events import (
    Event,
    OccupantJoined,
    OccupantLeft,
    RoomDestroyed,
    RoomError,
)
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Retry, Stage
from bridge.xmpp.muc import joining
from bridge.xmpp.muc.joining import Join
from tests.xmpp import place
from tests.xmpp.elements import parsed
from tests.xmpp.played_connection import RESULT, Answer, PlayedConnection, refused

PLACE = place.PLACE._replace(room="lobby@Muc.chat.example")
ROOM = "lobby@muc.chat.example"
SERVICE = "muc.chat.example"
ME = OccupantJoined(f"{ROOM}/Me", "Me", "participant", "none", self_=True)
WILMA = OccupantJoined(f"{ROOM}/Wilma", "Wilma", "participant", "none")


def describing(*features: str, identity: str = "server") -> Element:
    offered = "".join(f"<feature var='{each}'/>" for each in features)
    named = f"<identity category='{identity}' type='x'/>" if identity else ""
    return parsed(
        f"<iq type='result' from='{ROOM}'><query xmlns='{DISCO_INFO}'>{named}{offered}</query></iq>"
    )


def refusing(condition: str, sender: str = ROOM) -> Element:
    cause = f"<{condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
    return parsed(f"<iq type='error' from='{sender}'><error type='cancel'>{cause}</error></iq>")


def asking(service: Answer) -> PlayedConnection:
    """Return a connection to a service that answers so to service discovery."""
    return PlayedConnection({DISCO_INFO: service, PING: RESULT}, PLACE)


def joining_at(server: PlayedConnection) -> Join:
    return Join(server.connection, PLACE, f"{ROOM}/Me", lambda me: None)


async def fault_of(join: Join) -> Fault:
    with pytest.raises(ConnectionFailedError) as failed:
        await join.run(None, None, history=True)
    return failed.value.fault


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a join in the same proportion, made short."""
    monkeypatch.setitem(DEADLINES, Stage.JOIN, 0.1)
    monkeypatch.setattr(joining, "PATIENCE_SECONDS", 0.02)


@pytest.mark.parametrize(
    ("service", "condition", "told"),
    [
        (describing("urn:xmpp:ping"), "service-unavailable", "is no room service"),
        (describing(), "service-unavailable", "is no room service"),
        (refused("remote-server-not-found"), "remote-server-not-found", "knows no server"),
    ],
    ids=["other features", "another identity", "unknown"],
)
async def test_no_room_service_is_told(service: Answer, condition: str, told: str) -> None:
    server = asking(service)
    join = joining_at(server)
    join.take_answer(refusing("service-unavailable"))
    async with asyncio.timeout(joining.PATIENCE_SECONDS / 2):
        fault = await fault_of(join)
    assert (fault.condition, fault.retry) == (condition, Retry.LATER)
    assert told in fault.message
    assert "MUC_ROOM" in fault.hint
    assert server.asked == [(SERVICE, DISCO_INFO)]


@pytest.mark.parametrize(
    ("service", "condition", "told"),
    [
        (describing(MUC), "remote-server-timeout", "though its service Muc.chat.example does"),
        (describing(identity="conference"), "remote-server-timeout", "though its service"),
        (describing(identity="gateway"), "remote-server-timeout", "though its service"),
        (refused("service-unavailable"), "service-unavailable", "Muc.chat.example offers no"),
        (refused("forbidden"), "remote-server-timeout", "did not answer within 0.1 s."),
        (None, "remote-server-timeout", "did not answer within 0.1 s."),
    ],
)
@pytest.mark.usefixtures("hasty")
async def test_a_silent_join_ends_at_its_deadline_and_says_what_the_service_said(
    service: Answer, condition: str, told: str
) -> None:
    server = asking(service)
    fault = await fault_of(joining_at(server))
    assert (fault.condition, fault.retry) == (condition, Retry.SOON)
    assert told in fault.message
    assert server.asked == [(SERVICE, DISCO_INFO)]


@pytest.mark.parametrize("ponging", [1.0, 3.0])
async def test_a_join_waits_for_all_that_comes_before_an_answer_to_a_ping(
    ponging: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = asking(describing(MUC))
    join = joining_at(server)
    loop = asyncio.get_running_loop()
    seconds = 0.5  # so that a machine under load is not late by a share of it
    monkeypatch.setitem(DEADLINES, Stage.JOIN, seconds)
    server.seconds = ponging * seconds
    for share in (0.7, 1.5, 2.5):  # of stanzas behind which the answer comes
        loop.call_later(share * seconds, setattr, server, "received", int(100_000 * share))
    loop.call_later((0.8 + ponging) * seconds, join.take, ME)
    assert await join.run(None, None, history=True) is ME


@pytest.mark.usefixtures("hasty")
async def test_what_others_say_does_not_keep_a_join_waiting() -> None:
    class Busy(PlayedConnection):
        async def request(self, type_: str, to: str | None, payload: Element) -> Element:
            self.received += 1_000
            return await super().request(type_, to, payload)

    async with asyncio.timeout(3 * DEADLINES[Stage.JOIN]):
        fault = await fault_of(joining_at(Busy({DISCO_INFO: describing(MUC)}, PLACE)))
    assert fault.condition == "remote-server-timeout"


@pytest.mark.parametrize(
    "answer",
    [refusing("item-not-found"), refusing("service-unavailable", f"{ROOM}/Wilma"), describing(MUC)],
    ids=["joining may make it", "somebody in it", "a room"],
)
async def test_a_room_that_does_not_deny_being_one_has_its_service_unasked(answer: Element) -> None:
    server = asking(refused("remote-server-not-found"))
    join = joining_at(server)
    running = asyncio.create_task(join.run(None, None, history=True))
    await asyncio.sleep(0)
    join.take_answer(answer)
    await asyncio.sleep(0)
    assert join.take(ME) == []
    assert await running is ME
    assert server.asked == []
    assert [each.tag.rpartition("}")[2] for each in server.sent] == ["iq", "presence"]


async def test_the_first_word_of_the_room_decides() -> None:
    join = joining_at(asking(None))
    for event in (RoomError("forbidden"), ME):
        assert join.take(event) == [event]
    assert (await fault_of(join)).condition == "forbidden"


@pytest.mark.parametrize(
    ("event", "condition"),
    [
        (OccupantLeft(f"{ROOM}/Me", "Me", self_=True, codes=frozenset({110, 301})), "forbidden"),
        (RoomDestroyed(), "gone"),
    ],
    ids=["a ban", "the end of the room"],
)
async def test_a_room_may_refuse_us_by_putting_us_out(event: Event, condition: str) -> None:
    join = joining_at(asking(None))
    join.take(event)
    assert (await fault_of(join)).condition == condition


async def test_the_end_of_a_former_stay_refuses_nothing() -> None:
    join = joining_at(asking(None))
    join.take(OccupantLeft(f"{ROOM}/Me", "Me", self_=True, codes=frozenset({110})))
    join.take(ME)
    assert await join.run(None, None, history=True) is ME


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("listed", [1, 1_000], ids=["once", "for ever"])
async def test_a_room_that_never_comes_to_us_did_answer(listed: int) -> None:
    join, loop = joining_at(asking(describing(MUC))), asyncio.get_running_loop()
    for number in range(listed):
        loop.call_later(0.02 * number, join.take, WILMA)
    async with asyncio.timeout(3 * DEADLINES[Stage.JOIN]):
        fault = await fault_of(join)
    assert fault.condition == "remote-server-timeout"
    assert "did not let us in within 0.1 s" in fault.message
