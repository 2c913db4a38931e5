"""The way through a room's archive, page by page (XEP-0313).

A room filters far less than it says. Prosody 0.12's rooms offer `with` in their form and pay no
heed to it. ejabberd 23.01 compares it with real JIDs only, and answers an empty page, with
`complete`, to whoever may not see those. Neither searches texts in a room. So whatever a server is
asked to leave out is looked at here again, and no answer to a filter is believed to be empty.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias, TypeVar
from xml.etree.ElementTree import Element

from bridge.xmpp import mam, stanzas
from bridge.xmpp.connection import Connection
from bridge.xmpp.events import Event, MessageReceived
from bridge.xmpp.inquiries import StanzaRefusedError, TooMuchError
from bridge.xmpp.mam import MAX_RESULTS, Archived, ArchivePage, ArchiveQuery

REQUEST_SECONDS = 15.0
"""For one answer. Prosody's file storage reads the whole archive anew for each."""

MAX_PAGE_CHARACTERS = 8 * 1024 * 1024
"""Of all that the results of one page tell. A page that has more is asked for again, with half as
many results."""

MAX_PAGES = 500
"""Asked for in one `search`: fifty thousand results, and an end where none would come."""

Answer = TypeVar("Answer")
Keep: TypeAlias = Callable[[Archived], Awaitable[bool | None]]
"""Returns whether there was room to keep a result; None for one that is not wanted."""


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


class Searched(NamedTuple):
    """How far a search came."""

    next_id: str | None
    """Where it goes on: `after` it, or `before` it when the newest were asked for. None where
    nothing was looked at."""
    more: bool
    """Whether there may be more that way."""


@dataclass(frozen=True)
class RoomArchive:
    """The archive of one room, asked over a connection."""

    connection: Connection
    room: str
    """The room's bare JID, prepared."""
    own: str
    """Our occupant JID in it, prepared."""

    async def exists(self) -> bool:
        """Return whether the room says that it keeps an archive (XEP-0313, section 7).

        The archive itself cannot be asked: with archiving off, Prosody's rooms still answer with
        what they once kept, and ejabberd's with their short history. Raises as `page` does.
        """
        try:
            features = await _in_time(self.connection.features_of(self.room))
        except StanzaRefusedError as refused:
            error = _refusal(refused)
            if isinstance(error, NoArchiveError):
                return False
            raise error from refused
        return mam.MAM in features

    async def offers_senders(self) -> bool:
        """Return whether the archive's form of queries has the field for a sender.

        Raises `NoArchiveError`, and as `page` does.
        """
        if not await self.exists():
            raise NoArchiveError(f"{self.room} keeps no archive")
        try:
            form = await _in_time(self.connection.request("get", self.room, mam.form_query()))
        except StanzaRefusedError:
            return False  # to show the form is one thing, to answer queries another
        return "with" in mam.fields_in(form)

    async def page(self, query: ArchiveQuery, *, filtered: bool = False) -> ArchivePage:
        """Ask for one page; the server is asked to look for the sender only if `filtered`.

        Raises `ArchiveError`, and `ConnectionFailedError` when the connection ends.
        """
        if not query.possible:
            raise UnknownPositionError("no archive has such an id")
        id_ = secrets.token_hex(8)
        results: list[Archived] = []
        came = size = 0

        def take(result: Element) -> bool:
            nonlocal came, size
            came += 1
            one = mam.read_archived(result, room=self.room, own=self.own)
            if one is not None:
                results.append(one)
                size += one.characters
            # One alone always fits: the stream has its own bound for an element.
            return came == 1 or (came <= MAX_RESULTS and size <= MAX_PAGE_CHARACTERS)

        payload = query.payload(id_, filtered=filtered)
        try:
            answer = await _in_time(self.connection.collect(id_, self.room, payload, take))
        except StanzaRefusedError as refused:
            raise _refusal(refused, positioned=query.position is not None) from refused
        except TooMuchError as error:
            if came <= query.most > 1:
                # They are only long.
                fewer = replace(query, most=query.most // 2)
                return await self.page(fewer, filtered=filtered)
            raise ArchiveFlawedError(f"{self.room} sent more than a page of its archive") from error
        return mam.page_of(results, answer)

    async def pages(
        self, query: ArchiveQuery, *, filtered: bool = False
    ) -> AsyncGenerator[ArchivePage, None]:
        """Yield page after page, in the direction of `query`, as long as they lead anywhere new.

        Nothing bounds how many a server may have: whoever takes them does. Raises as `page` does.
        """
        been: set[str | None] = {None, query.after, query.before}
        while True:
            found = await self.page(query, filtered=filtered)
            beyond = found.first if query.backward else found.last
            if beyond in been and not found.complete:
                return  # been there: the same again, or a way that leads in a circle
            yield found
            if found.complete:
                return
            been.add(beyond)
            query = query.following(beyond)

    async def since(self, start: str) -> AsyncGenerator[Event, None]:
        """Yield the messages archived from `start` (a time in UTC) on, oldest first.

        Raises as `page` does.
        """
        async for found in self.pages(ArchiveQuery(start=start)):
            for result in found.results:
                for event in result.events:
                    if isinstance(event, MessageReceived):
                        yield event

    async def search(
        self,
        query: ArchiveQuery,
        keep: Keep,
        *,
        limit: int,
        seconds: float,
    ) -> Searched:
        """Go through the archive until `limit` results were kept, or one had no room.

        `keep` gets what `query` matches, in its direction. The search stops sooner where the
        archive ends, after `MAX_PAGES`, and when `seconds` have passed. Raises
        `ArchiveSilentError` if not even one page came in time, otherwise as `page` does.
        """
        position, kept, turned = query.position, 0, 0
        until = asyncio.get_running_loop().time() + seconds
        async with aclosing(self._believed(query)) as found:
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        one = await anext(found, None)
                except (TimeoutError, ArchiveSilentError) as error:
                    if not turned:
                        raise ArchiveSilentError(f"{self.room} has not answered in time") from error
                    return Searched(position, more=True)
                if one is None:
                    return Searched(position, more=False)
                turned += 1
                left = len(one.results)
                for result in one.results[::-1] if query.backward else one.results:
                    taken = await keep(result) if query.matches(result) else None
                    if taken is False:
                        return Searched(position, more=True)
                    position = result.id
                    left -= 1
                    kept += bool(taken)
                    if kept == limit:
                        return Searched(position, bool(left) or not one.complete)
                position = (one.first if query.backward else one.last) or position
                if turned == MAX_PAGES:
                    return Searched(position, not one.complete)

    async def _believed(self, query: ArchiveQuery) -> AsyncGenerator[ArchivePage, None]:
        """Yield the pages of `query`, filtered by the server where its answer can be believed.

        An id that a filter has left out may be unknown to who filters first and turns pages then;
        and `feature-not-implemented` may be said of a filter.
        """
        if query.sender is None:
            if not await self.exists():
                raise NoArchiveError(f"{self.room} keeps no archive")
        elif await self.offers_senders():
            turned = False
            try:
                async for found in self.pages(query, filtered=True):
                    if not (turned or found.results):
                        break
                    turned = True
                    yield found
            except (UnknownPositionError, ArchiveRefusedError, NoArchiveError):
                if turned:
                    raise
            if turned:
                return
        async for found in self.pages(query):
            yield found


async def _in_time(answer: Awaitable[Answer]) -> Answer:
    try:
        async with asyncio.timeout(REQUEST_SECONDS) as deadline:
            return await answer
    except TimeoutError as error:
        if not deadline.expired():
            raise
        raise ArchiveSilentError(f"no answer within {REQUEST_SECONDS:g} s") from error


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
