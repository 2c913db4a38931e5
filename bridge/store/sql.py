"""What both databases of a store do by the same SQL.

Both promise the following:

*Order.* Each event has an id, and so has each stanza, in a sequence apart. Ids are whole numbers
above 0. A transaction gives its events ids in the order in which they were added, each higher than
every id that any process could read before. So a reader who has read everything up to an id can go
on from there, and misses nothing. No id is given twice, even if its event was deleted; some ids may
never be given.

*Time.* Every event has two times, in milliseconds. `at` is what its observer's wall clock showed.
`seen` is by a clock that all observers in the same store share: a file has a clock that is never
set, a database its own. Events of different observers are compared by it, and tenures have times of
it. Neither time gives the order.

*Transactions.* A transaction is kept as a whole, or not at all. Writing transactions come one after
the other: from the beginning of a transaction to its end, no other process changes the data that it
reads. A process that only reads never waits.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import Any, ClassVar

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
from bridge.store.errors import StoreError
from bridge.store.pairing import SAME_SECONDS, Alike, Wanted
from bridge.store.queries import DATED, among
from bridge.text import milliseconds

# A message that a bridge sent has a `message` below zero, and the room's copy of it the same number
# above zero. A copy that comes after more than a minute does not count: xmppSend waits no longer.
_RECORDED = """
SELECT events.id, events.at, jid, events.event, account, nickname, run, events.shared, CASE
  WHEN events.message < 0 AND EXISTS (
    SELECT 1 FROM entries AS copy WHERE copy.room = events.room AND copy.message = -events.message
    AND copy.at BETWEEN events.at - 1000 AND events.at + 60000)
  THEN 1 ELSE 0 END, events.seen
"""

_STANZAS = """
SELECT events.id, events.at, '', direction, connection, xml, account, nickname, run, 0, 0, events.at
"""

GIVEN = ("n", "content", "stanza", "seen", "observer", "number", "ours")
"""The fields of each wanted event, as `alike` gives them to the database: JSON objects."""

_ALIKE = """
SELECT given.n, events.id, events.seen / CAST(1000 AS DOUBLE PRECISION), events.stanza,
  events.observer = given.observer, events.event LIKE ?,
  coalesce((SELECT run FROM runs WHERE runs.id = events.observer), ''), {number}
FROM {given} CROSS JOIN entries AS events
WHERE events.room = (SELECT id FROM places WHERE {place}) AND {same} AND {other}
"""
_TOLD = '%"delayedFrom":%'
_NAMED = "events.stanza = given.stanza"
_NEAR = f"""events.content = given.content
AND events.seen BETWEEN given.seen - {SAME_SECONDS * 1000:.0f}
  AND given.seen + {SAME_SECONDS * 1000:.0f}"""

_TENURE = (int, str, float, float, float, float, int, str, float)
"""The types of the columns of `Tenure`."""


class SqlDatabase(ABC):
    """An open store; one thread uses it. Methods may raise `StoreError`.

    In its statements a `?` stands for a value.
    """

    BYTES: ClassVar[Mapping[str, str]]
    """How many bytes a row of each table takes, in SQL, as what follows."""
    CONTAINS: ClassVar[str]
    """Whether a text contains a value."""
    LOWER: ClassVar[str]
    """A text with small ASCII letters."""
    SAID: ClassVar[str]
    """The searchable text of an event that is not `plain`."""
    SETTINGS: ClassVar[str]
    """The table with one row, which is about the store as a whole."""
    ENTRIES: ClassVar[str] = "entries AS events"
    GIVEN: ClassVar[str]
    """The objects of a JSON array as rows with the columns of `GIVEN`."""
    OTHER: ClassVar[str]
    """The condition that a row is another's; its values are the `others` of `alike`."""
    FILES: ClassVar[str] = ""
    """Joins the files that rows came from."""
    NUMBER: ClassVar[str] = "events.id"
    """The id that a row has in the file that it came from."""
    TARGETED: ClassVar[str] = ""
    """The condition that a row is for one database; empty in a database, which has no others."""
    name: str
    """The name of the store; a new store at the same place has another name."""
    asked = "since"
    """When the run of a tenure asked to be let in, in SQL."""
    patience: float
    """A tenure that has not been extended for so many seconds has ended."""

    def __init__(self, ids_read: int, target: str = "") -> None:
        """`page` reads `ids_read` ids at most; only rows for the database `target` are used."""
        self._ids: dict[tuple[str, ...], int] = {}
        """Ids of observers and rooms, by the table and the other columns."""
        self._ids_read = ids_read
        self.target = target

    @abstractmethod
    def all(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a statement returns."""

    @abstractmethod
    def row(self, statement: str, values: Sequence[object] = ()) -> tuple[Any, ...]:
        """Return the only row."""

    def each(self, statement: str, values: Sequence[object]) -> Iterable[tuple[Any, ...]]:
        """Yield the rows; where it takes long to read one, only as they are needed."""
        return self.all(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a transaction; it is kept when the block ends, and undone if the block raises.

        Raises `BusyStoreError` if another process writes for too long, or if the caller has to
        repeat the transaction. If the connection breaks before COMMIT is answered, the block may
        have been kept or undone: `AwayStoreError`.
        """
        try:
            self.begin()
            yield
            self.all("COMMIT")
        except BaseException:  # whatever ends the block, nothing of it may stay
            self._ids.clear()
            self.roll_back()
            raise

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction in which no other process writes."""

    def roll_back(self) -> None:
        """Undo the transaction, if there is one and the connection still stands."""
        with suppress(StoreError):
            self.all("ROLLBACK")

    @abstractmethod
    def now(self) -> float:
        """Return the time by the clock that all observers in this store share."""

    @abstractmethod
    def newest(self, *, stanzas: bool = False) -> int:
        """Return the highest id that an event, or a stanza, has or had; 0 if there was none."""

    def append(self, observer: Observer, happened: Sequence[Happened]) -> None:
        """Add events, in this order; inside of `transaction`."""
        self.ship([each._replace(observer=observer) for each in happened])

    def ship(self, happened: Sequence[Happened], file: int = 0) -> None:
        """Add events, each by its observer, in this order; inside of `transaction`.

        A team's database notes from which `file` they come, and their rows there.
        """
        rows = list[dict[str, Any]]()
        for each in happened:
            by = each.observer
            row = queries.columns_of(each, self.place(each.room, by.domain), self.observer(by))
            row["file"], row["number"] = file, each.row
            rows.append(row)
        self.insert(rows)

    def insert(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add events by the columns of their rows; a row without an id gets the next one."""
        if rows:
            last = self.add("entries", rows)
            first = rows[0].get("id", last - len(rows) + 1)
            self.all(
                "UPDATE places SET bytes = coalesce(places.bytes, 0) + added.size FROM "
                f"(SELECT room, sum({self.BYTES['entries']}) AS size FROM entries "
                "WHERE id BETWEEN ? AND ? GROUP BY room) AS added WHERE places.id = added.room",
                (first, last),
            )

    def append_stanzas(self, observer: Observer, stanzas: Sequence[TracedXml]) -> None:
        """Add stanzas, in this order; inside of `transaction`."""
        self.ship_stanzas([(observer, stanza, 0) for stanza in stanzas])

    def ship_stanzas(
        self, stanzas: Sequence[tuple[Observer, TracedXml, int]], file: int = 0
    ) -> None:
        """Add stanzas as `ship` adds events: each by its observer, with its row in the `file`."""
        if stanzas:
            rows = [
                {"at": milliseconds(at), "direction": direction, "connection": connection}
                | {"xml": queries.storable(xml), "observer": self.observer(observer)}
                | {"file": file, "number": number}
                for observer, (at, direction, connection, xml), number in stanzas
            ]
            last = self.add("traffic", rows)
            self.all(
                f"UPDATE {self.SETTINGS} SET stanza_bytes = coalesce(stanza_bytes, 0) + "
                f"(SELECT sum({self.BYTES['traffic']}) FROM traffic WHERE id BETWEEN ? AND ?)",
                (last - len(rows) + 1, last),
            )

    @abstractmethod
    def add(self, table: str, rows: Sequence[dict[str, Any]]) -> int:
        """Insert rows, each its values by their columns; return the id of the last.

        A row without an id gets the next one. Columns that the table does not have are left out.
        """

    def alike(
        self, room: str, domain: str, wanted: Sequence[Wanted], *others: object
    ) -> list[list[Alike]]:
        """Return for each wanted event the shared rows of others that it may be.

        `others` are the values of the condition `OTHER`:

        - in a file: the run that observed the wanted events. Its own rows count only if a wanted
          event is `ours`.
        - in a team's database, first: what `SqliteDatabase.own` returns, as JSON. The rows that the
          events' own file has shipped do not count.
        - second: the oldest row that this file still has. Of its own older rows, each counts if a
          wanted event is `ours`.
        - third: the highest id that is looked at.

        If `by` is given, a row counts that a copy of that file has brought.
        """
        rows = [list[Alike]() for _ in wanted]
        given = [
            (n, *each.key, milliseconds(each.seen), each.by, each.row, int(each.ours))
            for n, each in enumerate(wanted)
        ]
        text = queries.encoded([dict(zip(GIVEN, it, strict=True)) for it in given])
        place = self._where(jid=room, domain=domain)
        for same in (_NAMED, _NEAR):
            statement = _ALIKE.format(
                given=self.GIVEN, place=place, same=same, other=self.OTHER, number=self.NUMBER
            )
            for n, *row in self.all(statement, (_TOLD, text, *self._values(room, domain), *others)):
                rows[n].append(Alike(*row))
        return rows

    @property
    @abstractmethod
    def file(self) -> str:
        """The name of the file that a row came from, in SQL."""

    def astray(self, query: Query) -> str:
        """Return a condition that finds damaged rows, too, which no other condition would find."""
        return ""

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the store takes, without the space that deleted rows left free."""

    @abstractmethod
    def remove(self, table: str, ids: Sequence[int]) -> None:
        """Delete rows, damaged ones, too, and count what is gone."""

    def shrink(self) -> None:  # noqa: B027 - a server reuses the space by itself (autovacuum)
        """Give some of the space of deleted rows back to the system."""

    def checkpoint(self) -> None:  # noqa: B027 - see `shrink`
        """Give the rest of that space back, outside of a transaction."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    def span(self, query: Query) -> Span:
        """Return the range of the ids that the events of the query's rooms and time have."""
        within, values = self._within(query)
        table, first, last = queries.table_of(query), 0, self.newest(stanzas=query.stanzas)
        # With `+ 0` the index of times is used, not the one of ids, which may take long to read.
        edge = f"SELECT {{}}(events.id + 0) FROM {table} AS events WHERE {within} AND at {{}} ?"
        if query.start is not None:
            start = (*values, milliseconds(query.start))
            ((id_,),) = self.all(edge.format("min", ">="), start)
            first = last if id_ is None else id_ - 1
        if query.end is not None:
            ((id_,),) = self.all(edge.format("max", "<="), (*values, milliseconds(query.end)))
            last = id_ or 0
        rows = self.all(f"SELECT at FROM {table} WHERE {DATED} ORDER BY id LIMIT 1")
        oldest = rows[0][0] / 1000 if rows else inf
        rooms, where = queries.rooms_of(query), self._where(domain=query.domain)
        known = self.all(
            "SELECT coalesce(CAST(evicted AS BIGINT), 0), (SELECT at FROM entries "
            f"WHERE room = places.id AND {DATED} ORDER BY at LIMIT 1), "
            "(SELECT id FROM entries WHERE room = places.id ORDER BY id LIMIT 1) "
            f"FROM places WHERE {where} AND {among('jid', rooms)}",
            (*self._values(query.domain), *rooms),
        )
        evicted = max((gone for gone, _, _ in known), default=0)
        whole_from = (inf if at is None else at / 1000 for gone, at, _ in known if gone)
        begin = min((id_ - 1 for _, _, id_ in known if id_ is not None), default=evicted)
        whole = max(whole_from, default=-inf)
        return Span(self.name, oldest, evicted, whole, begin, first, last)

    def page(
        self, query: Query, *, after: int, until: int, limit: int, backward: bool = False
    ) -> tuple[list[Recorded], int, int]:
        """Return the first events that match, and the id up to which all were read.

        The last value counts the damaged rows that were left out.

        Only ids above `after` and up to `until` are read, and only a bounded number of them; ids
        that no row has are passed over. So there may be more matches above the returned id. With
        `backward` it begins with the last event up to `until`, and there may be more matches up to
        the returned id.
        """
        first, last, order = after, min(until, after + self._ids_read), "ASC"
        if backward:
            first, last, order = max(after, until - self._ids_read), until, "DESC"
        within, values = self._within(query)
        conditions, more = self._conditions(query)
        # SQLite relies on the order of the ids, and checks only one of the two bounds for each row.
        # A row with a damaged id may be out of order. The `+` makes SQLite check both bounds.
        matching = f"({within}{self.astray(query)}) AND {conditions}"
        rows = self.all(
            f"{self.select(stanzas=query.stanzas)} WHERE {matching} "
            "AND events.id > ? AND events.id <= ? AND +events.id > ? AND +events.id <= ? "
            f"ORDER BY events.id {order} LIMIT ?",
            (*values, *more, first, last, first, last, limit),
        )
        ids = [row[0] for row in rows]
        if len(rows) == limit:
            read_to = min(ids) - 1 if backward else max(ids)
        else:  # a damaged count may promise many ids that no row has
            edge, rest = "min(id) - 1", (until, last, until)
            if backward:
                edge, rest = "max(id)", (after, after, first)
            ((edge_id,),) = self.all(
                f"SELECT coalesce({edge}, ?) FROM {queries.table_of(query)} "
                "WHERE id > ? AND id <= ?",
                rest,
            )
            read_to = min(edge_id, first) if backward else max(edge_id, last)
        readable = self.readable(rows, stanzas=query.stanzas)
        return readable, read_to, len(rows) - len(readable)

    def readable(self, rows: list[tuple[Any, ...]], *, stanzas: bool) -> list[Recorded]:
        """Return the events in the rows, without the damaged rows."""
        exact = map(queries.with_stanza, rows) if stanzas else rows
        return [event for row in exact if (event := queries.recorded(row)) is not None]

    def select(self, *, stanzas: bool) -> str:
        """Return the SQL that selects all events, or stanzas, as `readable` takes them."""
        origin = f"{self.file}, {self.NUMBER}"
        known = f"LEFT JOIN runs ON runs.id = events.observer {self.FILES}"
        if stanzas:
            return f"{_STANZAS}, {origin} FROM traffic AS events {known}"
        places = "LEFT JOIN places ON places.id = events.room"
        return f"{_RECORDED}, {origin} FROM {self.ENTRIES} {places} {known}"

    def _within(self, query: Query) -> tuple[str, list[object]]:
        """Return the query's rooms and accounts as an SQL condition, with its values."""
        of_account = f"{among('account', query.connection_of)}{self.TARGETED}"
        by = f"observer IN (SELECT id FROM runs WHERE {of_account})"
        accounts: list[object] = [*query.connection_of, *self._values()]
        if query.stanzas:
            return by, accounts
        rooms = ("", *query.rooms)
        known = self.all(
            f"SELECT jid, id FROM places WHERE {self._where(domain=query.domain)} "
            f"AND {among('jid', rooms)}",
            (*self._values(query.domain), *rooms),
        )
        ids, none = ([id_ for jid, id_ in known if bool(jid) is named] for named in (True, False))
        # Without a room, a gap is about events of any room.
        within = f"({among('room', ids)} OR ({among('room', none)} AND ({by} OR kind = 'gap')))"
        return within, [*ids, *none, *accounts]

    def _conditions(self, query: Query) -> tuple[str, list[object]]:
        """Return the other conditions of the query as SQL, and their values."""
        where, values = ["TRUE"], list[object]()
        for condition, bound in (("events.at >= ?", query.start), ("events.at <= ?", query.end)):
            if bound is not None:
                where.append(condition)
                values.append(milliseconds(bound))
        if query.kinds is not None:
            where.append(among("kind", query.kinds))
            values += query.kinds
        exact = self.CONTAINS.format(self.LOWER.format("event"))
        if query.mentions:
            where.append(exact)
            # `lower` changes only the letters of ASCII, in both databases and in `bytes`.
            values.append(queries.encoded(query.mentions)[1:-1].encode().lower().decode())
        if query.contains:
            said = self.CONTAINS.format(self.SAID)
            contains = f"CASE WHEN plain = 1 THEN {exact} ELSE {said} END"
            where.append(f"({' OR '.join([contains] * len(query.contains))})")
            for text in map(queries.storable, query.contains):
                values += [queries.encoded(text)[1:-1], text]
        return " AND ".join(where), values

    def tenures(self, room: str, domain: str, since: float = -inf) -> list[Tenure]:
        """Return the room's tenures; with `since`, only those until then or later."""
        rows = self.all(
            "SELECT tenures.id, run, since, until, since_at, until_at, ended, "
            f"{self.file}, {self.asked} FROM tenures JOIN places ON places.id = place "
            f"{self.FILES} WHERE {self._where(jid=room, domain=domain)} AND until >= ?",
            (*self._values(room, domain), since),
        )
        return [Tenure(*row) for row in rows if _is_tenure(row)]

    def latest(self) -> float:
        """Return the time of the newest event; minus infinity if there is none."""
        rows = self.all(f"SELECT at FROM entries WHERE {DATED} ORDER BY id DESC LIMIT 1")
        return rows[0][0] / 1000 if rows else -inf

    def holdings(self) -> Sequence[Holding]:
        """Return the holding of each room, of connections, and of stanzas."""
        oldest = "SELECT coalesce(CAST(at AS BIGINT), 0) FROM"
        rows = self.all(
            f"SELECT id, jid, CAST(bytes AS BIGINT), ({oldest} entries WHERE room = places.id "
            "ORDER BY at LIMIT 1) FROM places "
            f"UNION ALL SELECT 0, '', CAST(stanza_bytes AS BIGINT), ({oldest} traffic "
            f"ORDER BY at LIMIT 1) FROM {self.SETTINGS}"
        )
        # The size in a damaged store may be 0 or negative.
        return [
            Holding(id_, name, max(size or 0, 1), at / 1000)
            for id_, name, size, at in rows
            if at is not None
        ]

    def delete(self, holding: Holding, most: Amount, span: tuple[float, float] | None) -> Amount:
        """Delete events or stanzas, no more than `most`; return how much was deleted.

        The rows that were written first are deleted first. With `span`, a start (inclusive) and an
        end (exclusive), only rows whose time is within it are deleted, the earliest first.
        """
        table, where, order, values = "traffic", "TRUE", "id", list[float]()
        if holding.id:
            table, where, values = "entries", "room = ?", [holding.id]
        if span is not None:
            where, order = f"{where} AND at >= ? AND at < ?", "at, id"
            # Infinity is no whole number.
            values += [round(1000 * at) if abs(at) < inf else -(2**62) for at in span]
        rows = self.each(
            f"SELECT id, {self.BYTES[table]} FROM {table} WHERE {where} ORDER BY {order} LIMIT ?",
            (*values, most.rows),
        )
        ids, gone = queries.fitting(rows, most)
        if ids:
            self.remove(table, ids)
        return Amount(len(ids), gone)

    def ageing(self) -> Ageing:
        """Return the last value that `set_ageing` wrote."""
        names = [f"coalesce(CAST({name} AS DOUBLE PRECISION), 0)" for name in Ageing._fields]
        return Ageing(*self.row(f"SELECT {', '.join(names)} FROM {self.SETTINGS}"))

    def set_ageing(self, ageing: Ageing) -> None:
        """Write `ageing` to the store, for this process and later ones; inside of `transaction`."""
        names = ", ".join(f"{name} = ?" for name in Ageing._fields)
        self.all(f"UPDATE {self.SETTINGS} SET {names}", ageing)

    def observer(self, observer: Observer, *, make: bool = True) -> int:
        """Return the id of an observer; if there is none, make it, or else return 0."""
        return self._id("runs", make=make, **vars(observer))

    def place(self, jid: str, domain: str) -> int:
        """Return the id of a room for accounts of a domain; make it if there is none."""
        return self._id("places", jid=jid, domain=domain)

    def _id(self, table: str, *, make: bool = True, **named: str) -> int:
        """Return the id of the row with these values; if there is none, make it, or return 0."""
        key = (table, *named.values())
        if key not in self._ids:
            values = self._values(*map(queries.storable, named.values()))
            columns = (*named, "target")[: len(values)]
            find = f"SELECT id FROM {table} WHERE {self._where(**named)}"
            places = ", ".join("?" * len(values))
            insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places}) RETURNING id"
            rows = self.all(find, values)
            if not rows and not make:
                return 0
            self._ids[key] = int((rows or self.all(insert, values))[0][0])
        return self._ids[key]

    def _where(self, **named: str) -> str:
        return " AND ".join(f"{name} = ?" for name in named) + self.TARGETED

    def _values(self, *values: str) -> tuple[str, ...]:
        """Return the values for `_where`."""
        return (*values, self.target) if self.TARGETED else values


def _is_tenure(row: tuple[Any, ...]) -> bool:
    latest = queries.LATEST / 1000
    return tuple(map(type, row)) == _TENURE and all(0 <= time <= latest for time in row[2:6])
