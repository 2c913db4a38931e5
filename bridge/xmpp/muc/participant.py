"""Keeps one connection to the server and takes part in the rooms on it.

It never has a second connection. A check opens connections of its own (`checks.probe`).
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.store.clock import Instant
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection, fault_of_mistake
from bridge.xmpp.link.session import RESUMABLE, StreamManagement
from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.backoff import STEADY_SECONDS, pause, resting
from bridge.xmpp.model.events import Connected, ConnectionChanged, Phase, StanzaDamaged
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.model.journal import DEFAULT_CAPACITY, Journal, Record
from bridge.xmpp.model.room import Room, RoomStatus
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.publisher import Publisher
from bridge.xmpp.queries.keepalive import TIMING, Timing, keep_alive

PHASE_OF_STAGE = {
    Stage.RESOLVE: Phase.RESOLVING,
    Stage.CONNECT: Phase.CONNECTING,
    Stage.TLS: Phase.SECURING,
    Stage.SASL: Phase.AUTHENTICATING,
    Stage.BIND: Phase.AUTHENTICATING,
}
"""The phase that users see during each stage of a connection."""


class Participant:
    """Takes part in the rooms with one account, for as long as `run` runs."""

    def __init__(
        self,
        settings: Settings | None,
        *,
        history: int = DEFAULT_CAPACITY,
        timing: Timing = TIMING,
    ) -> None:
        self._timing = timing
        self.journal = Journal(secrets.token_hex(4), history)
        """Everything that happened, for all to read."""
        self.publisher = Publisher(self.journal)
        """Writes into the journal what happens, and hands it on."""
        self.trace = Trace(self.journal.numbering)
        """The stanzas that went over our connections."""
        self.settings: Settings | None = None
        """The settings in effect; None while unconfigured."""
        self.memberships: tuple[Membership, ...] = ()
        """Our memberships, the default room's first; empty while unconfigured."""
        self._by_jid: dict[str, Membership] = {}
        self._phase = Phase.UNCONFIGURED
        """The phase of the connection."""
        self._unconfigured = Room(nickname="", service="", phase=self._phase, since=Instant.now())
        self._connection: Connection | None = None
        self._former: StreamManagement | None = None
        """The stream management of the session that the next connection may resume."""
        self._has_session = False
        """Whether there is a session. During a session, each membership that is out of its room
        tries again by itself."""
        self._again = asyncio.Event()
        """Set when the next connection need not wait, or when there are other settings for it."""
        if settings is not None:
            self._configure(settings)

    @property
    def room_jid(self) -> str:
        """The default room's bare JID as configured; empty while unconfigured."""
        return "" if self.settings is None else self.settings.room

    @property
    def connection(self) -> Connection:
        """The connection with its session, whether in a room or not; raises `NotInRoomError`."""
        if self._connection is None or not self._has_session:
            raise NotInRoomError("there is no session")
        return self._connection

    def status(self) -> RoomStatus:
        """Return the status of the default room."""
        return self.memberships[0].status() if self.memberships else self._unconfigured.status()

    def listen(self, listener: Callable[[Record], None]) -> Callable[[], None]:
        """Call `listener` with each record, in order, as it is written.

        Return a function that stops these calls.
        """
        return self.publisher.listen(listener)

    async def run(self) -> None:
        """Be in the rooms until cancelled; without settings, wait for some."""
        failures = 0
        while True:
            self._again.clear()
            settings = self.settings
            if settings is None:
                await self._again.wait()
                continue
            lasted = 0.0
            try:
                fault, lasted = await self._attempt(settings, failures + 1)
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end the bridge
                fault = fault_of_mistake("the participant", error, Place.of(settings))
            if self._phase is Phase.CLOSED:
                return
            failures = 1 if lasted >= STEADY_SECONDS else failures + 1
            if self._again.is_set():  # `begin_anew` was called after this fault
                failures = 0
            else:
                await self._back_off(fault, failures)

    def begin_anew(self, settings: Settings) -> bool:
        """Try at once with these settings: they changed, or the obstacle is known to be gone.

        Return False if there is nothing to try: we are in all rooms with the same settings, or are
        leaving for good.
        """
        if self._phase is Phase.CLOSED:
            return False
        if settings == self.settings:
            out = [membership.try_again() for membership in self.memberships]
            if not self._has_session:
                self._again.set()
            return any(out)
        self._hang_up()
        self._configure(settings)
        self._former = None
        self._again.set()
        return True

    def leave(self) -> None:
        """Leave the rooms at once: the goodbyes are written before this returns."""
        self._hang_up()
        if self.settings is not None:
            self._change(ConnectionChanged(Phase.CLOSED))

    def _configure(self, settings: Settings) -> None:
        """Take these settings; keep the memberships in rooms that the former settings had too."""
        self.settings = settings
        memberships = {}
        for room in settings.rooms:
            place, password = Place.of(settings, room), settings.password_of(room)
            membership = Membership(place, password, self.publisher, timing=self._timing)
            if membership.jid in self._by_jid:
                membership = self._by_jid[membership.jid]
                membership.configure(place, password)
            memberships[membership.jid] = membership
        self._by_jid = memberships
        self.memberships = tuple(memberships.values())
        self.publisher.rooms = {member.name: member.room for member in self.memberships}
        self.journal.share_among(settings.rooms)
        if self._phase is Phase.UNCONFIGURED:
            self._phase = Phase.RESOLVING

    async def _attempt(self, settings: Settings, attempt: int) -> tuple[Fault, float]:
        """Connect and stay; return the fault that ended it, and the seconds of the session."""
        connection = Connection(
            settings,
            # A new resource each time: others who learnt our full JID cannot guess the next.
            resource=f"xmpp-debug-bridge.{secrets.token_hex(4)}",
            on_stage=lambda stage: self._change(
                ConnectionChanged(PHASE_OF_STAGE[stage], attempt=attempt)
            ),
            on_stanza=self._route,
            trace=self.trace.of_connection(Instant.now),
        )
        loop = asyncio.get_running_loop()
        opened_at: float | None = None
        was_resumed = False
        former, self._former = self._former, None
        self._connection = connection
        try:
            connected = await connection.open(former)
            if connection.ended.done():
                raise ConnectionFailedError(connection.ended.result())
            opened_at, was_resumed = loop.time(), connected.resumed
            fault = await self._stay(connection, connected, attempt)
        except ConnectionFailedError as failed:
            fault = failed.fault
        finally:
            self._connection = None
            connection.close()
        lasted = 0.0 if opened_at is None else loop.time() - opened_at
        if settings != self.settings:  # of another account, or in other rooms
            return fault, lasted
        if opened_at is None and not connection.asked_to_resume:
            self._former = former  # the attempt says nothing against it
        elif opened_at is not None and fault.condition in RESUMABLE:
            # A session that was lost soon after it had been resumed is not resumed again.
            is_steady = not was_resumed or lasted >= STEADY_SECONDS
            self._former = connection.management if is_steady else None
        return fault, lasted

    async def _stay(self, connection: Connection, connected: Connected, attempt: int) -> Fault:
        """Be in the rooms until the connection has ended; return the reason."""
        self._again.clear()
        self._has_session = True
        self.publisher.publish(connected)
        for membership in self.memberships:
            membership.begin(connection, resumed=connected.resumed)
        connection.start_dispatch()
        staying = [asyncio.create_task(member.run(attempt)) for member in self.memberships]
        try:
            fault = await keep_alive(connection, self._timing, time.time)
            connection.end(fault)
            return fault
        finally:
            self._has_session = False
            for task in staying:
                task.cancel()
            await asyncio.wait(staying)

    def _route(self, stanza: Element) -> None:
        """Hand a stanza to its room's membership.

        A service's stanza goes to the memberships that are entering one of its rooms.
        """
        sender = stanzas.sender_of(stanza)
        self.publisher.stanza = self.trace.number_of(stanza)
        try:
            if sender is None:
                if isinstance(stanza, DamagedElement):  # any room may have sent it
                    self.publisher.publish(StanzaDamaged("", "", stanza.reason))
                return
            of_room = self._by_jid.get(sender.bare)
            of_service = (member for member in self.memberships if member.hears(sender))
            for membership in of_service if of_room is None else (of_room,):
                membership.receive(stanza)
        finally:
            self.publisher.stanza = 0

    def _hang_up(self) -> None:
        for membership in self.memberships:
            membership.say_goodbye()
        if self._connection is not None:
            self._connection.leave()

    async def _back_off(self, fault: Fault, failures: int) -> None:
        """Say what went wrong, and pause."""
        seconds = pause(fault.retry, failures, 2 * secrets.randbits(32) / 2**32 - 1)
        self._change(resting(fault, failures, seconds))
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._again.wait()

    def _change(self, event: ConnectionChanged) -> None:
        if event.phase is not self._phase or event.fault is not None:
            self._phase = event.phase
            self.publisher.publish(event)
