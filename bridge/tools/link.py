"""What the tools see of the rooms: enough for them, and little enough for a test to play."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Protocol

from bridge.mcp.toolset import ArgumentError, ToolError
from bridge.text import one_line, quoted
from bridge.tools.entries import noticed
from bridge.xmpp.errors import NotInRoomError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.settings.table import Settings
    from bridge.xmpp.archive import RoomArchive
    from bridge.xmpp.connection import Connection
    from bridge.xmpp.faults import Fault
    from bridge.xmpp.journal import Journal, Record, Records
    from bridge.xmpp.membership import Reflection
    from bridge.xmpp.room import RoomStatus
    from bridge.xmpp.trace import Trace

MAX_ROOMS_NAMED = 20
"""Rooms that are named when another one is asked for; the rest are counted."""

MAX_NAME_CHARACTERS = 60
"""Of a room's JID in such a sentence."""

RoomName = Annotated[str | None, "a room's JID, or what stands before its @"]
"""The argument `room` of every tool that looks at a room or speaks to it."""


class InRoom(Protocol):
    """Being in one room, as `bridge.xmpp.membership.Membership` is."""

    @property
    def name(self) -> str:
        """The room's bare JID as configured."""

    @property
    def jid(self) -> str:
        """The room's bare JID, prepared."""

    @property
    def occupant(self) -> str:
        """Our occupant JID in it."""

    @property
    def connection(self) -> "Connection":
        """The connection on which we are in the room; raises `NotInRoomError` without one."""

    @property
    def archive(self) -> "RoomArchive":
        """The room's archive; raises `NotInRoomError` when we are not in the room."""

    def status(self) -> "RoomStatus":
        """Return how things stand."""

    async def say(self, body: str, timeout_seconds: float) -> "Reflection":
        """Say `body` in the room, and return the room's reflection of it."""


class Participating(Protocol):
    """Who is in the rooms for us, as `bridge.xmpp.participant.Participant` is."""

    @property
    def room_jid(self) -> str:
        """The default room's bare JID as configured; empty while unconfigured."""

    @property
    def settings(self) -> "Settings | None":
        """What is in effect; None while unconfigured."""

    @property
    def memberships(self) -> "Sequence[InRoom]":
        """Our being in each room, the default room first; none while unconfigured."""

    @property
    def journal(self) -> "Journal":
        """Everything that happened."""

    @property
    def trace(self) -> "Trace":
        """What went over the wire."""

    def status(self) -> "RoomStatus":
        """Return how things stand in the default room."""

    def listen(self, listener: "Callable[[Record], None]") -> Callable[[], None]:
        """Call `listener` with each record as it is written; return what ends that."""

    def begin_anew(self, settings: "Settings") -> bool:
        """Try at once with these settings, unless in the rooms with them; return whether."""


class RoomLink:
    """The way from a tool to the room.

    `find` is called when a tool first asks: the XMPP wing takes a quarter of the time that an
    agent gives a server before its first turn, so it is not loaded for listing tools.
    """

    def __init__(
        self, find: Callable[[], Participating], warnings: Callable[[], list[str]] = list
    ) -> None:
        self._find = find
        self.warnings = warnings
        """What the user ought to know of the bridge now, beyond what the settings said."""

    @cached_property
    def participant(self) -> Participating:
        """Who is, or will be, in the rooms for us; raises `ToolError` if it cannot be loaded."""
        try:
            return self._find()
        except ImportError as error:
            raise ToolError(
                f"The bridge is not whole: {one_line(str(error), 200)}",
                condition="internal-server-error",
                hint="Install xmpp-debug-bridge and what it depends on again.",
            ) from error

    @property
    def several(self) -> bool:
        """Whether there are several rooms, so that results say which."""
        return len(self.participant.memberships) > 1

    def room(self, name: str | None = None) -> InRoom:
        """Return our being in the room of this name, without one in the default room.

        A name is the JID of a configured room, or its local part where no other room has it.
        Raises `ArgumentError` for any other, and `ToolError` while unconfigured.
        """
        memberships = self.participant.memberships
        if not memberships:
            raise not_in_room("", self.participant.status())
        if name is None:
            return memberships[0]
        found = [one for one in memberships if _is_named(one, name)]
        if len(found) == 1:
            return found[0]
        listed = ", ".join(
            quoted(one.name, MAX_NAME_CHARACTERS) for one in memberships[:MAX_ROOMS_NAMED]
        )
        more = len(memberships) - MAX_ROOMS_NAMED
        what = "is no room of the settings" if not found else "is the name of several rooms"
        raise ArgumentError(
            f"room: {quoted(name, MAX_NAME_CHARACTERS)} {what}. "
            f"The rooms are {listed}{f' and {more} more' if more > 0 else ''}.",
            condition="bad-request" if found else "item-not-found",
            hint="Give a room's JID as it is written here; MUC_ROOM has all of them.",
        )

    def records(self, name: str | None) -> "Records[Record]":
        """Return what reads the events of the room of this name, or without one of all rooms.

        What is of the connection alone is of no room. Raises as `room` does.
        """
        return self.participant.journal.of(None if name is None else self.room(name).name)


def _is_named(room: InRoom, name: str) -> bool:
    from bridge.xmpp import stanzas  # tools are listed before it is loaded

    jid = name if "@" in name else f"{name}@{room.jid.partition('@')[2]}"
    return stanzas.prepared(jid) == room.jid


def connection_in(room: InRoom) -> "Connection":
    """Return the connection that stands in the room; raises `ToolError` when there is none."""
    try:
        return room.connection
    except NotInRoomError as error:
        raise not_in_room(room.name, error.status) from error


def not_in_room(room: str, status: "RoomStatus") -> ToolError:
    """Return why nothing can be asked of the room now, and what to do about it."""
    return failed(out_of_room(room, status))


def failed(fault: "Fault", before: str = "", after: str = "") -> ToolError:
    """Return what a tool raises for `fault`, with words `before` its message, `after` its hint.

    The message ends with the notice exactly if it quotes what a stranger chose.
    """
    message = f"{before} {fault.message}".lstrip()
    return ToolError(
        noticed(message) if fault.quotes else message,
        condition=fault.condition,
        hint=f"{fault.hint} {after}".rstrip(),
    )


def out_of_room(room: str, status: "RoomStatus") -> "Fault":
    """Return why the bridge is not in the room."""
    from bridge.xmpp.faults import Fault

    if not room:
        return Fault(
            "unconfigured",
            "The bridge has no room: its settings are incomplete or wrong.",
            "xmppStatus lists every problem with the settings.",
        )
    if status.phase.value == "closed":
        return Fault(
            "recipient-unavailable",
            f"The bridge is leaving the room {room}: it was told to end.",
            "Start the bridge again.",
        )
    if status.last_error is None:
        return Fault(
            "recipient-unavailable",
            f"Not in the room {room} yet (phase {status.phase.value}).",
            "Ask xmppStatus until it says connected, or allow more timeoutSeconds.",
        )
    fault = status.last_error.fault
    message = f"Not in the room {room} (phase {status.phase.value}): {fault.message}"
    return replace(fault, message=message)
