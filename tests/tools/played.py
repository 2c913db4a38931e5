"""A participant in one room, or in several, made of plain values for the tools to work with."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, cast

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import read_members, render
from bridge.mcp.toolset import Tool
from bridge.recording.recorded import Reader
from bridge.recording.recording import Recording
from bridge.settings.table import Settings
from bridge.tools.entries import NOTICE
from bridge.tools.history import xmpp_history
from bridge.tools.link import RoomLink
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.events import Event, MessageReceived, Phase, Tls
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.model.message_body import check_body
from bridge.xmpp.model.room import Occupant, Room, RoomStatus
from bridge.xmpp.muc.archive import RoomArchive
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.participant import Participant
from bridge.xmpp.muc.reflections import Reflection

ROOM = "lobby@conference.example"
LOGS = "Logs@conference.example"
OTHER_LOBBY = "lobby@conference.other.example"
FAULT = Fault("connection-refused", "Nothing listens there.", "Check XMPP_SERVICE.")
STATUS = RoomStatus(
    phase=Phase.JOINED,
    since=0.0,
    attempt=0,
    next_attempt_at=None,
    last_error=None,
    nickname="McpDebug",
    occupants=(Occupant(f"{ROOM}/McpDebug", "McpDebug", "participant", "none", 0.0, own=True),),
    subject="tests",
    last_incoming=None,
    jid="bot@example/r",
    service="xmpp://example:5222",
    tls=Tls("TLSv1.3", "TLS_AES_256_GCM_SHA384", verified=True),
    sasl="SCRAM-SHA-256",
    self_ping_ms=None,
    room_created=False,
)


@dataclass
class Played:
    """A participant that does and sees what a test says."""

    picture: RoomStatus = STATUS
    room_jid: str = ROOM
    occupant: str = f"{ROOM}/McpDebug"
    refusal: Exception | None = None
    journal: Journal = field(default_factory=lambda: Journal("epoch"))
    said: list[tuple[str, float]] = field(default_factory=list)
    listeners: list[Callable[[Record], None]] = field(default_factory=list)
    settings: Settings | None = None
    further: tuple["Played", ...] = ()
    """Being in further rooms; only the participant itself is listened to."""
    reader: Reader | None = None
    warnings: list[str] = field(default_factory=list)
    """Of the store."""

    @cached_property
    def room(self) -> Room:
        """What the events add up to; tests say how things stand in `picture`."""
        return Room(nickname="McpDebug", service="", phase=Phase.JOINED, since=0.0)

    @cached_property
    def trace(self) -> Trace:
        return Trace(self.journal.numbering)

    @property
    def name(self) -> str:
        return self.room_jid

    @property
    def jid(self) -> str:
        return prepared(self.room_jid) or ""

    @property
    def memberships(self) -> tuple[Membership, ...]:
        played = (self, *self.further) if self.room_jid else ()
        return cast("tuple[Membership, ...]", played)

    @property
    def archive(self) -> RoomArchive:
        return RoomArchive(self.connection, self.room_jid, self.occupant)

    @property
    def link(self) -> RoomLink:
        recording = SimpleNamespace(reader=lambda _: self.reader, warnings=self.warnings)
        return RoomLink(cast("Participant", self), cast("Recording", recording))

    def listen(self, listener: Callable[[Record], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return partial(self.listeners.remove, listener)

    def publish(self, event: Event, room: str | None = None, *, at: float = 0.0) -> Record:
        """Let `event` happen in the default room, in another, or to the connection (``).

        The newest stanza of the trace has brought it.
        """
        name = self.room_jid if room is None else room
        stanza = next((traced.number for traced in reversed(self.trace)), 0)
        record = self.journal.append(event, at, name, stanza)
        for each in (self, *self.further):
            if each.room_jid == name:
                each.room.apply(record)
        for listener in tuple(self.listeners):
            listener(record)
        return record

    def hear(self, *bodies: str, nickname: str = "Wilma", room: str = ROOM) -> None:
        """Let somebody say something."""
        for body in bodies:
            self.publish(MessageReceived(f"{room}/{nickname}", nickname, body), room)

    @property
    def connection(self) -> Connection:
        raise NotInRoomError("played")

    def begin_anew(self, settings: Settings) -> bool:
        raise AssertionError(settings)

    def status(self) -> RoomStatus:
        return self.picture

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        check_body(body)
        self.said.append((body, timeout_seconds))
        if self.refusal is not None:
            raise self.refusal
        message = MessageReceived(
            self.occupant, "McpDebug", body, id="m1", stanza_id="s1", own=True
        )
        record = self.journal.append(message, 1.5, self.room_jid)
        return Reflection(record, message, 0.0123456)


class Answering(Played):
    """One whose room has answers as soon as it has heard us, and numbers messages as it likes."""

    stanza_id = "s1"
    answers: Sequence[Event] = ()

    async def say(self, body: str, timeout_seconds: float) -> Reflection:
        said = await super().say(body, timeout_seconds)
        for answer in self.answers:
            asyncio.get_running_loop().call_soon(self.publish, answer)
        return said._replace(message=said.message._replace(stanza_id=self.stanza_id))


class Archived(Played):
    """A participant in a room with an archive."""

    kept: Any = None

    @property
    def connection(self) -> Any:
        return self.kept


def in_rooms(*rooms: str, **more: Any) -> Played:
    """A participant in these rooms, the first of them the default room."""
    journal = Journal("epoch")
    journal.share_among(rooms)
    default, *further = [
        Played(in_room(room), room, f"{room}/McpDebug", journal=journal, **more) for room in rooms
    ]
    default.further = tuple(further)
    return default


def in_room(room: str, *nicknames: str) -> RoomStatus:
    """How things stand in a room where these people are, besides the bridge."""
    jid = prepared(room)
    own = replace(STATUS.occupants[0], jid=f"{jid}/McpDebug")
    others = (Occupant(f"{jid}/{each}", each, "participant", "none", 0.0) for each in nicknames)
    return replace(STATUS, occupants=(own, *others))


def wire(result: object) -> dict[str, Any]:
    """What a client sees of a result."""
    rendered = render(result)
    assert isinstance(rendered, dict)
    return rendered


def fitting(tool: Tool, result: object) -> dict[str, Any]:
    """What a client sees of a result of `tool`, which is as its schema has it."""
    told = wire(result)
    Draft202012Validator(tool.output_schema).validate(told)
    return told


async def page_of(played: Played, tool: Tool = xmpp_history, /, **given: object) -> dict[str, Any]:
    """A page of xmppHistory or xmppTrace; it is marked if strangers wrote in it."""
    page = fitting(tool, await tool(played.link, **arguments(tool, given)))
    assert page.get("notice") == (NOTICE if page["entries"] or "hint" in page else None)
    return page


def bodies(page: dict[str, Any]) -> list[str]:
    """The bodies of the entries of a page, in order."""
    return [each["body"] for each in page["entries"]]


def arguments(tool: Tool, given: Mapping[str, object]) -> dict[str, Any]:
    """What the function of `tool` gets when a client gives this; raises `MismatchError`."""
    return read_members(tool.signature.parameters, given)
