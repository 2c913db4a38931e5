"""The interface of a team's database to the files that are shipped to it, and its values. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from bridge.store.database import Database, Happened, Observer, Tenure, TracedXml
from bridge.store.pairing import Alike, Wanted


class Shipped(NamedTuple):
    """An event on its way from a file into the database."""

    observer: Observer
    happened: Happened
    number: int
    """The id of the event in the file."""


class Sent(NamedTuple):
    """How far a file was shipped: ids of the last event and of the last stanza."""

    event: int
    stanza: int


class Mark(NamedTuple):
    """What the database knows about a file."""

    id: int
    host: str
    sent: int
    """The id of the last event that was shipped, according to the database."""
    sent_stanza: int
    now: float
    """The time by the clock of the database, in seconds since the epoch."""


class TeamDatabase(Database, Protocol):
    """An open database of a team. Methods that write are called inside of `transaction`."""

    name: str
    """The name of the store."""
    may_delete: bool
    """Whether the role may delete."""

    def mark(self, file: str, host: str, sent: Sent) -> Mark:
        """Return what the database knows about a file; make it known if it is not."""

    def lease(self, file: int, rooms: Mapping[tuple[str, str], bool]) -> set[tuple[str, str]]:
        """Take or renew leases of a file; return the rooms whose leases other files hold.

        `rooms` are JIDs and domains, each with whether a bridge of the file is there, so that it
        may take a lease.
        """

    def ship(self, file: int, shipped: Sequence[Shipped]) -> None:
        """Add events of a file, in this order."""

    def append_stanzas(
        self, observer: Observer, stanzas: Sequence[TracedXml], file: int = 0, number: int = 0
    ) -> None:
        """Add stanzas, in this order; a stanza of a file with its number there."""

    def attend(self, file: int, tenures: Sequence[tuple[str, str, Tenure]]) -> None:
        """Write who of a file was in which rooms; each tenure with the room and its domain."""

    def hear(self, mark: Mark) -> None:
        """Write up to which rows the file was shipped, and that it was heard of now."""

    def silent(self, file: str, seconds: float) -> list[tuple[str, float]]:
        """Return the other hosts that went silent in the last `seconds`, and when."""

    def reached(self, file: str, *, stanzas: bool) -> tuple[int, int | None]:
        """Return the highest id, and the last row of the file that the database has then."""

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
        until: int = ...,
    ) -> list[list[Alike]]:
        """Return for each wanted event the shared rows of other files that it may be."""

    def is_kept(self, run: str, number: int) -> bool:
        """Whether this batch of a spool of the former version, or a later one, is in the store."""

    def keep(self, run: str, number: int) -> None:
        """Write down that all batches of the run up to this number are in the store."""
