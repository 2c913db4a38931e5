import asyncio
import time
from collections.abc import Callable

import pytest

from bridge.wire.names import PING
from bridge.xmpp.link.offer import Offer
from bridge.xmpp.link.stream import Stream
from bridge.xmpp.link.trace import untraced
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.queries.keepalive import TIMING, Timing, keep_alive
from tests.faults.scripted_server import HEADER
from tests.xmpp.place import PLACE
from tests.xmpp.played_connection import RESULT, Answer, PlayedConnection, refused

SECONDS = 30.0
SERVER_ONLY = Timing(ping_interval=0.01, ping_deadline=0.02, check_interval=0.005)


def test_users_are_promised_what_is_written() -> None:
    assert (TIMING.ping_interval, TIMING.ping_deadline) == (30, 15)
    assert (TIMING.idle_before_ping, TIMING.max_unconfirmed) == (60, 120)
    # The last check before `max_unconfirmed` must leave time for an answer, and for the one before.
    assert (
        TIMING.idle_before_ping + TIMING.ping_deadline + TIMING.check_interval
        < TIMING.max_unconfirmed
    )


END = Fault("gone", "It went.", "Wait.")


class Standing(PlayedConnection):
    offer = Offer()

    def __init__(self, pong: Callable[[], Answer] = lambda: RESULT) -> None:
        super().__init__({})
        self.pong = pong

    def answer(self, to: str | None, namespace: str) -> Answer:
        assert namespace == PING
        return self.pong()

    def end(self) -> Answer:
        self.ended.set_result(END)
        return RESULT

    async def kept_alive(self, timing: Timing, wall: Callable[[], float] = time.time) -> Fault:
        async with asyncio.timeout(SECONDS):
            return await keep_alive(self.connection, timing, wall)


PINGED = (PLACE.domain, PING)


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    standing = Standing(lambda: None)
    fault = await standing.kept_alive(SERVER_ONLY)
    assert fault.condition == "connection-timeout"
    assert standing.asked == [PINGED]


async def test_a_server_that_is_still_sending_is_not_given_up() -> None:
    def answer() -> None:
        if len(standing.asked) < 3:
            # One stanza after another, each shorter, behind which the answer will come.
            stream.data_received(b"</a><a>" + b"x" * (9 - len(standing.asked)) * 2_000)
            standing.received = stream.received

    standing = Standing(answer)
    stream = Stream("localhost", lambda _: None, lambda _: None, untraced)
    stream.end_negotiation()
    stream.data_received(HEADER.encode() + b"<a>" + b"x" * 100_000)
    standing.received = stream.received
    fault = await standing.kept_alive(SERVER_ONLY)
    assert fault.condition == "connection-timeout"
    assert standing.asked == [PINGED] * 3


async def test_any_answer_to_a_ping_will_do() -> None:
    def answer() -> Answer:
        return standing.end() if len(standing.asked) == 5 else refused("service-unavailable")

    standing = Standing(answer)
    assert await standing.kept_alive(SERVER_ONLY) == END
    assert standing.asked == [PINGED] * 5


@pytest.mark.parametrize("jump", [-61.0, 61.0])
async def test_after_a_jump_of_the_clock_the_server_is_asked_at_once(jump: float) -> None:
    timing = Timing(ping_interval=60.0, check_interval=0.005)
    times = iter([0.0])
    standing = Standing(lambda: standing.end())
    assert await standing.kept_alive(timing, lambda: next(times, jump)) == END
    assert standing.asked == [PINGED]


async def test_a_server_that_allows_a_short_silence_only_is_pinged_twice_as_often() -> None:
    times = iter([0.0, 9.9])
    standing = Standing(lambda: standing.end())
    standing.offer = Offer(idle_seconds=20)
    timing = Timing(check_interval=0.005)
    assert await standing.kept_alive(timing, lambda: next(times, 10.0)) == END
    assert next(times, None) is None
    assert standing.asked == [PINGED]
