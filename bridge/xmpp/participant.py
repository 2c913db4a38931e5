"""Keeps one connection standing: decides when to try again, stays joined, speaks, leaves.

The one supervisor of connecting: there is never a second connection beside the first. slixmpp
comes in with the first attempt, in a thread, so that whoever asks before is not kept waiting.
"""

import asyncio
import importlib
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bridge.config import Settings
from bridge.escaping import one_line
from bridge.xmpp import faults
from bridge.xmpp.backoff import pause
from bridge.xmpp.events import (
    ConnectionChanged,
    Event,
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
from bridge.xmpp.room import Room, RoomStatus
from bridge.xmpp.saying import BouncedError, NotInRoomError, NotReflectedError, check_body

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

PING_INTERVAL_SECONDS = 30.0
"""Between two pings to the server; a half-open connection says nothing by itself."""

PING_DEADLINE_SECONDS = 15.0
"""For the server's answer."""

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
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._place = None if settings is None else _place_of(settings)
        self._room = Room(
            nickname="" if settings is None else settings.nickname,
            service="" if self._place is None else self._place.service,
            phase=Phase.UNCONFIGURED if settings is None else Phase.RESOLVING,
            since=clock(),
        )
        self.journal = Journal(secrets.token_hex(4), history)
        """Everything that happened, for all to read."""
        self._listeners: list[Callable[[Record], None]] = []
        self._connection: Connection | None = None
        self._changed = asyncio.Event()
        self._reflections: dict[str, asyncio.Future[Record]] = {}

    @property
    def room_jid(self) -> str:
        """The room's bare JID as configured; empty while unconfigured."""
        return "" if self._settings is None else self._settings.room

    def status(self) -> RoomStatus:
        """Return how things stand."""
        return self._room.status()

    def listen(self, listener: Callable[[Record], None]) -> None:
        """Call `listener` with each record, in order, as it is written."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Be in the room until cancelled; without settings, do nothing."""
        if self._settings is None or self._place is None:
            return
        settings, place = self._settings, self._place
        failures = 0
        resource = f"xmpp-debug-bridge.{secrets.token_hex(4)}"
        while True:
            was_in = False
            try:
                fault, was_in = await self._attempt(settings, place, resource, failures + 1)
            except Exception as error:  # a mistake of ours must not end the bridge
                log.error(
                    "the participant broke: %s: %s",
                    type(error).__name__,
                    one_line(str(error), 200),
                    exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
                )
                fault = faults.of_exception(Stage.STANDING, error, place)
            if self._room.phase is Phase.CLOSED:
                return
            failures = 1 if was_in else failures + 1
            await self._rest(fault, failures)

    async def _attempt(
        self, settings: Settings, place: Place, resource: str, attempt: int
    ) -> tuple[Fault, bool]:
        """Get into the room and stay; return what ended it, and whether we got in at all."""
        was_in = False
        await asyncio.to_thread(importlib.import_module, "bridge.xmpp.connection")
        from bridge.xmpp.connection import Connection

        def on_stage(stage: Stage) -> None:
            self._change(PHASES[stage], attempt=attempt)

        connection = Connection(
            settings, place, resource=resource, publish=self.publish, on_stage=on_stage
        )
        try:
            await self._enter(connection, settings.nickname)
            was_in = True
            return await self._stay(connection), was_in
        except ConnectionFailedError as failed:
            return failed.fault, was_in
        finally:
            self._connection = None
            connection.close()

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        """Say `body` in the room, and return the room's reflection of it.

        Waits for the first join while that is under way and nothing has failed yet, never for a
        reconnect. Raises `UnsendableError`, `NotInRoomError`, `NotReflectedError` or
        `BouncedError`. Nothing is queued and nothing sent twice.
        """
        check_body(body)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        connection = await self._first_join(deadline)
        id_ = secrets.token_hex(12)
        reflected: asyncio.Future[Record] = asyncio.get_running_loop().create_future()
        self._reflections[id_] = reflected
        started = time.perf_counter()
        try:
            connection.say(body, id_)
            async with asyncio.timeout_at(deadline):
                await asyncio.wait(
                    (reflected, connection.ended), return_when=asyncio.FIRST_COMPLETED
                )
            if not reflected.done():
                raise NotReflectedError(connection.ended.result())
            record = reflected.result()
        except ConnectionFailedError as failed:
            raise NotReflectedError(failed.fault) from failed
        except TimeoutError as error:
            fault = faults.no_reflection(timeout_seconds, connection.place)
            raise NotReflectedError(fault) from error
        finally:
            del self._reflections[id_]
        match record.event:
            case MessageReceived() as message:
                return Reflection(record, message, time.perf_counter() - started)
            case SendFailed() as failure:
                raise BouncedError(failure)
            case _:
                raise AssertionError(record)

    def leave(self) -> None:
        """Leave the room at once: the goodbye is written before this returns."""
        if self._connection is not None:
            self._connection.leave()
        if self._room.phase is not Phase.UNCONFIGURED:
            self._change(Phase.CLOSED)

    def publish(self, event: Event) -> None:
        """Record `event`, fold it into the room's state, and tell whoever listens."""
        record = self.journal.append(event, self._clock())
        self._room.apply(record)
        match event:
            case MessageReceived(own=True, source=Source.LIVE, id=str(id_)) | SendFailed(id=id_):
                waiting = self._reflections.get(id_)
                if waiting is not None and not waiting.done():
                    waiting.set_result(record)
            case OccupantLeft(own=True, codes=codes, reason=reason, actor=actor):
                self._put_out(lambda place: faults.put_out(codes, reason, actor, place))
            case RoomDestroyed(reason=reason, venue=venue):
                self._put_out(lambda place: faults.destroyed(reason, venue, place))
            case NicknameChanged(own=True, occupant=occupant, nickname=old, new_nickname=new):
                if self._connection is not None:
                    self._connection.occupant = occupant.removesuffix(old) + new
            case _:
                pass
        for listener in self._listeners:
            listener(record)

    async def _enter(self, connection: "Connection", nickname: str) -> None:
        await connection.open()
        for number in range(1, NICKNAME_TRIES + 1):
            try:
                await connection.join(nickname if number == 1 else f"{nickname}-{number}")
            except ConnectionFailedError as failed:
                taken = failed.fault.condition == "conflict" and not connection.ended.done()
                if not taken or number == NICKNAME_TRIES:
                    raise
            else:
                break
        self._connection = connection
        self._change(Phase.JOINED)

    async def _stay(self, connection: "Connection") -> Fault:
        """Return the reason once the connection has ended, looking after it meanwhile."""
        while not connection.ended.done():
            await asyncio.wait((connection.ended,), timeout=PING_INTERVAL_SECONDS)
            if connection.ended.done():
                break
            try:
                async with asyncio.timeout(PING_DEADLINE_SECONDS):
                    await connection.ping()
            except TimeoutError:
                return faults.of_silence(Stage.STANDING, PING_DEADLINE_SECONDS, connection.place)
        return connection.ended.result()

    async def _rest(self, fault: Fault, failures: int) -> None:
        """Say what went wrong and wait as long as it calls for."""
        seconds = pause(fault.retry, failures, 2 * secrets.randbits(32) / 2**32 - 1)
        hopeless = fault.retry in {Retry.NEVER, Retry.LATER}
        phase = Phase.FAILED if hopeless else Phase.WAITING
        self._change(phase, fault, attempt=failures, retry_seconds=seconds)
        if seconds is None:
            await asyncio.get_running_loop().create_future()
        else:
            await asyncio.sleep(seconds)

    async def _first_join(self, deadline: float) -> "Connection":
        """Return the connection that stands in the room, or raise `NotInRoomError`."""
        try:
            async with asyncio.timeout_at(deadline):
                while self._is_first_join():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        if self._connection is None or self._room.phase is not Phase.JOINED:
            raise NotInRoomError(self.status())
        return self._connection

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
            self.publish(ConnectionChanged(phase, fault, attempt, retry_seconds))
            self._changed.set()

    def _put_out(self, fault_at: Callable[[Place], Fault]) -> None:
        """End a connection whose room is gone; a stream without its room is of no use here."""
        if self._connection is not None and self._place is not None:
            self._connection.end(fault_at(self._place))


def _place_of(settings: Settings) -> Place:
    return Place(
        service=str(settings.service or f"xmpp://{settings.domain}"),
        domain=settings.domain,
        account=settings.jid,
        room=settings.room,
        nickname=settings.nickname,
    )
