"""The thread that writes one bridge's events into the store, and deletes events that are too old.

`bridge.store.writer` decides what goes into each transaction.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from math import inf

from bridge.store import former
from bridge.store.clock import steady
from bridge.store.database import Happened, TracedXml, weight
from bridge.store.errors import BrokenStoreError, BusyStoreError, ForbiddenStoreError, StoreError
from bridge.store.retention import Clocks, Retention
from bridge.store.sqlite import SqliteDatabase
from bridge.store.writer import MAX_WAITING, Item, Moment, Writer, gap
from bridge.text import one_line

COMMIT_SECONDS = 0.25
"""How long an event waits for others, to be written together with them."""

BATCH = 1_000
"""The weight at which a transaction is full. Other bridges wait while it is written."""

RENEW_SECONDS = 1.5
"""How often a tenure is extended while no events come."""

RETRY_SECONDS = 10.0
"""The pause between two attempts if a store fails, so that a full disk costs little time."""

GUARD_SECONDS = 10.0
"""The pause between two looks at the modes of the store's files."""

BUSY_SECONDS = 2.0
"""How long a store may be locked before we warn."""

FLUSH_SECONDS = 1.0
"""How long a reader, or the end of the process, waits until the events so far are written."""

log = logging.getLogger(__name__)


class Recorder:
    """Writes the items that it is given, from a thread of its own; `add` never waits."""

    def __init__(
        self,
        open_: Callable[[], SqliteDatabase],
        put_aside: Callable[[BrokenStoreError], object],
        retention: Retention | None = None,
    ) -> None:
        """`open_` opens the store, or a new one once `put_aside` has put a broken one aside."""
        self.committed: Callable[[], object] = lambda: None
        """This is called after each transaction."""
        self._open = open_
        self._put_aside = put_aside
        self._retention = retention
        self._writer = Writer()
        self._database: SqliteDatabase | None = None
        self._waiting: deque[Item] = deque()
        self._batch: list[Item] = []
        """Items taken out of `_waiting`, which stay here until their transaction is committed."""
        self._pending: list[int] = []
        """The numbers of the events that the writer has got, and that are not in the store."""
        self._added = self._written = 0
        """The weights of all added items, and of all written items."""
        self._lost = self._counted = 0
        """How many items were lost in all, and how many of these a gap in the store counts."""
        self._lost_since = self._lost_until = 0.0
        """The times of the first and last loss that no gap counts, in seconds since the epoch."""
        self._news, self._hurry = threading.Event(), threading.Event()
        self._flushes: deque[Future[None]] = deque()
        self._closing = self._forbidden = False
        self._failing_since: float | None = None
        self._next_try = self._next_guard = 0.0
        self.problem: str | None = None
        """Why the recorder writes nothing, in a sentence; None if it writes."""
        self._troubles: dict[str, str] = {}
        """What is wrong with the store: the last sentence for each kind of trouble."""
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)
        self._thread.start()

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the store, in sentences."""
        return [*filter(None, (self.problem, *self._troubles.values()))]

    def add(self, item: Item) -> None:
        """Queue an item; items are written in the order in which they are added. Never waits.

        Events and stanzas beyond `MAX_WAITING` are dropped and counted. Once the store has refused
        us for good, `add` keeps nothing.
        """
        if self._forbidden:
            self._pending = self._pending or _numbers([item])
            return
        weighs = weight(item)
        full = self._added - self._written + weighs > MAX_WAITING
        if full and isinstance(item, Happened | TracedXml):
            if self._lost == self._counted:
                self._lost_since = item.at
            self._lost_until = item.at
            self._lost += 1
            return
        self._added += weighs
        self._waiting.append(item)
        if len(self._waiting) >= BATCH:
            self._hurry.set()
        if not self._news.is_set():
            self._news.set()

    async def flush(self) -> int | None:
        """Wait until the added items are written or have failed; at most `FLUSH_SECONDS`.

        Returns the number of the first event that is not in the store yet; None if all are.
        """
        written: Future[None] = Future()
        self._flushes.append(written)
        self._wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(FLUSH_SECONDS):
                await asyncio.wrap_future(written)
        # The thread moves an item from `_waiting` to `_batch` to `_pending`. They are read in this
        # order, so that no item is missed.
        items = [*self._waiting, *self._batch]
        return min((*_numbers(items), *filter(None, self._pending)), default=None)

    def close(self) -> None:
        """Write the remaining items and close the store; takes at most `FLUSH_SECONDS`."""
        self._closing = True
        self._wake()
        self._thread.join(FLUSH_SECONDS)
        if self._thread.is_alive() and (lost := len(self._batch) + len(self._waiting)):
            log.warning("The store did not answer; %d events and stanzas may be lost", lost)

    def refuse(self, error: ForbiddenStoreError) -> None:
        """Keep nothing any more: a team's database has refused us for good."""
        self._forbidden, self._counted = True, self._lost
        self._pending = self._pending or _numbers([*self._batch, *self._waiting])[:1]
        self._waiting.clear()
        self._fail(error, inf)

    def _wake(self) -> None:
        self._hurry.set()
        self._news.set()

    def _run(self) -> None:
        closing = False
        while not closing:
            self._news.wait(COMMIT_SECONDS if self._writer.waits else RENEW_SECONDS)
            self._hurry.wait(COMMIT_SECONDS)
            self._news.clear()
            self._hurry.clear()
            closing = self._closing
            flushes = [self._flushes.popleft() for _ in range(len(self._flushes))]
            tried = not closing and time.monotonic() < self._next_try
            if not (tried or self._forbidden):
                self._try(closing=closing)
            if self._forbidden:
                self._let_go()
            for flush in flushes:
                if flush.set_running_or_notify_cancel():
                    flush.set_result(None)
        self._let_go()
        if lost := len(self._batch) + len(self._waiting) + self._lost - self._counted:
            why = self.problem or "The store was locked at the end"
            log.warning("%s; %d events and stanzas were lost", why, lost)

    def _try(self, *, closing: bool) -> None:
        """Write the waiting items."""
        try:
            if self._database is not None and not self._database.is_current():
                log.warning("the file of the store was deleted or replaced; it is opened anew")
                self._let_go()
            if self._database is None:
                self._database = self._open()
                self._note(self._database.warnings)
                # This comes before our first events: retention compares our clock with the times
                # that other bridges wrote.
                self._delete(self._database)
            if steady() >= self._next_guard:
                self._next_guard = steady() + GUARD_SECONDS
                self._note(self._database.guard())
            self._write(self._database, closing=closing)
        except BusyStoreError as error:
            self._fail(error, 0.0)
        except BrokenStoreError as error:
            self._let_go()
            try:
                self._put_aside(error)
            except StoreError as refused:
                self._fail(refused, RETRY_SECONDS)
            else:
                log.warning("%s; it was put aside, and a new one is begun", one_line(str(error)))
                self._wake()
        except Exception as error:  # the thread must go on after any error
            self._let_go()
            if not isinstance(error, StoreError):
                log.debug("where the recorder failed", exc_info=error)
                error = StoreError(f"a mistake in the bridge ({type(error).__name__})")
            self._fail(error, RETRY_SECONDS)
        else:
            if self.problem is not None:
                log.warning("what happens is recorded again")
            self.problem = self._failing_since = None

    def _note(self, warnings: dict[str, str]) -> None:
        """Note what the database found wrong with the store."""
        for kind, warning in warnings.items():
            if self._troubles.get(kind) != warning:
                log.warning("%s", warning)
        # A new dictionary, since another thread may be reading the old one.
        self._troubles = self._troubles | warnings

    def _fail(self, error: StoreError, pause: float) -> None:
        now = time.monotonic()
        self._next_try = now + pause
        self._failing_since = self._failing_since or now
        if pause or now - self._failing_since >= BUSY_SECONDS:
            problem = f"Nothing is being recorded: {one_line(str(error))}"
            if self.problem is None:
                log.warning("%s", problem)
            self.problem = problem

    def _write(self, database: SqliteDatabase, *, closing: bool) -> None:
        more = True
        while more:
            at, now = time.time(), steady()
            weighs = sum(map(weight, self._batch))
            while self._waiting and weighs < BATCH:
                weighs += weight(self._waiting[0])
                # Added before it is removed, so that `flush` always finds it in one of the two.
                self._batch.append(self._waiting[0])
                self._waiting.popleft()
            more = bool(self._waiting)
            items, lost = [*self._batch], self._lost
            if lost > self._counted and not more:  # the gap is later than all kept items
                why = {"events": lost - self._counted, "reason": self.problem or "too much at once"}
                event = gap(self._lost_since, self._lost_until, **why)
                items.append(Happened(self._lost_until, "", event))
            self._writer.write(database, items, Moment(at, now, more, closing and not more))
            self._counted = self._counted if more else lost
            self._written += weighs
            self._pending = self._writer.pending
            self._batch.clear()
            self.committed()
            if database.has_former:
                database.has_former = former.move(database, database.is_alone)
            if self._delete(database):
                self._news.set()

    def _delete(self, database: SqliteDatabase) -> bool:
        """Delete a little, if this process does; return whether there is more."""
        return self._retention is not None and self._retention.apply(database, clocks())

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None


def _numbers(items: Iterable[Item]) -> list[int]:
    """Return the numbers of the events that are in a journal."""
    return [item.number for item in items if isinstance(item, Happened) and item.number]


def clocks() -> Clocks:
    """Return the times of the clocks that retention looks at."""
    return Clocks(time.time(), steady(), time.monotonic())
