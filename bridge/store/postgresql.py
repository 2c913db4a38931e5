"""The store in a PostgreSQL database, which bridges on many machines share.

Every writing transaction first locks the one row of `store`, so ids come in the order of commits.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf

from bridge.settings.database_url import DatabaseUrl
from bridge.store import queries
from bridge.store.database import (
    UNIT_BYTES,
    Ageing,
    Amount,
    Happened,
    Holding,
    Lease,
    Observer,
    Query,
    Recorded,
    Span,
    TracedXml,
    weight,
)
from bridge.store.errors import (
    AwayStoreError,
    ForbiddenStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.store.postgresql_connection import DatabaseConnection
from bridge.store.postgresql_tables import (
    RECORDED,
    ROW_BYTES,
    STANZAS,
    TABLES,
    VERSION,
    columns_of,
    conditions_of,
    key,
    storable,
)

STATEMENT_BYTES = 2 << 20
"""Events that take more memory are added by several statements. A server takes a second for some
megabytes."""

SPAN = 200_000
"""Ids that one statement reads at most, which takes a tenth of a second."""

SHIFT_SECONDS = 1.0
"""Clocks that differ by no more count as equal: over the network, we cannot compare them more
exactly."""


class PostgresqlDatabase:
    """A store in a database; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, url: DatabaseUrl, *, writable: bool = True, making: bool = False) -> None:
        """Connect; with `making`, make the tables if there are none. Raises `StoreError`."""
        self._url = url
        self.now: Callable[[], float] = time.monotonic
        self.wall: Callable[[], float] = time.time
        self.waiting = 0
        self.warnings: dict[str, str] = {}
        self.unreadable: set[int] = set()
        self._ids: dict[tuple[str, ...], int] = {}
        """Ids of observers and rooms, by the table and the other columns."""
        self._leading = self._wall_leading = 0.0
        """The seconds by which the clock of the database is ahead of our monotonic clock, and of
        our wall clock."""
        self._newest = self._newest_stanza = 0
        """The highest ids given so far; valid while the store is locked."""
        self._connection = DatabaseConnection(url)
        try:
            self._check(making=making)
            adds, deletes, mode, now = self._connection.row(
                "SELECT has_table_privilege('events', 'INSERT'), has_table_privilege('events', "
                "'DELETE'), current_setting('transaction_read_only'), "
                "extract(epoch FROM clock_timestamp())::float8"
            )
            self._may_delete = writable and deletes
            if writable and not adds:
                raise ForbiddenStoreError(f"{url}: this role may only read")
            if writable and mode == "on":
                raise AwayStoreError(f"{url} is read-only, as a replica is")
            self._measure(now)
        except BaseException:  # after any error, only we can close the connection
            self.close()
            raise

    @property
    def deletable(self) -> "PostgresqlDatabase | None":
        """The database itself, if its role may delete."""
        return self if self._may_delete else None

    def _check(self, *, making: bool) -> None:
        """Raise `NotOurStoreError` unless the tables have this version."""
        try:
            (version,) = self._connection.row("SELECT version FROM store")
        except NotOurStoreError:
            if not making:
                raise
            self._make()
            version = VERSION
        if version != VERSION:
            raise NotOurStoreError(
                f"{self._url} has a store of version {version}, and this xmpp-bridge has "
                f"{VERSION}; use the xmpp-bridge of that version, or name another database"
            )

    def _make(self) -> None:
        """Make the tables, unless another bridge is faster."""
        try:
            self._connection.all(f"BEGIN; {TABLES}; COMMIT")
        except StoreError:
            self._connection.roll_back()
            with suppress(NotOurStoreError):  # another bridge may have been faster
                self._check(making=False)
                return
            raise

    def _measure(self, now: float) -> None:
        """Compare our clocks with the clock of the database."""
        self._leading, off = now - time.monotonic(), now - self.wall()
        self._wall_leading = off if abs(off) > SHIFT_SECONDS else 0.0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction: no other process writes until the block ends.

        Raises `UnsureStoreError` at its end if the connection broke before COMMIT was answered.
        """
        try:
            self._newest, self._newest_stanza, now = self._connection.begin()
            self._measure(now)
            yield
            self._connection.commit()
        except BaseException:
            self._ids.clear()
            self._connection.roll_back()
            raise

    def is_kept(self, run: str, number: int) -> bool:
        """Whether this batch of the run, or a later one, is in the store."""
        return bool(
            self._connection.all(
                "SELECT 1 FROM batches WHERE run = %s AND number >= %s", run, number
            )
        )

    def keep(self, run: str, number: int) -> None:
        """Write down that all batches of the run up to this number are in the store."""
        self._connection.all(
            "INSERT INTO batches VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET number = "
            "excluded.number",
            run,
            number,
        )

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order, without shared ones whose stanza id the room already has."""
        if not happened:
            return
        by = self._observer(observer)
        rows = [
            (id_, self._room(event.room, observer.domain), by, *columns_of(event))
            for id_, event in enumerate(happened, self._newest + 1)
        ]
        self._newest += len(rows)
        part, size = list[tuple[object, ...]](), 0
        for row, event in zip(rows, happened, strict=True):
            part.append(row)
            size += weight(event) * UNIT_BYTES
            if size >= STATEMENT_BYTES:
                self._insert(part)
                part, size = [], 0
        self._insert(part)

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            self._connection.all(
                "WITH added AS (INSERT INTO events "
                "(id, room, observer, at, shared, kind, event, said, stanza, message) SELECT * "
                "FROM unnest(%s::bigint[], %s::int[], %s::int[], %s::bigint[], %s::boolean[], "
                "%s::text[], %s::text[], %s::text[], %s::text[], %s::text[]) "
                "ON CONFLICT (room, stanza) WHERE shared AND stanza IS NOT NULL DO NOTHING "
                "RETURNING room, event, said), "
                "counted AS (SELECT room, sum(octet_length(event) + "
                f"coalesce(octet_length(said), 0) + {ROW_BYTES}) AS more "
                "FROM added GROUP BY room), "
                "placed AS (UPDATE store SET newest = %s) "
                "UPDATE rooms SET bytes = bytes + more FROM counted WHERE id = room",
                *map(list, zip(*rows, strict=True)),
                self._newest,
            )

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order."""
        if not stanzas:
            return
        by = self._observer(observer)
        rows = [
            (id_, round(at * 1000), by, direction, connection, storable(xml))
            for id_, (at, direction, connection, xml) in enumerate(stanzas, self._newest_stanza + 1)
        ]
        self._newest_stanza += len(rows)
        self._connection.all(
            "INSERT INTO stanzas (id, at, observer, direction, connection, xml) SELECT * FROM "
            "unnest(%s::bigint[], %s::bigint[], %s::int[], %s::text[], %s::text[], %s::text[])",
            *map(list, zip(*rows, strict=True)),
        )
        more = sum(len(row[-1].encode()) + ROW_BYTES for row in rows)
        self._connection.all(
            "UPDATE store SET newest_stanza = %s, stanza_bytes = stanza_bytes + %s",
            self._newest_stanza,
            more,
        )

    def lease(self, room: str, domain: str) -> Lease | None:
        """Return the lease of the room for accounts of this domain; None if there is none."""
        leases = self._connection.all(
            "SELECT recorder, beat, seen_until FROM rooms WHERE jid = %s AND domain = %s "
            "AND recorder IS NOT NULL AND beat IS NOT NULL AND seen_until BETWEEN 0 AND %s",
            *(room, domain, queries.LATEST),
        )
        for run, beat, seen_until in leases:
            ours, now = beat - self._leading, self.now()
            if now < ours <= now + SHIFT_SECONDS:
                ours = now  # our comparison of the clocks was off by that much
            return Lease(run, ours, seen_until / 1000 - self._wall_leading)
        return None

    def take(self, room: str, domain: str, lease: Lease) -> None:
        """Write the lease of the room, whichever run holds it now."""
        self._connection.all(
            "UPDATE rooms SET taken = CASE WHEN recorder = %s THEN taken ELSE %s END, "
            "recorder = %s, beat = %s, seen_until = %s WHERE id = %s",
            lease.run,
            time.monotonic() + self._leading,
            lease.run,
            lease.beat + self._leading,
            round((lease.seen_until + self._wall_leading) * 1000),
            self._room(room, domain),
        )

    def tenure(self, room: str, domain: str) -> tuple[str | None, float]:
        """Return which run has the lease, and since when, in seconds of our wall clock.

        The run is empty if the lease was given up then, and None if no run ever had it.
        """
        tenures = self._connection.all(
            "SELECT recorder, taken FROM rooms WHERE jid = %s AND domain = %s "
            "AND recorder IS NOT NULL AND taken IS NOT NULL",
            room,
            domain,
        )
        for run, taken in tenures:
            return run, taken - self._wall_leading
        return None, 0.0

    def extend(self, room: str, domain: str, at: float) -> None:
        """Write that the last run that had the lease recorded the room until this time."""
        self._connection.all(
            "UPDATE rooms SET seen_until = greatest(seen_until, %s) WHERE jid = %s AND domain = %s",
            round((at + self._wall_leading) * 1000),
            room,
            domain,
        )

    def has(self, room: str, domain: str, stanza_id: str) -> bool:
        """Whether there is a shared event of the room with this stanza id."""
        there = self._connection.all(
            "SELECT 1 FROM events WHERE shared AND stanza = %s AND room = %s LIMIT 1",
            key(stanza_id),
            self._room(room, domain),
        )
        return bool(there)

    def newest(self) -> int:
        """Return the highest id that was given; 0 if there was none."""
        (newest,) = self._connection.row("SELECT newest FROM store")
        return int(newest)

    def span(self, query: Query) -> Span:
        """Return the range of the ids that the events of the query's rooms and time have."""
        within, values = self._within(query)
        table = queries.table_of(query)
        newest = "newest_stanza" if query.stanzas else "newest"
        name, last, oldest = self._connection.row(
            f"SELECT id, {newest}, (SELECT at / 1e3::float8 FROM {table} ORDER BY id LIMIT 1) "
            "FROM store"
        )
        first = 0
        # With `+ 0` the server uses the index of times, not the index of ids, which may take long
        # to read.
        for column, order, bound in (("min", ">=", query.start), ("max", "<=", query.end)):
            if bound is not None:
                (edge,) = self._connection.row(
                    f"SELECT {column}(events.id + 0) FROM {table} AS events "
                    f"WHERE {within} AND at {order} %s",
                    *values,
                    round(bound * 1000),
                )
                if column == "min":
                    first = last if edge is None else edge - 1
                else:
                    last = edge or 0
        known = self._connection.all(
            "SELECT evicted, (SELECT min(at) FROM events WHERE room = rooms.id), "
            "(SELECT min(id) FROM events WHERE room = rooms.id) FROM rooms "
            "WHERE domain = %s AND jid = ANY(%s)",
            query.domain,
            [*queries.rooms_of(query)],
        )
        evicted = max((gone for gone, _, _ in known), default=0)
        whole = (inf if at is None else at / 1000 for gone, at, _ in known if gone)
        begin = min((id_ - 1 for _, _, id_ in known if id_ is not None), default=evicted)
        oldest_at = inf if oldest is None else oldest
        return Span(name, oldest_at, evicted, max(whole, default=-inf), begin, first, last)

    def _within(self, query: Query) -> tuple[str, list[object]]:
        """Return the query's rooms and accounts as an SQL condition, with its values."""
        by = "observer IN (SELECT id FROM observers WHERE account = ANY(%s))"
        accounts: list[object] = [[*query.connection_of]]
        if query.stanzas:
            return by, accounts
        known = self._connection.all("SELECT jid, id FROM rooms WHERE domain = %s", query.domain)
        rooms = [id_ for jid, id_ in known if jid and jid in query.rooms]
        roomless = next((id_ for jid, id_ in known if not jid), 0)
        return f"(room = ANY(%s) OR (room = %s AND ({by} OR kind = 'gap')))", [
            rooms,
            roomless,
            *accounts,
        ]

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int]:
        """Return the first events that match, and the id up to which all were read.

        At most `SPAN` ids are read; ids that no row has are passed over.
        """
        first, last, order = after, min(until, after + SPAN), "ASC"
        if backward:
            first, last, order = max(after, until - SPAN), until, "DESC"
        within, values = self._within(query)
        conditions, more = conditions_of(query)
        at = "events.at"
        if query.shared:  # as our own clock would show it
            at = f"events.at + ahead - {round(self._wall_leading * 1000)}"
        for order_, bound in ((">=", query.start), ("<=", query.end)):
            if bound is not None:
                conditions += f" AND {at} {order_} %s"
                more.append(round(bound * 1000))
        select = (STANZAS if query.stanzas else RECORDED).format(at=at)
        rows = self._connection.all(
            f"{select} WHERE {within} AND {conditions} AND events.id > %s AND events.id <= %s "
            f"ORDER BY events.id {order} LIMIT %s",
            *(*values, *more, first, last, limit),
        )
        if len(rows) == limit:
            read_to = rows[-1][0] - 1 if backward else rows[-1][0]
        else:
            rest = (after, first) if backward else (last, until)
            read_to = self._beyond(query, *rest, backward=backward)
        return queries.readable(rows, self), read_to

    def _beyond(self, query: Query, after: int, until: int, *, backward: bool) -> int:
        """Return the id up to which there are no rows in this range: the next row, or its end."""
        edge = "max(id)" if backward else "min(id) - 1"
        (id_,) = self._connection.row(
            f"SELECT {edge} FROM {queries.table_of(query)} WHERE id > %s AND id <= %s",
            *(after, until),
        )
        return int(id_ if id_ is not None else after if backward else until)

    def latest(self) -> float:
        """Return the time of the newest event; minus infinity if there is none."""
        rows = self._connection.all("SELECT at FROM events ORDER BY id DESC LIMIT 1")
        return rows[0][0] / 1000 if rows else -inf

    def holdings(self) -> Sequence[Holding]:
        """Return what the store has of each room, of connections, and of stanzas."""
        rows = self._connection.all(
            "SELECT id, jid, bytes, (SELECT min(at) FROM events WHERE room = rooms.id) FROM rooms "
            "UNION ALL SELECT 0, '', stanza_bytes, (SELECT min(at) FROM stanzas) FROM store"
        )
        return [
            Holding(id_, name, max(size, 1), at / 1000)
            for id_, name, size, at in rows
            if at is not None
        ]

    def size(self) -> int:
        """Return how many bytes the events and stanzas take, with their part of the indexes."""
        (size,) = self._connection.row(
            "SELECT (SELECT coalesce(sum(bytes), 0) FROM rooms) + stanza_bytes FROM store"
        )
        return max(1, int(size))

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete rows, no more than `most`; return how much was deleted.

        The rows that were written first are deleted first. With `span`, a start (inclusive) and an
        end (exclusive), only rows whose time is within it are deleted, the earliest first.
        """
        table, texts = "stanzas", "octet_length(xml)"
        where, order, values = "TRUE", "id", list[object]()
        if holding.id:
            table, texts = "events", "octet_length(event) + coalesce(octet_length(said), 0)"
            where, values = "room = %s", [holding.id]
        if span is not None:
            where, order = f"{where} AND at >= %s AND at < %s", "at, id"
            # Infinity is no whole number.
            values += [round(1000 * at) if abs(at) < inf else -(2**62) for at in span]
        rows = self._connection.all(
            f"SELECT id, {texts} + {ROW_BYTES} FROM {table} WHERE {where} "
            f"ORDER BY {order} LIMIT %s",
            *values,
            most.rows,
        )
        ids, gone = queries.fitting(rows, most)
        if ids:
            self._connection.all(f"DELETE FROM {table} WHERE id = ANY(%s)", ids)
            if holding.id:
                self._connection.all(
                    "UPDATE rooms SET bytes = bytes - %s, evicted = greatest(evicted, %s) "
                    "WHERE id = %s",
                    *(gone, max(ids), holding.id),
                )
            else:
                self._connection.all("UPDATE store SET stanza_bytes = stanza_bytes - %s", gone)
        return Amount(len(ids), gone)

    def shrink(self) -> None:
        """Do nothing: the server reuses the space of deleted rows (autovacuum)."""

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""
        return Ageing(*self._connection.row("SELECT put_off, day_left FROM store"))

    def set_ageing(self, ageing: Ageing) -> None:
        """Write `ageing` to the store, for this process and later ones."""
        self._connection.all("UPDATE store SET put_off = %s, day_left = %s", *ageing)

    def is_current(self) -> bool:
        """Return True: a database that is replaced ends the connection."""
        return True

    def cut(self) -> None:
        """Have a call fail that waits for the server."""
        self._connection.cut()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _observer(self, observer: Observer) -> int:
        ahead = round(self._wall_leading * 1000)
        id_ = self._id("observers", {"ahead": ahead}, **vars(observer))
        self._connection.all(
            "UPDATE observers SET ahead = %s WHERE id = %s AND abs(ahead - %s) > %s",
            *(ahead, id_, ahead, 1000 * SHIFT_SECONDS),
        )
        return id_

    def _room(self, jid: str, domain: str) -> int:
        return self._id("rooms", {}, jid=jid, domain=domain)

    def _id(self, table: str, more: dict[str, object], **values: str) -> int:
        """Return the id of the row with these values; make it, with `more`, if there is none.

        The store is locked, so no other bridge makes it.
        """
        named = {name: storable(text) for name, text in values.items()}
        key_ = (table, *named.values())
        if key_ not in self._ids:
            where = " AND ".join(f"{name} = %s" for name in named)
            rows = self._connection.all(f"SELECT id FROM {table} WHERE {where}", *named.values())
            if not rows:
                row = named | more
                rows = self._connection.all(
                    f"INSERT INTO {table} ({', '.join(row)}) "
                    f"VALUES ({', '.join(['%s'] * len(row))}) RETURNING id",
                    *row.values(),
                )
            self._ids[key_] = rows[0][0]
        return self._ids[key_]
