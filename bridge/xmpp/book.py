"""Numbered things, the newest of them kept, and the places between them. Pure."""

from collections.abc import Iterator, Sequence
from typing import Generic

from bridge.xmpp.ring import Kept, Loss, Numbering, Ring


class Book(Generic[Kept]):
    """What can be read from any place on: the journal is one, and the trace."""

    def __init__(self, numbering: Numbering, ring: Ring[Kept]) -> None:
        self.numbering = numbering
        """Shared by all books of one run, so that a cursor is a place in each."""
        self._ring = ring

    @property
    def cursor(self) -> str:
        """The place after everything that has happened."""
        return self.cursor_of(self.numbering.last)

    @property
    def oldest(self) -> str:
        """The place before the oldest thing that is kept."""
        return self.cursor_of(self._ring.forgotten)

    @property
    def evicted(self) -> Loss | None:
        """What is not kept of this run; None if all of it is."""
        forgotten = self._ring.forgotten
        return Loss(1, forgotten, "evicted") if forgotten else None

    def cursor_of(self, number: int) -> str:
        """The place after the thing with this number."""
        return self.numbering.cursor_of(number)

    def since(self, cursor: str) -> tuple[list[Kept], Loss | None]:
        """Return what came after `cursor`, oldest first, and what of it is lost.

        Raises `CursorError` where it is no cursor.
        """
        number, loss = self.numbering.place(cursor, self._ring.forgotten)
        return self._ring.after(number), loss

    def parts(self, since: str | None) -> tuple[Sequence[Sequence[Kept]], Loss | None]:
        """Return the same as `since`, or all that is kept, in parts that stay as they are."""
        if since is None:
            return self._ring.stretches(), self.evicted
        number, loss = self.numbering.place(since, self._ring.forgotten)
        return self._ring.stretches(number), loss

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._ring)

    def __reversed__(self) -> Iterator[Kept]:
        return reversed(self._ring)

    def __len__(self) -> int:
        return len(self._ring)
