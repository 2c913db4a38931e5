"""Ships the events of this machine's file to the database of a team, in order and each once."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from operator import itemgetter
from socket import gethostname
from typing import Any

from bridge.store.database import Happened, Tenure, TracedXml
from bridge.store.decision import asked_by, with_asked
from bridge.store.errors import AwayStoreError, BusyStoreError, ForbiddenStoreError, StoreError
from bridge.store.location import Team
from bridge.store.outbox import Outbox
from bridge.store.pairing import SAME_SECONDS, STAMP_SECONDS, Alike, Wanted, key_of, paired, told_at
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.queries import MAX_ID, encoded
from bridge.store.recorder import clocks
from bridge.store.retention import EXPIRE_SECONDS, Retention
from bridge.store.sqlite import SqliteDatabase
from bridge.store.team_former import SPOOL, follow
from bridge.text import iso, milliseconds, one_line

SHIP_SECONDS = 0.1
"""How long a row waits for others, to be shipped together with them."""

BEAT_SECONDS = 2.0
"""How often the database hears of a file that has nothing to ship."""

RETRY_SECONDS = 2.0
"""The pause between two attempts to reach the database."""

REFUSED_SECONDS = 10.0
"""The same if the database is no store, or refuses us."""

CLOSE_SECONDS = 0.7
"""How long the end of the process waits for the rest to be shipped."""

SHIFT_SECONDS = 1.0
"""Clocks that differ by no more count as equal: over the network, we cannot compare them more
exactly."""

SKEW_SECONDS = 1.0
"""Another machine's clock may be so far behind ours, and still count as equal. So it may have seen
an event so long before we asked to be let in, if we saw the event soon after we asked."""

SILENT_SECONDS = 3_600.0
"""A machine that was not heard of for so long is not named in warnings any more."""

log = logging.getLogger(__name__)


def ship(outbox: Outbox, database: PostgresqlDatabase, host: str) -> bool:
    """Ship one batch; return whether more waits. Raises `StoreError`.

    The file's own marks count. The database's mark is believed only if it equals one of them: how
    far rows were confirmed, or how far a transaction without an answer went. Any other mark means
    that a copy of the file is shipped from elsewhere, or that the mark was changed.
    """
    batch = outbox.batch()
    with database.transaction():
        begun, mark = outbox.now(), database.mark(outbox.name, host, batch.sent)
        reached = mark.sent
        is_ours = reached in {batch.sent, batch.trying}
        if mark.host != host or not is_ours:
            outbox.rename(reached if is_ours else batch.sent)
            return True
        ahead = shift(mark.now - outbox.now(), mark.now - begun)
        rows = batch.events
        known = known_to(database, rows, outbox, batch.tenures, outbox.own(MAX_ID), ahead)
        lacking = [each for each in rows if each.row not in known]
        if lacking and lacking[0].row <= reached.event:  # a copy went as far as we had tried
            outbox.rename(batch.sent)
            return True
        moved = [each._replace(seen=_seen(each, ahead)) for each in lacking]
        database.ship(moved, mark.id)
        names = itemgetter("direction", "connection", "xml")
        stanzas = [
            (row.observer, TracedXml(row.at, *names(row.event)), row.id)
            for row in batch.stanzas
            if row.id > reached.stanza
        ]
        database.ship_stanzas(stanzas, mark.id)
        database.attend(mark.id, [_until(*each, batch.until, ahead) for each in batch.tenures])
        database.hear(mark._replace(sent=batch.last))
        if batch.last != batch.sent:
            outbox.attempt(reached, batch.last, known)
    if batch.last != batch.sent:
        outbox.confirm(batch, database.name, database.newest())
    return not batch.complete


def shift(least: float, most: float) -> float:
    """Return by how many seconds the clock of a database is ahead, as far as that is sure.

    Asking takes time, so only two bounds are known. The result is the bound nearest to zero. It is
    zero if zero is between the bounds, or if the clocks differ by `SHIFT_SECONDS` at most.
    """
    _, ahead, _ = sorted((least, 0.0, most))
    return ahead if abs(ahead) > SHIFT_SECONDS else 0.0


def _until(
    room: str, domain: str, tenure: Tenure, end: float, ahead: float
) -> tuple[str, str, Tenure]:
    """Return a tenure up to the time `end`, by the clock of the database."""
    over = max(0.0, min(tenure.until - tenure.since, tenure.until - end))
    ended = bool(tenure.ended) and not over
    tenure = tenure._replace(until_at=tenure.until_at - over, ended=ended)
    begun, until = tenure.since + ahead, tenure.until - over + ahead
    asked = tenure.asked + ahead
    return room, domain, tenure._replace(since=begun, until=until, asked=asked)


def known_to(
    database: PostgresqlDatabase,
    rows: Sequence[Happened],
    file: SqliteDatabase,
    tenures: Sequence[tuple[str, str, Tenure]],
    own: Mapping[str, int],
    ahead: float,
) -> dict[int, int]:
    """Return the ids in the database of the events that it has already, by their ids here.

    `rows` and `tenures` are of the `file`; the clock of the database is `ahead`. `own` is what
    `file.own` returns.
    """
    first = min((each.seen or 0.0 for each in rows), default=0.0)
    last = min((each.row for each in rows if each.row > 0), default=1) - 1
    taken, known = file.taken(first, last) if rows else set[int](), dict[int, int]()
    # What the file has was compared in the file, unless its clock was too wrong for that.
    kept_from = file.oldest() if rows and abs(ahead) <= SAME_SECONDS else MAX_ID

    def is_later(wanted: Happened, row: Alike) -> bool:
        return row.number > wanted.row and file.has_row(row.number, row.run, stanza=False)

    by = {it: database.observer(it, make=False) for it in {each.observer for each in rows}}
    for place in {_place(each) for each in rows}:
        here = [each for each in rows if _place(each) == place]
        stays = [tenure for *where, tenure in tenures if (*where,) == place]
        wanted = [_wanted(each, stays, by[each.observer], ahead) for each in here]
        looked = database.alike(*place, wanted, encoded(own), kept_from, MAX_ID)
        others = database.tenures(*place, first + ahead - 2 * SAME_SECONDS)
        # Of what is not shared, only a copy of the file has the same row. What a copy brought of
        # a later row is the event of that row.
        theirs = [
            with_asked(
                [row for row in alike if row.copied or (each.shared and not is_later(each, row))],
                each.event["kind"],
                others,
                SKEW_SECONDS + STAMP_SECONDS * ("delayedFrom" in each.event),
            )
            for each, alike in zip(here, looked, strict=True)
        ]
        taken |= {row.id for alike in theirs for row in alike if row.copied}
        rows_there = zip(here, paired(wanted, theirs, taken), strict=True)
        known |= {each.row: row.id for each, row in rows_there if row is not None}
    return known


def _seen(happened: Happened, ahead: float) -> float:
    """Return when an event was seen, by the clock of the database, which is `ahead`.

    Of what a room told as history, this is the room's time: its server's clock counts as right.
    """
    stamp = told_at(happened.event, None)
    is_stamp = stamp is not None and milliseconds(stamp) == milliseconds(happened.when)
    return happened.when if is_stamp else happened.when + ahead


def _place(happened: Happened) -> tuple[str, str]:
    return happened.room, happened.observer.domain


def _wanted(happened: Happened, stays: Sequence[Tenure], by: int, ahead: float) -> Wanted:
    since, seen = -inf, happened.when
    if not (repeated := "delayedFrom" in happened.event):  # others saw that live
        since = asked_by(stays, happened.observer.run, seen)
        since = min(since, max(since - SKEW_SECONDS, seen - 2 * SKEW_SECONDS))
    key = happened.key or key_of(happened.event)
    return Wanted(key, _seen(happened, ahead), since + ahead, repeated, happened.row, by)


class Shipper:
    """Ships from a thread of its own, unless another process of the user does so.

    In a `record`, it also deletes from the database what is too old or too much.
    """

    def __init__(
        self,
        team: Team,
        refuse: Callable[[ForbiddenStoreError], object],
        *,
        stanzas: bool,
        retention: Retention | None,
    ) -> None:
        """`refuse` is called if the role may only read, and nothing will ever be shipped."""
        self._team, self._refuse, self._stanzas = team, refuse, stanzas
        self._retention = retention
        self._outbox: Outbox | None = None
        self._database: PostgresqlDatabase | None = None
        self._trouble = ""
        """What is wrong, in a sentence for users."""
        self._next_try = 0.0
        self._host = gethostname() or "localhost"
        self._silent: list[tuple[Any, ...]] = []
        self._tidied = -inf
        self._has_followed = False
        """Whether all is shipped that a bridge of the former version left."""
        self._news = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="shipper", daemon=True)
        self._thread.start()

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the database, and what other machines have not shipped."""
        return [*filter(None, [self._trouble])] + [
            f"{one_line(host)} was last heard of at {iso(at)}; what it recorded since is not shown"
            for host, at in self._silent
        ]

    def wake(self) -> None:
        """Note that the file has new rows."""
        self._news.set()

    def close(self) -> None:
        """Ship the rest, if the database takes it soon."""
        self._closing = True
        self._news.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        closing = False
        while not closing:
            self._news.wait(RETRY_SECONDS if self._trouble else BEAT_SECONDS)
            self._news.clear()
            if not self._closing:
                time.sleep(SHIP_SECONDS)
            closing = self._closing
            if time.monotonic() < self._next_try:
                self._count()
                continue
            try:
                self._work()
            except ForbiddenStoreError as error:
                self._refuse(error)
                break
            except BusyStoreError:
                self._news.set()
            except AwayStoreError as error:
                self._lose(error, "is away", RETRY_SECONDS)
            except StoreError as error:
                self._lose(error, "takes nothing", REFUSED_SECONDS)
            except Exception as error:  # the thread must go on after any error
                log.debug("where shipping failed", exc_info=error)
                mistake = StoreError(f"a mistake in the bridge ({type(error).__name__})")
                self._lose(mistake, "takes nothing", REFUSED_SECONDS)
            else:
                if self._trouble:
                    log.warning("the database is back, and has what waited")
                self._trouble, self._next_try = "", 0.0
        self._let_go()
        if self._outbox is not None:
            self._outbox.close()

    def _lose(self, error: StoreError, how: str, pause: float) -> None:
        self._let_go()
        known = bool(self._trouble)
        self._trouble = f"The database {how} ({error})"
        self._next_try = time.monotonic() + pause
        self._count()
        if not known:
            log.warning("%s", self._trouble)

    def _count(self) -> None:
        """Say how much waits."""
        trouble, count = self._trouble.partition("; ")[0], 0
        with suppress(StoreError):
            count = self._opened().waiting()
        where = str(self._team.file)
        self._trouble = f"{trouble}; {count:,} events and stanzas wait in {where!r}"

    def _let_go(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> Outbox:
        if self._outbox is not None and not self._outbox.is_current():
            self._outbox.close()
            self._outbox = None
        if self._outbox is None:
            self._outbox = Outbox(self._team, stanzas=self._stanzas)
        return self._outbox

    def _work(self) -> None:
        outbox, now = self._opened(), time.monotonic()
        ships = outbox.locked()
        due = ships and now - self._tidied >= EXPIRE_SECONDS and not self._closing
        most = self._team.megabytes
        if due and most is not None and not outbox.tidy(most << 20):
            self._tidied = now
        if self._database is None:
            making = self._retention is not None
            self._database = PostgresqlDatabase(self._team.url, making=making)
        database = self._database
        if ships:
            self._follow_spool(outbox, database)
            while ship(outbox, database, self._host):
                pass
        self._silent = database.silent(outbox.name, SILENT_SECONDS)
        if self._retention is not None and database.may_delete and not self._closing:
            while self._retention.apply(database, clocks()):
                pass

    def _follow_spool(self, outbox: Outbox, database: PostgresqlDatabase) -> None:
        """Ship first what a bridge of the former version left."""
        if not self._has_followed:
            path, batch = self._team.file.with_name(SPOOL), outbox.batch()

            def add(events: list[Happened]) -> None:
                mark = database.mark(outbox.name, self._host, batch.sent)
                numbered = [each._replace(row=-n) for n, each in enumerate(events, 1)]
                known = known_to(database, numbered, outbox, (), outbox.own(MAX_ID), 0.0)
                lacking = [each for each in numbered if each.row not in known]
                database.ship([each._replace(row=0) for each in lacking], mark.id)

            follow(path, self._team.url.name, database, add)
            self._has_followed = True
