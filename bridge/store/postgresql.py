"""The store in a PostgreSQL database, which bridges on many machines share.

Every writing transaction first locks the one row of `store`, so ids come in the order of commits.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import Any

from bridge.settings.database_url import DatabaseUrl
from bridge.store import queries
from bridge.store.database import (
    Ageing,
    Amount,
    Happened,
    Holding,
    Observer,
    Query,
    Recorded,
    Span,
    Tenure,
    TracedXml,
)
from bridge.store.errors import (
    AwayStoreError,
    ForbiddenStoreError,
    NotOurStoreError,
    StoreError,
)
from bridge.store.pairing import SAME_SECONDS, Alike, Wanted, key_of
from bridge.store.postgresql_connection import MAX_ID, NEWEST, DatabaseConnection
from bridge.store.postgresql_tables import (
    ALIKE,
    FORMER_VERSION,
    NAMED,
    NEAR,
    RECORDED,
    ROW_BYTES,
    STANZAS,
    STORE,
    TABLES,
    VERSION,
    columns_of,
    conditions_of,
    storable,
)
from bridge.store.team import Mark, Sent, Shipped

STATEMENT_BYTES = 2 << 20
"""Events that are longer than so many characters are added by several statements. A server takes a
second for some megabytes."""

SPAN = 200_000
"""Ids that one statement reads at most, which takes a tenth of a second."""

LEASE_SECONDS = 10.0
"""A file that has not been heard of for so many seconds loses its leases, and its tenures end."""


class PostgresqlDatabase:
    """A store in a database; one thread uses it. See `bridge.store.database.Database`."""

    def __init__(self, url: DatabaseUrl, *, writable: bool = True, making: bool = False) -> None:
        """Connect; with `making`, make the tables if there are none. Raises `StoreError`."""
        self._url = url
        self.patience = LEASE_SECONDS
        self.warnings: dict[str, str] = {}
        self.unreadable: set[int] = set()
        self._ids: dict[tuple[str, ...], int] = {}
        """Ids of observers and rooms, by the table and the other columns."""
        self._newest = self._newest_stanza = 0
        """The highest ids given so far; valid while the store is locked."""
        self._connection = DatabaseConnection(url)
        try:
            self._check(making=making)
            adds, deletes, mode = self._connection.row(
                "SELECT has_table_privilege('entries', 'INSERT'), has_table_privilege('entries', "
                "'DELETE'), current_setting('transaction_read_only')"
            )
            self.may_delete = bool(writable and deletes)
            if writable and not adds:
                raise ForbiddenStoreError(f"{url}: this role may only read")
            if writable and mode == "on":
                raise AwayStoreError(f"{url} is read-only, as a replica is")
        except BaseException:  # after any error, only we can close the connection
            self.close()
            raise

    def _check(self, *, making: bool) -> None:
        """Raise `NotOurStoreError` unless the tables have this version."""
        try:
            version, self.name = self._connection.row("SELECT version, id FROM store")
        except NotOurStoreError:
            if not making:
                raise
            self._make()
            version, self.name = self._connection.row("SELECT version, id FROM store")
        if version == FORMER_VERSION:
            raise NotOurStoreError(
                f"{self._url} has a store of version {version}; `xmpp-bridge record "
                "--prepare-store` of this version migrates it, under a role that may"
            )
        if version != VERSION:
            raise NotOurStoreError(
                f"{self._url} has a store of version {version}, and this xmpp-bridge has "
                f"{VERSION}; use the xmpp-bridge of that version, or name another database"
            )

    def _make(self) -> None:
        """Make the tables, unless another bridge is faster."""
        try:
            self._connection.all(f"BEGIN; {STORE} {TABLES} COMMIT")
        except StoreError:
            self._connection.roll_back()
            with suppress(NotOurStoreError):  # another bridge may have been faster
                self._check(making=False)
                return
            raise

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction: no other process writes until the block ends.

        Raises `UnsureStoreError` at its end if the connection broke before COMMIT was answered.
        """
        try:
            self._newest, self._newest_stanza = self._connection.begin()
            yield
            self._connection.commit()
        except BaseException:  # whatever ends the block, nothing of it may stay
            self._ids.clear()
            self._connection.roll_back()
            raise

    def now(self) -> float:
        """Return the time by the clock of the database, in seconds since the epoch."""
        (now,) = self._connection.row("SELECT extract(epoch FROM clock_timestamp())::float8")
        return float(now)

    def mark(self, file: str, host: str, sent: Sent) -> Mark:
        """Return what the database knows about a file; make it known if it is not."""
        find = (
            "SELECT id, host, sent, sent_stanza, extract(epoch FROM clock_timestamp())::float8 "
            "FROM files WHERE name = %s"
        )
        if not (rows := self._connection.all(find, file)):
            self._connection.all(
                "INSERT INTO files (name, host, sent, sent_stanza) VALUES (%s, %s, %s, %s)",
                *(file, host, *sent),
            )
            rows = self._connection.all(find, file)
        return Mark(*rows[0])

    def is_kept(self, run: str, number: int) -> bool:
        """Whether this batch of a spool of the former version, or a later one, is in the store."""
        find = "SELECT 1 FROM batches WHERE run = %s AND number >= %s"
        return bool(self._connection.all(find, run, number))

    def keep(self, run: str, number: int) -> None:
        """Write down that all batches of the run up to this number are in the store."""
        self._connection.all(
            "INSERT INTO batches VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET number = "
            "excluded.number",
            *(run, number),
        )

    def hear(self, mark: Mark) -> None:
        """Write up to which rows the file was shipped, and that it was heard of now."""
        self._connection.all(
            "UPDATE files SET sent = %s, sent_stanza = %s, "
            "beat = extract(epoch FROM clock_timestamp()) WHERE id = %s",
            *(mark.sent, mark.sent_stanza, mark.id),
        )

    def lease(self, file: int, rooms: Mapping[tuple[str, str], bool]) -> set[tuple[str, str]]:
        """Take or renew leases of a file; return the rooms whose leases other files hold.

        `rooms` are JIDs and domains, each with whether a bridge of the file is there, so that it
        may take a lease. A lease has to be renewed every `LEASE_SECONDS`.
        """
        free = (
            "holder = %s OR holder IS NULL OR beat IS NULL OR NOT "
            "extract(epoch FROM clock_timestamp()) BETWEEN beat AND beat + %s"
        )
        held = set[tuple[str, str]]()
        for room, present in rooms.items():
            values = (self._room(*room), file, LEASE_SECONDS)
            if present and not self._connection.all(
                "UPDATE places SET holder = %s, beat = extract(epoch FROM clock_timestamp()) "
                f"WHERE id = %s AND ({free}) RETURNING id",
                file,
                *values,
            ):
                held.add(room)
        return held

    def attend(self, file: int, tenures: Sequence[tuple[str, str, Tenure]]) -> None:
        """Write who of a file was in which rooms; each tenure with the room and its domain."""
        for room, domain, tenure in tenures:
            self._connection.all(
                "INSERT INTO tenures (file, place, id, run, since, until, since_at, until_at, "
                "ended) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (file, id) DO "
                "UPDATE SET until = excluded.until, until_at = excluded.until_at, "
                "ended = excluded.ended WHERE tenures.until < excluded.until "
                "OR tenures.ended <> excluded.ended",
                *(file, self._room(room, domain), *tenure[:-2], bool(tenure.ended)),
            )

    def tenures(self, room: str, domain: str) -> list[Tenure]:
        """Return who was in the room when, for accounts of this domain."""
        rows = self._connection.all(
            "SELECT tenures.id, run, since, until, since_at, until_at, ended, "
            "coalesce(name, '') FROM tenures JOIN places ON places.id = place "
            "LEFT JOIN files ON files.id = file WHERE jid = %s AND domain = %s "
            "AND until > '-infinity' AND until < 'infinity'",
            *(room, domain),
        )
        return [Tenure(*row) for row in rows]

    def silent(self, file: str, seconds: float) -> list[tuple[str, float]]:
        """Return the hosts that have tenures and went silent in the last `seconds`, and when.

        The file of this name is left out.
        """
        return [
            (host, beat)
            for host, beat in self._connection.all(
                "SELECT host, max(files.beat) FROM files WHERE name <> %s AND EXISTS "
                "(SELECT 1 FROM tenures WHERE file = files.id AND NOT ended) GROUP BY host "
                "HAVING extract(epoch FROM clock_timestamp()) - max(files.beat) BETWEEN %s AND %s",
                *(file, LEASE_SECONDS, seconds),
            )
        ]

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order."""
        self.ship(0, [Shipped(observer, each, 0) for each in happened])

    def ship(self, file: int, shipped: Sequence[Shipped]) -> None:
        """Add events of a file, in this order."""
        part, size = list[tuple[object, ...]](), 0
        for id_, (by, each, number) in enumerate(shipped, self._newest + 1):
            key = each.key or key_of(each.event)
            times = (round(1000 * at) for at in (each.at, each.seen or each.at))
            *values, message = columns_of(each)
            where = (self._room(each.room, by.domain), self._observer(by))
            part.append((id_, *times, *where, *values, *key, message, file, number))
            size += len(str(values[2]))
            if size >= STATEMENT_BYTES:
                self._insert(part)
                part, size = [], 0
        self._newest += len(shipped)
        self._insert(part)

    def _insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            columns: list[list[Any]] = [*map(list, zip(*rows, strict=True))]
            self._connection.all(
                "WITH added AS (INSERT INTO entries (id, at, seen, room, observer, shared, kind, "
                "event, said, content, stanza, message, file, number) SELECT * FROM unnest("
                "%s::bigint[], %s::bigint[], %s::bigint[], %s::int[], %s::int[], %s::boolean[], "
                # JSON has no control characters, and to quote it for an array takes long.
                "%s::text[], string_to_array(%s, chr(31)), %s::text[], %s::bigint[], "
                "%s::bigint[], %s::text[], "
                "%s::int[], %s::bigint[]) RETURNING room, event, said), "
                "counted AS (SELECT room, sum(octet_length(event) + "
                f"coalesce(octet_length(said), 0) + {ROW_BYTES}) AS more "
                "FROM added GROUP BY room), "
                "placed AS (UPDATE store SET newest = %s) "
                "UPDATE places SET bytes = bytes + more FROM counted WHERE id = room",
                *columns[:7],
                "\x1f".join(columns[7]),
                *columns[8:],
                rows[-1][0],
            )

    def append_stanzas(
        self, observer: Observer, stanzas: Sequence[TracedXml], file: int = 0, number: int = 0
    ) -> None:
        """Add stanzas, in this order; a stanza of a file with its number there."""
        if not stanzas:
            return
        by = self._observer(observer)
        rows = [
            (id_, round(at * 1000), by, direction, connection, storable(xml), file, number)
            for id_, (at, direction, connection, xml) in enumerate(stanzas, self._newest_stanza + 1)
        ]
        self._newest_stanza += len(rows)
        self._connection.all(
            "INSERT INTO traffic (id, at, observer, direction, connection, xml, file, number) "
            "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::int[], %s::text[], %s::text[], "
            "%s::text[], %s::int[], %s::bigint[])",
            *map(list, zip(*rows, strict=True)),
        )
        more = sum(len(row[5].encode()) + ROW_BYTES for row in rows)
        self._connection.all(
            "UPDATE store SET newest_stanza = %s, stanza_bytes = stanza_bytes + %s",
            self._newest_stanza,
            more,
        )

    def alike(
        self,
        room: str,
        domain: str,
        run: str,
        wanted: Sequence[Wanted],
        *,
        file: int = 0,
        name: str = "",
        observers: Sequence[Observer] = (),
        until: int = MAX_ID,
    ) -> list[list[Alike]]:
        """Return for each wanted event the shared rows of other files that it may be.

        The event's own file is given by its id or its name. With `observers`, one for each wanted
        event, it may also be a row of the same observer with the same id in a file. Rows with an
        id over `until` are left out.
        """
        rows = [list[Alike]() for _ in wanted]
        by = [self._observer(each) for each in observers] or [0] * len(wanted)
        if name:
            ids = self._connection.all("SELECT id FROM files WHERE name = %s", name)
            file = ids[0][0] if ids else 0
        first = min((each.seen for each in wanted), default=inf) - SAME_SECONDS
        known = self._connection.all(
            "SELECT id FROM places WHERE jid = %s AND domain = %s AND EXISTS (SELECT 1 FROM "
            "tenures WHERE place = places.id AND until >= %s AND file <> %s)",
            *(room, domain, first, file),
        )
        if not known:
            return rows
        values = (
            [each.key.content for each in wanted],
            [each.key.stanza for each in wanted],
            [round(each.seen * 1000) for each in wanted],
            by,
            [each.row for each in wanted],
        )
        for how in (NAMED, NEAR):
            for number, *row in self._connection.all(
                ALIKE.format(how), *values, known[0][0], until, file
            ):
                rows[number - 1].append(Alike(*row))
        return rows

    def newest(self) -> int:
        """Return the highest id that was given; 0 if there was none."""
        return int(self._connection.row(NEWEST)[0])

    def reached(self, file: str, *, stanzas: bool) -> tuple[int, int | None]:
        """Return the highest id, and the last row of the file that the database has then.

        The row is None if the database does not know the file.
        """
        column = "sent_stanza" if stanzas else "sent"
        newest, newest_stanza, sent = self._connection.row(
            f"SELECT *, (SELECT {column} FROM files WHERE name = %s) FROM ({NEWEST}) AS newest",
            file,
        )
        return newest_stanza if stanzas else newest, sent

    def span(self, query: Query) -> Span:
        """Return the range of the ids that the events of the query's rooms and time have."""
        within, values = self._within(query)
        table = queries.table_of(query)
        last = self._connection.row(NEWEST)[query.stanzas]
        name, oldest = self._connection.row(
            f"SELECT id, (SELECT at / 1e3::float8 FROM {table} ORDER BY id LIMIT 1) FROM store"
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
            "SELECT evicted, (SELECT min(at) FROM entries WHERE room = places.id), "
            "(SELECT min(id) FROM entries WHERE room = places.id) FROM places "
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
        by = "observer IN (SELECT id FROM runs WHERE account = ANY(%s))"
        accounts: list[object] = [[*query.connection_of]]
        if query.stanzas:
            return by, accounts
        known = self._connection.all("SELECT jid, id FROM places WHERE domain = %s", query.domain)
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
        select = STANZAS if query.stanzas else RECORDED
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
        return queries.readable(rows, self, ""), read_to

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
        rows = self._connection.all("SELECT at FROM entries ORDER BY id DESC LIMIT 1")
        return rows[0][0] / 1000 if rows else -inf

    def holdings(self) -> Sequence[Holding]:
        """Return what the store has of each room, of connections, and of stanzas."""
        rows = self._connection.all(
            "SELECT id, jid, bytes, (SELECT min(at) FROM entries WHERE room = places.id) "
            "FROM places "
            "UNION ALL SELECT 0, '', stanza_bytes, (SELECT min(at) FROM traffic) FROM store"
        )
        return [
            Holding(id_, name, max(size, 1), at / 1000)
            for id_, name, size, at in rows
            if at is not None
        ]

    def size(self) -> int:
        """Return how many bytes the events and stanzas take, with their part of the indexes."""
        (size,) = self._connection.row(
            "SELECT (SELECT coalesce(sum(bytes), 0) FROM places) + stanza_bytes FROM store"
        )
        return max(1, int(size))

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete rows, no more than `most`; return how much was deleted.

        The rows that were written first are deleted first. With `span`, a start (inclusive) and an
        end (exclusive), only rows whose time is within it are deleted, the earliest first.
        """
        table, texts = "traffic", "octet_length(xml)"
        where, order, values = "TRUE", "id", list[object]()
        if holding.id:
            table, texts = "entries", "octet_length(event) + coalesce(octet_length(said), 0)"
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
                    "UPDATE places SET bytes = bytes - %s, evicted = greatest(evicted, %s) "
                    "WHERE id = %s",
                    *(gone, max(ids), holding.id),
                )
            else:
                self._connection.all("UPDATE store SET stanza_bytes = stanza_bytes - %s", gone)
        return Amount(len(ids), gone)

    def shrink(self) -> None:
        """Do nothing: the server reuses the space of deleted rows (autovacuum)."""

    def checkpoint(self) -> None:
        """Do nothing, for the same reason."""

    def ageing(self) -> Ageing:
        """Return what was written last by `set_ageing`."""
        return Ageing(*self._connection.row("SELECT put_off, day_left FROM store"))

    def set_ageing(self, ageing: Ageing) -> None:
        """Write `ageing` to the store, for this process and later ones."""
        self._connection.all("UPDATE store SET put_off = %s, day_left = %s", *ageing)

    def cut(self) -> None:
        """Have a call fail that waits for the server."""
        self._connection.cut()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _observer(self, observer: Observer) -> int:
        return self._id("runs", **vars(observer))

    def _room(self, jid: str, domain: str) -> int:
        return self._id("places", jid=jid, domain=domain)

    def _id(self, table: str, **values: str) -> int:
        """Return the id of the row with these values; make it if there is none.

        The store is locked, so no other bridge makes it.
        """
        key_ = (table, *values.values())
        if key_ not in self._ids:
            named = {name: storable(text) for name, text in values.items()}
            where = " AND ".join(f"{name} = %s" for name in named)
            rows = self._connection.all(f"SELECT id FROM {table} WHERE {where}", *named.values())
            if not rows:
                rows = self._connection.all(
                    f"INSERT INTO {table} ({', '.join(named)}) "
                    f"VALUES ({', '.join(['%s'] * len(named))}) RETURNING id",
                    *named.values(),
                )
            self._ids[key_] = rows[0][0]
        return self._ids[key_]
