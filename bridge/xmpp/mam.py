"""The stanzas of a room's archive: queries, results, ends of pages (XEP-0313, XEP-0059).

Which page is asked for when is `archive`'s.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from xml.etree.ElementTree import Element, SubElement

from bridge.escaping import quoted
from bridge.times import stamp_of
from bridge.xmpp import stanzas
from bridge.xmpp.events import MessageReceived, Source, SubjectChanged
from bridge.xmpp.stanzas import CLIENT, DATA_FORMS, DELAY, MUC_USER

MAM = "urn:xmpp:mam:2"
RSM = "http://jabber.org/protocol/rsm"
FORWARD = "urn:xmpp:forward:0"

PAGE = 100
"""Results asked for at a time; servers give fewer: Prosody's rooms 50, ejabberd's 250 at most."""

MAX_RESULTS = 1_000
"""Taken in for one page, whatever was asked for: four times what any server known to us gives."""

MAX_ID_BYTES = 128
"""Of an archive's id: it goes out again as a cursor, and real ones have twenty or thirty."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0, section 2.2, does not allow: servers close the stream on it."""


@dataclass(frozen=True)
class Archived:
    """One result: a stanza in the archive, and the events that it tells of."""

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
class ArchiveQuery:
    """What is wanted of an archive. Raises `ValueError` for what no archive could be asked.

    With `before` it is read from its end, otherwise from its beginning.
    """

    start: str | None = None
    """The earliest time, itself included, ISO 8601 (XEP-0082). Prosody cuts this, `end` and the
    times of its messages down to whole seconds; ejabberd compares microseconds."""
    end: str | None = None
    """The latest, itself included."""
    after: str | None = None
    """An id of the archive: what came after it. Prosody does not know it outside the times."""
    before: str | None = None
    """An id of the archive: what came before it; empty: the newest."""
    sender: str | None = None
    """An occupant JID of the room, or a real JID, bare or full. A real one is found only where
    the archive shows it."""
    most: int = PAGE
    """Results a page, 1 to `MAX_RESULTS`."""

    def __post_init__(self) -> None:
        for time in (self.start, self.end):
            if time is not None and not _TIME.fullmatch(time):
                raise ValueError(f"{quoted(time)} is no time as XEP-0082 has it")
        if self.after is not None and self.before is not None:
            raise ValueError("after and before exclude each other: servers heed one of them")
        if self.sender is not None:
            sender = stanzas.prepared(self.sender)
            if not sender:
                raise ValueError(f"{quoted(self.sender)} is no JID")
            object.__setattr__(self, "sender", sender)
        if not 1 <= self.most <= MAX_RESULTS:
            raise ValueError(f"a page has 1 to {MAX_RESULTS} results, not {self.most}")

    @property
    def backward(self) -> bool:
        """Whether the archive is read from its end."""
        return self.before is not None

    @property
    def position(self) -> str | None:
        """The id to page from, if any."""
        return self.after or self.before or None

    @property
    def possible(self) -> bool:
        """Whether an archive can have the id to page from."""
        id_ = self.position or ""
        return not _UNWRITABLE.search(id_) and _fits(id_)

    def following(self, id_: str | None) -> "ArchiveQuery":
        """Return the query for what lies beyond this id, in the same direction."""
        return replace(self, before=id_) if self.backward else replace(self, after=id_)

    def matches(self, result: Archived) -> bool:
        """Whether the sender whom it asks for, if any, said this."""
        bare = (result.jid or "").partition("/")[0]
        return self.sender in {None, result.occupant, result.jid, bare}

    def payload(self, id_: str, *, filtered: bool) -> Element:
        """Return the payload that asks for a page; by its sender only where `filtered`."""
        payload = Element(f"{{{MAM}}}query", {"queryid": id_})
        form = SubElement(payload, f"{{{DATA_FORMS}}}x", {"type": "submit"})
        sender = self.sender if filtered else None
        wanted = {"FORM_TYPE": MAM, "start": self.start, "end": self.end, "with": sender}
        for name, value in wanted.items():
            if value is not None:
                kind = {"type": "hidden"} if name == "FORM_TYPE" else {}
                field = SubElement(form, f"{{{DATA_FORMS}}}field", {"var": name} | kind)
                SubElement(field, f"{{{DATA_FORMS}}}value").text = value
        page = SubElement(payload, f"{{{RSM}}}set")
        for name, value in {
            "max": str(self.most),
            "after": self.after,
            "before": self.before,
        }.items():
            if value is not None:
                SubElement(page, f"{{{RSM}}}{name}").text = value
        return payload


@dataclass(frozen=True)
class ArchivePage:
    """One page of an archive."""

    results: tuple[Archived, ...]
    """Oldest first."""
    complete: bool
    """Nothing lies beyond, in the direction asked."""
    first: str | None
    """Ask for what is before this to turn the page back."""
    last: str | None
    """Ask for what is after this to turn the page."""


def form_query() -> Element:
    """Return the payload that asks which fields a query may have (XEP-0313, section 4.1.5)."""
    return Element(f"{{{MAM}}}query")


def fields_in(iq: Element) -> frozenset[str]:
    """Return the names of the fields that the form in the answer offers."""
    path = f"{{{MAM}}}query/{{{DATA_FORMS}}}x/{{{DATA_FORMS}}}field"
    return frozenset(one.get("var", "") for one in iq.iterfind(path))


def archived(stanza: Element) -> tuple[str, str, Element] | None:
    """Return the archive, the query's id and the result that a message from an archive carries."""
    result = stanza.find(f"{{{MAM}}}result") if stanza.tag == f"{{{CLIENT}}}message" else None
    archive = None if result is None else stanzas.prepared(stanza.get("from", ""))
    if result is None or archive is None:
        return None
    return archive, result.get("queryid", ""), result


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
                said = stamp_of(at)
                events.append(
                    replace(event, source=Source.ARCHIVE, stanza_id=given, delayed_from=said)
                )
            case SubjectChanged():
                events.append(event)
            case _:  # errors and the like: an archive is not the room as it stands
                pass
    return Archived(id_, at, occupant, _jid_in(message), tuple(events))


def page_of(results: Sequence[Archived], iq: Element) -> ArchivePage:
    """Return the page of these results that the final answer ends (XEP-0059, section 2.2).

    An answer that says nothing of the page is the end of the archive.
    """
    path = f"{{{MAM}}}fin/{{{RSM}}}set/{{{RSM}}}"
    fin = iq.find(f"{{{MAM}}}fin")
    first, last = _id(iq.findtext(f"{path}first")), _id(iq.findtext(f"{path}last"))
    complete = fin is None or fin.get("complete") in {"true", "1"} or not (results or last)
    return ArchivePage(
        tuple(results),
        complete,
        first or (results[0].id if results else None),
        last or (results[-1].id if results else None),
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


def _fits(id_: str) -> bool:
    return len(id_.encode()) <= MAX_ID_BYTES


def _id(given: str | None) -> str | None:
    return given if given and _fits(given) else None
