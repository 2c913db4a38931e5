"""Runs the check: opens a connection stage by stage, visits each room, and reports each stage.

The check has a connection of its own, with an unused resource and nickname, and leaves all other
connections alone. It changes nothing except what joining a room changes; with `send` it also says
one line in each room.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.text import listed, name_of, one_line, quoted
from bridge.wire.names import MUC
from bridge.xmpp.checks.attempt import log_in_unbound, look_at_certificate
from bridge.xmpp.checks.evidence import Person, occupant_of
from bridge.xmpp.checks.report import CREATED_HINT, CheckStage, Report, Visit, named, report_of
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.sasl import LoginRefusedError
from bridge.xmpp.link.trace import Tracer, untraced
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, FaultError, Place, Stage
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import TEMPORARY
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.joining import suffixed
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.publisher import Publisher
from bridge.xmpp.muc.roomservice import room_services, similar_rooms
from bridge.xmpp.queries.disco import Description

CHECK_SECONDS = 50.0
"""The time for a whole check: MCP clients give up on a call after a minute."""

LOOK_SECONDS = 10.0
"""Seconds for a second connection, which reads the certificate that was refused."""

EXPIRED = 10
"""OpenSSL's code for an expired certificate (`X509_V_ERR_CERT_HAS_EXPIRED`)."""

REFLECTION_SECONDS = 10.0
"""The time for the room to send the test message back; `xmppSend` waits as long."""

LEAVE_SECONDS = 5.0
"""The time for the room to confirm that we left."""

MAX_NAMED_OCCUPANTS = 15
"""Most nicknames in the detail of the stage `occupants`; the rest are counted."""

MAX_DETAIL_CHARACTERS = 2_000
"""Most characters of the detail of a stage: others choose the names in a certificate and a room."""

MESSAGE = "xmpp-debug-bridge checks that this room can be written to. Nothing to see here."
"""The message that the check sends to each room with `send`."""

NO_SUCH_ROOM = frozenset({"item-not-found", "not-allowed"})
"""If the room does not exist, a service refuses a join with one of these conditions (XEP-0045,
section 7.2)."""

_UNCHECKED = (
    "The certificate was not checked, so anybody on the way can pose as the server: unset "
    "NODE_TLS_REJECT_UNAUTHORIZED once it is not needed."
)
_OWN_NICKNAME = (
    " The check uses a nickname of its own; a room that lets in only registered nicknames may "
    "still accept the one in MCP_BOT_NICKNAME."
)


async def probe(
    settings: Settings,
    on_stage_end: Callable[[CheckStage], None] = lambda stage: None,
    *,
    trace: Tracer = untraced,
    send: bool = False,
    must_exist: bool = False,
) -> Report:
    """Check whether the rooms of `settings` can be joined; `on_stage_end` gets each stage.

    With `must_exist`, a room that does not exist fails at `disco`, and is not joined.

    Failures of the network and the server are in the report, and never raised. The check ends
    within `CHECK_SECONDS`. If it is cancelled, it closes the connection.
    """
    recorder = StageRecorder(on_stage_end)
    visits: list[_Visitor] = []  # only begun ones; the last may be under way

    def route(stanza: Element) -> None:
        """Hand a stanza to the visit under way, if it comes from that room or its service."""
        sender = stanzas.sender_of(stanza)
        if sender is not None and visits and visits[-1].membership.hears(sender):
            visits[-1].membership.receive(stanza)

    advice = {} if settings.tls_verify else {Stage.TLS: _UNCHECKED}
    mark = secrets.token_hex(4)
    connection = Connection(
        settings,
        resource=f"xmpp-debug-bridge.check.{mark}",
        on_stage=lambda stage: recorder.begin(stage.value, advice.get(stage, "")),
        on_stanza=route,
        on_finding=recorder.add_finding,
        trace=trace,
    )
    fault: Fault | None = None
    started = time.perf_counter()
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            fault = await _connect(settings, connection, recorder)
            for visitor in _visitors(settings, connection, recorder, mark) if not fault else ():
                visits.append(visitor)
                await visitor.run(send, must_exist)
                if connection.ended.done() and (fault := visitor.outcome.fault):
                    break
    except TimeoutError:
        fault = faults.of(
            "long-check", connection.place, seconds=CHECK_SECONDS, step=recorder.stage
        )
        recorder.end(fault)
        if visits:
            visits[-1].outcome.fault = fault
    finally:
        connection.leave()
        connection.close()
    seconds = time.perf_counter() - started
    outcomes = [visit.outcome for visit in visits]
    report = report_of(settings.rooms, recorder.stages, seconds, outcomes, fault)
    seen = connection.certificate
    return replace(report, certificate_expires=None if seen is None else seen.not_after)


def _visitors(
    settings: Settings, connection: Connection, recorder: "StageRecorder", mark: str
) -> "Iterator[_Visitor]":
    """Yield a visitor for each room; the recorder's stages are about that room from then on."""
    publisher = Publisher(Journal(mark))
    nickname = suffixed(settings.nickname, f"-check-{mark}")
    for room in settings.rooms:
        place = Place.of(settings, room)._replace(nickname=nickname)
        membership = Membership(place, settings.password_of(room), publisher)
        publisher.rooms[membership.name] = membership.room
        recorder.room = named(room, settings.rooms)
        yield _Visitor(membership, connection, recorder, settings.nickname)


async def _connect(
    settings: Settings, connection: Connection, recorder: "StageRecorder"
) -> Fault | None:
    """Go through the stages of the connection; return the fault that ended it, if one did."""
    try:
        await connection.open()
    except ConnectionFailedError as failed:
        ms, fault = recorder.milliseconds(), failed.fault
        if fault.condition == "certificate-verify-failed":
            fault = await _look_again(settings, connection, recorder, failed)
        elif isinstance(failed, LoginRefusedError) and failed.flag in faults.BINDING_ADVICE:
            second = await log_in_unbound(settings)
            fault = faults.after_second_login(failed.refusal, failed.flag, second)
        recorder.end(fault, ms)
        return fault
    recorder.end()
    connection.start_dispatch()
    return None


async def _look_again(
    settings: Settings,
    refused: Connection,
    recorder: "StageRecorder",
    failed: ConnectionFailedError,
) -> Fault:
    """Read the refused certificate; return the fault, with the date if it has expired."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_SECONDS):
            look = await look_at_certificate(settings)
            seen = refused.certificate = look.certificate
            has_expired = seen is not None and seen.not_after < datetime.now(UTC)
            if has_expired and getattr(failed.__cause__, "verify_code", None) == EXPIRED:
                reason = f"it {look.findings.pop()}"  # the last finding is the validity
                return faults.of("certificate-time", refused.place, reason=reason)
            for finding in look.findings if look.fault is None else ():
                recorder.add_finding(finding)
            if has_expired:
                hint = f"{failed.fault.hint} The server's certificate has expired, too: renew it."
                return failed.fault._replace(hint=hint)
    return failed.fault


class StageRecorder:
    """Times the stages of a check, collects what each found, and hands each to `on_stage_end`."""

    def __init__(self, on_stage_end: Callable[[CheckStage], None]) -> None:
        self._on_stage_end = on_stage_end
        self.stages: list[CheckStage] = []
        self.stage = ""
        """The stage under way; empty when none is."""
        self.room: str | None = None
        """The room under visit; None before the first room, or if there is only one."""
        self.advice = ""
        """The hint for the stage under way, in case it passes."""
        self._began = 0.0
        self._findings: list[str] = []

    def begin(self, stage: str, advice: str = "") -> None:
        """Begin a stage; if another one is under way, it has passed."""
        if self.stage:
            self.end()
        self.stage, self.advice, self._began = stage, advice, time.perf_counter()

    def add_finding(self, finding: str) -> None:
        """Add a sentence to the detail of the stage under way."""
        self._findings.append(finding)

    def end(self, fault: Fault | None = None, ms: float | None = None) -> None:
        """End the stage, with `fault` if it failed. It took `ms`, or else the time until now."""
        if fault is not None:
            self.add_finding(fault.message)
        detail = one_line("; ".join(self._findings), MAX_DETAIL_CHARACTERS)
        self._findings.clear()
        took = self.milliseconds() if ms is None else ms
        hint = one_line(self.advice if fault is None else fault.hint)
        ended = CheckStage(self.stage, fault is None, took, detail, hint, self.room)
        self.stage = ""
        self.stages.append(ended)
        self._on_stage_end(ended)

    def milliseconds(self) -> float:
        """Return how long the stage has taken so far."""
        return round((time.perf_counter() - self._began) * 1000, 3)


class _Visitor:
    """Visits one room: asks what it is, enters, looks around, speaks and leaves."""

    def __init__(
        self, membership: Membership, connection: Connection, recorder: StageRecorder, nickname: str
    ) -> None:
        membership.begin(connection, resumed=False)
        self.membership = membership
        self._nickname = nickname
        """The nickname of the settings."""
        self.outcome = Visit(membership.name)
        self._connection = connection
        self._recorder = recorder
        self._services: list[str] = []
        """Other room services of our server. Looked up if the configured service may be no room
        service."""

    async def run(self, send: bool, must_exist: bool) -> None:
        """Go through the stages of a room until one fails. Leave the room in any case."""
        recorder, membership = self._recorder, self.membership
        try:
            recorder.begin("disco")
            await self._look(must_exist=must_exist)
            recorder.begin("join")
            await membership.join(membership.place.nickname, history=False)
            recorder.add_finding(f"entered as {quoted(membership.occupant.partition('/')[2])}")
            status = membership.status()
            self.outcome.created, self.outcome.voiceless = status.room_created, status.voiceless
            if status.room_created:
                recorder.add_finding("the room did not exist before: joining made it")
                recorder.advice = CREATED_HINT
                await self._find_candidates()
            elif status.persistent is False:
                recorder.add_finding(TEMPORARY[0].lower() + TEMPORARY[1:])
            recorder.begin("occupants")
            recorder.add_finding(self._names_of_others())
            if send:
                recorder.begin("send")
                await membership.say(MESSAGE, REFLECTION_SECONDS)
                recorder.add_finding("the room sent the message back")
            recorder.begin("leave")
            await membership.leave(LEAVE_SECONDS)
            recorder.add_finding("the room confirmed it")
        except FaultError as failed:
            if self._services or failed.fault.condition in NO_SUCH_ROOM:
                await self._find_candidates()
            self.outcome.fault = self._explained(failed)
            recorder.end(self.outcome.fault)
        else:
            recorder.end()
        finally:
            membership.say_goodbye()

    async def _look(self, *, must_exist: bool) -> None:
        """Query service and room; raises `ConnectionFailedError` if joining can only fail.

        With `must_exist` it raises that also if joining would make the room.
        """
        place, add_finding = self.membership.place, self._recorder.add_finding
        service = prepared(place.room_service) or place.room_service
        description, refusal = await roomservice.ask(self._connection, service)
        is_service = MUC in description.features
        if refusal is not None:
            add_finding(f"{service} does not answer disco ({refusal.condition}); joining will show")
        elif is_service:
            add_finding(f"{service} is a room service")
        elif description.features or description.identities:
            add_finding(f"{service} does not name {MUC} among its features")
        else:
            add_finding(f"{service} says nothing of what it is; joining will show")
        silent = refusal is not None and refusal.condition == roomservice.SILENCE
        if not (is_service or silent):
            self._services = await room_services(self._connection, place.domain, service)
            if self._services:
                names = ", ".join(map(quoted, self._services))
                add_finding(f"room services of {place.domain}: {names}")
        of_room = Description()
        fault = roomservice.denial(place, description, refusal)
        if refusal is None or (must_exist and fault is None):
            of_room, of_refusal = await roomservice.ask(self._connection, place.room)
            add_finding(roomservice.described(of_room, of_refusal))
            missing = of_refusal is not None and of_refusal.condition == roomservice.ITEM_NOT_FOUND
            if must_exist and missing and fault is None:
                fault = faults.of("missing-room", place)
        if fault is not None and MUC not in of_room.features:
            raise ConnectionFailedError(fault)

    async def _find_candidates(self) -> None:
        """Find rooms that the user may mean; on another service if the domain has no rooms."""
        room, others = self.membership.jid, self._services
        self.outcome.candidates = await similar_rooms(self._connection, room, *others[:1])

    def _names_of_others(self) -> str:
        status = self.membership.status()
        names = [occupant.nickname for occupant in status.others]
        self.outcome.others = len(names)
        wanted, us = occupant_of(status, self._nickname), Person.of(status.me)
        if wanted is not None and us.is_same(Person.of(wanted)) is False:
            self.outcome.taken = wanted.nickname
        if not names:
            return "nobody else"
        return f"{len(names)} besides us: {listed(names, MAX_NAMED_OCCUPANTS, name_of)}"

    def _explained(self, failed: FaultError) -> Fault:
        """Return the fault with the hints, room services and rooms that the check knows."""
        fault, stage, others = failed.fault, self._recorder.stage, self._services
        silent = isinstance(failed, faults.NotReflectedError)
        if silent and fault.condition == "remote-server-timeout":
            return fault._replace(hint="The server may be slow, or hold the message back.")
        if stage == "join" and fault.condition in {"not-acceptable", "conflict"}:
            fault = fault._replace(hint=fault.hint + _OWN_NICKNAME)
        if stage in {"disco", "join"}:
            fault = faults.with_services(fault, self.membership.place, others)
        if similar := faults.similar_named(self.outcome.candidates):
            fault = fault._replace(message=fault.message + similar, quotes=True)
        return fault
