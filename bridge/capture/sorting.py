"""Decides whose stanza it is, if a log has several streams. Pure.

Many logs do not name the stream of a stanza. Then a stanza belongs to the client whose account the
stanza names, or else to the client of the stanza before.
"""

from collections.abc import Iterable

from bridge.capture.examined import Examined
from bridge.capture.rooms import RoomState
from bridge.capture.stanza import FOOTER, Stanza
from bridge.capture.stream import Stream
from bridge.wire import names


def begins(stanza: Stanza, stream: Stream) -> bool:
    """Whether a stanza begins a new stream, and so does not belong to `stream`."""
    if stanza.element.tag == names.HEADER and (stanza.sent or not stream.login.has_own_header):
        was_used = stream.client.count > 0 if stanza.sent else stream.login.tried
        return was_used and not stream.login.restarting
    last = stream.ending.last
    if last and last.element.tag == FOOTER and stanza.element.tag == names.STREAM_ERROR:
        return True  # the log lost the header between
    is_offer = stanza.element.tag == names.FEATURES and not stanza.sent
    return (
        is_offer
        and stream.login.authenticated
        and not stream.login.restarting
        and not stream.login.headers
    )


def claim(stanza: Stanza, stream: Stream, streams: list[Examined]) -> None:
    """Give a stream the room that the stanza is about, if another stream seemed to ask for it."""
    element = stanza.element
    if stanza.sent or element.tag != "presence" or len(streams) == 1:
        return
    jid, _, nickname = element.get("from", "").partition("/")
    if not (element.get("type") == "error" or 110 in names.codes_of(element)):
        return
    own = stream.rooms.at(jid)
    for other in (each.stream for each in streams if each.stream is not stream):
        asked = other.rooms.at(jid)
        if asked and asked.state is RoomState.ASKED and asked.nickname == nickname:
            if not own:
                stream.rooms.by_jid[asked.jid] = other.rooms.by_jid.pop(asked.jid)
            elif own.nickname != nickname:
                stream.rooms.by_jid[own.jid], other.rooms.by_jid[own.jid] = asked, own
            return


def whose(stanza: Stanza, streams: list[Examined]) -> list[Examined]:
    """Return the streams of a session that a stanza may belong to.

    An address of the client in the stanza names one of them. Without such an address, a received
    stanza belongs to the latest stream, unless only other streams are in its room. A sent stanza
    belongs to the streams that can have sent it.
    """
    latest = streams[-1]
    if len(streams) == 1 or stanza.element.tag == names.HEADER:
        return [latest]
    element = stanza.element
    named = element.get("from" if stanza.sent else "to", "")
    if named:
        exact = [each for each in streams if each.stream.client.account.lower() == named.lower()]
        resources = [
            each
            for each in streams
            if names.lower_bare(each.stream.client.account) == names.lower_bare(named)
        ]
        return [(exact or _alive(resources) or streams)[-1]]
    if not latest.stream.client.bound:
        return [latest]
    alive = _alive(streams) or [latest]
    if not stanza.sent and element.tag != names.ACK:
        inside = [each for each in alive if each.stream.rooms.at(element.get("from", ""))]
        return [inside[-1] if inside and latest not in inside else latest]
    match element.tag:
        case "message":
            return _in_room(element.get("to", ""), alive)
        case "presence" if to := element.get("to"):
            nickname, asks = to.partition("/")[2], element.find(names.JOIN) is not None
            rooms = [(each, each.stream.rooms.at(to)) for each in alive]
            named_so = [each for each, room in rooms if room and room.nickname == nickname]
            # A client without a seat asks for one. A client with a seat shows itself in it, or
            # leaves.
            fitting = [each for each, room in rooms if asks != (room is not None and room.is_taken)]
            return [(named_so or fitting or streams)[-1]]
        case "iq":
            id_ = element.get("id", "")
            return [each for each in alive if each.stream.requests.is_asked(id_)]
    return alive if element.tag in {names.ACK_REQUEST, names.ACK} else [latest]


def _in_room(jid: str, streams: list[Examined]) -> list[Examined]:
    """Return the streams that may have sent a message to a room: those inside, or else asking."""
    rooms = [(each, each.stream.rooms.at(jid)) for each in streams]
    inside = [each for each, room in rooms if room and room.is_inside]
    return inside or [each for each, room in rooms if room] or streams


def _alive(streams: Iterable[Examined]) -> list[Examined]:
    """Return the streams that do not seem to have been ended by another login."""
    return [each for each in streams if each.cut is None]
