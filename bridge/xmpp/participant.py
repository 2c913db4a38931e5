"""Keeps one connection standing: decides when to try again, stays joined, speaks, leaves.

The one supervisor of connecting: there is never a second connection beside the first. slixmpp
comes in with the first attempt, in a thread, so that whoever asks before is not kept waiting.
"""

import asyncio
import importlib
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from bridge.escaping import one_line
from bridge.settings.table import Settings
from bridge.times import iso
from bridge.xmpp import faults, refusals, trust
from bridge.xmpp.backoff import STEADY_SECONDS, pause
from bridge.xmpp.events import (
    ConnectionChanged,
    Event,
    Gap,
    MessageReceived,
    NicknameChanged,
    OccupantLeft,
    Phase,
    RoomDestroyed,
    SendFailed,
    Source,
)
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Retry, Stage
from bridge.xmpp.journal import DEFAULT_CAPACITY, Journal, Record
from bridge.xmpp.management import RESUMABLE, Former
from bridge.xmpp.recall import Recall
from bridge.xmpp.room import Room, RoomStatus
from bridge.xmpp.saying import (
    BouncedError,
    NotInRoomError,
    NotReflectedError,
    NotSentError,
    check_body,
)
from bridge.xmpp.trace import Trace
from bridge.xmpp.watch import PATIENCE, Patience, Watch

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

OVERLAP_SECONDS = 60.0
"""How far before what we saw last the room is asked for what we missed: its clock may differ."""

CATCHING_UP_SECONDS = 60.0
"""How long the room's archive may take to tell what we missed."""

ARCHIVE_QUESTION_SECONDS = 5.0
"""How long the way back into the room waits to hear whether there is an archive."""

NICKNAME_TRIES = 5
"""Nicknames tried when the first is taken: `name`, `name-2`, and so on."""

PHASES = {
    Stage.RESOLVE: Phase.RESOLVING,
    Stage.CONNECT: Phase.CONNECTING,
    Stage.TLS: Phase.SECURING,
    Stage.SASL: Phase.AUTHENTICATING,
    Stage.BIND: Phase.AUTHENTICATING,
    Stage.JOIN: Phase.JOINING,
}
"""What users see of each stage."""

UNDER_WAY = frozenset(PHASES.values())
"""The phases of an attempt that has not been decided."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reflection:
    """The room's own copy of what we said: the proof that it was heard."""

    record: Record
    message: MessageReceived
    round_trip_seconds: float


class Participant:
    """One occupant-to-be of one room, for as long as `run` runs."""

    def __init__(
        self,
        settings: Settings | None,
        *,
        history: int = DEFAULT_CAPACITY,
        clock: Callable[[], float] = time.time,
        patience: Patience = PATIENCE,
        deadlines: Mapping[Stage, float] | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._patience = patience
        self._deadlines = deadlines
        self._place = None if settings is None else Place.of(settings)
        self._room = Room(
            nickname="" if settings is None else settings.nickname,
            service="" if self._place is None else self._place.service,
            phase=Phase.UNCONFIGURED if settings is None else Phase.RESOLVING,
            since=clock(),
        )
        self.journal = Journal(secrets.token_hex(4), history)
        """Everything that happened, for all to read."""
        self.trace = Trace(self.journal.numbering)
        """What went over our connections."""
        self._listeners: list[Callable[[Record], None]] = []
        self._connection: Connection | None = None
        self._former: Former | None = None
        self._recall = Recall()
        self._missed_since: float | None = None
        """When we last saw the room, until what was said since is filled in; wall clock."""
        self._archived: bool | None = None
        """Whether the room keeps an archive; None until it was asked."""
        self._self_ping_ms: float | None = None
        self._watch: Watch | None = None
        self._changed = asyncio.Event()
        self._again = asyncio.Event()
        self._reflections: dict[str, asyncio.Future[Record]] = {}

    @property
    def room_jid(self) -> str:
        """The room's bare JID as configured; empty while unconfigured."""
        return "" if self._settings is None else self._settings.room

    @property
    def connection(self) -> "Connection":
        """The connection that stands in the room; raises `NotInRoomError` when there is none."""
        if self._connection is None or self._room.phase is not Phase.JOINED:
            raise NotInRoomError(self.status())
        return self._connection

    def status(self) -> RoomStatus:
        """Return how things stand."""
        return replace(self._room.status(), self_ping_ms=self._self_ping_ms)

    def listen(self, listener: Callable[[Record], None]) -> Callable[[], None]:
        """Call `listener` with each record, in order, as it is written.

        Return what ends that.
        """
        self._listeners.append(listener)
        return partial(self._listeners.remove, listener)

    async def run(self) -> None:
        """Be in the room until cancelled; without settings, wait for some."""
        failures = 0
        while True:
            self._again.clear()
            settings, place = self._settings, self._place
            if settings is None or place is None:
                await self._again.wait()
                continue
            stay = 0.0
            try:
                fault, stay = await self._attempt(settings, place, failures + 1)
            except Exception as error:  # a mistake of ours must not end the bridge
                log.error(
                    "the participant broke: %s: %s",
                    type(error).__name__,
                    one_line(str(error), 200),
                    exc_info=_at_debug(error),
                )
                fault = faults.of_exception(Stage.STANDING, error, place)
            if self._room.phase is Phase.CLOSED:
                return
            if self._settings != settings:
                # What we know of one account and room is not true of another.
                self._former = self._missed_since = self._archived = None
            failures = 1 if stay >= STEADY_SECONDS else failures + 1
            if self._again.is_set():  # somebody has better news than this fault
                failures = 0
            else:
                await self._rest(fault, failures)

    async def _attempt(self, settings: Settings, place: Place, attempt: int) -> tuple[Fault, float]:
        """Get into the room and stay; return what ended it, and for how many seconds we were in."""
        context = trust.context_in_the_making(settings, place)
        await asyncio.to_thread(importlib.import_module, "bridge.xmpp.connection")
        from bridge.xmpp.connection import DEADLINES, Connection

        def on_stage(stage: Stage) -> None:
            self._change(PHASES[stage], attempt=attempt)

        connection = Connection(
            settings,
            place,
            context=context,
            # Another one each time: who learnt our full JID does not know the next.
            resource=f"xmpp-debug-bridge.{secrets.token_hex(4)}",
            publish=self.publish,
            on_stage=on_stage,
            trace=self.trace.of_connection(self._clock),
            deadlines=self._deadlines or DEADLINES,
        )
        loop = asyncio.get_running_loop()
        joined_at: float | None = None
        ahead = self._clock() - loop.time()
        try:
            await self._enter(connection, settings.nickname)
            joined_at = loop.time()
            fault = await self._stay(connection)
        except ConnectionFailedError as failed:
            fault = failed.fault
        finally:
            self._connection = None
            self._self_ping_ms = None
            connection.close()
        if joined_at is None:
            self._former = None
            return fault, 0.0
        steady = loop.time() - joined_at >= STEADY_SECONDS or self._former is None
        self._former = connection.former() if steady and fault.condition in RESUMABLE else None
        if self._missed_since is None:
            # Of the two readings the earlier one: while the machine slept, only the wall clock ran.
            self._missed_since = connection.heard + min(ahead, self._clock() - loop.time())
        return fault, loop.time() - joined_at

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        """Say `body` in the room, and return the room's reflection of it.

        Waits for the first join while that is under way and nothing has failed yet, never for a
        reconnect. Raises `UnsendableError`, `NotInRoomError`, `NotSentError`,
        `NotReflectedError` or `BouncedError`. Nothing is queued and nothing sent twice.
        """
        check_body(body)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        connection = await self._first_join(deadline)
        id_ = secrets.token_hex(12)
        reflected: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._reflections[id_] = reflected
        started = time.perf_counter()
        try:
            self._recall.sent(id_)
            try:
                connection.say(body, id_)
            except ConnectionFailedError as failed:
                raise NotSentError(failed.fault) from failed
            async with asyncio.timeout_at(deadline):
                record = await connection.unless_ended(reflected)
        except ConnectionFailedError as failed:
            raise NotReflectedError(failed.fault) from failed
        except TimeoutError as error:
            fault = refusals.no_reflection(timeout_seconds, connection.place)
            raise NotReflectedError(fault) from error
        finally:
            del self._reflections[id_]
        match record.event:
            case MessageReceived() as message:
                return Reflection(record, message, time.perf_counter() - started)
            case SendFailed(condition=condition, text=text) as failure:
                fault = refusals.bounced(condition, text, connection.place)
                raise BouncedError(failure, fault)
            case _:
                raise AssertionError(record)

    @property
    def settings(self) -> Settings | None:
        """What is in effect; None while unconfigured."""
        return self._settings

    def begin_anew(self, settings: Settings) -> bool:
        """Try at once, with these settings: they changed, or what kept us out is known to be gone.

        While in the room with the same settings, or on the way out of it for good, nothing
        happens. Return whether something does.
        """
        changed = settings != self._settings
        standing = not changed and self._room.phase is Phase.JOINED
        if standing or self._room.phase is Phase.CLOSED:
            return False
        self._settings, self._place = settings, Place.of(settings)
        if changed and self._connection is not None:
            self._connection.leave()
        self._again.set()
        return True

    def leave(self) -> None:
        """Leave the room at once: the goodbye is written before this returns."""
        if self._connection is not None:
            self._connection.leave()
        if self._room.phase is not Phase.UNCONFIGURED:
            self._change(Phase.CLOSED)

    def publish(self, event: Event) -> None:
        """Record `event`, fold it into the room's state, and tell whoever listens."""
        if isinstance(event, MessageReceived):
            message = self._recall.meet(event)
            if message is None:
                return
            event = message
        told = self._room.meet(event)
        if told is None:
            return
        event = told
        record = self.journal.append(event, self._clock())
        self._room.apply(record)
        match event:
            case MessageReceived(own=True, source=Source.LIVE, id=str(id_)) | SendFailed(id=id_):
                waiting = self._reflections.get(id_)
                if waiting is not None and not waiting.done():
                    waiting.set_result(record)
            case OccupantLeft(self_=True, codes=codes, reason=reason, actor=actor):
                self._put_out(lambda place: refusals.put_out(codes, reason, actor, place))
            case RoomDestroyed(reason=reason, venue=venue):
                self._put_out(lambda place: refusals.destroyed(reason, venue, place))
            case NicknameChanged(self_=True, from_=occupant, sender=old, new_nickname=new):
                if self._connection is not None:
                    self._connection.occupant = occupant.removesuffix(old) + new
            case _:
                pass
        if isinstance(event, SendFailed) and event.condition == "not-acceptable" and self._watch:
            self._watch.doubt()  # so a room answers those who are not in it (XEP-0045, 7.4)
        for listener in tuple(self._listeners):  # one that is told may stop listening
            listener(record)

    async def _enter(self, connection: "Connection", nickname: str) -> None:
        self._connection = connection
        if await connection.open(self._former):
            self._settle_in(connection)
            # The server sends again what it had not seen acknowledged: nothing was missed.
            self._missed_since = None
            return
        missed = self._missed_since
        since = None if missed is None else iso(missed - OVERLAP_SECONDS)
        # What an archive tells is whole and in order; the room's history would overtake it.
        history = since is None or not await self._keeps_archive(connection)
        for number in range(1, NICKNAME_TRIES + 1):
            try:
                name = nickname if number == 1 else f"{nickname}-{number}"
                await connection.join(name, since, history=history)
            except ConnectionFailedError as failed:
                taken = failed.fault.condition == "conflict" and not connection.ended.done()
                if not taken or number == NICKNAME_TRIES:
                    raise
            else:
                break
        self._settle_in(connection)

    async def _keeps_archive(self, connection: "Connection") -> bool:
        from bridge.xmpp import archive

        if self._archived is None:  # the last stay was too short to find out
            try:
                async with asyncio.timeout(ARCHIVE_QUESTION_SECONDS):
                    self._archived = await archive.exists(connection, self.room_jid)
            except (archive.ArchiveError, TimeoutError):
                return False
        return self._archived

    def _settle_in(self, connection: "Connection") -> None:
        """Be in the room, unless we have been put out again in the same breath."""
        if connection.ended.done():
            raise ConnectionFailedError(connection.ended.result())
        self._change(Phase.JOINED)

    async def _stay(self, connection: "Connection") -> Fault:
        """Return the reason once the connection has ended, looking after it meanwhile."""
        self._watch = Watch(
            connection,
            patience=self._patience,
            on_self_ping=self._note_self_ping,
            wall=self._clock,
        )
        catching_up = asyncio.create_task(self._catch_up(connection))
        try:
            return await self._watch.run()
        finally:
            self._watch = None
            catching_up.cancel()
            await asyncio.wait((catching_up,))
            if not catching_up.cancelled() and (error := catching_up.exception()):
                log.error("catching up broke: %s", type(error).__name__, exc_info=_at_debug(error))

    async def _catch_up(self, connection: "Connection") -> None:
        """Fill the journal with what the room's archive says we missed, or say what may be missing.

        The room's history, which came with joining, may have been too short to hold it all.
        """
        from bridge.xmpp import archive

        since, until = self._missed_since, self._clock()
        try:
            async with asyncio.timeout(CATCHING_UP_SECONDS):
                if since is None:
                    self._archived = await archive.exists(connection, self.room_jid)
                    return
                start = iso(since - OVERLAP_SECONDS)
                async for event in archive.since(connection, self.room_jid, start):
                    self.publish(event)
        except (archive.ArchiveError, TimeoutError):
            self._archived = False
            if since is None:
                return
            self.publish(Gap(iso(since), iso(until)))
        except ConnectionFailedError:
            return  # the next stay asks again
        self._missed_since = None

    def _note_self_ping(self, milliseconds: float) -> None:
        self._self_ping_ms = round(milliseconds, 3)

    async def _rest(self, fault: Fault, failures: int) -> None:
        """Say what went wrong and wait as long as it calls for."""
        seconds = pause(fault.retry, failures, 2 * secrets.randbits(32) / 2**32 - 1)
        hopeless = fault.retry in {Retry.NEVER, Retry.LATER}
        phase = Phase.FAILED if hopeless else Phase.WAITING
        self._change(phase, fault, attempt=failures, retry_seconds=seconds)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._again.wait()

    async def _first_join(self, deadline: float) -> "Connection":
        """Return the connection that stands in the room, or raise `NotInRoomError`."""
        with suppress(TimeoutError):
            while self._is_first_join():
                self._changed.clear()
                async with asyncio.timeout_at(deadline):
                    await self._changed.wait()
        return self.connection

    def _is_first_join(self) -> bool:
        return self._room.phase in UNDER_WAY and self._room.status().last_error is None

    def _change(
        self,
        phase: Phase,
        fault: Fault | None = None,
        *,
        attempt: int = 0,
        retry_seconds: float | None = None,
    ) -> None:
        if phase is not self._room.phase or fault is not None:
            wait = None if retry_seconds is None else round(retry_seconds * 1000)
            self.publish(ConnectionChanged(phase, fault, attempt, wait))
            self._changed.set()

    def _put_out(self, fault_at: Callable[[Place], Fault]) -> None:
        """End a connection whose room is gone; a stream without its room is of no use here."""
        if self._connection is not None and self._connection.inside and self._place is not None:
            self._connection.end(fault_at(self._place))


def _at_debug(error: BaseException) -> BaseException | None:
    """A traceback is for whoever asked for everything."""
    return error if log.isEnabledFor(logging.DEBUG) else None
