"""Which stanzas of the trace a caller wants: by sender, by room, no keepalives; behind an event."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.text import visible
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.trace import Direction, TracedStanza
from bridge.xmpp.model.events import MessageReceived, MessageSent, SendFailed, Source
from bridge.xmpp.model.filter import looks_like_jid
from bridge.xmpp.model.journal import Record

PING = f"{{{stanzas.PING}}}ping"

ACKNOWLEDGEMENTS = frozenset({f"{{{stanzas.SM}}}r", f"{{{stanzas.SM}}}a"})
"""The tags of requests for acknowledgement, and of acknowledgements (XEP-0198, section 4)."""


@dataclass(frozen=True)
class StanzaFilter:
    """Matches the stanzas that satisfy every condition; None is no condition."""

    direction: Direction | None = None
    room: str | None = None
    """From this bare JID, prepared, or to it."""
    sender: str | None = None
    """A nickname, an occupant JID or a real JID, with or without its resource."""
    contains: str | None = None
    """In the XML, whatever the case of its letters."""
    rooms: Collection[str] = ()
    """The bare JIDs, prepared, of the rooms in which a resource is a nickname."""
    own: Collection[str] = ()
    """Our own JIDs and nicknames: what we send does not say from whom it is."""

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
        # What an archive or a carbon copy forwards has a sender of its own.
        for one in (traced.xml, *traced.xml.iter(stanzas.MESSAGE)):
            if (address := stanzas.sender_of(one)) is not None:
                names = {address.jid, address.bare}
                if address.bare in self.rooms and not looks_like_jid(sender):
                    names |= {address.resource, visible(address.resource)}
                if not wanted.isdisjoint(names - {""}):
                    return True
        return False


def _ends(xml: Element | str) -> set[str]:
    """Return the bare JIDs that a stanza is from and to, prepared."""
    ends = [] if isinstance(xml, str) else [xml.get("from", ""), xml.get("to", "")]
    return {prepared(one.partition("/")[0]) or "" for one in ends}


def keepalives(traced: Iterable[TracedStanza]) -> set[int]:
    """Return the numbers of the pings (XEP-0199), of their answers, and of acknowledgements.

    `traced` is in order.
    """
    found = set()
    pings = set()
    for one in traced:
        if isinstance(one.xml, str):
            continue
        if one.xml.tag in ACKNOWLEDGEMENTS:
            found.add(one.number)
        elif one.xml.tag == stanzas.IQ:
            asking = one.xml.get("type") in {"get", "set"}
            request = one.connection, one.xml.get("id"), (one.direction == "in") is asking
            if asking and len(one.xml) and one.xml[0].tag == PING:
                pings.add(request)
                found.add(one.number)
            elif not asking and request in pings:
                pings.remove(request)
                found.add(one.number)
    return found


def archived(traced: Iterable[TracedStanza], room: str, id_: str) -> set[int]:
    """Return the number of the last result by which the archive of `room` told what has this id."""
    numbers = [
        one.number
        for one in traced
        if not isinstance(one.xml, str)
        and (found := stanzas.archive_result(one.xml)) is not None
        and (found[0], found[2].get("id")) == (room, id_)
    ]
    return {*numbers[-1:]}


def behind(record: Record, traced: list[TracedStanza]) -> set[int]:
    """Return the numbers of the stanzas that an event came from; `traced` is in order.

    What we said has two: the message that went out, and the one with which the room sent it back or
    refused it. What an archive told has its result there.
    """
    event, room = record.event, prepared(record.room) or ""
    match event:
        case MessageSent(id=id_) | SendFailed(id=id_):
            return _both_ways(traced, room, id_)
        case MessageReceived(own=True, source=Source.LIVE, id=str(id_)):
            return _both_ways(traced, room, id_)
        case MessageReceived(source=Source.ARCHIVE, stanza_id=str(id_)):
            return archived(traced, room, id_)
    return {record.stanza} & {kept.number for kept in traced}


def _both_ways(traced: list[TracedStanza], room: str, id_: str) -> set[int]:
    """Return the numbers of our message with this id, and of what the room answered it first."""
    found = set()
    for one in traced:
        xml = one.xml
        if isinstance(xml, str) or xml.tag != stanzas.MESSAGE or xml.get("id") != id_:
            continue
        if room in _ends(xml):
            found.add(one.number)
            if one.direction == "in":
                break
    return found
