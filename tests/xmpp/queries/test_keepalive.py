import asyncio
import time
from collections.abc import Callable
from typing import cast
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.offer import Offer
from bridge.xmpp.link.stanzas import IqError, StanzaError, ping
from bridge.xmpp.link.stream import Stream
from bridge.xmpp.link.trace import untraced
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.queries.keepalive import TIMING, Timing, keep_alive
from tests.faults.scripted_server import HEADER
from tests.xmpp.place import PLACE

SECONDS = 5.0
SERVER_ONLY = Timing(ping_interval=0.01, ping_deadline=0.02, check_interval=0.005)


def test_users_are_promised_what_is_written() -> None:
    assert (TIMING.ping_interval, TIMING.ping_deadline) == (30, 15)
    assert (TIMING.idle_before_ping, TIMING.max_unconfirmed) == (60, 120)
    # The last check before `max_unconfirmed` must leave time for an answer, and for the one before.
    assert (
        TIMING.idle_before_ping + TIMING.ping_deadline + TIMING.check_interval
        < TIMING.max_unconfirmed
    )


SILENCE = "no answer"


class Standing:
    def __init__(self, answer: Callable[[], str | None]) -> None:
        self.place = PLACE
        self.offer = Offer()
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        self.pinged: list[str | None] = []
        self.stream = Stream("localhost", lambda _: None, lambda _: None, untraced)
        self.answer = answer

    @property
    def received(self) -> int:
        return self.stream.received

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        assert (type_, payload.tag) == ("get", ping().tag)
        self.pinged.append(to)
        answer = self.answer()
        if answer == SILENCE:
            await asyncio.get_running_loop().create_future()
        if answer is not None:
            raise IqError(StanzaError(answer))
        return Element("iq")

    async def kept_alive(self, timing: Timing, wall: Callable[[], float] = time.time) -> Fault:
        async with asyncio.timeout(SECONDS):
            return await keep_alive(cast(Connection, self), timing, wall)


END = Fault("gone", "It went.", "Wait.")


async def test_a_connection_that_ends_is_told_by_its_reason() -> None:
    standing = Standing(lambda: None)
    standing.ended.set_result(END)
    assert await standing.kept_alive(TIMING) == END
    assert standing.pinged == []


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    standing = Standing(lambda: SILENCE)
    fault = await standing.kept_alive(SERVER_ONLY)
    assert fault.condition == "connection-timeout"
    assert standing.pinged == [PLACE.domain]


async def test_a_server_that_is_still_sending_is_not_given_up() -> None:
    def answer() -> str:
        if len(standing.pinged) < 3:
            # One stanza after another, each shorter, behind which the answer will come.
            standing.stream.data_received(b"</a><a>" + b"x" * (9 - len(standing.pinged)) * 2_000)
        return SILENCE

    standing = Standing(answer)
    standing.stream.end_negotiation()
    standing.stream.data_received(HEADER.encode() + b"<a>" + b"x" * 100_000)
    fault = await standing.kept_alive(SERVER_ONLY)
    assert fault.condition == "connection-timeout"
    assert standing.pinged == [PLACE.domain] * 3


async def test_any_answer_to_a_ping_will_do() -> None:
    def answer() -> str | None:
        if len(standing.pinged) == 5:
            standing.ended.set_result(END)
        return "service-unavailable"

    standing = Standing(answer)
    assert await standing.kept_alive(SERVER_ONLY) == END
    assert standing.pinged == [PLACE.domain] * 5


@pytest.mark.parametrize("jump", [-61.0, 61.0])
async def test_after_a_jump_of_the_clock_the_server_is_asked_at_once(jump: float) -> None:
    timing = Timing(ping_interval=60.0, check_interval=0.005)
    times = iter([0.0])
    standing = Standing(lambda: standing.ended.set_result(END))
    assert await standing.kept_alive(timing, lambda: next(times, jump)) == END
    assert standing.pinged == [PLACE.domain]


async def test_a_server_that_allows_a_short_silence_only_is_pinged_twice_as_often() -> None:
    times = iter([0.0, 9.9])
    standing = Standing(lambda: standing.ended.set_result(END))
    standing.offer = Offer(idle_seconds=20)
    timing = Timing(check_interval=0.005)
    assert await standing.kept_alive(timing, lambda: next(times, 10.0)) == END
    assert next(times, None) is None
    assert standing.pinged == [PLACE.domain]
