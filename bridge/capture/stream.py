"""The state of one client's stream, which each stanza changes. Pure, and within bounds.

The rules read it, each before the stanza at hand has been taken in.
"""

from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.capture.stanza import (
    FOOTER,
    HEADER,
    HOLE,
    MUC,
    MUC_USER,
    SASL,
    SASL2,
    SM,
    STANZAS,
    STREAMS,
    TLS,
    LogPlace,
    Stanza,
    bare,
    local,
)

PATIENCE_SECONDS = 10.0
"""The time after which a request counts as not answered."""

PATIENCE_STANZAS = 5
"""The same as a number of further stanzas, for a log without times."""

PROMPT_SECONDS = 2.0
"""What is sent this soon after a message is taken for the answer to it."""

MAX_ROOMS = 64
"""The most rooms of a stream that are followed; a client has fewer. The oldest is forgotten."""

MAX_MESSAGES = 256
"""The most sent messages, and bodies that were answered, that are remembered."""

MAX_WAITING = 512
"""The most requests whose answers are waited for; the oldest is forgotten."""

DELAY = "{urn:xmpp:delay}delay"
OLD_DELAY = "{jabber:x:delay}x"


class RoomState(Enum):
    """How far the client is in a room."""

    ASKED = auto()
    """It has asked to be let in."""
    INSIDE = auto()
    """The client's own presence has come back."""
    REFUSED = auto()
    """The room refused to let it in."""
    REMOVED = auto()
    """The room put it out."""
    LEFT = auto()
    """It has left."""


@dataclass(eq=False, slots=True)
class Room:
    """A room as the client has it."""

    jid: str
    nickname: str
    """The nickname that the room last confirmed, or else the one that was asked for."""
    state: RoomState
    place: LogPlace
    """Where the client asked, or was refused or put out."""
    has_muc: bool = True
    """Whether the presence with which it asked had the `muc` element."""
    former_nickname: str = ""
    """The nickname that was asked for, if the room confirmed another one."""
    had_conflict: bool = False
    """Whether a nickname was refused since it was taken."""


class Awaited(NamedTuple):
    """Something that has to be answered."""

    stanza: Stanza
    number: int
    """How many stanzas had passed."""
    what: str
    """A clause that names it."""


class Sent(NamedTuple):
    """A message that the client sent."""

    type: str
    to: str
    place: LogPlace


class Heard(NamedTuple):
    """A message that was received."""

    room: str
    nickname: str
    body: str
    seconds: float | None
    number: int


@dataclass(eq=False, slots=True)
class Stream:
    """The state of one stream."""

    command: str = ""
    """What begins each message that should be answered; empty if the user did not say."""
    nickname: str = ""
    """The nickname that the user names; empty if the log has to tell."""
    account: str = ""
    """The full JID, or as much of it as is known."""
    first: Stanza | None = None
    last: Stanza | None = None
    last_sent: Stanza | None = None
    count: int = 0
    """How many stanzas, in both directions, have passed."""
    is_complete: bool = False
    """Whether the log has the stream from its beginning, without a hole."""
    headers: int = 0
    """How many headers, of both sides, have passed."""
    has_own_header: bool = False
    """Whether the log has the client's headers, and so the ends of its streams, too."""
    tried_login: bool = False
    offers_tls: bool = False
    requires_tls: bool = False
    began_tls: bool = False
    mechanisms: tuple[str, ...] = ()
    mechanism: str = ""
    """The SASL mechanism under way; empty before and after."""
    binding_flag: str = ""
    """The GS2 flag that the client sent: `n`, `y` or `p` (RFC 5802, section 7)."""
    challenged: bool = False
    authenticated: bool = False
    bound: bool = False
    ended: bool = False
    """Whether the server or the client has ended the stream."""
    restarting: bool = False
    """Whether the next header continues the stream, after TLS or SASL (RFC 6120, 4.3.3)."""
    rooms: dict[str, Room] = field(default_factory=dict)
    messages: dict[str, Sent] = field(default_factory=dict)
    """The newest messages that the client sent, by id."""
    waiting: dict[tuple[str, str, str], Awaited] = field(default_factory=dict)
    """What has to be answered, oldest first: by its kind, id and other side."""
    answered: dict[str, None] = field(default_factory=dict)
    """Bodies, without case, that the client answered."""
    heard: Heard | None = None
    """The latest live message of somebody else that the client has not answered yet."""
    reflection: Heard | None = None
    """The client's own message as the room passed it on, if nobody has spoken after it."""
    self_answers: int = 0
    """How many times in a row the client repeated its reflection at once."""
    history: Heard | None = None
    """The latest message of the history that should have been answered when it was new, as long as
    nobody has spoken after the client joined."""
    history_answers: int = 0
    """How many messages the client has sent since `history`."""
    turns: int = 0
    """How many messages the client and `heard.nickname` have said in turns, each at once."""
    partner: str = ""
    """The nickname of the occupant who says every other message."""
    said: Heard | None = None
    """The latest message that the client sent to a room."""

    def room(self, jid: str) -> Room | None:
        """Return the room of a JID, if the client asked to be let into it."""
        return self.rooms.get(bare(jid))

    def is_own(self, from_: str) -> bool:
        """Whether this is the client's own occupant JID."""
        room = self.room(from_)
        return room is not None and from_.partition("/")[2] == room.nickname

    def names_it(self, body: str, room: str) -> bool:
        """Whether a message should be answered: a command, or one that names the client."""
        if self.command:
            return body.startswith(self.command)
        known = self.rooms.get(room)
        name = self.nickname or (known.nickname if known else "")
        return is_named(name, body) or body.casefold() in self.answered

    def is_prompt(self, before: Heard, stanza: Stanza) -> bool:
        """Whether `stanza` came soon after what was heard."""
        if stanza.seconds is not None and before.seconds is not None:
            return 0 <= stanza.seconds - before.seconds <= PROMPT_SECONDS
        return self.count - before.number <= PATIENCE_STANZAS // 2

    def expired(self, stanza: Stanza) -> list[tuple[str, Awaited]]:
        """Take out, and return with its kind, what was not answered in time before `stanza`."""
        late = []
        while self.waiting:
            key, waiting = next(iter(self.waiting.items()))
            if stanza.seconds is not None and waiting.stanza.seconds is not None:
                if stanza.seconds - waiting.stanza.seconds < PATIENCE_SECONDS:
                    break
            elif self.count - waiting.number < PATIENCE_STANZAS:
                break
            del self.waiting[key]
            late.append((key[0], waiting))
        return late

    def wait(self, kind: str, id_: str, other: str, stanza: Stanza, what: str) -> None:
        """Expect an answer."""
        self.waiting[kind, id_, other] = Awaited(stanza, self.count, what)
        if len(self.waiting) > MAX_WAITING:
            del self.waiting[next(iter(self.waiting))]

    def other_side(self, jid: str | None) -> str:
        """Return who is asked or answers; empty for the client's own server."""
        jid = (jid or "").lower()
        account = bare(self.account)
        return "" if jid in {account, self.account.lower(), account.partition("@")[2]} else jid

    def take(self, stanza: Stanza) -> None:
        """Take a stanza in."""
        self.first = self.first or stanza
        self.count += 1
        if take := _TAKES.get(stanza.element.tag):
            take(self, stanza)
        self.last = stanza
        if stanza.sent:
            self.last_sent = stanza


def is_named(name: str, body: str) -> bool:
    """Whether a body has a nickname as a word."""
    at = body.casefold().find(name.casefold()) if name else -1
    if at < 0:
        return False
    around = body[at - 1 : at] + body[at + len(name) : at + len(name) + 1]
    return not any(character.isalnum() for character in around)


def is_delayed(message: Element) -> bool:
    """Whether a message is from the history (XEP-0203)."""
    return message.find(DELAY) is not None or message.find(OLD_DELAY) is not None


def codes_of(presence: Element) -> frozenset[str]:
    """Return the status codes of a presence (XEP-0045, section 15.6)."""
    path = f"{MUC_USER}x/{MUC_USER}status"
    return frozenset(status.get("code", "") for status in presence.iterfind(path))


def condition_of(stanza: Element) -> tuple[str, str]:
    """Return the condition of a stanza's error, and the text that explains it (RFC 6120, 8.3)."""
    error = stanza.find("error")
    if error is None:
        return "undefined-condition", ""
    names = [local(child.tag) for child in error if child.tag.startswith(STANZAS)]
    text = error.findtext(f"{STANZAS}text") or ""
    return next((name for name in names if name != "text"), "undefined-condition"), text


def _take_hole(stream: Stream, stanza: Stanza) -> None:
    """Forget what is waited for: its answer may be in the hole, and so may a login or a join."""
    del stanza
    stream.mechanism, stream.mechanisms, stream.authenticated = "", (), True
    stream.offers_tls = stream.requires_tls = False
    for room in stream.rooms.values():
        room.state = RoomState.INSIDE
    stream.waiting.clear()
    stream.heard = stream.reflection = stream.history = stream.said = None
    stream.turns = 0
    stream.is_complete = False


def _take_header(stream: Stream, stanza: Stanza) -> None:
    stream.headers += 1
    stream.has_own_header = stream.has_own_header or stanza.sent
    if stanza.sent:
        stream.account = stream.account or stanza.element.get("from", "")
    if stream.count == 1:
        stream.is_complete = True
    if stream.mechanism and not stanza.sent:
        stream.mechanism, stream.authenticated = "", True  # the log lost `success`
    stream.restarting = False


def _take_features(stream: Stream, stanza: Stanza) -> None:
    if stream.count == 1:
        stream.is_complete = True
    stream.restarting = False
    features = stanza.element
    tls = features.find(f"{TLS}starttls")
    stream.offers_tls = tls is not None
    stream.requires_tls = tls is not None and tls.find(f"{TLS}required") is not None
    names = [*features.iter(f"{SASL}mechanism"), *features.iter(f"{SASL2}mechanism")]
    stream.mechanisms = tuple((name.text or "").strip() for name in names[:32])


def _take_tls(stream: Stream, stanza: Stanza) -> None:
    stream.began_tls = True
    stream.restarting = stanza.element.tag == f"{TLS}proceed"


def _take_end(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.ended = True


def _take_login(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    stream.tried_login = True
    stream.mechanism = element.get("mechanism", "?")
    stream.challenged = False
    initial = element.text or element.findtext(f"{SASL2}initial-response") or ""
    with suppress(ValueError):
        first = b64decode(initial.strip()[:4])[:1].decode("ascii", "replace")
        stream.binding_flag = first if stream.mechanism.startswith("SCRAM") else ""


def _take_challenge(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.challenged = True


def _take_failure(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.mechanism = ""


def _take_success(stream: Stream, stanza: Stanza) -> None:
    stream.mechanism, stream.authenticated, stream.restarting = "", True, True
    jid = stanza.element.findtext(f"{SASL2}authorization-identifier")
    stream.account = jid or stream.account


def _take_presence(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    if stanza.sent:
        _take_own_presence(stream, stanza)
        return
    room = stream.room(element.get("from", ""))
    if room is None:
        return
    nickname = element.get("from", "").partition("/")[2]
    codes = codes_of(element)
    match element.get("type"):
        case "error":
            if room.state is RoomState.ASKED:
                room.state, room.place = RoomState.REFUSED, stanza.place
                room.had_conflict = condition_of(element)[0] == "conflict"
        case "unavailable":
            if "110" in codes or nickname == room.nickname:
                item = element.find(f"{MUC_USER}x/{MUC_USER}item")
                renamed = item.get("nick") if item is not None and "303" in codes else None
                if renamed:
                    room.nickname = renamed
                elif room.state is not RoomState.LEFT:
                    room.state, room.place = RoomState.REMOVED, stanza.place
        case None if "110" in codes or (
            nickname == room.nickname and room.state is RoomState.ASKED
        ):
            if nickname != room.nickname:
                room.former_nickname, room.nickname = room.nickname, nickname
            room.state = RoomState.INSIDE


def _take_own_presence(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    jid, _, nickname = element.get("to", "").partition("/")
    room = stream.room(jid) if jid else None
    has_muc = element.find(f"{MUC}x") is not None
    if not jid or not (room or has_muc or (nickname and "@" in jid)):
        return
    if element.get("type") == "unavailable":
        if room:
            room.state = RoomState.LEFT
    elif not element.get("type") and (
        room is None or room.state is not RoomState.INSIDE or has_muc
    ):
        asked = Room(jid.lower(), nickname, RoomState.ASKED, stanza.place, has_muc)
        if room and room.had_conflict and nickname != room.nickname:
            asked.former_nickname, asked.had_conflict = room.nickname, True
        stream.rooms.pop(asked.jid, None)
        stream.rooms[asked.jid] = asked
        if len(stream.rooms) > MAX_ROOMS:
            del stream.rooms[next(iter(stream.rooms))]


def _take_message(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    if element.get("type") == "error":
        return
    body = element.findtext("body") or ""
    jid = bare(element.get("to" if stanza.sent else "from", ""))
    nickname = element.get("from", "").partition("/")[2]
    message = Heard(jid, nickname, body, stanza.seconds, stream.count)
    if stanza.sent:
        _take_sent_message(stream, stanza, message)
        return
    stream.account = stream.account or element.get("to", "")
    room = stream.rooms.get(jid)
    if room and room.state is RoomState.ASKED and element.get("type") == "groupchat":
        room.state = RoomState.INSIDE  # who gets the room's messages is in it
    if not body:
        return
    is_own = not nickname or stream.is_own(element.get("from", ""))
    if is_delayed(element):
        if not is_own and stream.names_it(body, jid):
            stream.history = message
        return
    if element.get("type") == "groupchat" and is_own:
        stream.reflection = message if nickname else None
        return
    stream.reflection = stream.history = None
    stream.self_answers = stream.history_answers = 0
    is_turn = stream.said is not None and stream.is_prompt(stream.said, stanza)
    stream.turns = stream.turns + 1 if is_turn and nickname == stream.partner else 1
    stream.partner = nickname
    stream.heard = message
    if stream.names_it(body, jid):
        stream.wait("silent", str(stream.count), jid, stanza, body)


def _take_sent_message(stream: Stream, stanza: Stanza, message: Heard) -> None:
    element = stanza.element
    if id_ := element.get("id", ""):
        type_ = element.get("type", "normal")
        stream.messages[id_] = Sent(type_, element.get("to", ""), stanza.place)
        if len(stream.messages) > MAX_MESSAGES:
            del stream.messages[next(iter(stream.messages))]
    if not message.body and not any(child.tag.endswith("}encrypted") for child in element):
        return
    reflection, heard = stream.reflection, stream.heard
    repeats = reflection is not None and reflection.body in message.body
    stream.self_answers = stream.self_answers + 1 if repeats else 0
    if stream.history is not None:
        stream.history_answers += 1
    stream.turns += 1
    if heard is not None and stream.is_prompt(heard, stanza):
        stream.answered[heard.body.casefold()[:MAX_MESSAGES]] = None
        if len(stream.answered) > MAX_MESSAGES:
            del stream.answered[next(iter(stream.answered))]
    else:
        stream.turns = 0
    stream.said, stream.heard = message, None
    for key in [key for key in stream.waiting if key[0] == "silent"]:
        del stream.waiting[key]


def _take_iq(stream: Stream, stanza: Stanza) -> None:
    element, id_ = stanza.element, stanza.element.get("id", "")
    other = stream.other_side(element.get("to" if stanza.sent else "from"))
    if element.get("type") in {"get", "set"}:
        payload = next(iter(element), None)
        what = "" if payload is None else payload.tag
        stream.wait("asked" if stanza.sent else "asks", id_, other, stanza, what)
        return
    if element.get("type") not in {"result", "error"}:
        _take_hole(stream, stanza)  # two stanzas of which the log has parts
        return
    stream.waiting.pop(("asks" if stanza.sent else "asked", id_, other), None)
    jid = element.findtext(
        "{urn:ietf:params:xml:ns:xmpp-bind}bind/{urn:ietf:params:xml:ns:xmpp-bind}jid"
    )
    if jid and not stanza.sent:
        stream.account, stream.bound = jid, True


def _take_acknowledgement(stream: Stream, stanza: Stanza) -> None:
    if stanza.element.tag == f"{SM}r" and stanza.sent:
        stream.wait("acknowledgement", "", "", stanza, "")
    elif stanza.element.tag == f"{SM}a" and not stanza.sent:
        stream.waiting.pop(("acknowledgement", "", ""), None)
    elif stanza.element.tag == f"{SM}resumed":
        stream.bound = True
        stream.is_complete = False  # its rooms are those of the former stream


_TAKES: dict[str, Callable[[Stream, Stanza], None]] = {
    HOLE: _take_hole,
    HEADER: _take_header,
    f"{{{STREAMS}}}features": _take_features,
    FOOTER: _take_end,
    f"{{{STREAMS}}}error": _take_end,
    f"{TLS}starttls": _take_tls,
    f"{TLS}proceed": _take_tls,
    f"{SASL}auth": _take_login,
    f"{SASL2}authenticate": _take_login,
    f"{SASL}challenge": _take_challenge,
    f"{SASL2}challenge": _take_challenge,
    f"{SASL}success": _take_success,
    f"{SASL2}success": _take_success,
    f"{SASL}failure": _take_failure,
    f"{SASL2}failure": _take_failure,
    "presence": _take_presence,
    "message": _take_message,
    "iq": _take_iq,
    f"{SM}r": _take_acknowledgement,
    f"{SM}a": _take_acknowledgement,
    f"{SM}resumed": _take_acknowledgement,
}
"""What each element does to the state of a stream."""
