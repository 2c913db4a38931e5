"""The rooms that a client asks for, is in, and is put out of. State and rules. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.client import Entity
from bridge.capture.finding import Disproof, Finding, Outcome, Severity, key_of_finding, recovered
from bridge.capture.stanza import HOLE, MAX_TEXT, LogPlace, Stanza, outline
from bridge.capture.waiting import AwaitedStanzas
from bridge.newest import Newest
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.meaning import REMOVALS
from bridge.wire.speech import ANSWER_SECONDS

MAX_ROOMS = 64
"""We follow at most so many rooms of a stream, and forget the oldest. A client has fewer."""

MAX_ROOMS_SHOWN = 8
"""We keep the names of at most so many rooms once the stream is over."""

MAX_TRIES = 5
"""A client is in a loop if it asks for a room so often in a row, and is refused or put out each
time."""

SOON_SECONDS = 60.0
"""A client that asks again after a longer time is in no loop."""

AGAIN = "Let the client join again when it is out."
"""What to do if the log does not show how the room put the client out."""

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
    refusals: tuple[Finding, ...] = ()
    """The findings that the room refused the client, each soon after the one before."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why the room refused the client or put it out, by `meaning`; empty if that is not known."""
    tries: int = 1
    """How often in a row the client asked, each time soon after the time before."""
    asked_at: float | None = None
    """The time in seconds at which the client asked."""
    said: tuple[str, str] = "", ""
    """The id and body of what the client said last, while its nickname is not known."""
    early: Stanza | None = None
    """The first message that the client sent before its presence came back, as its `outline`."""
    is_unseen: bool = False
    """Whether only the room's messages show that it let the client in, and not its presence."""
    erred: tuple[LogPlace, float] | None = None
    """Where the client last sent an error to an occupant, and until when the room may put it out
    for that, in seconds."""

    @property
    def is_inside(self) -> bool:
        """Whether the client's own presence has come back."""
        return self.state is RoomState.INSIDE

    def is_under(self, nickname: str) -> bool:
        """Whether the client has, had or asked for this nickname."""
        return nickname in {self.nickname, self.former_nickname}

    @property
    def is_taken(self) -> bool:
        """Whether the client has a seat in the room, or has asked for one."""
        return self.state in {RoomState.ASKED, RoomState.INSIDE}


_CAUSES = {"join": "unanswered-join", "rejoin": "not-rejoined", "unread": "unread"}
"""The cause if something of this kind does not come, for which `Rooms.waiting` waits."""


class Rooms:
    """The rooms of one stream."""

    __slots__ = ("by_jid", "former", "spoke_outside", "waiting")

    def __init__(self) -> None:
        self.by_jid = Newest[str, Room](MAX_ROOMS)
        """Each room that the client asked to be let into, by its bare JID in lower case; for a
        component, with the address that asked."""
        self.former = dict[str, Room]()
        """The rooms in which the client was when its former stream broke, by the same keys."""
        self.spoke_outside = False
        """Whether the client spoke to a room that it had not asked to join."""
        self.waiting = AwaitedStanzas()
        """The requests to be let in that the room has not begun to answer, the former rooms for
        which the client has not asked yet, and what was said to a room in a type that no room
        passes on: most rooms return it."""

    def expect(self, former: "Rooms", stanza: Stanza, count: int) -> None:
        """Expect the client to ask for the rooms in which it was when its former stream broke."""
        self.former = {key: room for key, room in former.by_jid.items() if room.is_inside}
        for key, room in self.former.items():
            self.waiting.add(("rejoin", "", key), stanza, count, room.jid)

    def at(self, jid: str) -> Room | None:
        """Return the room of a JID, if the client asked to be let into it."""
        return self.by_jid.get(names.lower_bare(jid))

    def is_history(self, message: Element, jid: str) -> bool:
        """Whether a message was said before: it has a delay, by any stamp.

        `jid` is the room's bare JID in lower case. Once the room has sent its history, only its own
        stamp counts: an occupant can put a delay into a message.
        """
        room = self.by_jid.get(jid)
        if room is None or room.sends_history:
            return names.is_stamped(message)
        stamps = [*message.findall(names.STAMP), *message.findall(names.FORMER_STAMP)]
        return any(names.lower_bare(each.get("from", "")) == jid for each in stamps)

    def of(self, client: Entity, stanza: Stanza) -> Room | None:
        """Return the room that a stanza is to or from, if the client asked to be let into it."""
        return self.by_jid.get(_key(client, stanza))

    def is_own(self, jid: str, nickname: str) -> bool:
        """Whether this is the client's own nickname in the room of a bare JID in lower case."""
        room = self.by_jid.get(jid)
        return room is not None and nickname == room.nickname

    def take(self, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
        """Take a stanza, and yield what it shows to be wrong."""
        element = stanza.element
        is_error = stanza.sent and element.tag != "iq" and element.get("type") == "error"
        if is_error and "/" in element.get("to", "") and (room := self.of(client, stanza)):
            room.erred = stanza.place, (stanza.seconds or -inf) + ANSWER_SECONDS
        match element.tag, stanza.sent:
            case "presence", True:
                yield from nameless(stanza)
                yield from self._take_own_presence(client, stanza)
            case "message", True:
                yield from outside(self, client, stanza)
                room, asked = self.of(client, stanza), ("unread", "", _key(client, stanza))
                if room and is_unread(room, stanza) and asked not in self.waiting.open:
                    self.waiting.add(asked, stanza, client.count, room.jid)
            case "presence" | "message", False:
                key = _key(client, stanza)
                if key not in self.by_jid:
                    yield from self._learn(client, stanza, key)
                yield from self.answer("join", client, stanza)
                if (room := self.by_jid.get(key)) is None:
                    return
                if element.tag == "message":
                    yield from _take_message(room, client, stanza)
                elif len(_from(element)) <= MAX_TEXT:
                    yield from _take_presence(room, client, stanza)

    def late(self, client: Entity, stanza: Stanza, count: int) -> Iterator[Finding]:
        """Find rooms that did not answer in time, though the client got something else.

        Presence does not count as such: much of it may come first. Find also the former rooms for
        which the client did not ask, unless it is in other rooms now.
        """
        del client
        if stanza.sent or stanza.element.tag in {"presence", HOLE}:
            return
        is_elsewhere = bool(self.by_jid) and self.former.keys().isdisjoint(self.by_jid)
        for kind, awaited in self.waiting.expired(stanza, count):
            if kind == "rejoin" and is_elsewhere:
                continue
            asked, within = awaited.stanza, awaited.patience(stanza)
            type_ = asked.element.get("type", "normal")
            words = {"within": within, "type": type_}
            yield cause(_CAUSES[kind], asked.place, about=awaited.what, **words)

    @property
    def is_empty(self) -> bool:
        """Whether the client has neither asked to join a room nor spoken to one."""
        return not (self.by_jid or self.former or self.spoke_outside)

    def conclusion(self) -> Iterator[Finding]:
        """Note for which rooms the client has not asked, or has no answer, until the log ends."""
        notes = {"rejoin": "not-yet-rejoined", "join": "stops-at-join"}
        for (kind, _, _), awaited in self.waiting.open.items():
            if kind in notes:
                yield cause(notes[kind], awaited.stanza.place, about=awaited.what, though="")
        for room in self.by_jid.values():
            if room.is_unseen and room.is_inside and not room.was_inside:
                though = ", though the room's messages came: some libraries wait for one"
                yield cause("stops-at-join", room.place, about=room.jid, though=though)

    def lose(self) -> None:
        """Allow for a hole in the log, which may hide that a room let the client in."""
        self.waiting.open.clear()
        for room in self.by_jid.values():
            room.state, room.early, room.is_unseen = RoomState.INSIDE, None, False

    def forget(self) -> None:
        """Keep what is shown of the rooms, since no further stanza comes."""
        del self.waiting
        while len(self.by_jid) > MAX_ROOMS_SHOWN:
            self.by_jid.popitem()

    def _learn(self, client: Entity, stanza: Stanza, key: str) -> Iterator[Disproof]:
        """Learn of a room whose join the log does not show, from what only its occupants get."""
        element = stanza.element
        jid, _, nickname = _from(element).partition("/")
        jid, is_public = jid.lower(), element.get("type") == "groupchat"
        if not jid:
            return
        state = None
        if element.tag == "message":
            is_complete = client.is_complete and _is_subscribed(element)
            state, nickname = (RoomState.INSIDE if is_public or is_complete else None), ""
            if not client.is_complete and not is_public and element.find(names.CAPTCHA) is not None:
                state = RoomState.ASKED
        elif not client.is_complete:  # else a stranger's presence could make a room of its sender
            if 110 in names.codes_of(element):
                state = RoomState.INSIDE
            elif element.get("type") == "error" and _is_about_room(element):
                state = RoomState.ASKED
        if state is not None:
            yield from self.answer("rejoin", client, stanza)
            self.by_jid.add(key, Room(jid, nickname, state, stanza.place))
            yield Disproof(key_of_finding("never-joined", "", jid))

    def answer(self, kind: str, client: Entity, stanza: Stanza) -> Iterator[Disproof]:
        """Note that what was waited for has come from a room, or for it, however late."""
        _, late = self.waiting.answer((kind, "", _key(client, stanza)))
        if late:
            yield Disproof(key_of_finding(_CAUSES[kind], "", late.what))

    def _take_own_presence(self, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
        element = stanza.element
        jid, _, nickname = element.get("to", "")[:MAX_TEXT].partition("/")
        key = _key(client, stanza)
        room = self.by_jid.get(key) if jid else None
        has_muc = element.find(names.JOIN) is not None
        if element.get("type") == "unavailable":
            # Without an address it is for all rooms (RFC 6121, 4.5.2).
            for each in [key] if jid else [*self.by_jid]:
                if (left := self.by_jid.get(each)) is None:
                    continue
                if left.is_inside:
                    yield cause("left", stanza.place, about=left.jid)
                left.state = RoomState.LEFT
                self.waiting.open.pop(("join", "", each), None)
        elif not jid or not (room or has_muc or (nickname and "@" in jid)):
            return
        elif not element.get("type") and (room is None or not room.is_inside or has_muc):
            asked = Room(jid.lower(), nickname, RoomState.ASKED, stanza.place, has_muc)
            asked.asked_at = stanza.seconds
            asked.was_inside = room is not None and room.is_inside
            if room and room.had_conflict and nickname != room.nickname:
                asked.former_nickname, asked.had_conflict = room.nickname, True
            if room and room.state in {RoomState.REFUSED, RoomState.REMOVED}:
                if _seconds(room, stanza) <= SOON_SECONDS:
                    asked.tries, asked.why = room.tries + 1, room.why
                    asked.refusals = room.refusals
                yield from again(asked)
            yield from self.answer("rejoin", client, stanza)
            yield Disproof(key_of_finding("left", "", asked.jid))
            self.by_jid.add(key, asked)
            if has_muc and not asked.was_inside:
                self.waiting.add(("join", "", key), stanza, client.count, asked.jid)


def _take_presence(room: Room, client: Entity, stanza: Stanza) -> Iterator[Outcome]:
    nickname = _from(stanza.element).partition("/")[2]
    codes, type_ = names.codes_of(stanza.element), stanza.element.get("type")
    may_be_own = bool(nickname) and nickname in re.split("[@/]", client.account)
    if type_ == "unavailable" and not room.nickname and may_be_own:
        room.nickname = nickname  # the log lacks the join; most clients are named so
    item = stanza.element.find(f"{names.EXTENSION}/{names.ITEM}")
    jid = "" if item is None else names.lower_bare(item.get("jid", ""))
    is_other = jid not in {"", names.lower_bare(client.account)} and "@" in client.account
    is_own = 110 in codes or (nickname == room.nickname and not is_other)
    match type_:
        case "error" if room.is_taken:
            yield from refused(room, client, stanza, nickname)
        case "unavailable" if is_own:
            yield from removed(room, client, stanza, codes)
        case None:
            room.is_unseen = room.is_unseen and not is_own
            if is_own and room.state is RoomState.ASKED:
                yield from recovered(room.refusals, " The room let it in soon after that.")
            yield from renamed(room, stanza, nickname, codes)
            if 201 in codes and is_own and room.state is RoomState.ASKED:
                yield cause("created", stanza.place, about=room.jid)
            if 110 in codes or (is_own and room.state is RoomState.ASKED):
                if nickname != room.nickname:
                    room.former_nickname, room.nickname = room.nickname, nickname
                room.state = RoomState.INSIDE


def _take_message(room: Room, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    element, from_ = stanza.element, _from(stanza.element)
    if room.early is not None:
        yield from too_early(room, room.early, stanza)
    is_puzzle = element.get("type") != "error" and element.find(names.CAPTCHA) is not None
    if is_puzzle and room.state is RoomState.ASKED and "/" not in from_:
        text = element.findtext("body") or ""
        words = meaning("join", "captcha-required", client, text, room=room.jid)
        yield cause("captcha", stanza.place, about=room.jid, **words)
    if element.get("type") != "groupchat":
        return
    if room.state is RoomState.ASKED:
        # A client that gets the room's messages is in it.
        room.state, room.is_unseen = RoomState.INSIDE, True
    if not room.nickname and room.said[1] and room.said == _said(element):
        room.nickname = from_[:MAX_TEXT].partition("/")[2]
    has_body = bool(element.findtext("body"))
    is_subject = element.find("subject") is not None and not has_body
    is_live = has_body and not names.is_stamped(element)
    room.sends_history = room.sends_history and not (is_subject or is_live)


def _said(message: Element) -> tuple[str, str]:
    return message.get("id", "")[:MAX_TEXT], (message.findtext("body") or "")[:MAX_TEXT]


def _is_about_room(presence: Element) -> bool:
    """Whether an error is a room's: it is from an occupant's address, or repeats the request."""
    return "/" in _from(presence) or presence.find(names.JOIN) is not None


def _seconds(room: Room, stanza: Stanza) -> float:
    """Return how long ago the client asked; 0 if the log has no times."""
    if stanza.seconds is None or room.asked_at is None:
        return 0.0
    return stanza.seconds - room.asked_at


def _key(client: Entity, stanza: Stanza) -> str:
    """Return the key of the room that a stanza is to or from.

    A component may be in a room once with each of its addresses.
    """
    other, own = ("to", "from") if stanza.sent else ("from", "to")
    jid = names.lower_bare(stanza.element.get(other, "")[:MAX_TEXT])
    if not client.is_component:
        return jid
    return f"{jid} {names.lower_bare(stanza.element.get(own, '')[:MAX_TEXT])}"


def _from(element: Element) -> str:
    return element.get("from", "")


def _is_subscribed(message: Element) -> bool:
    """Whether a room sends this to a subscriber who has not joined (MUC/Sub of ejabberd)."""
    items = message.find(f"{PUBSUB_EVENT}event/{PUBSUB_EVENT}items")
    return items is not None and items.get("node", "").startswith("urn:xmpp:mucsub:nodes:")


def nameless(stanza: Stanza) -> Iterator[Finding]:
    """Find that the client asks to be let into what is no room, or without a nickname."""
    element = stanza.element
    to = element.get("to", "")
    jid, _, nickname = to.partition("/")
    if element.find(names.JOIN) is None or element.get("type"):
        return
    if jid and "@" not in jid:
        yield cause("no-room", stanza.place, about=jid, room=quoted(to))
    elif not nickname:
        yield cause("no-nickname", stanza.place, about=jid)


def again(asked: Room) -> Iterator[Finding]:
    """Find that the client asks again and again to be let in, whatever the room answers."""
    if asked.tries >= MAX_TRIES:
        more = f" {asked.why['message']}" if asked.why else ""
        yield cause("again", asked.place, about=asked.jid, count=MAX_TRIES, more=more)


def refused(room: Room, client: Entity, stanza: Stanza, nickname: str) -> Iterator[Finding]:
    """Find why the room refused the client, or another nickname of a client that is inside."""
    error, is_inside = names.error_of(stanza.element), room.is_inside
    where = {"room": room.jid, "nickname": nickname or room.nickname}
    text = ": ".join(filter(None, (error.text, error.venue)))
    # Presence without `muc` asks for another nickname if the client is inside, as in an excerpt.
    renames = is_inside or not (room.has_muc or client.is_complete)
    room.why = meaning("rename" if renames else "join", error.condition, client, text, **where)
    name, words = "refused-join", room.why
    if not (room.has_muc or renames):  # the error says nothing of the room then
        name, words = "no-muc", {"condition": error.condition, "why": error.text or ""}
    finding = cause(name, stanza.place, error.condition, about=room.jid, **words)
    if client.is_complete and not client.bound:  # it is the server that answers then
        unbound = cause("unbound", stanza.place, what=quoted("presence"))
        finding = unbound._replace(severity=Severity.ERROR)
    yield finding
    if not is_inside:
        room.refusals = (*room.refusals, finding)[:MAX_TRIES]
        room.state, room.place = RoomState.REFUSED, stanza.place
        room.had_conflict = error.condition == "conflict"


def renamed(room: Room, stanza: Stanza, nickname: str, codes: frozenset[int]) -> Iterator[Finding]:
    """Note that the room lets the client in by another nickname than it asked for."""
    is_other = room.nickname not in {"", nickname} and not codes.isdisjoint({110, 210})
    if room.state is RoomState.ASKED and is_other:
        words = {"asked": quoted(room.nickname), "nickname": quoted(nickname)}
        yield cause("renamed", stanza.place, about=room.jid, **words)


def outside(rooms: Rooms, client: Entity, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client speaks to a room from outside."""
    element, place = stanza.element, stanza.place
    jid = names.lower_bare(element.get("to", ""))
    room = rooms.of(client, stanza)
    if element.get("type") != "groupchat":
        return
    if room is None:
        is_address = "@" in jid and not any(map(str.isspace, jid))
        sender = names.domain_of(element.get("from", ""))
        is_own = not (client.is_component and sender) or sender == client.domain
        may_be_room = is_address and is_own and len(rooms.by_jid) < MAX_ROOMS
        if client.is_complete and client.bound and may_be_room:
            rooms.waiting.open.pop(("rejoin", "", _key(client, stanza)), None)
            rooms.spoke_outside = True
            yield cause("never-joined", place, about=jid)
        return
    if not room.nickname:
        room.said = _said(element)
    if room.state is RoomState.ASKED and not room.was_inside:
        room.early = room.early or outline(stanza)
    elif room.state is RoomState.REFUSED:
        yield cause("unnoticed", place, about=jid, where=room.place.words)
    elif room.state is RoomState.REMOVED:
        words = {"where": room.place.words, "hint": room.why.get("hint", AGAIN)}
        words["more"] = f" {room.why['message']}" if room.why else ""
        yield cause("went-on", place, about=jid, **words)


def is_unread(room: Room, stanza: Stanza) -> bool:
    """Whether the client says something to a whole room in a type that no room passes on."""
    element = stanza.element
    is_whole = room.is_inside and "/" not in element.get("to", "")
    is_said = bool(element.findtext("body")) and element.find(names.EXTENSION) is None
    return is_whole and is_said and element.get("type", "normal") in {"chat", "normal"}


def too_early(room: Room, early: Stanza, stanza: Stanza) -> Iterator[Finding]:
    """Find that a room did not take what the client said before its own presence came back."""
    element, id_ = stanza.element, early.element.get("id", "")
    nickname, other = _from(element).partition("/")[2], element.get("id")
    if element.get("type") == "error" and not nickname and (other == id_ or not (id_ and other)):
        yield cause("too-early", early.place, about=room.jid)
        room.early = None
    elif element.get("type") == "groupchat" and (nickname == room.nickname or other == id_):
        room.early = None


def removed(room: Room, client: Entity, stanza: Stanza, codes: frozenset[int]) -> Iterator[Finding]:
    """Find that a room put the client out, and the error for which some servers do so."""
    element, room.why = stanza.element, {}
    item = element.find(f"{names.EXTENSION}/{names.ITEM}")
    destroy = element.find(f"{names.EXTENSION}/{{{names.MUC_USER}}}destroy")
    source = next((each for each in (destroy, item) if each is not None), Element("item"))
    situation = next((REMOVALS[code] for code in REMOVALS if code in codes), "")
    if destroy is not None:
        situation = "destroyed"
    elif source.get("affiliation") == "outcast":
        situation = "banned"
    user = f"{{{names.MUC_USER}}}"
    actor = source.find(f"{user}actor")
    is_by_server = situation in {"", "dropped"} and codes <= {110, 307, 333} and actor is None
    stays = room.is_inside and not client.ended
    if room.erred and stays and is_by_server and (stanza.seconds or inf) <= room.erred[1]:
        words = {"whom": "an occupant of the", "then": ", which then put it out"}
        yield cause("error-to-room", room.erred[0], about=room.jid, **words)
    if situation:
        reason = source.findtext(f"{user}reason")
        venue = None if destroy is None else destroy.get("jid")
        reason = ": ".join(filter(None, (reason or element.findtext("status"), venue)))
        by = "" if actor is None else actor.get("nick") or actor.get("jid") or ""
        where = {"room": room.jid, "nickname": room.nickname, "by": by}
        room.why = meaning(situation, "", client, reason, **where)
        yield cause("put-out", stanza.place, situation, about=room.jid, **room.why)
    if item is not None and 303 in codes and item.get("nick"):
        room.nickname = item.get("nick", "")[:MAX_TEXT]
    elif room.state is not RoomState.LEFT:
        room.state, room.place = RoomState.REMOVED, stanza.place
