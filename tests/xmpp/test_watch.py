import asyncio
import time
from collections.abc import Callable
from typing import cast

import pytest

from bridge.xmpp.connection import Connection
from bridge.xmpp.faults import Fault, Place
from bridge.xmpp.watch import PATIENCE, Patience, Verdict, Watch, verdict

PLACE = Place(
    service="xmpp://chat.example:5222",
    domain="chat.example",
    account="bot@chat.example",
    room="lobby@conference.chat.example",
    nickname="Me",
)
OWN = f"{PLACE.room}/Me"
SECONDS = 5.0
SERVER_ONLY = Patience(
    ping_interval=0.01, ping_deadline=0.02, silence=60.0, known=120.0, tick=0.005, jump=10.0
)
ROOM_ONLY = Patience(
    ping_interval=60.0, ping_deadline=0.02, silence=0.01, known=0.1, tick=0.005, jump=10.0
)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (None, Verdict.IN),
        ("service-unavailable", Verdict.IN),
        ("feature-not-implemented", Verdict.IN),
        ("remote-server-not-found", Verdict.UNDECIDED),
        ("remote-server-timeout", Verdict.UNDECIDED),
        ("not-acceptable", Verdict.OUT),
        ("item-not-found", Verdict.OUT),
        ("not-allowed", Verdict.OUT),
        ("bad-request", Verdict.OUT),
        ("forbidden", Verdict.OUT),
        ("undefined-condition", Verdict.OUT),
    ],
)
def test_the_answer_to_a_self_ping_says_whether_we_are_in(
    condition: str | None, found: Verdict
) -> None:
    assert verdict(condition) is found


def test_users_are_promised_what_is_written() -> None:
    assert (PATIENCE.ping_interval, PATIENCE.ping_deadline) == (30, 15)
    assert (PATIENCE.silence, PATIENCE.known) == (60, 120)
    # The last look before `known` must leave time for its answer and for the tick before it.
    assert PATIENCE.silence + PATIENCE.ping_deadline + PATIENCE.tick < PATIENCE.known


SILENCE = "no answer"


class Standing:
    """What a watch sees of a connection, answering pings as told."""

    def __init__(self, answer: Callable[[str | None], str | None]) -> None:
        self.place = PLACE
        self.occupant = OWN
        self.room_heard = asyncio.get_running_loop().time()
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        self.pinged: list[str | None] = []
        self.answered = 0
        self.answer = answer

    async def ping(self, target: str | None) -> str | None:
        self.pinged.append(target)
        answer = self.answer(target)
        if answer == SILENCE:
            await asyncio.get_running_loop().create_future()
        self.answered += 1
        return answer

    async def watched(
        self,
        patience: Patience,
        on_self_ping: Callable[[float], None] = lambda _: None,
        wall: Callable[[], float] = time.time,
    ) -> Fault:
        watch = Watch(
            cast(Connection, self), patience=patience, on_self_ping=on_self_ping, wall=wall
        )
        async with asyncio.timeout(SECONDS):
            return await watch.run()


END = Fault("gone", "It went.", "Wait.")


async def test_a_connection_that_ends_is_told_by_its_reason() -> None:
    standing = Standing(lambda _: None)
    standing.ended.set_result(END)
    assert await standing.watched(PATIENCE) == END
    assert standing.pinged == []


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    standing = Standing(lambda _: SILENCE)
    fault = await standing.watched(SERVER_ONLY)
    assert fault.condition == "connection-timeout"
    assert standing.pinged == [None]


async def test_any_answer_to_a_ping_will_do() -> None:
    standing = Standing(lambda _: "service-unavailable")

    def answer(target: str | None) -> str | None:
        del target
        if standing.answered == 5:
            standing.ended.set_result(END)
        return "service-unavailable"

    standing.answer = answer
    assert await standing.watched(SERVER_ONLY) == END
    assert set(standing.pinged) == {None}


async def test_a_room_that_confirms_us_is_asked_again_after_the_next_silence() -> None:
    confirmed: list[float] = []
    standing = Standing(lambda _: None)

    def note(milliseconds: float) -> None:
        confirmed.append(milliseconds)
        if len(confirmed) == 3:
            standing.ended.set_result(END)

    assert await standing.watched(ROOM_ONLY, note) == END
    assert standing.pinged == [OWN] * 3
    assert all(one >= 0 for one in confirmed)


async def test_a_room_that_does_not_know_us_ends_it() -> None:
    standing = Standing(lambda _: "not-acceptable")
    assert (await standing.watched(ROOM_ONLY)).condition == "not-acceptable"
    assert standing.pinged == [OWN]


@pytest.mark.parametrize("answer", [SILENCE, "remote-server-timeout"])
async def test_a_room_that_decides_nothing_is_asked_until_it_is_known(answer: str) -> None:
    standing = Standing(lambda _: answer)
    loop = asyncio.get_running_loop()
    started = loop.time()
    fault = await standing.watched(ROOM_ONLY)
    assert fault.condition == "remote-server-timeout"
    assert PLACE.room in fault.message
    assert len(standing.pinged) > 1
    # No sooner than another look and its pings would end too late.
    least = ROOM_ONLY.known - ROOM_ONLY.tick - 2 * ROOM_ONLY.ping_deadline
    assert loop.time() - started >= least


async def test_a_refusal_of_a_nickname_that_we_no_longer_have_decides_nothing() -> None:
    standing = Standing(lambda _: None)

    def answer(target: str | None) -> str | None:
        if target == OWN:
            standing.occupant = f"{PLACE.room}/You"
            return "item-not-found"
        standing.ended.set_result(END)
        return None

    standing.answer = answer
    assert await standing.watched(ROOM_ONLY) == END
    assert standing.pinged == [OWN, f"{PLACE.room}/You"]


async def test_a_doubt_asks_the_room_at_once_and_not_at_the_next_look() -> None:
    standing = Standing(lambda _: "not-acceptable")
    watch = Watch(
        cast(Connection, standing),
        patience=Patience(tick=3600.0),
        on_self_ping=lambda _: None,
    )
    watch.doubt()
    assert (await watch.run()).condition == "not-acceptable"
    assert standing.pinged == [OWN]


async def test_after_a_jump_of_the_clock_server_and_room_are_asked_at_once() -> None:
    jumped = 0.0
    standing = Standing(lambda _: None)
    patience = Patience(ping_interval=60.0, silence=60.0, tick=0.005, jump=10.0)

    def end(_: float) -> None:
        standing.ended.set_result(END)

    def wall() -> float:
        nonlocal jumped
        now = time.time() + jumped
        jumped = 11.0
        return now

    assert await standing.watched(patience, end, wall) == END
    assert standing.pinged == [None, OWN]
