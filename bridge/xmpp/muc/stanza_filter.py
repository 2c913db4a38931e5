"""Selects stanzas of the trace: by sender, by room, without keepalives, or by their event."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.text import iso, visible
from bridge.wire import names
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.trace import Direction, TracedStanza
from bridge.xmpp.model.events import MessageReceived, MessageSent, SendFailed, Source
from bridge.xmpp.model.filter import looks_like_jid
from bridge.xmpp.model.journal import Record

ACKNOWLEDGEMENTS = frozenset({names.ACK_REQUEST, names.ACK})
"""The tags of requests for acknowledgement, and of acknowledgements (XEP-0198, section 4)."""


@dataclass(frozen=True)
class StanzaFilter:
    """Matches the stanzas that satisfy every condition; None is no condition."""

    direction: Direction | None = None
    room: str | None = None
    """The bare JID, prepared, of the stanza's sender or receiver."""
    sender: str | None = None
    """A nickname, an occupant JID or a real JID, with or without its resource."""
    contains: str | None = None
    """Text in the XML, whatever the case of its letters."""
    rooms: Collection[str] = ()
    """The bare JIDs, prepared, of the rooms. In an address of these, the resource is a nickname."""
    own: Collection[str] = ()
    """Our own JIDs and nicknames, since the stanzas that we send do not name their sender."""

    def matches(self, traced: TracedStanza) -> bool:
        """Whether the stanza satisfies every condition."""
        if self.direction not in {None, traced.direction}:
            return False
        if self.room is not None and self.room not in _ends(traced.xml):
            return False
        if self.sender is not None and not self._is_from(traced, self.sender):
            return False
        wanted = (self.contains or "").casefold()
        return not wanted or wanted in stanzas.xml_of(traced.xml).casefold()

    def _is_from(self, traced: TracedStanza, sender: str) -> bool:
        wanted = {sender, prepared(sender)}
        if isinstance(traced.xml, str):
            return False
        if traced.direction == "out":
            return not wanted.isdisjoint(self.own)
        # Archives and carbon copies forward messages. The message inside has a sender of its own.
        for stanza in (traced.xml, *traced.xml.iter(names.MESSAGE)):
            if (address := stanzas.sender_of(stanza)) is not None:
                known = {address.jid, address.bare}
                if address.bare in self.rooms and not looks_like_jid(sender):
                    known |= {address.resource, visible(address.resource)}
                if not wanted.isdisjoint(known - {""}):
                    return True
        return False


def _ends(xml: Element | str) -> set[str]:
    """Return the bare JIDs of a stanza's sender and receiver, prepared."""
    ends = [] if isinstance(xml, str) else [xml.get("from", ""), xml.get("to", "")]
    return {prepared(names.bare(jid)) or "" for jid in ends}


def encode(traced: TracedStanza, cursor: str) -> dict[str, object]:
    """Return a stanza under the names that users see."""
    xml = stanzas.xml_of(traced.xml)
    return {
        "cursor": cursor,
        "at": iso(traced.at),
        "direction": traced.direction,
        "bytes": len(xml.encode("utf-8", "surrogatepass")),
        "connection": traced.connection,
        "xml": xml,
    }


def keepalives(traced: Iterable[TracedStanza]) -> set[int]:
    """Return the numbers of the pings (XEP-0199), of their answers, and of acknowledgements.

    `traced` is in order.
    """
    numbers = set()
    pings = set()
    for item in traced:
        xml = item.xml
        if isinstance(xml, str):
            continue
        if xml.tag in ACKNOWLEDGEMENTS:
            numbers.add(item.number)
        elif xml.tag == names.IQ:
            asking = xml.get("type") in {"get", "set"}
            request = item.connection, xml.get("id"), (item.direction == "in") is asking
            if asking and len(xml) and xml[0].tag == names.PINGED:
                pings.add(request)
                numbers.add(item.number)
            elif not asking and request in pings:
                pings.remove(request)
                numbers.add(item.number)
    return numbers


def archived(traced: Iterable[TracedStanza], room: str, id_: str) -> set[int]:
    """Return the number of the last result of the archive of `room` that has this id."""
    numbers = [
        item.number
        for item in traced
        if not isinstance(item.xml, str)
        and (result := stanzas.archive_result(item.xml)) is not None
        and (result[0], result[2].get("id")) == (room, id_)
    ]
    return {*numbers[-1:]}


def stanzas_of(record: Record, traced: list[TracedStanza]) -> set[int]:
    """Return the numbers of the stanzas that an event came from; `traced` is in order.

    A message of ours came from two stanzas: ours, and the room's, which sends it back or refuses
    it. A message from an archive came from the result that contains it.
    """
    event, room = record.event, prepared(record.room) or ""
    match event:
        case MessageSent(id=id_) | SendFailed(id=id_) if id_:
            return _both_ways(traced, room, id_)
        case MessageReceived(own=True, source=Source.LIVE, id=str(id_)):
            return _both_ways(traced, room, id_)
        case MessageReceived(source=Source.ARCHIVE, stanza_id=str(id_)):
            return archived(traced, room, id_)
    return {record.stanza} & {kept.number for kept in traced}


def _both_ways(traced: list[TracedStanza], room: str, id_: str) -> set[int]:
    """Return the numbers of our message with this id, and of the room's first answer to it."""
    numbers = set()
    for item in traced:
        xml = item.xml
        if isinstance(xml, str) or xml.tag != names.MESSAGE or xml.get("id") != id_:
            continue
        if room in _ends(xml):
            numbers.add(item.number)
            if item.direction == "in":
                break
    return numbers
