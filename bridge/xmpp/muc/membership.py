"""Our membership in one room: joining, staying, speaking, coming back.

A membership outlives connections. `begin` gives it one connection after another, and `run` keeps us
in the room on that connection. `run` enters, stays until we are out of the room, reports why,
waits, and enters again. When we are out of one room, the connection and the other rooms go on.

We are out until we ask to be let in. While `_join` is set we are on the way in, and the room lists
who is there. Our own presence says that we are `inside` (XEP-0045, section 7.2.2). The room may put
us out again, by a kick, a ban or its own end; then `_removal` says why. If a connection resumes the
former session (XEP-0198), we are still inside if we were; with any other connection we are out.
"""

import asyncio
import secrets
from contextlib import suppress
from dataclasses import replace
from xml.etree.ElementTree import Element

from bridge.settings.values import Secret
from bridge.store.clock import Instant
from bridge.wire import names
from bridge.wire.meaning import UNREACHED
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection, fault_of_mistake
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model import events, faults
from bridge.xmpp.model.backoff import STEADY_SECONDS, pause, resting
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.message_body import check_body
from bridge.xmpp.model.room import UNDER_WAY, Room, RoomStatus
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.archive import RoomArchive
from bridge.xmpp.muc.catching_up import CatchingUp
from bridge.xmpp.muc.configuration import Options
from bridge.xmpp.muc.intake import Intake
from bridge.xmpp.muc.joining import Join, malformed, suffixed
from bridge.xmpp.muc.payloads import Payloads
from bridge.xmpp.muc.publisher import NextRecord, Publisher, set_by
from bridge.xmpp.muc.reflections import OwnNickname, Reflection, Reflections
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.iq_errors import Target, TargetKind
from bridge.xmpp.queries.keepalive import TIMING, Timing
from bridge.xmpp.queries.ping import Verdict, ping_patiently

NICKNAME_TRIES = 5
"""How many nicknames are tried: `name`, `name-2`, and so on. The last one ends in random
characters, so that an occupant who takes the others cannot keep us out."""

STABLE_ID = "http://jabber.org/protocol/muc#stable_id"
"""The feature of a room that gives the ids of messages back (XEP-0045, section 7.4)."""

OUTLASTS_CONNECTIONS = frozenset({faults.Retry.MINUTE, faults.Retry.LATER, faults.Retry.NEVER})
"""After these faults the pause goes on when the connection is replaced, since a new connection does
not cure them."""


class Membership:
    """Enters one room, stays in it, speaks, and comes back; the state of the room is in `room`."""

    def __init__(
        self,
        place: faults.Place,
        password: Secret | None,
        publisher: Publisher,
        *,
        timing: Timing = TIMING,
    ) -> None:
        self._place = place
        self._password = password
        self._publisher = publisher
        self._timing = timing
        self.jid = prepared(place.room) or place.room
        """The room's bare JID, prepared."""
        self.room = Room(
            nickname=place.nickname,
            service=place.service,
            phase=events.Phase.RESOLVING,
            since=Instant.now(),
        )
        self.occupant = ""
        """Our occupant JID while in the room, or on the way in."""
        self.inside = False
        """Whether the room has let us in and has not put us out."""
        self.self_ping_ms: float | None = None
        """How long the room took to answer the last self-ping, in milliseconds."""
        self._connection: Connection | None = None
        self._options = Options(self._ask_for_configuration, self._emit)
        self._payloads = Payloads(self._take_payload)
        self._intake = Intake(self.jid, on_description=self._describe)
        self._join: Join | None = None
        """The attempt to enter that is under way."""
        self._removal: faults.Fault | None = None
        """Why the room has put us out, until we ask to be let in again."""
        self._in_doubt = False
        """Whether something suggests that we are not in the room."""
        self._service = roomservice.ServiceHealth()
        self._retry = False
        """Whether the next attempt need not wait."""
        self._changed = asyncio.Event()
        """Set when `_removal`, `_in_doubt` or `_retry` is set, or the connection ends."""
        self._backing_off: tuple[faults.Fault, float | None] | None = None
        """While we wait after a fault of the room: the fault, and the time on the loop's clock at
        which the wait ends (None if it never ends). Otherwise None."""
        self._last_heard = 0.0
        """When the room last sent anything, on the loop's clock."""
        self._last_seen: float = Instant.now()
        """The time of the last event or answered self-ping, in seconds since the epoch."""
        self._catching_up = CatchingUp(self.jid)
        self._similar_rooms: tuple[str, ...] = ()
        """Rooms of the service with similar names, once it was asked for them."""
        self._reflections = Reflections()
        self._counted = 0
        """How many others the room has counted in this stay, including occupants who left since."""
        self._comes_first = False
        """Whether the room sent our own presence first. Then it may list the others afterwards."""
        self._nickname = OwnNickname()

    @property
    def name(self) -> str:
        """The room's bare JID as configured."""
        return self._place.room

    @property
    def place(self) -> faults.Place:
        """The server, account and room, as faults name them."""
        if self._connection is None:
            return self._place
        nickname = self.occupant.partition("/")[2] or self._place.nickname
        return self._place._replace(service=self._connection.place.service, nickname=nickname)

    def status(self) -> RoomStatus:
        """Return the room's status, with the values that only the membership knows."""
        described = self._intake.description if self.inside else disco.Description()
        return replace(
            self.room.status(),
            self_ping_ms=self.self_ping_ms,
            moderated=described.either("muc_moderated", "muc_unmoderated"),
            persistent=described.either("muc_persistent", "muc_temporary"),
            members_only=described.either("muc_membersonly", "muc_open"),
            password_protected=described.either("muc_passwordprotected", "muc_unsecured"),
            similar_rooms=self._similar_rooms,
            nickname_lost=self._nickname_lost(),
            nickname_changed=self._nickname.was_changed,
            nickname_shared=self.inside and self._nickname.is_shared,
            counts_more=self.inside and self._counted > self.room.listed,
        )

    def _nickname_lost(self) -> str:
        """Return the configured nickname if we are in the room under another; empty otherwise."""
        configured = self._place.nickname
        is_ours = prepared(self.occupant) == stanzas.occupant_jid(self.jid, configured)
        return configured if self.inside and not is_ours else ""

    @property
    def connection(self) -> Connection:
        """The connection on which we are in the room; raises `NotInRoomError` without one."""
        if self._connection is None or self.room.phase is not events.Phase.JOINED:
            raise NotInRoomError(f"the phase is {self.room.phase}")
        return self._connection

    @property
    def archive(self) -> RoomArchive:
        """The room's archive; raises `NotInRoomError` when we are not in the room."""
        return RoomArchive(self.connection, self.jid, self.occupant)

    # On one connection after another.

    def begin(self, connection: Connection, *, resumed: bool) -> None:
        """Use this connection from now on; `resumed` if it continues the former session."""
        self._connection = connection
        connection.ended.add_done_callback(lambda ended: self._changed.set())
        if not (resumed and self.inside):
            self._be_out()

    async def run(self, attempt: int) -> None:
        """Enter and stay until the connection ends; `attempt` counts connections, from 1."""
        connection, account = self._attached, self._place.account
        failures = attempt - 1
        loop = asyncio.get_running_loop()
        if self._backing_off is not None and not self._retry:
            fault, until = self._backing_off
            if fault.retry in OUTLASTS_CONNECTIONS:
                await self._back_off(fault, failures, until)
        while not connection.ended.done():
            self._retry = False
            self._backing_off = None
            joined_at: float | None = None
            try:
                await self._enter(failures + 1)
                joined_at = loop.time()
                self._retry = False
                fault = await self._stay()
            except faults.ConnectionFailedError as failed:
                fault = failed.fault
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end the bridge
                fault = fault_of_mistake(f"being in {self.name}", error, self.place)
            finally:
                self.self_ping_ms = None
                if joined_at is not None and self._place.account == account:
                    self._catching_up.heard_until = self._last_seen
            if connection.ended.done():
                return
            self._leave_after(fault)
            with suppress(faults.ConnectionFailedError):  # `ended` says so, soon
                fault = await self._service.explained(
                    connection, self.place, fault, refused=joined_at is None
                )
            steady = joined_at is not None and loop.time() - joined_at >= STEADY_SECONDS
            failures = 1 if steady else failures + 1
            if self._retry:  # `try_again` was called after this fault
                failures = 0
            else:
                seconds = pause(fault.retry, failures, 2 * secrets.randbits(32) / 2**32 - 1)
                until = None if seconds is None else loop.time() + seconds
                await self._back_off(fault, failures, until)

    def try_again(self) -> bool:
        """Try to enter at once, unless we are in the room; return False if we are."""
        if self.room.phase is events.Phase.JOINED:
            return False
        self._retry = True
        self._changed.set()
        return True

    def doubt(self) -> None:
        """Ask the room at once whether we are in it, since something suggests that we are not."""
        self._in_doubt = True
        self._changed.set()

    def configure(self, place: faults.Place, password: Secret | None) -> None:
        """Take other settings; with another account, forget what the former one has seen."""
        if place.account != self._place.account:
            self._catching_up.forget()
        self._place, self._password = place, password
        self._service = roomservice.ServiceHealth()
        self._backing_off = None
        self._be_out()

    def say_goodbye(self) -> None:
        """Leave the room, if the connection has not ended, without waiting for an answer."""
        if self.occupant:
            with suppress(faults.ConnectionFailedError):  # `ended` says so, soon
                self._attached.send(stanzas.leave_presence(self.occupant))

    # Joining and leaving.

    async def join(
        self, nickname: str, since: str | None = None, *, history: bool = True, attempt: int = 1
    ) -> None:
        """Enter the room under `nickname` (XEP-0045, section 7.2); raises `ConnectionFailedError`.

        `since` is the time, in UTC, from which the room's history is wanted; without `history` no
        history is asked for.
        """
        # If a nickname was taken before, the phase is `JOINING` already.
        if self.room.phase is not events.Phase.JOINING:
            self._emit(events.ConnectionChanged(events.Phase.JOINING, attempt=attempt))
        occupant = stanzas.occupant_jid(self.jid, nickname)
        if occupant is None:
            raise faults.ConnectionFailedError(malformed(self.place))
        self.occupant = occupant
        configured = stanzas.occupant_jid(self.jid, self._place.nickname)
        self._intake.ours = frozenset((prepared(self._place.account), configured))
        self._be_out()
        self._join = Join(self._attached, self.place, occupant, self._admit)
        try:
            me = await self._join.run(self._password, since, history=history)
        finally:
            self._join = None
        created = 201 in me.codes
        self._service.has_let_in = True
        self._similar_rooms = ()
        if created:
            self._ask_for_configuration()  # `Join` asked before the room existed
        # The room may have given us another nickname since.
        here = self.occupant or me.from_
        self._emit(events.Joined(here, here.partition("/")[2], created))
        self._settle()

    async def leave(self, seconds: float) -> None:
        """Leave the room and wait for its confirmation; raises `ConnectionFailedError`."""
        if self._removal is not None:
            raise faults.ConnectionFailedError(self._removal)
        self._attached.send(stanzas.leave_presence(self.occupant))
        until = asyncio.get_running_loop().time() + seconds
        while self.inside and not self._attached.ended.done():
            if not await set_by(self._changed, until):
                fault = faults.of("leave-unconfirmed", self.place, seconds=seconds)
                raise faults.ConnectionFailedError(fault)
        if self.inside:
            raise faults.ConnectionFailedError(self._attached.ended.result())

    async def _enter(self, attempt: int) -> None:
        # The first stanzas of a resumed session may have said that the room has removed us.
        if self.inside or self._removal is not None:
            # The server sends the stanzas again that were not acknowledged, so we have missed
            # nothing.
            self._settle()
            return
        since = self._catching_up.since()
        # With an archive, no history is asked for: the archive has everything in order, and the
        # history would come before it.
        archived = names.MAM in self._intake.description.features
        history = since is None or self._catching_up.failed or not archived
        tails = [f"-{number}" for number in range(2, NICKNAME_TRIES)]
        for tail in ["", *tails, last := f"-{secrets.token_hex(4)}"]:
            try:
                name = suffixed(self._place.nickname, tail)
                await self.join(name, since, history=history, attempt=attempt)
                return
            except faults.ConnectionFailedError as failed:
                taken = failed.fault.condition == "conflict" and not self.inside
                if not taken or tail == last or self._why_out() is not None:
                    raise

    def _settle(self) -> None:
        """Report that we are in the room; raises `ConnectionFailedError` if we are out already."""
        if (fault := self._why_out()) is not None:
            raise faults.ConnectionFailedError(fault)
        self._emit(events.ConnectionChanged(events.Phase.JOINED))

    def _why_out(self) -> faults.Fault | None:
        """Return why we cannot be in the room any more; None while we can."""
        return self._attached.ended.result() if self._attached.ended.done() else self._removal

    def _leave_after(self, fault: faults.Fault) -> None:
        """End the stay, and leave: a join that was given up may have succeeded after all."""
        if self.inside or self.room.phase is events.Phase.JOINING:
            self.say_goodbye()
        self._be_out()
        self.occupant = ""
        self._reflections.give_up(fault)

    async def _back_off(self, fault: faults.Fault, failures: int, until: float | None) -> None:
        """Report what went wrong, and wait until a time of the loop's clock; None means for ever.

        Returns early if the connection ends, or if `try_again` is called. After a fault whose
        `retry` is in `OUTLASTS_CONNECTIONS`, `run` continues the pause on the next connection.
        """
        self._backing_off = fault, until
        seconds = None if until is None else max(until - asyncio.get_running_loop().time(), 0.0)
        self._emit(resting(fault, failures, seconds))
        while not self._retry and not self._attached.ended.done():
            if not await set_by(self._changed, until):
                return

    async def first_join(self, deadline: float) -> None:
        """Wait until the first join has succeeded or failed, or the time is over."""
        with NextRecord(self._publisher.listen) as next_record:
            while self.room.phase in UNDER_WAY and self.room.last_error is None:
                if not await next_record.by(deadline):
                    return

    # Staying.

    async def _stay(self) -> faults.Fault:
        """Stay in the room until we are no longer in it, and return why."""
        catching_up = asyncio.create_task(self._look_around())
        try:
            return await self._self_ping_after_silences()
        finally:
            catching_up.cancel()
            await asyncio.wait((catching_up,))
            if not catching_up.cancelled() and (error := catching_up.exception()):
                fault_of_mistake("looking around", error, self.place)

    async def _self_ping_after_silences(self) -> faults.Fault:
        """Ask the room after each silence whether we are in it (XEP-0410), until we are not."""
        timing = self._timing
        loop = asyncio.get_running_loop()
        self._last_heard = asked = loop.time()
        self._last_seen = Instant.now()
        self._in_doubt, self._service.bounce = False, None
        while True:
            while not (self._in_doubt or self._why_out()):
                # If a self-ping is undecided, the next one waits for `check_interval` only.
                due = max(self._last_heard + timing.idle_before_ping, asked + timing.check_interval)
                if loop.time() >= due:
                    break
                await set_by(self._changed, due)
            if (fault := self._why_out()) is not None:
                return fault
            self._in_doubt = False
            if (fault := await self._service.loss(self._attached, self.place)) is not None:
                return self._why_out() or fault
            ourselves = Target(TargetKind.SELF, self.occupant)
            pong = await ping_patiently(self._attached, ourselves, timing.ping_deadline)
            if (fault := self._why_out()) is not None:
                return fault
            asked = loop.time()
            if pong.in_room is Verdict.IN and pong.seconds is not None:
                self._last_heard, self._last_seen = asked, Instant.now()
                self.self_ping_ms = round(pong.seconds * 1000, 3)
            elif pong.in_room is Verdict.GONE:
                return roomservice.gone(self.place, "service-unavailable")
            # If we were renamed meanwhile, we ask again under the new name.
            elif pong.in_room is Verdict.OUT and ourselves.address == self.occupant:
                return faults.of("ghost", self.place)
            # Give up once `max_unconfirmed` has no time left for a check interval and two ping
            # deadlines.
            elif (
                asked - self._last_heard
                >= timing.max_unconfirmed - timing.check_interval - 2 * timing.ping_deadline
            ):
                return faults.of("silent-room", self.place, seconds=asked - self._last_heard)

    async def _look_around(self) -> None:
        """If joining made this room, look for rooms with similar names. Read what we missed."""
        if self.room.status().room_created:
            similar = await roomservice.similar_rooms(self._attached, self.jid)
            self._similar_rooms = tuple(similar)
        async for event in self._catching_up.missed(self._attached, self.occupant):
            self._handle(event)

    # What comes and what goes.

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        """Say `body` in the room, and return the room's reflection of it (XEP-0045, section 7.4).

        Waits for the first join while it is under way and has not failed, but never for a
        reconnect. Raises `UnsendableError`, `NotInRoomError`, `NotSentError`, `NotReflectedError`
        or `BouncedError`. Nothing is queued and nothing sent twice.
        """
        check_body(body)
        deadline = asyncio.get_running_loop().time() + timeout_seconds
        await self.first_join(deadline)
        connection = self.connection

        def send(id_: str) -> None:
            connection.send(stanzas.groupchat_message(self.jid, body, id_))
            self._reflections.sent(id_, body)
            nickname = self.occupant.partition("/")[2]  # it may have changed since we asked
            self._emit(events.MessageSent(self.occupant, nickname, body, id_))

        return await self._reflections.say(
            body, send, connection, self.place, deadline, timeout_seconds
        )

    def hears(self, sender: stanzas.Address) -> bool:
        """Whether a stanza from this address may concern this membership.

        While we are entering, the room's service may say why it does not let us in.
        """
        of_service = sender.jid == self.jid.partition("@")[2]
        return sender.bare == self.jid or (of_service and self._is_entering)

    def receive(self, stanza: Element) -> None:
        """Take in what came from the room: a message, a presence, or an answer to a question."""
        # Presence while we are out may answer a join that was given up. It is ignored: otherwise we
        # would be listed as an occupant.
        entering = self._is_entering
        if stanza.tag == names.PRESENCE and not (entering or self.inside):
            return
        if stanza.tag == names.IQ and self._join is not None:
            self._join.take_answer(stanza)
        # While we are on the way in, another occupant may have the nickname that we asked for.
        own = self.occupant if self.inside else ""
        now = asyncio.get_running_loop().time()
        awake, arriving = self._intake.hear(now, entering=entering)
        listed = events.OccupantJoined if self._comes_first else events.SubjectChanged
        for event in self._intake.read(stanza, own=own, now=awake):
            # A stanza that we cannot read may be an invitation, and a room sends these to accounts
            # outside, too.
            if not isinstance(event, events.StanzaDamaged):
                self._last_heard = now
            publishing = [event] if self._join is None else self._join.take(event)
            for happened in publishing:
                self._see_new_nickname(happened)
                because_we_came = arriving and isinstance(happened, events.SubjectChanged | listed)
                self._handle(happened, earlier=entering or because_we_came)

    def _see_new_nickname(self, event: events.Event) -> None:
        """Take a new nickname of ours from our own presence.

        Most rooms have announced it by an unavailable presence (XEP-0045, section 7.6). Some do so
        later, or never.
        """
        if isinstance(event, events.OccupantJoined) and event.self_ and self.inside:
            former, old = self.occupant, self.occupant.partition("/")[2]
            if event.from_ != former:
                self._handle(events.NicknameChanged(former, old, event.sender, self_=True))

    def _admit(self, me: events.OccupantJoined) -> None:
        """Take our own presence, by which the room lets us in."""
        # The room decides the nickname (XEP-0045, section 7.2.2). It already uses that nickname for
        # our messages that it reflects after this presence.
        self.occupant = me.from_
        self.inside = True
        self._comes_first = not self.room.status().occupants
        self._nickname.begin(me, self._place.account)
        self._reflections.begin()
        self._handle(me)

    def _handle(self, event: events.Event, *, earlier: bool = False) -> None:
        """Publish `event` if it is new, and act on it if it concerns us."""
        fresh: events.Event | None = event
        if isinstance(event, events.MessageReceived):
            event = self._claimed(event) if event.own else event
            fresh = self._intake.deduplicate(event)
            earlier = event.source is not events.Source.LIVE
        happened = None if fresh is None else self.room.classify(fresh)
        self._nickname.see(event, happened)
        if happened is None or self._puts_off(event, happened):
            return
        record = self._publisher.publish(happened, self.name, earlier=earlier)
        self._last_seen = record.at
        self._reflections.take(record)
        match happened:
            case events.OccupantLeft(self_=True, codes=codes, reason=reason, actor=actor):
                self._on_removed(faults.of_removal(codes, reason, actor, self.place))
            case events.RoomDestroyed(reason=reason, venue=venue):
                self._on_removed(faults.of_destruction(reason, venue, self.place))
            case events.NicknameChanged(self_=True, from_=former, sender=old, new_nickname=new):
                self.occupant = former.removesuffix(old) + new
            case events.SubjectChanged():
                self._comes_first = False  # the others who were there before us have come by now
            case events.SendFailed(condition=condition, by=by) if condition in UNREACHED:
                self._service.bounce = names.StanzaError(condition, by=by)
                self.doubt()
            case (
                events.SendFailed(condition="not-acceptable" | "item-not-found")
                | events.RoomError()
            ):
                self.doubt()  # a room answers so if we are not in it (XEP-0045, 7.4)

    def _claimed(self, message: events.MessageReceived) -> events.MessageReceived:
        """Return a message under our nickname with `own` only if this session said it.

        The text of a message under our nickname is proof only if no other session can speak under
        it, and the room gives no ids back. If the room gives ids back, a message without our id is
        from another session.
        """
        gives_ids = STABLE_ID in self._intake.description.features
        named = self.room.status().accounts.get(prepared(self._place.account) or "", ())
        alone = self._nickname.is_marked and not self._nickname.is_shared
        alone = alone and all(f"{self.jid}/{nickname}" == self.occupant for nickname in named)
        claimed = self._reflections.claim(message, by_text=alone and not gives_ids)
        live = message.source is events.Source.LIVE and message.type == "groupchat"
        self._nickname.is_spoken_under |= live and not claimed.own
        if gives_ids or self._reflections.gives_ids_back:
            self._nickname.is_shared |= self._nickname.is_spoken_under
        return claimed

    def _puts_off(self, event: events.Event, happened: events.Event) -> bool:
        """Whether to publish `event` later or not at all; `happened` is what is new in it."""
        match event, happened:
            case events.OccupantJoined(), events.OccupantChanged():
                if self.room.differs_in_payload_only(event):
                    return self._payloads.folds(event)
                self._payloads.drop(event.from_)
            case events.RoomConfigured(codes=codes), _ if self._options.takes(codes):
                self._options.change(codes)
                return True
        return False

    def _take_payload(self, presence: events.OccupantJoined) -> None:
        """Take a presence whose payload changed some seconds ago, if it still counts."""
        if self.inside and self.room.has(presence.from_):
            self._handle(presence)

    def _ask_for_configuration(self) -> None:
        """Ask for the room's configuration; `_intake` reads the answer.

        The room sends in order, so its answer includes every change that it reported before.
        """
        with suppress(faults.ConnectionFailedError):  # `ended` says so, soon
            self._attached.send(disco.info_request(self.jid))

    async def recount(self) -> None:
        """Ask the room how many occupants it has: hidden ones may have come since we came.

        Raises `NotInRoomError` and `ConnectionFailedError`.
        """
        description, _ = await roomservice.ask(self.connection, self.jid)
        if description.features:
            self._describe(description)

    def _describe(self, description: disco.Description) -> None:
        """Take what the room says of itself."""
        self._options.answer(description)
        count = disco.room_configuration(description)["occupants"]
        if isinstance(count, int):
            # Before we are in, the count may have another session of ours, under our nickname.
            left = self.room.listed - self.room.others
            self._counted = count - 1 + left

    def _on_removed(self, fault: faults.Fault) -> None:
        if not self.inside:
            return
        self._be_out()
        self.occupant = ""
        self._removal = fault
        self._changed.set()
        self._reflections.give_up(fault)

    @property
    def _attached(self) -> Connection:
        assert self._connection is not None, "nothing is done before `begin`"
        return self._connection

    def _emit(self, event: events.Event) -> Record:
        return self._publisher.publish(event, self.name)

    @property
    def _is_entering(self) -> bool:
        """Whether we have asked to be let in, and wait for the answer."""
        return self._join is not None and not self.inside

    def _be_out(self) -> None:
        self.inside, self._join, self._removal = False, None, None
        self._options.conclude()
