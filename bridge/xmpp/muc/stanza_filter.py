"""Picks stanzas of the trace: by sender, by room, without keepalives, those of one event."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from xml.etree.ElementTree import Element

from bridge.text import visible
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.trace import Direction, TracedStanza
from bridge.xmpp.model.events import Event, MessageReceived, MessageSent, SendFailed, Source, encode
from bridge.xmpp.model.filter import looks_like_jid
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc import reading
from bridge.xmpp.muc.archive import read_result

PING = f"{{{stanzas.PING}}}ping"

ACKNOWLEDGEMENTS = frozenset({f"{{{stanzas.SM}}}r", f"{{{stanzas.SM}}}a"})
"""The tags of requests for acknowledgement, and of acknowledgements (XEP-0198, section 4)."""

AS_READ = frozenset(
    {"kind", "source", "delayedFrom", "reflection", "self", "formerRole", "formerAffiliation"}
)
"""What an event says beyond its stanza: it depends on what else was known when that was read."""


@dataclass(frozen=True)
class StanzaFilter:
    """Matches the stanzas that satisfy every condition; None is no condition."""

    direction: Direction | None = None
    room: str | None = None
    """A bare JID, prepared, that the stanza is from or to."""
    sender: str | None = None
    """A nickname, an occupant JID or a real JID, with or without its resource."""
    contains: str | None = None
    """Text in the XML, whatever the case of its letters."""
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
        for stanza in (traced.xml, *traced.xml.iter(stanzas.MESSAGE)):
            if (address := stanzas.sender_of(stanza)) is not None:
                names = {address.jid, address.bare}
                if address.bare in self.rooms and not looks_like_jid(sender):
                    names |= {address.resource, visible(address.resource)}
                if not wanted.isdisjoint(names - {""}):
                    return True
        return False


def _ends(xml: Element | str) -> set[str]:
    """Return the bare JIDs that a stanza is from and to, prepared."""
    ends = [] if isinstance(xml, str) else [xml.get("from", ""), xml.get("to", "")]
    return {prepared(jid.partition("/")[0]) or "" for jid in ends}


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
        elif xml.tag == stanzas.IQ:
            asking = xml.get("type") in {"get", "set"}
            request = item.connection, xml.get("id"), (item.direction == "in") is asking
            if asking and len(xml) and xml[0].tag == PING:
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


def behind(record: Record, traced: list[TracedStanza]) -> set[int]:
    """Return the numbers of the stanzas that an event came from; `traced` is in order.

    Of what we said these are the one that went out and the one with which the room sent it back, or
    refused it.
    """
    event, room = record.event, prepared(record.room) or ""
    match event:
        case MessageSent(id=id_) | SendFailed(id=id_):
            return _both_ways(traced, room, id_)
        case MessageReceived(own=True, source=Source.LIVE, id=str(id_)):
            return _both_ways(traced, room, id_)
    # A stanza stands before its events, most often right before them. What comes while a session
    # is resumed, or from an archive, is read later, many at once: so it is told by what it says.
    archived_ = isinstance(event, MessageReceived) and event.source is Source.ARCHIVE
    said = _said(event, event)
    for one in reversed(traced):
        if one.number < record.number and one.direction == "in" and not isinstance(one.xml, str):
            events = _events_in(one.xml, room, archived=archived_)
            if any(_said(read, event) == said for read in events):
                return {one.number}
    return set()


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


def _events_in(xml: Element, room: str, *, archived: bool) -> Iterable[Event]:
    address = stanzas.sender_of(xml)
    if address is None or address.bare != room:
        return ()
    if archived:
        found = stanzas.archive_result(xml)
        result = None if found is None else read_result(found[2], room=room, own="")
        return () if result is None else result.events
    # That a room was destroyed is read from presence about ourselves only.
    return chain.from_iterable(reading.read(xml, room=room, own=own) for own in ("", address.jid))


def _said(event: Event, like: Event) -> dict[str, object]:
    """Return what the stanza of `event` said itself, as far as it is known of `like`."""
    ignored = AS_READ
    if isinstance(like, MessageReceived):
        ignored |= {"jid"} if like.stanza_id else {"jid", "stanzaId"}
    return {name: one for name, one in encode(event).items() if name not in ignored}
