"""Paged queries of the room's own archive (XEP-0313).

A room filters far less than it says. Prosody 0.12's rooms offer `with` in their form and pay no
heed to it. ejabberd 23.01 compares it with real JIDs only, and answers an empty page, with
`complete`, to whoever may not see those. Neither searches texts in a room. So whatever a server is
asked to leave out is looked at here again, and no answer to a filter is believed to be empty.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar
from xml.etree.ElementTree import Element

from bridge.escaping import quoted
from bridge.frozen import dataclass
from bridge.xmpp import mam, stanzas
from bridge.xmpp.events import Event, MessageReceived, SubjectChanged
from bridge.xmpp.inquiries import StanzaRefusedError, TooMuchError
from bridge.xmpp.mam import MAX_ID_BYTES, Archived

if TYPE_CHECKING:
    from bridge.xmpp.connection import Connection

Answer = TypeVar("Answer")

PAGE = 100
"""Results asked for at a time; servers give fewer: Prosody's rooms 50, ejabberd's 250 at most."""

REQUEST_SECONDS = 15.0
"""For one answer. Prosody's file storage reads the whole archive anew for each."""

MAX_RESULTS = 1_000
"""Taken in for one page, whatever was asked for: four times what any server known to us gives."""

MAX_PAGE_CHARACTERS = 8 * 1024 * 1024
"""Of all that the results of one page tell. A page that has more is asked for again, with half as
many results."""

MAX_TEXT_CHARACTERS = 1_000
"""The longest text that a server is asked to look for; longer ones are looked for here."""

TEXT_FIELDS = ("{urn:xmpp:fulltext:0}fulltext", "withtext")
"""Under what names servers search texts: XEP-0431, and ejabberd with SQL before it."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0, section 2.2, does not allow: servers close the stream on it."""


class ArchiveError(Exception):
    """The archive did not tell what it was asked for."""


class NoArchiveError(ArchiveError):
    """The room keeps no archive, or its server has none for rooms."""


class ArchiveRefusedError(ArchiveError):
    """The room said no: `error` has its words."""

    def __init__(self, error: stanzas.StanzaError) -> None:
        self.error = error
        super().__init__(error.condition)


class ArchiveForbiddenError(ArchiveRefusedError):
    """The archive is there, and not for us: we are banned, or not a member."""


class UnknownPositionError(ArchiveError):
    """The archive has nothing, or no longer anything, under the id to page from."""


class ArchiveSilentError(ArchiveError):
    """No answer came in time."""


class ArchiveFlawedError(ArchiveError):
    """The answer was none that can be used: far more than was asked for."""


@dataclass(frozen=True)
class Abilities:
    """What a room's archive says that it can do."""

    fields: frozenset[str] = frozenset()
    """The names in its form of queries (XEP-0313, section 4.1.5)."""

    @property
    def sender(self) -> bool:
        """Whether it may be asked for somebody's messages."""
        return "with" in self.fields

    @property
    def text_field(self) -> str | None:
        """The field to search texts by; None if it cannot."""
        return next((name for name in TEXT_FIELDS if name in self.fields), None)


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
    text: str | None = None
    """In a body or subject, whatever its case. Servers that search by themselves look for words:
    parts of words may then stay unfound, as long as they find any."""
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
    filtered: frozenset[str] = frozenset()
    """Which of `sender` and `text` the server was asked for, and did not visibly ignore."""


NOTHING = Abilities()
"""Those of an archive that nobody has asked about its form."""


async def exists(connection: "Connection", room: str) -> bool:
    """Tell whether the room says that it keeps an archive (XEP-0313, section 7).

    Asking the archive itself would not tell: with archiving off, Prosody's rooms still answer with
    what they once kept, and ejabberd's with their short history. Raises as `page` does.
    """
    try:
        features = await _in_time(connection.features_of(_prepared(room)))
    except StanzaRefusedError as refused:
        error = _refusal(refused)
        if isinstance(error, NoArchiveError):
            return False
        raise error from refused
    return mam.MAM in features


async def abilities(connection: "Connection", room: str) -> Abilities:
    """Ask the room's archive what it can filter by; raises `NoArchiveError`, and as `page` does."""
    if not await exists(connection, room):
        raise NoArchiveError(f"{room} keeps no archive")
    try:
        form = await _in_time(connection.request("get", _prepared(room), mam.form_query()))
    except StanzaRefusedError:
        return NOTHING  # to show the form is one thing, to answer queries another
    return Abilities(mam.fields_in(form))


async def page(
    connection: "Connection", room: str, query: ArchiveQuery, able: Abilities = NOTHING
) -> ArchivePage:
    """Ask for one page; for `sender` and `text` only what the archive is `able` to filter by.

    Raises `ArchiveError`, and `ConnectionFailedError` when the connection ends.
    """
    room = _prepared(room)
    fields = asked(query, able)
    id_ = secrets.token_hex(8)
    taking = _Taking(room, connection.occupant)
    payload = mam.archive_query(
        id_,
        _times(query) | fields,
        most=query.most,
        after=_position(query.after),
        before=_position(query.before),
    )
    try:
        answer = await _in_time(connection.collect(id_, room, payload, taking.take))
    except StanzaRefusedError as refused:
        positioned = bool(query.after or query.before)
        raise _refusal(refused, positioned=positioned) from refused
    except TooMuchError as error:
        if taking.came <= query.most > 1:
            # They are only long.
            return await page(connection, room, replace(query, most=query.most // 2), able)
        raise ArchiveFlawedError(f"{room} sent more than a page of its archive") from error
    end = mam.end_of_page(answer)
    results = tuple(taking.results)
    return ArchivePage(
        results,
        end.complete or (not results and end.last is None),
        end.first or (results[0].id if results else None),
        end.last or (results[-1].id if results else None),
        frozenset(
            name
            for name, field, satisfied in (
                ("sender", "with", is_from),
                ("text", able.text_field, has_text),
            )
            if field in fields and all(satisfied(one, query) for one in results)
        ),
    )


async def pages(
    connection: "Connection", room: str, query: ArchiveQuery, able: Abilities = NOTHING
) -> AsyncGenerator[ArchivePage, None]:
    """Yield page after page, in the direction of `query`, as long as they lead anywhere new.

    Nothing bounds how many a server may have: whoever takes them does. Raises as `page` does.
    """
    been: set[str | None] = {None, query.after, query.before}
    while True:
        found = await page(connection, room, query, able)
        beyond = found.last if query.before is None else found.first
        if beyond in been and not found.complete:
            return  # been there: the same again, or a way that leads in a circle
        yield found
        if found.complete:
            return
        been.add(beyond)
        if query.before is None:
            query = replace(query, after=beyond)
        else:
            query = replace(query, before=beyond)


async def since(connection: "Connection", room: str, start: str) -> AsyncGenerator[Event, None]:
    """Yield the messages that the room has archived from `start` (a time in UTC) on, oldest first.

    Raises as `page` does.
    """
    async for found in pages(connection, room, ArchiveQuery(start=start)):
        for result in found.results:
            for event in result.events:
                if isinstance(event, MessageReceived):
                    yield event


class _Taking:
    """Takes a page in, result by result."""

    def __init__(self, room: str, own: str) -> None:
        self.results: list[Archived] = []
        self.came = 0
        self._room = room
        self._own = own
        self._size = 0

    def take(self, result: Element) -> bool:
        """Keep one; return whether the page is within its bounds."""
        self.came += 1
        one = mam.read_archived(result, room=self._room, own=self._own)
        if one is not None:
            self.results.append(one)
            self._size += one.characters
        # One alone always fits: the stream has its own bound for an element.
        return self.came == 1 or (self.came <= MAX_RESULTS and self._size <= MAX_PAGE_CHARACTERS)


async def _in_time(answer: Awaitable[Answer]) -> Answer:
    try:
        async with asyncio.timeout(REQUEST_SECONDS) as deadline:
            return await answer
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise ArchiveSilentError(f"no answer within {REQUEST_SECONDS:g} s") from error


def is_from(result: Archived, query: ArchiveQuery) -> bool:
    """Whether the sender whom `query` asks for, if any, said it."""
    bare = (result.jid or "").partition("/")[0]
    return query.sender in {None, result.occupant, result.jid, bare}


def has_text(result: Archived, query: ArchiveQuery) -> bool:
    """Whether the text that `query` asks for, if any, is in it."""
    if query.text is None:
        return True
    text = query.text.casefold()
    return any(text in _text_of(event).casefold() for event in result.events)


def _text_of(event: MessageReceived | SubjectChanged) -> str:
    return event.body if isinstance(event, MessageReceived) else event.subject


def _times(query: ArchiveQuery) -> dict[str, str]:
    given = {"start": query.start, "end": query.end}
    return {name: time for name, time in given.items() if time is not None}


def asked(query: ArchiveQuery, able: Abilities) -> dict[str, str]:
    """Return the filters that the server is asked to apply, by the names of their fields."""
    fields = {}
    if query.sender is not None and able.sender:
        fields["with"] = query.sender
    field, text = able.text_field, query.text
    if field and text and len(text) <= MAX_TEXT_CHARACTERS and not _UNWRITABLE.search(text):
        fields[field] = text
    return fields


def _position(id_: str | None) -> str | None:
    """Return an id as it may be asked for; raises `UnknownPositionError` where none can be so."""
    if id_ is not None and (_UNWRITABLE.search(id_) or len(id_.encode()) > MAX_ID_BYTES):
        raise UnknownPositionError("no archive has such an id")
    return id_


def _prepared(room: str) -> str:
    return stanzas.prepared(room) or room


def _refusal(refused: StanzaRefusedError, *, positioned: bool = False) -> ArchiveError:
    error = refused.error
    match error.condition:
        case "service-unavailable" | "feature-not-implemented":
            return NoArchiveError(f"no archive answers ({error.condition})")
        case "item-not-found" if positioned:
            return UnknownPositionError("the archive has nothing under this id")
        case "forbidden" | "not-authorized" | "registration-required":
            return ArchiveForbiddenError(error)
        case _:
            return ArchiveRefusedError(error)
