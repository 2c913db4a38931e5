"""The rules about rooms and messages: joining, removal, refusals, answers. Pure."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from bridge.capture.causes import cause, meaning
from bridge.capture.finding import Finding
from bridge.capture.stanza import MAX_TEXT, Stanza, spaces_of
from bridge.capture.stream import PATIENCE, RoomState, Stream
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.meaning import ENCRYPTIONS, REMOVALS, SIGNALS
from bridge.wire.speech import LOOP_MESSAGES, SELF_ANSWERS, is_named

BODILESS = SIGNALS | {
    names.MUC_USER,
    "jabber:x:conference",
    names.DATA_FORMS,  # such as the request for voice (XEP-0045, section 7.13)
    names.REACTIONS,
    names.RETRACT,
    names.FASTEN,
}
"""With a payload in one of these namespaces, a message needs no body."""

QUOTED = 80
"""The most characters of a message that a finding quotes."""


def join(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find why the client is not in the room that it wants to enter."""
    element, place = stanza.element, stanza.place
    if stanza.sent:
        jid, _, nickname = element.get("to", "").partition("/")
        if not nickname and element.find(names.JOIN) is not None and not element.get("type"):
            yield cause("no-nickname", place, about=jid, room=quoted(jid))
        return
    room = stream.room(element.get("from", ""))
    if room is None or room.state is not RoomState.ASKED:
        return
    if element.tag == "message":
        if "/" not in element.get("from", "") and element.find(names.CAPTCHA) is not None:
            text = element.findtext("body") or ""
            message, hint = meaning("join", "captcha-required", stream, text, room)
            yield cause("captcha", place, about=room.jid, message=message, hint=hint)
    elif element.get("type") == "error":
        error = names.error_of(element)
        message, hint = meaning("join", error.condition, stream, error.text, room)
        name = "refused-join" if room.has_muc else "no-muc"
        yield cause(name, place, error.condition, about=room.jid, message=message, hint=hint)
    elif element.get("type") is None and 210 in names.codes_of(element):
        nickname = quoted(element.get("from", "").partition("/")[2])
        yield cause("renamed", place, about=room.jid, room=quoted(room.jid), nickname=nickname)


def outside(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client speaks to a room from outside, or answers to a former nickname."""
    element, place = stanza.element, stanza.place
    if element.get("type") != "groupchat":
        return
    jid = names.lower_bare(element.get("to", ""))
    room, heard = stream.rooms.get(jid), stream.heard
    if room is None:
        if stream.is_complete and stream.bound:
            yield cause("never-joined", place, about=jid, room=quoted(jid))
    elif (name := _OUTSIDE.get(room.state)) and not (name == "too-early" and room.was_inside):
        yield cause(name, place, about=jid, room=quoted(jid), where=room.place.words)
    elif room.former_nickname and heard is not None and stream.is_prompt(heard, stanza):
        former, nickname = room.former_nickname, room.nickname
        if is_named(former, heard.body) and not is_named(nickname, heard.body):
            words = {"former": quoted(former), "nickname": quoted(nickname)}
            yield cause("old-name", place, about=jid, room=quoted(jid), **words)


_OUTSIDE = {
    RoomState.ASKED: "too-early",
    RoomState.REFUSED: "unnoticed",
    RoomState.REMOVED: "went-on",
}


def removed(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that a room put the client out."""
    element = stanza.element
    from_ = element.get("from", "")
    room = stream.room(from_)
    if room is None or element.get("type") != "unavailable":
        return
    codes = names.codes_of(element)
    if 110 not in codes and not stream.is_own(from_):
        return
    item = element.find(f"{names.EXTENSION}/{names.ITEM}")
    destroyed = element.find(f"{names.EXTENSION}/{{{names.MUC_USER}}}destroy")
    situation = next((REMOVALS[code] for code in REMOVALS if code in codes), "")
    source = item
    if destroyed is not None:
        situation, source = "destroyed", destroyed
    if situation:
        reason = source.findtext(f"{{{names.MUC_USER}}}reason") if source is not None else ""
        message, hint = meaning(situation, "", stream, reason or "", room)
        words = {"message": message, "hint": hint}
        yield cause("put-out", stanza.place, situation, about=room.jid, **words)


def refused(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find the messages of the client that came back, and why."""
    element = stanza.element
    if element.get("type") != "error":
        return
    error = names.error_of(element)
    condition = error.condition
    original = stream.messages.get(element.get("id", "")[:MAX_TEXT])
    type_, to = "", element.get("from", "")
    if original:
        type_, to = original.element.get("type", "normal"), original.element.get("to", "")
    jid, _, nickname = to.partition("/")
    room = stream.rooms.get(names.lower_bare(jid))
    is_private = room is not None and bool(nickname) and type_ != "groupchat"
    is_ruled_out = is_private and condition in {"forbidden", "policy-violation"}
    situation = "whispered" if is_ruled_out else "bounced"
    message, hint = meaning(situation, condition, stream, error.text, room, to=to)
    name = "bounced"
    if type_ == "groupchat" and nickname:
        name = "bounced-groupchat"
    elif original and type_ != "groupchat" and room and not nickname:
        name = "bounced-chat"
    sent = f" The client sent it {original.place.words}." if original else ""
    words = {"message": message, "hint": hint, "sent": sent, "type": type_}
    yield cause(name, stanza.place, condition, about=jid, **words)


def late(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find the requests and messages that were not answered in time, acknowledgements included."""
    for kind, waiting in stream.expired(stanza):
        element = waiting.stanza.element
        other = element.get("to" if waiting.stanza.sent else "from") or "its server"
        what = quoted(waiting.what, QUOTED)
        key, about = ("", other) if kind == "silent" else (waiting.what, "")
        has_times = None not in {stanza.seconds, waiting.stanza.seconds}
        words = {"what": what, "other": quoted(other), "within": PATIENCE[has_times]}
        yield cause(kind, waiting.stanza.place, key, about=about, **words)


def misplaced(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find answers that the client sent where the room does not read them, and errors to a room."""
    element, heard = stanza.element, stream.heard
    jid, _, nickname = element.get("to", "").partition("/")
    jid = names.lower_bare(jid)
    if element.get("type") == "error":
        if jid in stream.rooms and not nickname:
            yield cause("error-to-room", stanza.place, about=jid, room=quoted(jid))
        return
    if heard is None or heard.room not in stream.rooms or not heard.is_public:
        return
    if not stream.is_prompt(heard, stanza):
        return
    if not _has_content(element) or not stream.names_it(heard.body, heard.room):
        return
    is_public = element.get("type") == "groupchat"
    name = ""
    if jid != heard.room:
        is_relayed = heard.body in (element.findtext("body") or "")
        name = "elsewhere" if jid in stream.rooms and is_public and not is_relayed else ""
    elif spaces_of(element) & ENCRYPTIONS.keys():
        name = "encrypted"
    elif not is_public:
        name = "private"
    elif not element.findtext("body"):
        name = "bodiless"
    if name:
        words = {"what": quoted(heard.body, QUOTED), "room": quoted(heard.room)}
        yield cause(name, stanza.place, about=jid, other=quoted(jid), **words)


def looped(stream: Stream, stanza: Stanza) -> Iterator[Finding]:
    """Find that the client answers itself, the history, or another program."""
    element = stanza.element
    body = element.findtext("body") or ""
    if element.get("type") != "groupchat" or not body:
        return
    jid = names.lower_bare(element.get("to", ""))
    name, what, other = "", "", ""
    if (reflection := stream.reflection) and stream.is_prompt(reflection, stanza):
        repeats = stream.self_answers + 1 if stream.answers_itself(stanza) else 0
        name = "answers-itself" if repeats >= SELF_ANSWERS else ""
    elif (history := stream.history) and stream.is_prompt(history, stanza):
        # A client that enters may greet, in several messages.
        is_answer = is_named(history.nickname, body) or stream.repeats(body)
        name, what = ("answers-history" if is_answer else ""), history.body
    elif (heard := stream.heard) and stream.is_prompt(heard, stanza):
        name = "loop" if stream.turns + 1 >= LOOP_MESSAGES else ""
        other = heard.nickname
    if name:
        words = {"what": quoted(what, QUOTED), "other": quoted(other), "room": quoted(jid)}
        yield cause(name, stanza.place, about=jid, count=LOOP_MESSAGES, **words)


def _has_content(message: Element) -> bool:
    """Whether a message has content, or should: it is no mere marker, receipt or the like."""
    if message.find("subject") is not None:
        return False
    spaces = spaces_of(message)
    return bool(message.findtext("body")) or spaces.isdisjoint(BODILESS)
