import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import cast
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.connection import DEADLINES, Connection
from bridge.xmpp.events import ConnectionChanged, Event, Phase
from bridge.xmpp.faults import Fault, Place, Stage
from bridge.xmpp.journal import Record
from bridge.xmpp.keepalive import PATIENCE, Patience
from bridge.xmpp.membership import Membership
from bridge.xmpp.probe import record_of
from bridge.xmpp.stanzas import xml_of
from tests.xmpp.elements import parsed

PLACE = Place(
    service="xmpp://chat.example:5222",
    domain="chat.example",
    account="bot@chat.example",
    room="lobby@conference.chat.example",
    nickname="Me",
)
OWN = f"{PLACE.room}/Me"
SECONDS = 5.0
SHORT = Patience(silence=0.01, known=0.1, tick=0.005, ping_deadline=0.02)
SILENCE = "no answer"
END = Fault("gone", "It went.", "Wait.")


class Standing:
    """A connection that answers pings as told, keeps what is sent, and hears nothing."""

    def __init__(self, answer: Callable[[str | None], str | None]) -> None:
        self.place = PLACE
        self.deadlines: Mapping[Stage, float] = DEADLINES
        self.heard = asyncio.get_running_loop().time()
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        self.pinged: list[str | None] = []
        self.sent: list[str] = []
        self.answer = answer

    async def ping(self, target: str | None) -> str | None:
        self.pinged.append(target)
        answer = self.answer(target)
        if answer == SILENCE:
            await asyncio.get_running_loop().create_future()
        return answer

    async def features_of(self, target: str) -> frozenset[str]:
        assert target == PLACE.room
        return frozenset()

    def send(self, element: Element) -> None:
        self.sent.append(xml_of(element))


class Inside:
    """A membership that is in its room, and what it publishes."""

    def __init__(self, standing: Standing, patience: Patience) -> None:
        self.events: list[Event] = []
        self.news = asyncio.Event()
        self.membership = Membership(PLACE, None, self.publish, patience=patience)
        self.membership.occupant = OWN
        self.membership.inside = True
        self.membership.begin(cast(Connection, standing), resumed=True)

    def publish(self, event: Event, membership: Membership) -> Record:
        self.events.append(event)
        self.news.set()
        return record_of(event, membership)

    async def fault(self) -> Fault:
        """Return why it is out of the room, once it is."""
        async with asyncio.timeout(SECONDS):
            while True:
                for event in self.events:
                    if isinstance(event, ConnectionChanged) and event.fault is not None:
                        return event.fault
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def inside(standing: Standing, patience: Patience) -> AsyncIterator[Inside]:
    """Let it be in its room, on a connection that goes on with the former session."""
    staying = Inside(standing, patience)
    running = asyncio.create_task(staying.membership.run(1))
    try:
        yield staying
    finally:
        if not standing.ended.done():
            standing.ended.set_result(END)
        async with asyncio.timeout(SECONDS):
            await running


async def test_a_session_that_is_resumed_is_in_its_room_at_once() -> None:
    standing = Standing(lambda _: None)
    standing.ended.set_result(END)
    async with inside(standing, PATIENCE) as staying:
        pass
    assert standing.sent == []
    assert staying.events == []


async def test_a_room_that_confirms_us_is_asked_again_after_the_next_silence() -> None:
    def answer(target: str | None) -> str | None:
        if len(standing.pinged) == 3:
            standing.ended.set_result(END)
        return None

    standing = Standing(answer)
    async with asyncio.timeout(SECONDS):
        async with inside(standing, SHORT) as staying:
            await asyncio.shield(standing.ended)
    assert standing.pinged == [OWN] * 3
    assert [one.phase for one in staying.events if isinstance(one, ConnectionChanged)] == [
        Phase.JOINED
    ]


async def test_the_time_of_a_self_ping_is_told_while_we_are_in_the_room() -> None:
    def answer(target: str | None) -> str | None:
        if len(standing.pinged) == 2:
            seen.append(staying.membership.status().self_ping_ms)
            standing.ended.set_result(END)
        return None

    seen: list[float | None] = []
    standing = Standing(answer)
    async with inside(standing, SHORT) as staying:
        await asyncio.shield(standing.ended)
    assert seen[0] is not None
    assert seen[0] >= 0
    assert staying.membership.status().self_ping_ms is None


async def test_a_room_that_does_not_know_us_is_left_and_entered_again() -> None:
    standing = Standing(lambda _: "not-acceptable")
    async with inside(standing, SHORT) as staying:
        assert (await staying.fault()).condition == "not-acceptable"
        assert standing.pinged == [OWN]
        assert not staying.membership.inside
    assert "unavailable" in standing.sent[0]


@pytest.mark.parametrize("answer", [SILENCE, "remote-server-timeout"])
async def test_a_room_that_decides_nothing_is_asked_until_it_is_known(answer: str) -> None:
    standing = Standing(lambda _: answer)
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with inside(standing, SHORT) as staying:
        fault = await staying.fault()
        assert fault.condition == "remote-server-timeout"
        assert PLACE.room in fault.message
        assert len(standing.pinged) > 1
        # No sooner than another look and its pings would end too late.
        least = SHORT.known - SHORT.tick - 2 * SHORT.ping_deadline
        assert loop.time() - started >= least


async def test_a_refusal_of_a_nickname_that_we_no_longer_have_decides_nothing() -> None:
    def answer(target: str | None) -> str | None:
        if target == OWN:
            staying.membership.occupant = f"{PLACE.room}/You"
            return "item-not-found"
        standing.ended.set_result(END)
        return None

    standing = Standing(answer)
    async with inside(standing, SHORT) as staying:
        await asyncio.shield(standing.ended)
    assert standing.pinged == [OWN, f"{PLACE.room}/You"]


async def test_a_doubt_asks_the_room_at_once() -> None:
    standing = Standing(lambda _: "not-acceptable")
    async with inside(standing, PATIENCE) as staying:
        async with asyncio.timeout(SECONDS):
            await staying.news.wait()  # it is in the room
        staying.membership.doubt()
        assert (await staying.fault()).condition == "not-acceptable"
    assert standing.pinged == [OWN]


async def test_what_puts_us_out_of_the_room_leaves_the_connection_alone() -> None:
    standing = Standing(lambda _: None)
    async with inside(standing, PATIENCE) as staying:
        staying.membership.receive(
            parsed(
                f"<presence from='{OWN}' type='unavailable'>"
                "<x xmlns='http://jabber.org/protocol/muc#user'>"
                "<item affiliation='none' role='none'/><status code='110'/><status code='307'/>"
                "</x></presence>"
            )
        )
        assert (await staying.fault()).condition == "not-allowed"
        assert not standing.ended.done()
        assert staying.membership.goodbye() is None
    assert standing.sent == []
