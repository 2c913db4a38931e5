"""An actor: an occupant of one room, on a connection of its own, that does what a test says."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from bridge.settings.table import Settings
from bridge.testing import expectation
from bridge.testing.engine import Engine
from bridge.testing.errors import ActorError, ExpectationError
from bridge.testing.expectation import Conditions, Expectation, Expected
from bridge.text import iso, one_line, quoted
from bridge.xmpp import stanzas
from bridge.xmpp.errors import NotInRoomError, UnsendableError
from bridge.xmpp.events import MessageReceived, OccupantJoined, OccupantLeft
from bridge.xmpp.faults import FaultError
from bridge.xmpp.formatting import format_event
from bridge.xmpp.journal import Record
from bridge.xmpp.participant import Participant
from bridge.xmpp.room import Occupant

ENTER_SECONDS = 30.0
"""For connecting, logging in and joining together."""

ANSWER_SECONDS = 10.0
"""For the room to send back what an actor said, or to answer a request."""

LATE_SECONDS = 1.0
"""How long a failed expectation goes on looking, to be able to say that an answer came late."""

MAX_EVENTS, MAX_STANZAS = 60, 40
"""The newest events and stanzas in the report of a failed test."""

MAX_STANZA_CHARACTERS = 1_000
"""Of one stanza in it."""

MAX_NAMED = 20
"""Occupants that a failed expectation names."""

Given = ParamSpec("Given")
Found = TypeVar("Found")


def _in_engine(
    method: "Callable[Concatenate[Actor, Given], Coroutine[Any, Any, Found]]",
) -> "Callable[Concatenate[Actor, Given], Coroutine[Any, Any, Found]]":
    """Have the coroutine run in the loop of the engine, whichever loop it is awaited in."""

    @wraps(method)
    async def call(actor: "Actor", /, *given: Given.args, **named: Given.kwargs) -> Found:
        __tracebackhide__ = True
        return await actor.engine.wait(method(actor, *given, **named))

    return call


class Actor:
    """One occupant, from `enter` to `leave`, for tests that are coroutines.

    An expectation looks at everything that came after the event that met the one before it, so
    that an answer which is faster than the test is not missed; what the actor says changes nothing
    about that. Expectations of messages follow one another, those of coming and going for each
    nickname apart: it is no matter which the room tells first. All methods raise `ActorError`
    where the room or the server refuses what they do.
    """

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self.engine = engine
        self.nickname = settings.nickname
        self.room = settings.room
        """The bare JID of its room."""
        self._name = one_line(settings.nickname)
        self._participant = Participant(settings)
        self._news = asyncio.Event()
        self._participant.listen(lambda record: self._news.set())
        self._looked: dict[str, int] = {}
        """The number of the event that met the last expectation: by the nickname for coming and
        going, by nothing for messages."""
        self._running: asyncio.Task[None] | None = None

    @_in_engine
    async def enter(self) -> None:
        """Join the room."""
        self._running = asyncio.create_task(self._participant.run())
        until = asyncio.get_running_loop().time() + ENTER_SECONDS
        while not (status := self._participant.status()).connected:
            if status.last_error is not None or not await self._hear(until):
                raise self._not_in_room()
        entered = self._participant.default
        if entered.occupant != stanzas.occupant_jid(entered.jid, self.nickname):
            raise self._error(f"did not get into {self.room}: somebody there has this nickname.")

    @_in_engine
    async def leave(self) -> None:
        """Leave the room and hang up."""
        self._participant.leave()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait((self._running,))

    @_in_engine
    async def say(self, body: str) -> MessageReceived:
        """Say `body` in the room; return it as the room sent it back."""
        with self._doing(f"say {quoted(body)}"):
            return (await self._participant.default.say(body, ANSWER_SECONDS)).message

    @_in_engine
    async def expect(
        self,
        text: str | None = None,
        *,
        private: bool = False,
        within: float = 5.0,
        **conditions: Unpack[Conditions],
    ) -> MessageReceived:
        """Wait for a message that is `text` and meets all conditions, and return it.

        Raises `ExpectationError` if none comes `within` so many seconds.
        """
        return await self._expect(expectation.message(text, private, **conditions), "", within)

    @_in_engine
    async def expect_nothing(
        self, text: str | None = None, *, during: float = 1.0, **conditions: Unpack[Conditions]
    ) -> None:
        """Raise `ExpectationError` if such a message, public or private, comes.

        It must neither come `during` so many seconds, nor have come since the last expectation.
        """
        unwanted = expectation.message(text, None, **conditions)
        until = asyncio.get_running_loop().time() + during
        record = await self._find(unwanted, self._looked.get("", 0), until)
        if record is not None:
            raise ExpectationError(
                self.nickname,
                f"{self._name} expected for {during:g} s not to get {unwanted.wanted}, and got:\n"
                f"  {self._line(record)}",
            )

    @_in_engine
    async def expect_join(self, nickname: str, *, within: float = 5.0) -> OccupantJoined:
        """Wait until somebody of this nickname enters the room; who was there before has done so.

        Raises `ExpectationError` if nobody does `within` so many seconds.
        """
        wanted = Expectation(OccupantJoined, f"{quoted(nickname)} to join", nickname)
        return await self._expect(wanted, nickname, within)

    @_in_engine
    async def expect_leave(self, nickname: str, *, within: float = 5.0) -> OccupantLeft:
        """Wait until somebody of this nickname leaves the room, or is put out of it.

        Raises `ExpectationError` if nobody does `within` so many seconds.
        """
        wanted = Expectation(OccupantLeft, f"{quoted(nickname)} to leave", nickname)
        return await self._expect(wanted, nickname, within)

    @_in_engine
    async def occupants(self) -> dict[str, Occupant]:
        """Return who is in the room, by nickname."""
        return {one.nickname: one for one in self._participant.status().occupants}

    @_in_engine
    async def report(self) -> list[tuple[str, str]]:
        """Return titles and texts for the report of a failed test: escaped, without secrets."""
        events = [self._line(one) for one in [*self._participant.journal][-MAX_EVENTS:]]
        traced = [
            f"{iso(one.at)} {one.direction}: "
            + one_line(stanzas.xml_of(one.xml), MAX_STANZA_CHARACTERS)
            for one in self._participant.trace
            # Without pings and service discovery, and what frames the stream.
            if not isinstance(one.xml, str) and one.xml.get("type") not in {"get", "result"}
        ]
        return [
            (f"XMPP: {one_line(self.room)} as {self._name} saw it", "\n".join(events)),
            (f"XMPP: the last stanzas of {self._name}", "\n".join(traced[-MAX_STANZAS:])),
        ]

    async def _expect(self, wanted: Expectation[Expected], track: str, within: float) -> Expected:
        looked, due = self._looked.get(track, 0), time.time() + within
        until = asyncio.get_running_loop().time() + within
        record = await self._find(wanted, looked, until)
        if record is None:
            await self._find(wanted, looked, until + LATE_SECONDS)
            journal = iter(self._participant.journal)
            misses = expectation.nearest_misses(wanted, journal, looked, due, self._line)
            raise ExpectationError(self.nickname, self._why(wanted.wanted, within, misses))
        self._looked[track] = max(record.number, looked)
        event = record.event
        assert isinstance(event, wanted.kind)
        return event

    async def _find(
        self, wanted: Expectation[Expected], number: int, until: float
    ) -> Record | None:
        """Return the first event after `number` that is wanted; None once the time has come."""
        while True:
            for record in self._participant.journal.after(number):
                number = record.number
                if wanted.is_met_by(record.event):
                    return record
            if not await self._hear(until):
                return None

    async def _hear(self, until: float) -> bool:
        """Wait for an event; return False once that time of the loop has come."""
        try:
            async with asyncio.timeout_at(until):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def _why(self, wanted: str, within: float, misses: list[str]) -> str:
        status = self._participant.status()
        nicknames = [quoted(one.nickname) for one in status.occupants[:MAX_NAMED]]
        return "\n".join(
            (
                f"{self._name} waited {within:g} s for {wanted}, in vain.",
                *(["What came instead, nearest first:", *misses] if misses else ["Nothing came."]),
                f"In the room: {', '.join(nicknames)}."
                if status.connected
                else str(self._not_in_room()),
            )
        )

    def _line(self, record: Record) -> str:
        return format_event(self._participant.journal.encode(record))

    @contextmanager
    def _doing(self, what: str) -> Iterator[None]:
        """Translate what goes wrong meanwhile."""
        try:
            yield
        except NotInRoomError:
            raise self._not_in_room() from None
        except (FaultError, UnsendableError) as error:
            raise self._error(f"could not {what}: {error}") from None

    def _error(self, message: str) -> ActorError:
        return ActorError(self.nickname, f"{self._name} {message}")

    def _not_in_room(self) -> ActorError:
        status = self._participant.status()
        why = f"The phase is {status.phase}."
        if status.last_error is not None:
            why = f"{status.last_error.fault.message} {status.last_error.fault.hint}"
        return self._error(f"is not in {self.room}. {why}")


def _blocking(
    method: Callable[Concatenate[Actor, Given], Coroutine[Any, Any, Found]],
) -> "Callable[Concatenate[BlockingActor, Given], Found]":
    @wraps(method)
    def call(self: "BlockingActor", /, *given: Given.args, **named: Given.kwargs) -> Found:
        __tracebackhide__ = True
        return self.actor.engine.run(method(self.actor, *given, **named))

    return call


class BlockingActor:
    """An actor for plain tests: each method returns when it is done."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.nickname, self.room = actor.nickname, actor.room

    say = _blocking(Actor.say)
    expect = _blocking(Actor.expect)
    expect_nothing = _blocking(Actor.expect_nothing)
    expect_join = _blocking(Actor.expect_join)
    expect_leave = _blocking(Actor.expect_leave)
    occupants = _blocking(Actor.occupants)
    leave = _blocking(Actor.leave)
