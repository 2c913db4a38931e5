"""The rooms that a client asks for, is in, and is put out of. State and rules. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, key_of_finding
from bridge.capture.stanza import MAX_TEXT, LogPlace, Stanza
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.meaning import REMOVALS

MAX_ROOMS = 64
"""We follow at most so many rooms of a stream, and forget the oldest. A client has fewer."""

MAX_ROOMS_SHOWN = 8
"""We keep the names of at most so many rooms once the stream is over."""

PUBSUB_EVENT = "{http://jabber.org/protocol/pubsub#event}"


class RoomState(Enum):
    """How far the client is in a room."""

    ASKED = auto()
    """The client has asked to be let in."""
    INSIDE = auto()
    """The client's own presence has come back."""
    REFUSED = auto()
    """The room refused to let the client in."""
    REMOVED = auto()
    """The room put the client out."""
    LEFT = auto()
    """The client has left."""


@dataclass(eq=False, slots=True)
class Room:
    """A room as the client sees it."""

    jid: str
    nickname: str
    """The nickname that the room last confirmed, or else the one that the client asked for."""
    state: RoomState
    place: LogPlace
    """Where the client asked, or where the room refused it or put it out."""
    has_muc: bool = True
    """Whether the presence with which the client asked had the `muc` element."""
    former_nickname: str = ""
    """The nickname that the client asked for, if the room confirmed another one."""
    was_inside: bool = False
    """Whether the client was inside when it asked: some clients send the `muc` element with each
    presence."""
    had_conflict: bool = False
    """Whether the room refused a nickname because another occupant had it."""
    sends_history: bool = True
    """Whether the room may still send what was said before the client came: until the subject, or
    the first message that has a body and no delay (XEP-0045, 7.2.15)."""

    @property
    def is_inside(self) -> bool:
        """Whether the client's own presence has come back."""
        return self.state is RoomState.INSIDE

    @property
    def is_taken(self) -> bool:
        """Whether the client has a seat in the room, or has asked for one."""
        return self.state in {RoomState.ASKED, RoomState.INSIDE}


class Rooms:
    """The rooms of one stream."""

    __slots__ = ("by_jid",)

    def __init__(self) -> None:
        self.by_jid = Newest[str, Room](MAX_ROOMS)
        """Each room that the client asked to be let into, by its bare JID in lower case."""

    def at(self, jid: str) -> Room | None:
        """Return the room of a JID, if the client asked to be let into it."""
        return self.by_jid.get(names.lower_bare(jid))

    def is_history(self, message: Element) -> bool:
        """Whether a message of a room was said before: it has a delay, whoever stamped it.

        Once the room has sent its history, only its own stamp counts: an occupant can put a delay
        into a message.
        """
        jid = names.lower_bare(message.get("from", ""))
        room = self.by_jid.get(jid)
        if room is None or room.sends_history:
            return names.is_stamped(message)
        return any(
            child.tag in {names.STAMP, names.FORMER_STAMP}
            and names.lower_bare(child.get("from", "")) == jid
            for child in message
        )

    def is_own(self, from_: str) -> bool:
        """Whether this is the client's own occupant JID."""
        room = self.at(from_)
        return room is not None and from_.partition("/")[2] == room.nickname

    def take(self, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        tag = stanza.element.tag
        for rule in (_SENT if stanza.sent else _RECEIVED).get(tag, ()):
            yield from rule(self, client, stanza)
        if stanza.sent and tag == "presence":
            self._take_own_presence(stanza)
        elif tag == "presence":
            self._take_presence(stanza)
        elif tag == "message" and not stanza.sent and stanza.element.get("type") != "error":
            yield from self._take_message(client, stanza)

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide that a room let the client in."""
        for room in self.by_jid.values():
            room.state = RoomState.INSIDE

    def forget(self) -> None:
        """Keep what is shown of the rooms, since no further stanza comes."""
        while len(self.by_jid) > MAX_ROOMS_SHOWN:
            self.by_jid.popitem()

    def _take_own_presence(self, stanza: Stanza) -> None:
        element = stanza.element
        jid, _, nickname = element.get("to", "")[:MAX_TEXT].partition("/")
        room = self.at(jid) if jid else None
        has_muc = element.find(names.JOIN) is not None
        if not jid or not (room or has_muc or (nickname and "@" in jid)):
            return
        if element.get("type") == "unavailable":
            if room:
                room.state = RoomState.LEFT
        elif not element.get("type") and (room is None or not room.is_inside or has_muc):
            asked = Room(jid.lower(), nickname, RoomState.ASKED, stanza.place, has_muc)
            asked.was_inside = room is not None and room.is_inside
            if room and room.had_conflict and nickname != room.nickname:
                asked.former_nickname, asked.had_conflict = room.nickname, True
            self.by_jid.add(asked.jid, asked)

    def _take_presence(self, stanza: Stanza) -> None:
        element = stanza.element
        from_ = element.get("from", "")
        room = self.at(from_)
        if room is None or len(from_) > MAX_TEXT:
            return
        nickname = from_.partition("/")[2]
        codes = names.codes_of(element)
        match element.get("type"):
            case "error":
                if room.state is RoomState.ASKED:
                    room.state, room.place = RoomState.REFUSED, stanza.place
                    room.had_conflict = names.error_of(element).condition == "conflict"
            case "unavailable":
                if 110 in codes or nickname == room.nickname:
                    item = element.find(f"{names.EXTENSION}/{names.ITEM}")
                    renamed = item.get("nick") if item is not None and 303 in codes else None
                    if renamed:
                        room.nickname = renamed[:MAX_TEXT]
                    elif room.state is not RoomState.LEFT:
                        room.state, room.place = RoomState.REMOVED, stanza.place
            case None if 110 in codes or (
                nickname == room.nickname and room.state is RoomState.ASKED
            ):
                if nickname != room.nickname:
                    room.former_nickname, room.nickname = room.nickname, nickname
                room.state = RoomState.INSIDE

    def _take_message(self, client: Entity, stanza: Stanza) -> Iterator[Disproof]:
        element = stanza.element
        jid = names.lower_bare(element.get("from", "")[:MAX_TEXT])
        room = self.by_jid.get(jid)
        is_public = element.get("type") == "groupchat"
        if room is None and client.is_complete and (is_public or _is_subscribed(element)):
            self.by_jid.add(jid, Room(jid, "", RoomState.INSIDE, stanza.place))
            yield Disproof(key_of_finding("never-joined", "", jid))
        elif room and room.state is RoomState.ASKED and is_public:
            room.state = RoomState.INSIDE  # a client that gets the room's messages is in it
        if (room := self.by_jid.get(jid)) and is_public:
            is_subject = element.find("subject") is not None and not element.findtext("body")
            is_live = bool(element.findtext("body")) and not names.is_stamped(element)
            room.sends_history = room.sends_history and not (is_subject or is_live)


def _is_subscribed(message: Element) -> bool:
    """Whether a room sends this to a subscriber who has not joined (MUC/Sub of ejabberd)."""
    items = message.find(f"{PUBSUB_EVENT}event/{PUBSUB_EVENT}items")
    return items is not None and items.get("node", "").startswith("urn:xmpp:mucsub:nodes:")


def nameless(rooms: Rooms, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client asks to be let in without a nickname."""
    del rooms, client
    element = stanza.element
    jid, _, nickname = element.get("to", "").partition("/")
    if not nickname and element.find(names.JOIN) is not None and not element.get("type"):
        yield cause("no-nickname", stanza.place, about=jid, room=quoted(jid))


def join(rooms: Rooms, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find why the client is not in the room that it wants to enter, or not by its nickname."""
    element, place = stanza.element, stanza.place
    room = rooms.at(element.get("from", ""))
    if room is None or room.state is not RoomState.ASKED:
        return
    where = {"room": room.jid, "nickname": room.nickname}
    if element.tag == "message":
        if "/" not in element.get("from", "") and element.find(names.CAPTCHA) is not None:
            text = element.findtext("body") or ""
            message, hint = meaning("join", "captcha-required", client, text, **where)
            yield cause("captcha", place, about=room.jid, message=message, hint=hint)
    elif element.get("type") == "error":
        error = names.error_of(element)
        message, hint = meaning("join", error.condition, client, error.text, **where)
        name = "refused-join" if room.has_muc else "no-muc"
        yield cause(name, place, error.condition, about=room.jid, message=message, hint=hint)
    elif element.get("type") is None and 210 in names.codes_of(element):
        nickname = quoted(element.get("from", "").partition("/")[2])
        yield cause("renamed", place, about=room.jid, room=quoted(room.jid), nickname=nickname)


def outside(rooms: Rooms, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client speaks to a room from outside."""
    element, place = stanza.element, stanza.place
    if element.get("type") != "groupchat":
        return
    jid = names.lower_bare(element.get("to", ""))
    room = rooms.by_jid.get(jid)
    if room is None:
        if client.is_complete and client.bound:
            yield cause("never-joined", place, about=jid, room=quoted(jid))
    elif (name := _OUTSIDE.get(room.state)) and not (name == "too-early" and room.was_inside):
        yield cause(name, place, about=jid, room=quoted(jid), where=room.place.words)


_OUTSIDE = {
    RoomState.ASKED: "too-early",
    RoomState.REFUSED: "unnoticed",
    RoomState.REMOVED: "went-on",
}


def removed(rooms: Rooms, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that a room put the client out."""
    element = stanza.element
    from_ = element.get("from", "")
    room = rooms.at(from_)
    if room is None or element.get("type") != "unavailable":
        return
    codes = names.codes_of(element)
    if 110 not in codes and not rooms.is_own(from_):
        return
    item = element.find(f"{names.EXTENSION}/{names.ITEM}")
    destroyed = element.find(f"{names.EXTENSION}/{{{names.MUC_USER}}}destroy")
    situation = next((REMOVALS[code] for code in REMOVALS if code in codes), "")
    source = item
    if destroyed is not None:
        situation, source = "destroyed", destroyed
    if situation:
        reason = source.findtext(f"{{{names.MUC_USER}}}reason") if source is not None else ""
        where = {"room": room.jid, "nickname": room.nickname}
        message, hint = meaning(situation, "", client, reason or "", **where)
        words = {"message": message, "hint": hint}
        yield cause("put-out", stanza.place, situation, about=room.jid, **words)


_Rule = Callable[[Rooms, Entity, Stanza], Iterator[Finding]]
_SENT: dict[str, tuple[_Rule, ...]] = {"presence": (nameless,), "message": (outside,)}
"""The rules for stanzas that the client sends, by tag."""
_RECEIVED: dict[str, tuple[_Rule, ...]] = {"presence": (join, removed), "message": (join,)}
"""The rules for stanzas that the client receives, by tag."""
