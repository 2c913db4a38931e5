"""Looking further back than the bridge was there: the archive that the room itself keeps."""

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from bridge.escaping import quoted
from bridge.frozen import dataclass
from bridge.mcp.toolset import ArgumentError, ToolError
from bridge.times import iso, iso_of
from bridge.tools.entries import Entry, noticed, shaped
from bridge.tools.link import failed
from bridge.tools.pages import Page
from bridge.tools.sieve import Sieve

if TYPE_CHECKING:
    from bridge.tools.link import RoomLink
    from bridge.xmpp.archive import ArchiveError, ArchiveQuery
    from bridge.xmpp.connection import Connection
    from bridge.xmpp.mam import Archived
    from bridge.xmpp.selection import Selection

BUDGET_SECONDS = 25.0
"""For one page: clients give up on a call after a minute, and a search can be gone on with."""

LOOKED_AT_ONCE = 500
"""Messages that a pattern is looked for in before the archive is asked again: five of its pages."""

MARK = "archive:"
"""How the archive's cursors begin, which the journal's cannot."""


@dataclass(frozen=True)
class Span:
    """Which part of the archive is wanted."""

    since: str | None
    """A cursor of the archive."""
    after: str | None
    before: str | None
    """Times, as the caller wrote them."""


@dataclass(frozen=True)
class Found:
    """A page of the archive."""

    entries: list[Entry]
    next: str
    more: bool


async def search(
    link: "RoomLink",
    span: Span,
    page: Page[Entry],
    limit: int,
    sender: str | None,
    selection: "Selection",
) -> Found:
    """Return what the room has archived, oldest first: after the span's cursor or time, or last.

    As much as the empty `page` takes, which has room for `limit` entries at most.
    Raises `ToolError`, and `ArgumentError` for a span that is none.
    """
    from bridge.xmpp.archive import ArchiveError
    from bridge.xmpp.faults import ConnectionFailedError

    connection = link.connection()
    room = link.participant.room_jid
    search = _Search(connection, room, selection, page, limit)
    try:
        return await search.run(_query(room, span, sender))
    except ArchiveError as error:
        raise _failure(room, error) from error
    except ConnectionFailedError as ended:
        raise failed(
            ended.fault, "The connection ended before the archive had answered:"
        ) from ended


class _Search:
    """One page under way."""

    def __init__(
        self,
        connection: "Connection",
        room: str,
        selection: "Selection",
        page: Page[Entry],
        limit: int,
    ) -> None:
        self._connection = connection
        self._room = room
        self._sieve = Sieve(selection)
        self._cheap = replace(selection, pattern=None)
        self._at_once = 1 if selection.pattern is None else LOOKED_AT_ONCE
        self._limit = limit
        self._page = page
        self._bytes = page.room
        self._until = asyncio.get_running_loop().time() + BUDGET_SECONDS

    async def run(self, query: "ArchiveQuery") -> Found:
        """Go through the archive until the page is full, the time up or the archive at its end."""
        from bridge.xmpp.archive import ArchiveSilentError
        from bridge.xmpp.search import collect

        backward = query.before is not None
        newest = query.after or ""
        more = True
        while more and (left := self._until - asyncio.get_running_loop().time()) > 0:
            try:
                found = await collect(
                    self._connection,
                    self._room,
                    query=query,
                    wanted=self._cheap.takes,
                    limit=max(self._limit - len(self._page.entries), self._at_once),
                    budget_seconds=left,
                )
            except ArchiveSilentError:
                if not self._page.entries:
                    raise
                break
            more = found.more
            last, full = await self._take(found.results[::-1] if backward else found.results)
            if backward:
                query = replace(query, before=found.next_id or query.before)
            else:
                newest = (last if full else found.next_id) or newest
                query = replace(query, after=newest or None)
            if full or len(self._page.entries) == self._limit:
                more = more or full
                break
        if backward:
            entries = self._page.entries[::-1]
            return Found(entries, entries[-1].cursor if entries else MARK, more)
        return Found(self._page.entries, _cursor(newest), more)

    async def _take(self, results: "tuple[Archived, ...]") -> tuple[str | None, bool]:
        """Put results on the page; return the id of the last, and whether not all had room."""
        last = None
        for result in results:
            wanted = [event for event in result.events if await self._sieve.takes(event)]
            if wanted and not self._page.add(_entry(result, self._bytes)):
                return last, True
            last = result.id
        return last, False


def _cursor(id_: str) -> str:
    """Return the place after what the archive has under this id, which is a stranger's text."""
    return MARK + quote(id_, safe="/:=+@,;")


def _entry(result: "Archived", most: int) -> Entry:
    from bridge.xmpp.telling import told

    values = {name: one for event in result.events for name, one in told(event).items()}
    values |= {"source": "archive"} | ({} if result.jid is None else {"jid": result.jid})
    at = iso_of(result.at or "") or iso(time.time())
    return shaped(values, _cursor(result.id), at, most)


def _query(room: str, span: Span, sender: str | None) -> "ArchiveQuery":
    from bridge.xmpp.archive import ArchiveQuery

    after = None
    if span.since is not None:
        if not span.since.startswith(MARK):
            raise ArgumentError(
                "since is a place in the bridge's own memory, and the archive has its own places.",
                condition="bad-request",
                hint="With archive: true, take `since` from results of archive: true, or give a "
                "time in `after`.",
            )
        after = unquote(span.since.removeprefix(MARK)) or None
    start, end = _time("after", span.after), _time("before", span.before)
    newest = span.since is None and start is None
    whose = None if sender is None else sender if "@" in sender else f"{room}/{sender}"
    try:
        return ArchiveQuery(
            start=start, end=end, after=after, before="" if newest else None, sender=whose
        )
    except ValueError as error:
        raise ArgumentError(
            f"The archive cannot be asked for that: {error}.",
            condition="bad-request",
            hint="`from` is a nickname or a JID; `after` and `before` are times.",
        ) from error


def _time(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    moment = iso_of(text)
    if moment is None:
        raise ArgumentError(
            f"{name} is no time with a zone: {quoted(text)}.",
            condition="bad-request",
            hint="Write it in ISO 8601, such as 2026-01-31T12:00:00Z.",
        )
    return moment


def _failure(room: str, error: "ArchiveError") -> ToolError:
    from bridge.xmpp import archive
    from bridge.xmpp.refusals import said

    own = "Without `archive`, xmppHistory tells what the bridge itself has seen."
    match error:
        case archive.NoArchiveError():
            return ToolError(
                f"The room {room} keeps no archive that can be asked (XEP-0313).",
                condition="feature-not-implemented",
                hint=f"{own} The room's owner, or the server's operator, can turn archiving on "
                "(Prosody: muc_mam, ejabberd: mod_mam).",
            )
        case archive.ArchiveForbiddenError():
            return ToolError(
                f"The room {room} does not let us read its archive.",
                condition=error.error.condition,
                hint=f"{own} Ask an owner of the room for membership.",
            )
        case archive.ArchiveRefusedError():
            text = error.error.text
            message = f"The room {room} refused to read from its archive.{said(text)}"
            return ToolError(
                noticed(message) if text else message,
                condition=error.error.condition,
                hint=own,
            )
        case archive.UnknownPositionError():
            return ToolError(
                f"The archive of {room} does not know the place in `since`, or no longer does.",
                condition="item-not-found",
                hint="Give a time in `after` instead, or leave `since` out for the newest.",
            )
        case archive.ArchiveSilentError():
            return ToolError(
                f"The archive of {room} did not answer in time.",
                condition="remote-server-timeout",
                hint="A narrower span (`after`, `before`) or a smaller `limit` may help.",
            )
        case _:
            return ToolError(
                f"The archive of {room} answered oddly: {error}.",
                condition="undefined-condition",
                hint=own,
            )
