"""Stanzas that have to be answered, and how long that may take. Pure."""

from typing import NamedTuple, TypeAlias

from bridge.capture.stanza import MAX_TEXT, Stanza, outline
from bridge.newest import Newest

PATIENCE_SECONDS = 10.0
"""A request counts as unanswered after so many seconds."""

PATIENCE_STANZAS = 5
"""In a log without times, a request counts as unanswered after so many further stanzas."""

PATIENCE = (f"before {PATIENCE_STANZAS} further stanzas came", f"within {PATIENCE_SECONDS:g} s")
"""The words for that wait, in a log without times and in one with times."""

MAX_WAITING = 128
"""We wait for the answers to at most so many requests, and pass over any more. If we forgot the
oldest instead, of many in a second none would ever count as unanswered."""

Question: TypeAlias = tuple[str, str, str]
"""A stanza that has to be answered: its kind, its id, and the other side."""


class Awaited(NamedTuple):
    """A stanza that has to be answered."""

    stanza: Stanza
    number: int
    """How many stanzas had passed, with this one."""
    what: str
    """The words that name it: a message, or the tag of the request."""

    def patience(self, stanza: Stanza) -> str:
        """Return the words for how long an answer was awaited until `stanza`."""
        return PATIENCE[None not in {stanza.seconds, self.stanza.seconds}]


class AwaitedStanzas:
    """The stanzas that have to be answered, and those that were not answered in time."""

    __slots__ = ("open", "overdue")

    def __init__(self) -> None:
        self.open = Newest[Question, Awaited](MAX_WAITING)
        """The stanzas that have to be answered, oldest first."""
        self.overdue = Newest[Question, Awaited](MAX_WAITING)
        """The stanzas that were not answered in time, and still may be."""

    def add(self, key: Question, stanza: Stanza, number: int, what: str) -> None:
        """Expect an answer. A request with the key of another asks anew."""
        self.open.add(key, Awaited(outline(stanza), number, what[:MAX_TEXT]))

    def answer(self, key: Question) -> tuple[Awaited | None, Awaited | None]:
        """Take out what was answered; return it if it came in time, and if it is late."""
        if not (self.open or self.overdue):  # mostly
            return None, None
        return self.open.pop(key, None), self.overdue.pop(key, None)

    def expired(self, stanza: Stanza, count: int) -> list[tuple[str, Awaited]]:
        """Take out what was not answered in time before `stanza`; return it with its kind."""
        late = []
        while self.open:
            key, awaited = next(iter(self.open.items()))
            if stanza.seconds is not None and awaited.stanza.seconds is not None:
                if stanza.seconds - awaited.stanza.seconds < PATIENCE_SECONDS:
                    break
            elif count - awaited.number <= PATIENCE_STANZAS:
                break
            del self.open[key]
            late.append((key[0], awaited))
            self.overdue.add(key, awaited)
        return late
