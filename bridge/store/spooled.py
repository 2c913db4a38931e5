"""The database of a team, with a spool for the time while it is away.

While it is away, no lease changes hands: each bridge goes by the leases that it read last, and by
the time at which it read them. So the holder of a lease writes shared events into its spool, and
the other bridges write the events that only they see. Once the database is back, the spool follows,
in order. Until it has followed, new events go into the spool too. The database has every batch
once: the transaction that adds a batch also writes its run and number.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Thread

from bridge.store.database import (
    AWAY,
    Happened,
    Lease,
    Observer,
    Query,
    Recorded,
    TracedXml,
)
from bridge.store.errors import (
    AwayStoreError,
    BusyStoreError,
    FullStoreError,
    NotOurStoreError,
    StoreError,
    UnsureStoreError,
)
from bridge.store.pairing import SAME_SECONDS, Mark, Observed, mark_of, unpaired
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.spool import Addition, Spool, SpooledBatch

RETRY_SECONDS = 2.0
"""The pause between two attempts to reach the database: a lease is taken over within 15 s."""

FOLLOW_SECONDS = 0.3
"""Batches that follow may hold a transaction up for so many seconds: the end of the process has 1
s."""

LOOK_SECONDS = 10.0
"""The seconds between two looks for batches that other bridges left in the spool when they
ended."""

SLICE = 500
"""How many rows of other bridges are read at a time."""

CLOCKS_SECONDS = 7_200.0
"""If two machines' clocks differ by no more, an event that both saw is added once."""

log = logging.getLogger(__name__)


class SpooledDatabase:
    """A `bridge.store.database.RecorderDatabase`: the database, or the spool."""

    def __init__(self, connect: Callable[[], PostgresqlDatabase], spool: Spool) -> None:
        """Connect, or begin with the spool if the database is away; raises `StoreError`."""
        self.warnings: dict[str, str] = {}
        self.now: Callable[[], float] = self._judged
        self.clock: Callable[[], float] = time.monotonic
        self._connect, self._spool = connect, spool
        self._run, self._number = secrets.token_hex(8), 0
        self._database: PostgresqlDatabase | None = None
        self._connecting: Future[PostgresqlDatabase] | None = None
        self._next_try = 0.0
        self._away: AwayStoreError | None = None
        """Why the database was lost; None if it is there."""
        self._behind, self._next_look = True, 0.0
        """Whether a batch may wait in the spool, and when to look there next."""
        self._stuck = ""
        """Why the spool cannot follow although the database is there; empty if it can."""
        self._parts: list[Addition] = []
        """The items that the transaction adds."""
        self._unsure: SpooledBatch | None = None
        """A batch that the database may have, and the spool does not. Only we may write it
        again."""
        self._leases: dict[tuple[str, str], Lease] = {}
        self._taken: dict[tuple[str, str], Lease] = {}
        """The leases that we read last, and the leases that the transaction takes."""
        self._read_at = self.clock()
        self._newest = 0
        try:
            self._database, self._behind = connect(), spool.path.exists()
        except AwayStoreError as error:
            self._lose(error)

    def _judged(self) -> float:
        return self._read_at if self._reached is None else self.clock()

    @property
    def _reached(self) -> PostgresqlDatabase | None:
        """The database, unless it is away or the spool has not followed."""
        return None if self._behind else self._database

    @property
    def deletable(self) -> PostgresqlDatabase | None:
        """The database, if it is there and this process may delete."""
        return None if self._reached is None else self._reached.deletable

    @property
    def waiting(self) -> int:
        """How many events and stanzas wait in the spool, or for a place in it."""
        if not self._behind:
            return 0
        count = 0
        with suppress(StoreError):  # a call that needs the spool raises this error
            count = self._spool.waiting()
        return count + self._unsure_events

    @property
    def _unsure_events(self) -> int:
        return 0 if self._unsure is None else self._unsure.events

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction in the database, or in the spool while that is away."""
        self._parts, self._taken = [], {}
        self._look()
        database = self._reached
        if database is None:
            yield
            self._keep()
        else:
            try:
                with self._losing(), database.transaction():
                    self._read_at = self.clock()
                    yield
                    if self._parts:
                        database.keep(self._run, self._number + 1)
            except UnsureStoreError as error:
                if self._parts:
                    self._unsure = SpooledBatch(self._run, self._number + 1, self._parts)
                self._lose(error)
                with suppress(StoreError):  # the batch stays here
                    self._keep_unsure()
        self._number += 1
        self._leases |= self._taken
        self._say()

    @contextmanager
    def _losing(self) -> Iterator[None]:
        """Turn to the spool if the database is lost, and have the transaction repeated."""
        try:
            yield
        except UnsureStoreError:
            raise
        except AwayStoreError as error:
            self._lose(error)
            raise BusyStoreError(str(error)) from error

    def _keep(self) -> None:
        """Put the transaction's items into the spool.

        Raises `AwayStoreError` if the spool takes nothing now, not even earlier items.
        """
        try:
            self._keep_unsure()
            if self._parts:
                self._spool.add(SpooledBatch(self._run, self._number + 1, self._parts))
        except (FullStoreError, NotOurStoreError) as error:
            if self._parts:
                raise AwayStoreError(str(error)) from error

    def _keep_unsure(self) -> None:
        if self._unsure is not None:
            self._spool.add(self._unsure)
            self._unsure = None

    def _lose(self, error: AwayStoreError) -> None:
        if self._database is not None:
            self._database.close()
        if self._away is None:
            log.warning("%s; what happens is kept in %s", error, self._spool.path)
        self._database, self._away, self._behind = None, error, True
        self._next_try = time.monotonic() + RETRY_SECONDS
        self._say()

    def _say(self) -> None:
        """Say in `warnings` how many events wait."""
        count, unsure = self.waiting, self._unsure_events
        waits = f"{count - unsure:,} events and stanzas wait in {str(self._spool.path)!r}"
        waits += f" and {unsure:,} in memory" if unsure else ""
        self.warnings[AWAY] = waits if count else ""
        if self._away is not None:
            self.warnings[AWAY] = f"The database is away ({self._away}); {waits}"
        elif self._stuck:
            self.warnings[AWAY] = self._stuck

    def _look(self) -> None:
        """Try to reach the database if it is away, and let the spool follow if it is there."""
        if self._database is None:
            self._reconnect()
        now = time.monotonic()
        if self._database is not None and (self._behind or now >= self._next_look):
            self._next_look = now + LOOK_SECONDS
            try:
                self._behind, self._stuck = self._follow(self._database, now + FOLLOW_SECONDS), ""
            except AwayStoreError as error:
                self._lose(error)
            except (FullStoreError, NotOurStoreError) as error:
                # Under its own name the run would seem to have written the waiting batches.
                self._behind, self._run = False, secrets.token_hex(8)
                stuck = f"What waits in {str(self._spool.path)!r} cannot follow: {error}"
                if stuck != self._stuck:
                    log.warning("%s", stuck)
                self._stuck = stuck

    def _reconnect(self) -> None:
        """Connect in a thread, since that may take long; take the connection once it is there."""
        if self._connecting is None and time.monotonic() >= self._next_try:
            self._connecting = Future()
            connecting = Thread(target=_connect, args=(self._connect, self._connecting))
            connecting.daemon = True
            connecting.start()
        elif self._connecting is not None and self._connecting.done():
            connected, self._connecting = self._connecting, None
            try:
                self._database, self._away = connected.result(), None
            except AwayStoreError as error:
                self._lose(error)
            else:
                log.warning("the database is back; %d events and stanzas wait", self.waiting)

    def _follow(self, database: PostgresqlDatabase, until: float) -> bool:
        """Add the waiting batches to the database; return whether any still waits."""
        followed = 0
        while (batch := self._spool.first() or self._unsure) is not None:
            if time.monotonic() >= until:
                return True
            with database.transaction():
                if not database.is_kept(batch.run, batch.number):
                    for observer, happened, stanzas in batch.parts:
                        database.append(observer, _missing(database, observer, happened))
                        database.append_stanzas(observer, stanzas)
                    database.keep(batch.run, batch.number)
            if batch is self._unsure:
                self._unsure = None
            else:
                self._spool.remove(batch)
            followed += batch.events
        self._spool.close()
        if followed:
            log.warning("what was kept while the database was away has followed")
        return False

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order."""
        if happened:
            self._parts.append(Addition(observer, [*happened], []))
        if self._reached is not None:
            self._reached.append(observer, happened)

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order."""
        if stanzas:
            self._parts.append(Addition(observer, [], [*stanzas]))
        if self._reached is not None:
            self._reached.append_stanzas(observer, stanzas)

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the room's lease; while away, the last one read, else a lease of another run."""
        if self._reached is None:
            return self._leases.get((room, domain), Lease("unknown", self._read_at, 0.0))
        lease = self._reached.lease(room, domain)
        if lease is not None:
            self._leases[room, domain] = lease
        return lease

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whichever run holds it now."""
        self._taken[room, domain] = lease
        if self._reached is not None:
            self._reached.take(room, domain, lease)

    def has(self, room: str, domain: str, stanza_id: str) -> bool:
        """Whether there is a shared event of the room with this stanza id; False while away."""
        return self._reached is not None and self._reached.has(room, domain, stanza_id)

    def newest(self) -> int:
        """Return the highest id that was given; while away, the last one read."""
        if self._reached is not None:
            with self._losing():
                self._newest = self._reached.newest()
        return self._newest

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match; none while away."""
        if self._reached is None:
            return [], after if backward else until
        more = {"after": after, "until": until, "limit": limit}
        with self._losing():
            return self._reached.page(query, **more, backward=backward)

    def is_current(self) -> bool:
        """Return True: it is the same database all the time."""
        return True

    def cut(self) -> None:
        """Make a call fail that waits for the database; its items go into the spool."""
        if (database := self._database) is not None:
            database.cut()

    def close(self) -> None:
        """Close the connection and the spool."""
        if self._connecting is not None:
            self._connecting.add_done_callback(_close)
        if self._database is not None:
            self._database.close()
        with suppress(StoreError):
            self._keep_unsure()
        if self._unsure is not None:
            log.warning("%d events and stanzas may be lost", self._unsure_events)
        self._spool.close()


def _connect(
    connect: Callable[[], PostgresqlDatabase], connected: Future[PostgresqlDatabase]
) -> None:
    try:
        connected.set_result(connect())
    except Exception as error:  # asking for the result raises it
        log.debug("the database is not reached", exc_info=error)
        connected.set_exception(error)


def _close(connected: Future[PostgresqlDatabase]) -> None:
    if connected.exception() is None:
        connected.result().close()


def _missing(
    database: PostgresqlDatabase, observer: Observer, happened: Sequence[Happened]
) -> list[Happened]:
    """Return the events that the database lacks."""
    present = set[int]()
    for room in {event.room for event in happened if event.shared}:
        events = [
            Observed(mark_of(event.event, event.at), event, number)
            for number, event in enumerate(happened)
            if event.shared and event.room == room
        ]
        missing = {event.number for event in _untold(database, observer, room, events)}
        present |= {int(event.number) for event in events if event.number not in missing}
    return [event for number, event in enumerate(happened) if number not in present]


def _untold(
    database: PostgresqlDatabase, observer: Observer, room: str, events: list[Observed]
) -> list[Observed]:
    """Return the shared events that the database lacks.

    If another run has taken the lease, that run writes the events after that. The events before are
    added, unless that run had them in memory and has written them.
    """
    times = [event.happened.at for event in events]
    holder, since = database.tenure(room, observer.domain)
    if holder == observer.run:
        database.extend(room, observer.domain, max(times))
    if holder in {None, observer.run}:
        return events
    ours = [event for event in events if not holder or event.happened.at < since]
    start, end = min(times) - SAME_SECONDS, max(times) + SAME_SECONDS
    query = Query((room,), observer.domain, start=start, end=end, shared=True)
    span = database.span(replace(query, start=start - CLOCKS_SECONDS, end=end + CLOCKS_SECONDS))
    theirs, read = list[Mark](), span.first
    while read < span.last:
        rows, read = database.page(query, after=read, until=span.last, limit=SLICE)
        others = (row for row in rows if row.observer.run != observer.run)
        theirs += [mark_of(row.event, row.at) for row in others]
    return unpaired(ours, theirs)[0]
