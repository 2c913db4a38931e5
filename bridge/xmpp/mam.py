"""What goes to a room's archive and comes from it: queries, forms and results (XEP-0313).

Pages are counted and turned as XEP-0059 has it. When to ask for which is `archive`'s.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from xml.etree.ElementTree import Element, SubElement

from bridge.frozen import dataclass
from bridge.xmpp import stanzas
from bridge.xmpp.events import MessageReceived, Source, SubjectChanged
from bridge.xmpp.stanzas import CLIENT, DATA_FORMS, DELAY, MUC_USER

MAM = "urn:xmpp:mam:2"
RSM = "http://jabber.org/protocol/rsm"
FORWARD = "urn:xmpp:forward:0"

MAX_ID_BYTES = 128
"""Of an archive's id: it goes out again as a cursor, and real ones have twenty or thirty."""


@dataclass(frozen=True)
class Archived:
    """One result: a stanza in the archive, and what it tells."""

    id: str
    """The archive's own, to page from."""
    at: str | None
    """When the room got it, as the archive has it: ISO 8601; Prosody leaves the fraction out."""
    occupant: str
    """Who said it, as an occupant JID; the room itself where nobody did."""
    jid: str | None
    """Their real JID, where the archive shows it (to whom the room shows it now)."""
    events: tuple[MessageReceived | SubjectChanged, ...]
    """None for what is no message: somebody's presence."""

    @property
    def characters(self) -> int:
        """How many characters all its texts have."""
        texts: list[object] = [self.id, self.at, self.occupant, self.jid]
        for event in self.events:
            texts += (getattr(event, one.name) for one in fields(event))
        return sum(_characters(one) for one in texts)


@dataclass(frozen=True)
class End:
    """What the final answer to a query says of the page (XEP-0059, section 2.2)."""

    complete: bool
    """Nothing lies beyond, in the direction asked."""
    first: str | None
    last: str | None


def archive_query(
    id_: str, fields: Mapping[str, str], *, most: int, after: str | None, before: str | None
) -> Element:
    """The payload that asks an archive for a page; `before=""` is the newest."""
    payload = Element(f"{{{MAM}}}query", {"queryid": id_})
    form = SubElement(payload, f"{{{DATA_FORMS}}}x", {"type": "submit"})
    for name, value in {"FORM_TYPE": MAM, **fields}.items():
        kind = {"type": "hidden"} if name == "FORM_TYPE" else {}
        field = SubElement(form, f"{{{DATA_FORMS}}}field", {"var": name} | kind)
        SubElement(field, f"{{{DATA_FORMS}}}value").text = value
    page = SubElement(payload, f"{{{RSM}}}set")
    SubElement(page, f"{{{RSM}}}max").text = str(most)
    if after is not None:
        SubElement(page, f"{{{RSM}}}after").text = after
    if before is not None:
        SubElement(page, f"{{{RSM}}}before").text = before
    return payload


def form_query() -> Element:
    """The payload that asks which fields a query may have (XEP-0313, section 4.1.5)."""
    return Element(f"{{{MAM}}}query")


def fields_in(iq: Element) -> frozenset[str]:
    """Return the names of the fields that the form in the answer offers."""
    path = f"{{{MAM}}}query/{{{DATA_FORMS}}}x/{{{DATA_FORMS}}}field"
    return frozenset(one.get("var", "") for one in iq.iterfind(path))


def archived(stanza: Element, room: str) -> tuple[str, Element] | None:
    """Return the query's id and the result that a message from the room's archive carries."""
    result = stanza.find(f"{{{MAM}}}result") if stanza.tag == f"{{{CLIENT}}}message" else None
    if result is None or stanzas.prepared(stanza.get("from", "")) != room:
        return None
    return result.get("queryid", ""), result


def read_archived(result: Element, *, room: str, own: str) -> Archived | None:
    """Return what a result tells of the room; None without an id, since none can be left out.

    `room` and `own`, our occupant JID, are prepared. Nobody outside the room is believed to have
    said anything in it, whatever was forwarded.
    """
    id_ = _id(result.get("id"))
    if id_ is None:
        return None
    path = f"{{{FORWARD}}}forwarded"
    delay = result.find(f"{path}/{{{DELAY}}}delay")
    at = None if delay is None else delay.get("stamp")
    message = result.find(f"{path}/{{{CLIENT}}}message")
    occupant = None if message is None else stanzas.prepared(message.get("from", ""))
    if message is None or occupant is None or occupant.partition("/")[0] != room:
        return Archived(id_, at, room, None, ())
    events: list[MessageReceived | SubjectChanged] = []
    for event in stanzas.read(message, room=room, own=own):
        match event:
            case MessageReceived():
                given = event.stanza_id or id_
                events.append(
                    replace(event, source=Source.ARCHIVE, stanza_id=given, delayed_from=at)
                )
            case SubjectChanged():
                events.append(event)
            case _:  # errors and the like: an archive is not the room as it stands
                pass
    return Archived(id_, at, occupant, _jid_in(message), tuple(events))


def end_of_page(iq: Element) -> End:
    """Return what the final answer says; one that says nothing is the end."""
    fin = iq.find(f"{{{MAM}}}fin")
    if fin is None:
        return End(complete=True, first=None, last=None)
    path = f"{{{RSM}}}set/{{{RSM}}}"
    return End(
        fin.get("complete") in {"true", "1"},
        _id(fin.findtext(f"{path}first")),
        _id(fin.findtext(f"{path}last")),
    )


def _jid_in(message: Element) -> str | None:
    """Return the real JID that the archive adds; two are one too many, and tell nothing.

    It has to take out whatever the sender put there (XEP-0313, section 5.1.3); one of two may be
    what it left in.
    """
    path = f"{{{MUC_USER}}}x/{{{MUC_USER}}}item"
    found = [jid for item in message.iterfind(path) if (jid := item.get("jid"))]
    return stanzas.prepared(found[0]) or None if len(found) == 1 else None


def _characters(value: object) -> int:
    match value:
        case str():
            return len(value)
        case tuple():
            return sum(map(_characters, value))
        case _:
            return 0


def _id(given: str | None) -> str | None:
    return given if given and len(given.encode()) <= MAX_ID_BYTES else None
