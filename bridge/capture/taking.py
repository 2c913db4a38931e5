"""How each stanza changes the state of a stream. Pure."""

from base64 import b64decode
from collections.abc import Callable
from contextlib import suppress
from xml.etree.ElementTree import Element

from bridge.capture.finding import key_of_finding
from bridge.capture.stanza import FOOTER, HOLE, MAX_TEXT, Stanza, outline, spaces_of
from bridge.capture.stream import (
    Heard,
    Room,
    RoomState,
    Stream,
    key_of,
)
from bridge.wire import names
from bridge.wire.meaning import ENCRYPTIONS, SIGNALS
from bridge.wire.speech import is_command, is_named

PUBSUB_EVENT = "{http://jabber.org/protocol/pubsub#event}"
STANZA_TAGS = frozenset({"message", "presence", "iq"})


def take(stream: Stream, stanza: Stanza) -> None:
    """Take a stanza into the state of its stream."""
    stream.count += 1
    stream.disproved.clear()
    if _has_text(stanza.element):
        _forget_waiting(stream)
    elif change := _CHANGES.get(stanza.element.tag):
        change(stream, stanza)
    stream.last = outline(stanza)
    stream.first = stream.first or stream.last
    if stanza.sent:
        stream.last_sent = stream.last
        if stanza.element.tag == HOLE and stanza.element.text:
            stream.last_bad = stanza


def take_of_any(stream: Stream, stanza: Stanza) -> None:
    """Take a stanza of one of several clients, if the log does not show which."""
    if stanza.element.tag not in STANZA_TAGS:
        stream.answer("acknowledgement", "", "")
        return
    stream.react()
    if stanza.element.tag == "message":
        stream.forget_talk()
        _remember_sent(stream, stanza)


def _has_text(element: Element) -> bool:
    """Whether a stanza has text beside its children: if so, the log lost a part between two."""
    if element.tag not in STANZA_TAGS:
        return False
    text = "".join([element.text or "", *[child.tail or "" for child in element]])
    return text != "" and not text.isspace()


def _take_hole(stream: Stream, stanza: Stanza) -> None:
    stream.holes += not stanza.element.text
    _forget_waiting(stream)


def _forget_waiting(stream: Stream) -> None:
    """Forget all waiting requests: an answer, a login or a join may be in a hole."""
    stream.mechanism, stream.mechanisms, stream.authenticated = "", (), True
    stream.offers_tls = stream.requires_tls = False
    for room in stream.rooms.values():
        room.state = RoomState.INSIDE
    stream.waiting.clear()
    stream.forget_talk()
    stream.is_complete = False


def _take_header(stream: Stream, stanza: Stanza) -> None:
    stream.headers += 1
    stream.has_own_header = stream.has_own_header or stanza.sent
    if stanza.sent:
        stream.account = stream.account or stanza.element.get("from", "")[:MAX_TEXT]
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
    tls = features.find(f"{{{names.TLS}}}starttls")
    stream.offers_tls = tls is not None
    stream.requires_tls = tls is not None and tls.find(f"{{{names.TLS}}}required") is not None
    spaces = names.SASL, names.SASL2
    offered = [it for space in spaces for it in features.iter(f"{{{space}}}mechanism")]
    stream.mechanisms = tuple((it.text or "").strip()[:MAX_TEXT] for it in offered[:32])


def _take_tls(stream: Stream, stanza: Stanza) -> None:
    stream.began_tls = True
    stream.restarting = stanza.element.tag == f"{{{names.TLS}}}proceed"


def _take_end(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.ended = True


def _take_login(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    stream.tried_login = True
    stream.mechanism = element.get("mechanism", "?")[:MAX_TEXT]
    stream.challenged = False
    initial = element.text or element.findtext(f"{{{names.SASL2}}}initial-response") or ""
    with suppress(ValueError):
        first = b64decode(initial.strip()[:4])[:1].decode("ascii", "replace")
        stream.binding_flag = first if stream.mechanism.startswith("SCRAM") else ""


def _take_challenge(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.challenged = stream.tried_login = True


def _take_failure(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.mechanism, stream.tried_login = "", True  # aioxmpp logs no login of the client's


def _take_success(stream: Stream, stanza: Stanza) -> None:
    stream.mechanism, stream.authenticated, stream.restarting = "", True, True
    success = stanza.element
    jid = success.findtext(f"{{{names.SASL2}}}authorization-identifier") or stream.account
    stream.account = jid[:MAX_TEXT]
    if success.find(f"{{{names.BIND2}}}bound") is not None:
        stream.bound = True
        _take_enabled(stream, stanza)
    elif success.find(f"{{{names.SM}}}resumed") is not None:
        _take_resumed(stream, stanza)


def _take_presence(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    if stanza.sent:
        _take_own_presence(stream, stanza)
        return
    from_ = element.get("from", "")
    room = stream.room(from_)
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
        case None if 110 in codes or (nickname == room.nickname and room.state is RoomState.ASKED):
            if nickname != room.nickname:
                room.former_nickname, room.nickname = room.nickname, nickname
            room.state = RoomState.INSIDE


def _take_own_presence(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    jid, _, nickname = element.get("to", "")[:MAX_TEXT].partition("/")
    room = stream.room(jid) if jid else None
    has_muc = element.find(names.JOIN) is not None
    if not jid or not (room or has_muc or (nickname and "@" in jid)):
        return
    stream.react()
    if element.get("type") == "unavailable":
        if room:
            room.state = RoomState.LEFT
    elif not element.get("type") and (
        room is None or room.state is not RoomState.INSIDE or has_muc
    ):
        asked = Room(jid.lower(), nickname, RoomState.ASKED, stanza.place, has_muc)
        asked.was_inside = room is not None and room.state is RoomState.INSIDE
        if room and room.had_conflict and nickname != room.nickname:
            asked.former_nickname, asked.had_conflict = room.nickname, True
        stream.rooms.add(asked.jid, asked)


def _is_subscribed(message: Element) -> bool:
    """Whether a room sends this to a subscriber who has not joined (MUC/Sub of ejabberd)."""
    items = message.find(f"{PUBSUB_EVENT}event/{PUBSUB_EVENT}items")
    return items is not None and items.get("node", "").startswith("urn:xmpp:mucsub:nodes:")


def _take_message(stream: Stream, stanza: Stanza) -> None:
    element = stanza.element
    if element.get("type") == "error":
        return
    body = element.findtext("body") or ""
    from_ = element.get("from", "")[:MAX_TEXT]
    jid = names.lower_bare(element.get("to", "")[:MAX_TEXT] if stanza.sent else from_)
    nickname = from_.partition("/")[2]
    is_public = element.get("type") == "groupchat"
    message = Heard(jid, nickname, body[:MAX_TEXT], is_public, stanza.seconds, stream.count)
    if stanza.sent:
        _take_sent_message(stream, stanza, message)
        return
    stream.account = stream.account or element.get("to", "")[:MAX_TEXT]
    room = stream.rooms.get(jid)
    if room is None and stream.is_complete and (is_public or _is_subscribed(element)):
        room = Room(jid, "", RoomState.INSIDE, stanza.place)
        stream.rooms.add(jid, room)
        stream.disproved.append(key_of_finding("never-joined", "", jid))
    if room and room.state is RoomState.ASKED and element.get("type") == "groupchat":
        room.state = RoomState.INSIDE  # a client that gets the room's messages is in it
    if not body:
        return
    is_own = not nickname or stream.is_own(from_)
    if names.is_stamped(element):
        if not is_own and stream.names_it(body, jid):
            stream.history = message
        return
    if element.get("type") == "groupchat" and is_own:
        stream.reflection = message if nickname else None
        return
    stream.reflection = stream.history = None
    stream.self_answers = 0
    is_turn = _is_turn(stream, stanza, body)
    stream.turns = stream.turns + 1 if is_turn and nickname == stream.partner else 1
    stream.partner = nickname
    if stream.heard is not None:
        stream.answered.pop(key_of(stream.heard.body), None)
    stream.heard = message
    if element.find(names.REPLACE) is None and stream.names_it(body, jid):
        stream.wait("silent", str(stream.count), jid, stanza, body)


def _is_turn(stream: Stream, stanza: Stanza, body: str) -> bool:
    """Whether this answers the client so soon that it is probably a program's answer.

    A command counts as a person's, who gives it again. In a log without times, the message has to
    repeat the client's words, since a person may be alone with the client.
    """
    said = stream.said
    if said is None or is_command(body) or not stream.is_prompt(said, stanza):
        return False
    return stanza.seconds is not None or (said.body != "" and said.body in body)


def _take_sent_message(stream: Stream, stanza: Stanza, message: Heard) -> None:
    element = stanza.element
    _remember_sent(stream, stanza)
    if message.body or spaces_of(element).isdisjoint(SIGNALS):  # signals answer nothing
        stream.react()
    if not message.body and not spaces_of(element) & ENCRYPTIONS.keys():
        return
    heard = stream.heard
    _take_late_answer(stream, message)
    stream.self_answers = stream.self_answers + 1 if stream.answers_itself(stanza) else 0
    stream.turns += 1
    if heard is not None and stream.is_prompt(heard, stanza):
        if message.room == heard.room and message.is_public == heard.is_public:
            words = key_of(heard.body)
            stream.answered.add(words, stream.answered.get(words, 0) + 1)
    else:
        stream.turns = 0
    stream.said, stream.heard = message, None


def _remember_sent(stream: Stream, stanza: Stanza) -> None:
    if id_ := stanza.element.get("id", ""):
        stream.messages.add(id_[:MAX_TEXT], outline(stanza))


def _take_late_answer(stream: Stream, message: Heard) -> None:
    """Note that a message was answered, in a log without times, which cannot show how late."""
    for key, late in [*stream.overdue.items()]:
        asker = late.stanza.element.get("from", "")
        is_of_room = key[0] == "silent" and message.room == names.lower_bare(asker)
        if is_of_room and late.stanza.seconds is None:
            is_next = stream.heard is not None and str(stream.heard.number) == key[1]
            if is_next or is_named(asker.partition("/")[2], message.body):
                del stream.overdue[key]
                stream.disproved.append(key_of_finding("silent", "", message.room))


def _take_iq(stream: Stream, stanza: Stanza) -> None:
    element, id_ = stanza.element, stanza.element.get("id", "")
    other = stream.other_side(element.get("to" if stanza.sent else "from"))
    type_, payloads = element.get("type"), [child.tag for child in element]
    is_request = type_ in {"get", "set"}
    if stanza.sent and type_ == "set" and stream.room(other):
        stream.react()
    if is_request and len(payloads) == 1 and "}" in payloads[0]:
        stream.wait("asked" if stanza.sent else "asks", id_, other, stanza, payloads[0])
        return
    if type_ not in {"result", "error"}:
        _forget_waiting(stream)  # parts of two stanzas (RFC 6120, section 8.2.3)
        return
    stream.answer("asks" if stanza.sent else "asked", id_, other)
    jid = element.findtext(f"{{{names.BIND}}}bind/{{{names.BIND}}}jid")
    if jid and not stanza.sent:
        stream.account, stream.bound = jid[:MAX_TEXT], True


def _take_acknowledgement(stream: Stream, stanza: Stanza) -> None:
    if stanza.element.tag == names.ACK_REQUEST and stanza.sent:
        stream.wait("acknowledgement", "", "", stanza, "")
    elif stanza.element.tag == names.ACK and not stanza.sent:
        stream.answer("acknowledgement", "", "")


def _take_enabled(stream: Stream, stanza: Stanza) -> None:
    ids = (each.get("id", "") for each in stanza.element.iter(f"{{{names.SM}}}enabled"))
    stream.resumption_id = next(ids, "")[:MAX_TEXT]


def _take_resumed(stream: Stream, stanza: Stanza) -> None:
    del stanza
    stream.bound = True
    stream.is_complete = False  # it has the rooms of the former stream


_CHANGES: dict[str, Callable[[Stream, Stanza], None]] = {
    HOLE: _take_hole,
    names.HEADER: _take_header,
    names.FEATURES: _take_features,
    FOOTER: _take_end,
    names.STREAM_ERROR: _take_end,
    f"{{{names.TLS}}}starttls": _take_tls,
    f"{{{names.TLS}}}proceed": _take_tls,
    f"{{{names.SASL}}}auth": _take_login,
    f"{{{names.SASL2}}}authenticate": _take_login,
    f"{{{names.SASL}}}challenge": _take_challenge,
    f"{{{names.SASL2}}}challenge": _take_challenge,
    f"{{{names.SASL}}}success": _take_success,
    f"{{{names.SASL2}}}success": _take_success,
    f"{{{names.SASL}}}failure": _take_failure,
    f"{{{names.SASL2}}}failure": _take_failure,
    "presence": _take_presence,
    "message": _take_message,
    "iq": _take_iq,
    names.ACK_REQUEST: _take_acknowledgement,
    names.ACK: _take_acknowledgement,
    f"{{{names.SM}}}enabled": _take_enabled,
    f"{{{names.SM}}}resumed": _take_resumed,
}
"""The function by which each element changes the state of a stream, by tag."""
