"""How a tool reaches the rooms, and the errors that it raises if it cannot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.schema import Unlisted
from bridge.recording.recorded import Reader
from bridge.recording.recording import Recording
from bridge.recording.tapped import folder_of
from bridge.settings.table import Configuration
from bridge.text import listed, name_of, rooms_named
from bridge.tools.entries import NOTICE, Entry, noticed
from bridge.wire.names import lower_bare
from bridge.xmpp.checks.asking import Declarations
from bridge.xmpp.checks.evidence import list_of
from bridge.xmpp.checks.presence import alike
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.journal import Record, Records
from bridge.xmpp.model.room import RoomStatus
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.muc.participant import Participant

MAX_NAMED = 20
"""How many known rooms or occupants an error names for an unknown name; it counts the rest."""

Nickname = Annotated[str | None, Unlisted(min_length=1, max_length=1_023)]
"""A nickname as an argument: a resourcepart has at most 1,023 bytes (RFC 7622, section 3.4)."""

RoomName = Annotated[str | None, Unlisted(min_length=1), "JID or local part"]
"""The argument `room` of every tool that looks at a room or speaks to it."""


class RoomLink:
    """Gives tools access to the rooms, and to what was recorded of them."""

    def __init__(self, participant: Participant, recording: Recording | None = None) -> None:
        self._participant = participant
        self._recording = recording
        self.bot_logs: Mapping[str, Path] = {}
        """The debug logs of bots, by nickname."""
        self.captures: Path | None = None
        """The folder in which `tap` keeps what bots and their servers said."""
        self.read_only = False
        """Whether the bridge may not speak. Then no next step is to say something."""
        self.declarations = Declarations()
        """What occupants of the rooms have declared themselves to be."""
        self.missing = ""
        """Why what the participant needs cannot be imported; empty if nothing is missing."""

    @property
    def participant(self) -> Participant:
        """The participant in the rooms; raises `ToolError` if something is `missing`."""
        if self.missing:
            raise ToolError(
                f"The bridge is incomplete: {self.missing}",
                condition="internal-server-error",
                hint="Install xmpp-debug-bridge and what it depends on again.",
            )
        return self._participant

    def look_into(self, configuration: Configuration, environ: Mapping[str, str]) -> None:
        """Take the bots' logs of the settings, and what `tap` kept unless a stranger wrote them.

        A stranger's settings could name any room, and so show what tap kept of it.
        """
        self.bot_logs = configuration.bot_logs
        if configuration.trusted:
            self.captures = folder_of(environ)

    def warnings(self) -> list[str]:
        """Return what is wrong with the store, in sentences."""
        return [] if self._recording is None else self._recording.warnings

    def recorded(self) -> Reader | None:
        """Return the reader of the store; None if there is no store, or there are no settings."""
        settings = self.participant.settings
        if settings is None or self._recording is None:
            return None
        return self._recording.reader(settings.jid)

    def room(self, name: str | None = None) -> Membership:
        """Return our membership in the room of this name; without a name, in the default room.

        A name is the JID of a configured room, or its local part if no other room has the same.
        Raises `ArgumentError` for any other name, and `ToolError` while unconfigured.
        """
        memberships = self.participant.memberships
        if not memberships:
            raise not_in_room("", self.participant.status())
        if name is None:
            return memberships[0]
        by_name = {membership.name: membership for membership in memberships}
        matching = rooms_named(name, by_name)
        if len(matching) == 1:
            return by_name[matching[0]]
        what = "is the name of several rooms" if matching else "is no room of the settings"
        asked, rooms = name_of(name), listed([*by_name], MAX_NAMED, name_of)
        raise ArgumentError(
            f"room: {asked} {what}. The rooms are {rooms}.",
            condition="bad-request" if matching else "item-not-found",
            hint="Give a room's JID as it is written here; MUC_ROOM has all of them.",
        )

    def occupant(self, asked: str, room: str | None) -> tuple[Membership, str]:
        """Return the room and the nickname that a nickname or an address names.

        The address may be the occupant's in a room, or the JID of an account that has one occupant.
        Without `room`, an address in a room names that room. Raises as `room` does.
        """
        address = lower_bare(asked)
        rooms = {each.name.lower(): each.name for each in self.participant.memberships}
        membership = self.room(rooms.get(address) if room is None else room)
        status = membership.status()
        if asked in {occupant.nickname for occupant in status.occupants}:
            return membership, asked
        if rooms.get(address) == membership.name and "/" in asked:
            return membership, asked.partition("/")[2]
        named = status.accounts.get(address, ())
        return membership, named[0] if len(named) == 1 else asked

    def misspelt(self, name: str | None, room: str | None) -> Entry:
        """Return a `hint` if nobody asked about has this name: who may be meant, or which room."""
        rooms = [*self.participant.memberships] if room is None else [self.room(room)]
        hint = self.as_nickname(name or "", rooms)
        if name is None or (not hint and any(_stands(each, name) for each in rooms)):
            return {}
        hint = hint or self.elsewhere(name, rooms)[0]
        statuses = [each.status() for each in rooms]
        here = [who.nickname for status in statuses for who in status.everybody]
        gone = [who.nickname for status in statuses for who in status.departures]
        for verb, names in (("is", here), ("was", gone)):
            if not hint and (similar := alike(name, names)):
                hint = f"Nobody here is called {name_of(name)}; in the room {verb} "
                hint += f"{list_of(similar)}."
        return {"hint": hint, "notice": NOTICE} if hint else {}

    def as_nickname(self, name: str, rooms: Sequence[Membership]) -> str:
        """Return how to name the occupant whose nickname looks like a JID; empty if none has it."""
        for each in rooms if "@" in name else ():
            if name in {who.nickname for who in each.status().everybody}:
                given = name_of(f"{each.name}/{name}")
                return f"{name_of(name)} is taken for an account; the occupant is {given}."
        return ""

    def elsewhere(self, name: str, asked: Sequence[Membership]) -> tuple[str, dict[str, object]]:
        """Return who else this name may mean: a room, or an occupant of a room not `asked` about.

        The sentence comes with the arguments of the next call. Both are empty if nobody else is
        meant, as when the rooms `asked` about have an occupant of this or of a similar name.
        """
        rooms = {each.name: each for each in self.participant.memberships}
        here = [who.nickname for each in asked for who in each.status().everybody]
        if any(_stands(each, name) for each in asked):
            return "", {}
        there = sorted((verb, name, it) for it in rooms if (verb := _stands(rooms[it], name)))
        if not there and len(named := rooms_named(name, rooms)) == 1:
            return f"{name_of(name)} is the name of a room, not of an occupant.", {"room": named[0]}
        if not there and not alike(name, here):
            others = {who.nickname: it for it in rooms for who in rooms[it].status().others}
            there = [("is", similar, others[similar]) for similar in alike(name, [*others])]
        for verb, nickname, room in there[:1]:
            sentence = f"{name_of(nickname)} {verb} in the room {name_of(room)}: ask there."
            return sentence, {"nickname": nickname, "room": room}
        return "", {}

    def connection(self, room: Membership, *, inside: bool = False) -> Connection:
        """Return the connection to the server; with `inside`, only while the bridge is in `room`.

        Raises `ToolError` while there is none.
        """
        try:
            return room.connection if inside else self.participant.connection
        except NotInRoomError as error:
            raise not_in_room(room.name, room.status()) from error

    def among_several(self, room: str) -> str:
        """Return the name of a room, for a result or a call; empty if there is only one room."""
        return room if len(self.participant.memberships) > 1 else ""

    def room_warnings(self) -> list[str]:
        """Return the warnings about the rooms; if there are several, each names its room."""
        return [
            f"{room}: {warning}" if (room := self.among_several(membership.name)) else warning
            for membership in self.participant.memberships
            for warning in membership.status().warnings
        ]

    def event(self, cursor: str) -> Record:
        """Return the event whose entry has this cursor; raises `ArgumentError` if there is none."""
        journal = self.participant.journal
        reason = "no event has it, or the event is not kept any more"
        try:
            number, _ = journal.position(cursor)
            record = next(journal.after(number - 1), None)
            if record is not None and journal.cursor_of(record.number) == cursor:
                return record
        except ValueError as error:
            reason = str(error)
        raise ArgumentError(
            f"of is not the cursor of an entry: {reason}.",
            condition="item-not-found",
            hint="Take `cursor` from an entry of xmppHistory or xmppWait, as it is.",
        )

    def records(self, name: str | None) -> Records[Record]:
        """Return the events of the room of this name; without a name, the events of all rooms.

        An event of the connection alone belongs to no room. Raises as `room` does.
        """
        return self.participant.journal.of(None if name is None else self.room(name).name)


def _stands(membership: Membership, name: str) -> str:
    """Return `is` if an occupant of a room has this nickname, address in the room, or account.

    `was`: an occupant of this nickname has left. Empty: neither.
    """
    status, address = membership.status(), lower_bare(name)
    nicknames = {who.nickname for who in status.everybody}
    is_address = address == membership.name.lower() and name.partition("/")[2] in nicknames
    if name in nicknames or is_address or address in status.accounts:
        return "is"
    return "was" if name in {who.nickname for who in status.departures} else ""


def not_in_room(room: str, status: RoomStatus) -> ToolError:
    """Return the error which says why the bridge is out of the room, and what to do about it."""
    return failed(status.out_of(room))


def failed(fault: Fault, before: str = "", after: str = "") -> ToolError:
    """Return the error for `fault`: `before` goes before its message, `after` after its hint.

    The message ends with `NOTICE` if it quotes what a stranger chose, and only then.
    """
    message, hint = f"{before} {fault.message}".lstrip(), f"{fault.hint} {after}".rstrip()
    message = noticed(message) if fault.quotes else message
    return ToolError(message, condition=fault.condition, hint=hint)
