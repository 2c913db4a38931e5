"""Queries a room's archive page by page (XEP-0313, XEP-0059).

Servers filter less than they announce. Rooms of Prosody 0.12 offer `with` in their form and ignore
it. ejabberd 23.01 compares it with real JIDs only; a user who may not see those gets an empty page
and `complete`. Neither searches the text of a room's messages. So our queries filter by time alone.
Prosody 13 takes `end` as exclusive. When we read backward, it gives one message after `end`. So our
queries request one microsecond more, and we drop the results outside the bounds.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import MAXYEAR, UTC, datetime, timedelta
from itertools import chain
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element, SubElement

from bridge.text import memory_of, stamp_of
from bridge.wire import names
from bridge.wire.names import DATA_FORMS, DELAY, MAM, MUC_USER, StanzaError
from bridge.xmpp.errors import XmppError
from bridge.xmpp.link.connection import Connection, TooManyResultsError
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model import faults
from bridge.xmpp.model.events import MessageReceived, Source, SubjectChanged
from bridge.xmpp.model.faults import Fault, Place
from bridge.xmpp.model.message_body import NOT_XML
from bridge.xmpp.muc import reading
from bridge.xmpp.queries import disco

RSM = "http://jabber.org/protocol/rsm"
FORWARD = "urn:xmpp:forward:0"

PAGE = 100
"""Results requested for one page; servers give fewer: Prosody up to 50, ejabberd up to 250."""

MAX_RESULTS = 1_000
"""Most results that we accept for one page, however few we requested. Known servers give a
quarter of that."""

MAX_ID_BYTES = 128
"""Most bytes of an archive's id that we use, since we send it back as a cursor. Real ids have
twenty or thirty."""

REQUEST_SECONDS = 15.0
"""Seconds for one answer. Prosody's file storage reads the whole archive anew for each."""

MAX_PAGE_WEIGHT = 8 * 1024 * 1024
"""Most bytes of memory that the texts of one page may take. If they take more, we request the page
again with half as many results."""

MAX_PAGES = 500
"""Most pages that one `search` requests, with about 50,000 results. Without a limit a server
could go on for ever."""

NO_ARCHIVE = frozenset({"service-unavailable", "feature-not-implemented"})
"""A room without an archive answers with one of these conditions."""

Keep: TypeAlias = Callable[["ArchiveResult"], Awaitable[bool | None]]
"""Takes a result; returns False if there is no space for it, and None if it is not wanted."""


class ArchiveError(XmppError):
    """An archive query failed."""

    def __init__(self, situation: str, error: StanzaError | None = None) -> None:
        super().__init__(situation)
        self.situation = situation
        """What happened, as `faults` names it."""
        self.error = error
        """The error that the archive answered; None if the situation says all of it."""

    def fault(self, place: Place) -> Fault:
        """Return the archive's fault at this place, with the text of the archive's error if any."""
        if self.error is None:
            return faults.of(self.situation, place)
        condition, text = self.error.condition, self.error.text
        return faults.of(self.situation, place, condition=condition, text=text)


class ArchiveResult(NamedTuple):
    """One result: an archived stanza, and the events in it."""

    id: str
    """The archive's id of the stanza, to page from."""
    at: str | None
    """When the room received it, in ISO 8601 as the archive writes it; Prosody 0.12 omits
    fractions."""
    events: tuple[MessageReceived | SubjectChanged, ...]
    """Empty if the stanza is no message of the room, such as a presence."""


@dataclass(frozen=True)
class ArchiveQuery:
    """A request to an archive, which is read from its beginning, or `backward` from its end."""

    start: str | None = None
    """The earliest time, inclusive, in ISO 8601 (XEP-0082). Prosody 0.12 cuts this, `end` and the
    times of its messages down to whole seconds; Prosody 13 and ejabberd compare microseconds."""
    end: str | None = None
    """The latest time, inclusive."""
    position: str | None = None
    """An id of the archive: the page follows it in the direction of the query. Prosody requires its
    entry to be between `start` and `end`."""
    backward: bool = False
    most: int = PAGE
    """The number of results on a page, at most `MAX_RESULTS`."""

    @property
    def possible(self) -> bool:
        """Whether an archive can have the id to page from: valid XML, at most `MAX_ID_BYTES`."""
        id_ = self.position
        return id_ is None or (not re.search(NOT_XML, id_) and _usable(id_) is not None)

    def admits(self, at: str | None) -> bool:
        """Whether a message with this stamp is within `start` and `end`; True without a time.

        A stamp in whole seconds stands for any moment of its second.
        """
        moment, start, end = map(_moment, (at, self.start, self.end))
        if moment is None:
            return True
        if start is not None and not moment.microsecond:
            start = start.replace(microsecond=0)
        return (start is None or start <= moment) and (end is None or moment <= end)

    @property
    def ends(self) -> "ArchiveQuery":
        """The query for a single result: the last in the direction of this query."""
        return replace(self, position=None, backward=not self.backward, most=1)

    def payload(self, id_: str) -> Element:
        """Return the payload of the query `id_`."""
        payload = Element(f"{{{MAM}}}query", {"queryid": id_})
        form = SubElement(payload, f"{{{DATA_FORMS}}}x", {"type": "submit"})
        end = _moment(self.end)
        beyond = end and (end + timedelta(microseconds=1)).isoformat().replace("+00:00", "Z")
        wanted = {"FORM_TYPE": MAM, "start": self.start, "end": beyond or self.end}
        for name, value in wanted.items():
            if value is not None:
                kind = {"type": "hidden"} if name == "FORM_TYPE" else {}
                field = SubElement(form, f"{{{DATA_FORMS}}}field", {"var": name} | kind)
                SubElement(field, f"{{{DATA_FORMS}}}value").text = value
        page = SubElement(payload, f"{{{RSM}}}set")
        cursors = {"max": str(self.most), "after": self.position}
        if self.backward:  # an empty `before` is the end of the archive
            cursors = {"max": str(self.most), "before": self.position or ""}
        for name, value in cursors.items():
            if value is not None:
                SubElement(page, f"{{{RSM}}}{name}").text = value
        return payload


class ArchivePage(NamedTuple):
    """One page of an archive."""

    results: tuple[ArchiveResult, ...]
    """Oldest first."""
    complete: bool
    """Whether this is the last page in the direction of the query."""
    first: str | None
    """The `position` of the query for the previous page."""
    last: str | None
    """The `position` of the query for the next page."""


class SearchEnd(NamedTuple):
    """Where a search stopped."""

    next_id: str | None
    """The id to go on from, as `position`; None if no result was looked at."""
    more: bool
    """Whether more results may follow."""


@dataclass(frozen=True)
class RoomArchive:
    """The archive of one room, queried over a connection."""

    connection: Connection
    room: str
    """The room's bare JID, prepared."""
    own: str
    """Our occupant JID in it, prepared."""

    async def check_announced(self) -> None:
        """Raise `ArchiveError` unless the room announces an archive (XEP-0313, section 7).

        A query would not show that: with archiving off, Prosody's rooms still send what they had
        archived, and ejabberd's rooms send their short history. Also raises as `page` does.
        """
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await self.connection.request("get", self.room, disco.info_query())
        except IqError as refused:
            raise _refusal(refused) from refused
        if MAM not in disco.description_in(answer).features:
            raise ArchiveError("archive-missing")

    async def page(self, query: ArchiveQuery) -> ArchivePage:
        """Request one page.

        Raises `ArchiveError`, `TimeoutError`, and `ConnectionFailedError` when the connection ends.
        """
        if not query.possible:
            raise ArchiveError("archive-position")
        id_ = secrets.token_hex(8)
        results: list[ArchiveResult] = []
        came = size = 0

        def take(result: Element) -> bool:
            nonlocal came, size
            came += 1
            size += _weight(result)
            if (entry := read_result(result, room=self.room, own=self.own)) is not None:
                results.append(entry)
            # The first result always fits, since the stream limits the size of an element.
            return came == 1 or (came <= MAX_RESULTS and size <= MAX_PAGE_WEIGHT)

        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await self.connection.collect(id_, self.room, query.payload(id_), take)
        except IqError as refused:
            raise _refusal(refused, positioned=query.position is not None) from refused
        except TooManyResultsError as error:
            if came <= query.most > 1:
                # The server sent no more results than requested, so the texts are too long.
                return await self.page(replace(query, most=query.most // 2))
            raise ArchiveError("archive-odd") from error
        read = page_of(results, answer)
        return read._replace(results=tuple(each for each in results if query.admits(each.at)))

    async def pages(self, query: ArchiveQuery) -> AsyncGenerator[ArchivePage, None]:
        """Yield page after page in the direction of `query`; raises as `page` does.

        The pages end before one that leads back to a former page. Their number has no limit here:
        the caller has to set one.
        """
        visited: set[str | None] = {None, query.position}
        given = query
        while True:
            page = await self.page(query)
            if query is given and page.complete and page.last is None:
                await self._check_position(query)
            beyond = page.first if query.backward else page.last
            if beyond in visited and not page.complete:
                return  # the same page again, or a circle
            yield page
            if page.complete:
                return
            visited.add(beyond)
            query = replace(query, position=beyond)

    async def _check_position(self, query: ArchiveQuery) -> None:
        """Raise `ArchiveError` if the archive does not have the id to page from.

        The page after that id was empty. If the archive has the id, it is the last in that
        direction. Prosody 13 and ejabberd also answer an unknown id with an empty page.
        """
        if query.position is None:
            return
        last = await self.page(query.ends)
        if last.last != query.position and not (await self.page(query)).results:
            raise ArchiveError("archive-position")

    async def since(self, start: str) -> AsyncGenerator[MessageReceived, None]:
        """Yield the messages archived from `start` (a time in UTC) on, oldest first.

        Raises as `page` does.
        """
        async for page in self.pages(ArchiveQuery(start)):
            for event in chain.from_iterable(result.events for result in page.results):
                if isinstance(event, MessageReceived):
                    yield event

    async def search(
        self, query: ArchiveQuery, keep: Keep, *, limit: int | None, seconds: float
    ) -> SearchEnd:
        """Read the archive until `limit` results were kept, or `keep` had no space for a result.

        `keep` gets each result in the direction of `query`. The search stops sooner at the end of
        the archive, after `MAX_PAGES`, and when `seconds` have passed.

        Raises `ConnectionFailedError` and `ArchiveError`; the latter also if no page came in time.
        """
        position, kept, pages = query.position, 0, 0
        try:
            async with asyncio.timeout(seconds), aclosing(self.pages(query)) as read:
                await self.check_announced()
                async for page in read:
                    pages += 1
                    results = page.results[::-1] if query.backward else page.results
                    for result in results:
                        if (taken := await keep(result)) is False:
                            return SearchEnd(position, more=True)
                        position = result.id
                        kept += bool(taken)
                        if kept == limit:
                            more = result is not results[-1] or not page.complete
                            return SearchEnd(position, more)
                    position = (page.first if query.backward else page.last) or position
                    if pages == MAX_PAGES:
                        return SearchEnd(position, not page.complete)
        except TimeoutError as error:
            if not pages:
                raise ArchiveError("archive-silent") from error
            return SearchEnd(position, more=True)
        return SearchEnd(position, more=False)


def _refusal(refused: IqError, *, positioned: bool = False) -> ArchiveError:
    error = refused.error
    if error.condition in NO_ARCHIVE:
        return ArchiveError("archive-missing")
    if error.condition == "item-not-found" and positioned:
        return ArchiveError("archive-position")
    return ArchiveError("archive-refused", error)


def _moment(text: str | None) -> datetime | None:
    """Return a time with a zone; None if `text` is none, or no microsecond can follow it."""
    try:
        moment = datetime.fromisoformat(text or "")
        return moment.astimezone(UTC) if moment.tzinfo and moment.year < MAXYEAR else None
    except (ValueError, OverflowError):
        return None


def read_result(result: Element, *, room: str, own: str) -> ArchiveResult | None:
    """Return the events in a result element; None if it has no usable id to page from.

    `room` and `own`, our occupant JID, are prepared.
    """
    id_ = _usable(result.get("id"))
    if id_ is None:
        return None
    path = f"{{{FORWARD}}}forwarded"
    delay = result.find(f"{path}/{{{DELAY}}}delay")
    at = None if delay is None else delay.get("stamp")
    message = result.find(f"{path}/{names.MESSAGE}")
    message = Element("message") if message is None else message
    events: list[MessageReceived | SubjectChanged] = []
    for event in reading.read(message, room=room, own=own):
        if isinstance(event, MessageReceived):
            event = event._replace(
                source=Source.ARCHIVE,
                stanza_id=event.stanza_id or id_,
                delayed_from=stamp_of(at),
                stamped_at=None,
                stamped_by=None,
                jid=_jid_in(message),
            )
        if isinstance(event, MessageReceived | SubjectChanged):  # archived errors are no news
            events.append(event)
    return ArchiveResult(id_, at, tuple(events))


def page_of(results: Sequence[ArchiveResult], iq: Element) -> ArchivePage:
    """Return the page of these results, which the answer `iq` completes (XEP-0059, section 2.2).

    An answer without a result set is the end of the archive.
    """
    path = f"{{{MAM}}}fin/{{{RSM}}}set/{{{RSM}}}"
    fin = iq.find(f"{{{MAM}}}fin")
    first, last = _usable(iq.findtext(f"{path}first")), _usable(iq.findtext(f"{path}last"))
    complete = fin is None or fin.get("complete") in {"true", "1"} or not (results or last)
    return ArchivePage(
        tuple(results),
        complete,
        first or (results[0].id if results else None),
        last or (results[-1].id if results else None),
    )


def _jid_in(message: Element) -> str | None:
    """Return the real JID that the archive adds; None if there are two.

    The archive has to remove a JID that the sender put there (XEP-0313, section 6.1.2). If there
    are two, the sender may have forged one of them.
    """
    path = f"{{{MUC_USER}}}x/{{{MUC_USER}}}item"
    jids = [jid for item in message.iterfind(path) if (jid := item.get("jid"))]
    return prepared(jids[0]) or None if len(jids) == 1 else None


def _weight(result: Element) -> int:
    """Return how many bytes of memory the texts and attributes of a result take."""
    return sum(
        sum(map(memory_of, (part.text or "", part.tail or "", *part.attrib.values())))
        for part in result.iter()
    )


def _usable(id_: str | None) -> str | None:
    """Return an archive's id; None if it is empty, or too long to go out again as a cursor."""
    return id_ if id_ and len(id_.encode()) <= MAX_ID_BYTES else None
