"""Walks one connection through its stages and reports each: the check.

It has a connection of its own, with a resource and a nickname that nobody else has, and leaves
whatever else stands alone. It changes nothing but what joining changes; with `send` it says one
line in the room.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from bridge.escaping import one_line, quoted
from bridge.settings.table import Settings
from bridge.xmpp import faults, refusals, trust
from bridge.xmpp.connection import DEADLINES, Connection
from bridge.xmpp.events import (
    Event,
    Joined,
    MessageReceived,
    NicknameChanged,
    OccupantJoined,
    OccupantLeft,
    RoomDestroyed,
    SendFailed,
)
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Retry, Stage
from bridge.xmpp.report import CREATED, CheckPhase, Report, report_of
from bridge.xmpp.room import MAX_OCCUPANTS
from bridge.xmpp.roomservice import RoomService
from bridge.xmpp.trace import Tracing, untraced

CHECK_SECONDS = 50.0
"""For a whole check: MCP clients give up on a call after a minute."""

LOOK_SECONDS = 10.0
"""For the second look at a certificate that was refused."""

REFLECTION_SECONDS = 10.0
"""For the room to send the test message back; as long as `xmppSend` waits."""

LEAVE_SECONDS = 5.0
"""For the room to confirm that we left."""

MAX_NAMED_OCCUPANTS = 20
"""Nicknames in the detail of `occupants`; the rest are counted."""

MAX_NAME_CHARACTERS = 60
"""Of each of these, so that all of them fit into a detail."""

MAX_NICKNAME_BYTES = 900
"""Of the configured nickname in ours: both ends of an occupant JID have 1,023 (RFC 7622)."""

MAX_DETAIL_CHARACTERS = 2_000
"""Of one phase: the names in a certificate and in a room are others' to choose."""

MESSAGE = "xmpp-debug-bridge checks that this room can be written to. Nothing to see here."
"""What `send` says."""

_UNCHECKED = (
    "The certificate was not checked, so anybody on the way can pose as the server: unset "
    "NODE_TLS_REJECT_UNAUTHORIZED once it is not needed."
)
_OWN_NICKNAME = (
    " The check goes by a nickname of its own; a room that lets only registered ones in may still "
    "take the one in MCP_BOT_NICKNAME."
)

Answer = TypeVar("Answer")


class Probe:
    """Checks the way that `settings` lead, as often as it is asked to."""

    def __init__(
        self,
        settings: Settings,
        *,
        seconds: float = CHECK_SECONDS,
        deadlines: Mapping[Stage, float] = DEADLINES,
        trace: Tracing = untraced,
    ) -> None:
        self._settings = settings
        self._seconds = seconds
        self._trace = trace
        self._deadlines = deadlines
        self.may_repeat = True
        """Whether another run does no harm: after a refused password, servers lock accounts."""

    async def run(
        self, on_phase: Callable[[CheckPhase], None] | None = None, *, send: bool = False
    ) -> Report:
        """Check once, and return how it went; `on_phase` gets each phase as it is over.

        Whatever the network and the server do is in the report, never raised. It ends within the
        `seconds` of the probe. When cancelled, it hangs up.
        """
        walk = _Walk(self._settings, self._deadlines, self._trace, on_phase)
        fault: Fault | None = None
        started = time.perf_counter()
        try:
            async with asyncio.timeout(self._seconds):
                fault = await walk.run(send)
        except TimeoutError:
            fault = faults.of_long_check(walk.recorder.phase, self._seconds, walk.connection.place)
            walk.fail(fault)
        finally:
            walk.connection.leave()
            walk.connection.close()
        self.may_repeat = fault is None or fault.retry is not Retry.NEVER
        return report_of(
            walk.connection.place,
            walk.recorder.phases,
            time.perf_counter() - started,
            fault,
            created=walk.created,
            others=len(walk.others),
        )


class PhaseRecorder:
    """Times the phases of a check and collects what each found; `on_phase` gets each at its end."""

    def __init__(self, on_phase: Callable[[CheckPhase], None] | None) -> None:
        self._on_phase = on_phase
        self.phases: list[CheckPhase] = []
        self.phase = ""
        """The phase under way."""
        self._began = 0.0
        self._findings: list[str] = []

    def begin(self, phase: str) -> None:
        """Begin a phase; the one before has ended."""
        self.phase, self._began = phase, time.perf_counter()

    def find(self, finding: str) -> None:
        """Note what was found."""
        self._findings.append(finding)

    def end(self, *, ok: bool, hint: str, ms: float | None = None) -> None:
        """End the phase, which took `ms`, or has taken as long as it has until now."""
        detail = one_line("; ".join(self._findings), MAX_DETAIL_CHARACTERS)
        self._findings.clear()
        took = self.milliseconds() if ms is None else ms
        ended = CheckPhase(self.phase, ok, took, detail, one_line(hint))
        self.phases.append(ended)
        if self._on_phase is not None:
            self._on_phase(ended)

    def milliseconds(self) -> float:
        """Return how long the phase has taken so far."""
        return round((time.perf_counter() - self._began) * 1000, 3)


class _Walk:
    """One check: the connection, and what was seen on the way."""

    def __init__(
        self,
        settings: Settings,
        deadlines: Mapping[Stage, float],
        trace: Tracing,
        on_phase: Callable[[CheckPhase], None] | None,
    ) -> None:
        mark = secrets.token_hex(4)
        nickname = settings.nickname.encode()[:MAX_NICKNAME_BYTES].decode("utf-8", "ignore")
        self._nickname = f"{nickname}-check-{mark}"
        self._settings = settings
        self._deadlines = deadlines
        self.recorder = PhaseRecorder(on_phase)
        place = Place.of(settings)
        self.connection = Connection(
            settings,
            place,
            context=trust.context_in_the_making(settings, place),
            resource=f"xmpp-debug-bridge.check.{mark}",
            publish=self._see,
            on_stage=lambda stage: self._begin(stage.value),
            on_finding=lambda stage, finding: self.recorder.find(finding),
            trace=trace,
            deadlines=deadlines,
        )
        self._room_service = RoomService(settings, self.connection, self.recorder.find)
        self.created = False
        self.others: dict[str, str] = {}
        """Nicknames of the other occupants, by their occupant JIDs."""
        loop = asyncio.get_running_loop()
        self._message_id = secrets.token_hex(12)
        self._reflected: asyncio.Future[SendFailed | None] = loop.create_future()
        self._left: asyncio.Future[None] | None = None

    async def run(self, send: bool) -> Fault | None:
        """Go through all phases; return the fault that ended it early, if one did."""
        connection = self.connection
        try:
            await connection.open()
            self._begin("disco")
            await self._room_service.look()
            await connection.join(self._nickname, history=False)
            self.recorder.find(f"entered as {quoted(connection.occupant.partition('/')[2])}")
            if self.created:
                self.recorder.find("the room did not exist before: joining made it")
            self._begin("occupants")
            self.recorder.find(self._names_of_others())
            if send:
                self._begin("send")
                await self._send()
            self._begin("leave")
            await self._leave()
        except ConnectionFailedError as failed:
            ms = self.recorder.milliseconds()
            refused = failed.fault.condition == "certificate-verify-failed"
            if refused and self.recorder.phase == "tls":
                await self._look_again()
            fault = self._explained(failed.fault)
            self.fail(fault, ms)
            return fault
        self._pass()
        return None

    def fail(self, fault: Fault, ms: float | None = None) -> None:
        """End the phase under way, and with it the walk."""
        self.recorder.find(fault.message)
        self.recorder.end(ok=False, hint=fault.hint, ms=ms)

    # The phases that the connection has not.

    def _names_of_others(self) -> str:
        names = list(self.others.values())
        shown = ", ".join(quoted(name, MAX_NAME_CHARACTERS) for name in names[:MAX_NAMED_OCCUPANTS])
        more = len(names) - MAX_NAMED_OCCUPANTS
        if not names:
            return "nobody else"
        return f"{len(names)} besides us: {shown}{f' and {more} more' if more > 0 else ''}"

    async def _send(self) -> None:
        place = self.connection.place
        self.connection.say(MESSAGE, self._message_id)
        try:
            failure = await self._await(self._reflected, REFLECTION_SECONDS)
        except TimeoutError as error:
            fault = refusals.no_reflection(REFLECTION_SECONDS, place)
            hint = "The server may be slow, or hold the message back."
            raise ConnectionFailedError(replace(fault, hint=hint)) from error
        if failure is not None:
            raise ConnectionFailedError(refusals.bounced(failure.condition, failure.text, place))
        self.recorder.find("the room sent the message back")

    async def _leave(self) -> None:
        self._left = asyncio.get_running_loop().create_future()
        self.connection.depart()
        try:
            await self._await(self._left, LEAVE_SECONDS)
        except TimeoutError as error:
            fault = refusals.no_goodbye(LEAVE_SECONDS, self.connection.place)
            raise ConnectionFailedError(fault) from error
        self.connection.occupant = ""
        self.recorder.find("the room confirmed it")
        if self.created:
            gone = await self._room_service.has_lost_the_room()
            self.recorder.find(
                f"the room that joining made is {'gone again' if gone else 'still there'}"
            )

    async def _await(self, awaited: "asyncio.Future[Answer]", seconds: float) -> Answer:
        """Wait for what an event decides; raises `TimeoutError` or `ConnectionFailedError`."""
        async with asyncio.timeout(seconds):
            return await self.connection.unless_ended(awaited)

    async def _look_again(self) -> None:
        """Find out what the certificate says that was refused.

        OpenSSL shows none that it has not verified, so this takes a second connection, without
        verification, which ends before anybody is told who we are.
        """
        endpoint = self.connection.endpoint
        there = self._settings.service if endpoint is None else endpoint.service
        settings = replace(self._settings, tls_verify=False, tls_ca_file=None, service=there)
        seen: list[tuple[Stage, str]] = []
        place = self.connection.place
        connection = Connection(
            settings,
            place,
            context=trust.context_in_the_making(settings, place),
            resource="",
            publish=lambda event: None,
            on_stage=lambda stage: None,
            on_finding=lambda stage, finding: seen.append((stage, finding)),
            deadlines=self._deadlines,
        )
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await connection.reach()
        except (ConnectionFailedError, TimeoutError):
            pass  # then there is nothing to add
        finally:
            connection.leave()
            connection.close()
        for stage, finding in seen:
            if stage is Stage.TLS:
                self.recorder.find(finding)

    def _explained(self, fault: Fault) -> Fault:
        """Return the fault with what else is known here."""
        message, hint = fault.message, fault.hint
        if self.recorder.phase == "join" and fault.condition in {"not-acceptable", "conflict"}:
            hint += _OWN_NICKNAME
        others = self._room_service.others
        if others and self.recorder.phase in {"disco", "join"}:
            listed = ", ".join(map(quoted, others))
            message += f" Room services of {self._settings.domain}: {listed}."
            return replace(fault, message=message, hint=hint, quotes=True)
        return replace(fault, hint=hint)

    # What happens meanwhile.

    def _see(self, event: Event) -> None:
        place = self.connection.place
        match event:
            case Joined(created=created):
                self.created = created
            case OccupantJoined(self_=False, from_=occupant, sender=nickname):
                if len(self.others) < MAX_OCCUPANTS:
                    self.others[occupant] = nickname
            case OccupantLeft(self_=False, from_=occupant):
                self.others.pop(occupant, None)
            case OccupantLeft(codes=codes, reason=reason, actor=actor):
                if self._left is not None and not self._left.done():
                    self._left.set_result(None)
                elif self.connection.inside:
                    self.connection.end(refusals.put_out(codes, reason, actor, place))
            case NicknameChanged(from_=occupant, sender=old, new_nickname=new, self_=own):
                jid = occupant.removesuffix(old) + new
                if own:
                    self.connection.occupant = jid
                elif self.others.pop(occupant, None) is not None:
                    self.others[jid] = new
            case RoomDestroyed(reason=reason, venue=venue):
                self.connection.end(refusals.destroyed(reason, venue, place))
            case MessageReceived(own=True, id=id_) if id_ == self._message_id:
                self._note_fate(None)
            case SendFailed(id=id_) if id_ == self._message_id:
                self._note_fate(event)
            case _:
                pass

    def _note_fate(self, failure: SendFailed | None) -> None:
        if not self._reflected.done():
            self._reflected.set_result(failure)

    # The report.

    def _begin(self, phase: str) -> None:
        if self.recorder.phase:
            self._pass()
        self.recorder.begin(phase)

    def _pass(self) -> None:
        hint = ""
        if self.recorder.phase == "tls" and not self._settings.tls_verify:
            hint = _UNCHECKED
        elif self.recorder.phase == "join" and self.created:
            hint = CREATED
        self.recorder.end(ok=True, hint=hint)
