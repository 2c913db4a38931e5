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

from bridge.config import Settings
from bridge.escaping import one_line
from bridge.frozen import dataclass
from bridge.xmpp import faults, mam, refusals, stanzas
from bridge.xmpp.connection import DEADLINES, Connection, StanzaRefusedError
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
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.trace import Tracing, untraced

CHECK_SECONDS = 50.0
"""For a whole check: MCP clients give up on a call after a minute."""

DISCO_SECONDS = 5.0
"""For one answer to a question that nothing hangs on."""

GONE_SECONDS = 1.0
"""For one answer to whether a room is gone, of two."""

LOOK_SECONDS = 10.0
"""For the second look at a certificate that was refused."""

REFLECTION_SECONDS = 10.0
"""For the room to send the test message back; as long as `xmppSend` waits."""

LEAVE_SECONDS = 5.0
"""For the room to confirm that we left."""

MAX_DETAIL_CHARACTERS = 2_000
"""Of one phase: the names in a certificate and in a room are others' to choose."""

MAX_TOLD_OCCUPANTS = 20
"""Nicknames in the detail of `occupants`; the rest are counted."""

MAX_SERVICES_ASKED = 10
"""Of what a server says it has, for one that is a room service."""

MAX_NICKNAME_BYTES = 900
"""Of the configured nickname in ours: both ends of an occupant JID have 1,023 (RFC 7622)."""

MESSAGE = "xmpp-debug-bridge checks that this room can be written to. Nothing to see here."
"""What `send` says."""

PHASES = (
    *("resolve", "connect", "tls", "sasl", "bind"),
    *("disco", "join", "occupants", "send", "leave"),
)
"""All phases, in order; `send` only when it is asked for."""

_UNCHECKED = (
    "The certificate was not checked, so anybody on the way can pose as the server: unset "
    "NODE_TLS_REJECT_UNAUTHORIZED once it is not needed."
)
_CREATED = "MUC_ROOM may have a typo."
_OWN_NICKNAME = (
    " The check goes by a nickname of its own; a room that lets only registered ones in may still "
    "take the one in MCP_BOT_NICKNAME."
)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class PhaseReport:
    """How one phase went. The texts are fit for one line, whoever wrote parts of them."""

    name: str
    ok: bool
    ms: float
    detail: str
    """What was found; with a failure its cause, too."""
    hint: str
    """What to do, naming the setting; empty where there is nothing to do."""


@dataclass(frozen=True)
class Report:
    """How a check went: its phases as far as it came, the failed one last."""

    place: Place
    phases: tuple[PhaseReport, ...]
    seconds: float
    fault: Fault | None
    """Why it ended early; None if it did not."""
    created: bool
    """Joining made the room."""
    others: int
    """How many others are in the room."""

    @property
    def ok(self) -> bool:
        """Whether every phase passed."""
        return self.fault is None

    @property
    def diagnosis(self) -> str:
        """Return the outcome in a sentence, or two."""
        if self.fault is not None:
            return one_line(self.fault.message)
        others = "nobody else" if not self.others else f"{self.others} other"
        if self.others:
            others += " occupant" if self.others == 1 else " occupants"
        worked = (
            f"Everything works: in the room {one_line(self.place.room)} with {others}, "
            f"{self.seconds:.2f} s in all."
        )
        if self.created:
            worked += f" The room did not exist before and was made by joining it: {_CREATED}"
        return worked


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

    async def run(
        self, on_phase: Callable[[PhaseReport], None] | None = None, *, send: bool = False
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
            fault = faults.of_long_check(walk.phase, self._seconds, walk.connection.place)
            walk.fail(fault)
        finally:
            walk.connection.leave()
            walk.connection.close()
        return Report(
            place=walk.connection.place,
            phases=tuple(walk.phases),
            seconds=time.perf_counter() - started,
            fault=fault,
            created=walk.created,
            others=len(walk.others),
        )


class _Walk:
    """One check: the connection, and what was seen on the way."""

    def __init__(
        self,
        settings: Settings,
        deadlines: Mapping[Stage, float],
        trace: Tracing,
        on_phase: Callable[[PhaseReport], None] | None,
    ) -> None:
        mark = secrets.token_hex(4)
        nickname = settings.nickname.encode()[:MAX_NICKNAME_BYTES].decode("utf-8", "ignore")
        self._nickname = f"{nickname}-check-{mark}"
        self._settings = settings
        self._deadlines = deadlines
        self._on_phase = on_phase
        self.connection = Connection(
            settings,
            Place.of(settings),
            resource=f"xmpp-debug-bridge.check.{mark}",
            publish=self._see,
            on_stage=lambda stage: self._begin(stage.value),
            on_finding=lambda stage, finding: self._findings.append(finding),
            trace=trace,
            deadlines=deadlines,
        )
        self.phases: list[PhaseReport] = []
        self.phase = ""
        """The phase under way."""
        self._began = 0.0
        self._findings: list[str] = []
        self.created = False
        self.others: dict[str, str] = {}
        """Nicknames of the other occupants, by their occupant JIDs."""
        self._room_services: list[str] = []
        """What else would be a room service, where ours does not look like one."""
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
            await self._disco()
            await connection.join(self._nickname, history=False)
            self._find(f"entered as {connection.occupant.partition('/')[2]}")
            if self.created:
                self._find("the room did not exist before: joining made it")
            self._begin("occupants")
            self._find(self._told_occupants())
            if send:
                self._begin("send")
                await self._send()
            self._begin("leave")
            await self._leave()
        except ConnectionFailedError as failed:
            ms = self._milliseconds()
            if failed.fault.condition == "certificate-verify-failed" and self.phase == "tls":
                await self._look_again()
            fault = self._explained(failed.fault)
            self.fail(fault, ms)
            return fault
        self._pass()
        return None

    def fail(self, fault: Fault, ms: float | None = None) -> None:
        """End the phase under way, and with it the walk."""
        self._find(fault.message)
        self._report(False, fault.hint, self._milliseconds() if ms is None else ms)

    # The phases that the connection has not.

    async def _disco(self) -> None:
        """Ask the room service and the room what they are (XEP-0045, section 6)."""
        place = self.connection.place
        service = stanzas.prepared(place.room_service) or place.room_service
        features, refusal = await self._ask(service, DISCO_SECONDS)
        if refusal is not None:
            self._find(f"{service} does not answer disco ({refusal.condition}); joining decides")
        elif stanzas.MUC in features:
            self._find(f"{service} is a room service")
        elif features:
            self._find(f"{service} does not name {stanzas.MUC} among its features")
        else:
            self._find(f"{service} says nothing of what it is; joining decides")
        if stanzas.MUC not in features and (refusal is None or refusal.condition != _SILENCE):
            await self._find_room_services(service)
        if refusal is not None and refusal.condition in _UNREACHABLE:
            fault = refusals.of_join_error(refusal.condition, refusal.text, place, None)
            raise ConnectionFailedError(fault)
        if refusal is None:
            room = stanzas.prepared(place.room) or place.room
            of_room, refusal = await self._ask(room, DISCO_SECONDS)
            self._find(_told_room(of_room, refusal))
            if features and stanzas.MUC not in features | of_room:
                raise ConnectionFailedError(refusals.no_room_service(place))

    async def _ask(
        self, target: str, seconds: float
    ) -> tuple[frozenset[str], stanzas.StanzaError | None]:
        """Return the features of an address, or why it does not tell them."""
        try:
            async with asyncio.timeout(seconds):
                return await self.connection.features_of(target), None
        except StanzaRefusedError as refused:
            return frozenset(), refused.error
        except TimeoutError:
            return frozenset(), stanzas.StanzaError(_SILENCE)

    async def _find_room_services(self, doubted: str) -> None:
        """Ask the server for the room services that it has."""
        domain = stanzas.prepared(self._settings.domain) or self._settings.domain
        try:
            async with asyncio.timeout(DISCO_SECONDS):
                answer = await self.connection.request("get", domain, stanzas.items_query())
                for item in stanzas.items_in(answer)[:MAX_SERVICES_ASKED]:
                    if "@" not in item and item != doubted:
                        features, _ = await self._ask(item, DISCO_SECONDS)
                        if stanzas.MUC in features:
                            self._room_services.append(item)
        except (StanzaRefusedError, TimeoutError):
            return
        if self._room_services:
            self._find(f"room services of {domain}: {', '.join(self._room_services)}")

    def _told_occupants(self) -> str:
        names = list(self.others.values())
        told = ", ".join(names[:MAX_TOLD_OCCUPANTS])
        more = len(names) - MAX_TOLD_OCCUPANTS
        if not names:
            return "nobody else"
        return f"{len(names)} besides us: {told}{f' and {more} more' if more > 0 else ''}"

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
        self._find("the room sent the message back")

    async def _leave(self) -> None:
        self._left = asyncio.get_running_loop().create_future()
        self.connection.depart()
        try:
            await self._await(self._left, LEAVE_SECONDS)
        except TimeoutError as error:
            fault = refusals.no_goodbye(LEAVE_SECONDS, self.connection.place)
            raise ConnectionFailedError(fault) from error
        self.connection.occupant = ""
        self._find("the room confirmed it")
        if self.created:
            gone = await self._is_gone()
            self._find(f"the room that joining made is {'gone again' if gone else 'still there'}")

    async def _is_gone(self) -> bool:
        """Tell whether the room went with its last occupant."""
        room = stanzas.prepared(self._settings.room) or self._settings.room
        for _ in range(2):  # ejabberd loses what it is asked in the moment when a room ends
            _, refusal = await self._ask(room, GONE_SECONDS)
            if refusal is None or refusal.condition != _SILENCE:
                break
        return refusal is not None and refusal.condition == "item-not-found"

    async def _await(self, awaited: "asyncio.Future[Answer]", seconds: float) -> Answer:
        """Wait for what an event decides; raises `TimeoutError` or `ConnectionFailedError`."""
        ended = self.connection.ended
        async with asyncio.timeout(seconds):
            await asyncio.wait((awaited, ended), return_when=asyncio.FIRST_COMPLETED)
        if not awaited.done():
            raise ConnectionFailedError(ended.result())
        return awaited.result()

    async def _look_again(self) -> None:
        """Find out what the certificate says that was refused.

        OpenSSL shows none that it has not verified, so this takes a second connection, without
        verification, which ends before anybody is told who we are.
        """
        endpoint = self.connection.endpoint
        there = self._settings.service if endpoint is None else endpoint.service
        settings = replace(self._settings, tls_verify=False, tls_ca_file=None, service=there)
        seen: list[tuple[Stage, str]] = []
        connection = Connection(
            settings,
            self.connection.place,
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
        self._findings += [finding for stage, finding in seen if stage is Stage.TLS]

    def _explained(self, fault: Fault) -> Fault:
        """Return the fault with what else is known here in its hint."""
        hint = fault.hint
        if self.phase == "join" and fault.condition in {"not-acceptable", "conflict"}:
            hint += _OWN_NICKNAME
        if self._room_services and self.phase in {"disco", "join"}:
            known = ", ".join(self._room_services)
            hint += f" The room service of {self._settings.domain} is {known}."
        return replace(fault, hint=hint)

    # What happens meanwhile.

    def _see(self, event: Event) -> None:
        place = self.connection.place
        match event:
            case Joined(created=created):
                self.created = created
            case OccupantJoined(own=False, occupant=occupant, nickname=nickname):
                self.others[occupant] = nickname
            case OccupantLeft(own=False, occupant=occupant):
                self.others.pop(occupant, None)
            case OccupantLeft(codes=codes, reason=reason, actor=actor):
                if self._left is not None and not self._left.done():
                    self._left.set_result(None)
                elif self.connection.inside:
                    self.connection.end(refusals.put_out(codes, reason, actor, place))
            case NicknameChanged(occupant=occupant, nickname=old, new_nickname=new, own=own):
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
        if self.phase:
            self._pass()
        self.phase, self._began = phase, time.perf_counter()

    def _pass(self) -> None:
        hint = ""
        if self.phase == "tls" and not self._settings.tls_verify:
            hint = _UNCHECKED
        elif self.phase == "join" and self.created:
            hint = _CREATED
        self._report(True, hint, self._milliseconds())

    def _report(self, ok: bool, hint: str, ms: float) -> None:
        detail = one_line("; ".join(self._findings), MAX_DETAIL_CHARACTERS)
        self._findings.clear()
        report = PhaseReport(self.phase, ok, ms, detail, one_line(hint))
        self.phases.append(report)
        if self._on_phase is not None:
            self._on_phase(report)

    def _find(self, finding: str) -> None:
        self._findings.append(finding)

    def _milliseconds(self) -> float:
        return round((time.perf_counter() - self._began) * 1000, 3)


_SILENCE = "remote-server-timeout"
"""The condition of an address that says nothing at all."""

_UNREACHABLE = frozenset({"remote-server-not-found"})
"""What a server says of a domain that it cannot find: joining would only say it again."""


def _told_room(features: frozenset[str], refusal: stanzas.StanzaError | None) -> str:
    if refusal is not None and refusal.condition == "item-not-found":
        return "the room does not exist yet"
    if refusal is not None:
        return f"the room does not answer disco ({refusal.condition})"
    kinds = sorted(one.removeprefix("muc_") for one in features if one.startswith("muc_"))
    archive = "with an archive" if mam.MAM in features else "without an archive"
    return f"the room exists ({', '.join(kinds) or 'nothing said of its kind'}), {archive}"
