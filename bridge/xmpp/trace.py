"""What went over the stream, both ways, without its secrets: bounded, and written when read. Pure.

Elements are kept as they were parsed or built, since most of them are never looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from sys import getsizeof
from typing import Literal, TypeAlias
from xml.etree.ElementTree import Element

from bridge.xmpp.journal import Numbering, Ring
from bridge.xmpp.redaction import redacted

CAPACITY = 2_000
"""Stanzas kept, at 3 kB each: a quarter of an hour of a busy room, a day of a quiet one."""

MAX_WEIGHT = 16_000_000
"""Of them, in bytes of memory as far as these can be told."""

MAX_PIECE_WEIGHT = MAX_WEIGHT // 4
"""Of one piece: one of nothing but elements would push out all others, and then itself."""

ELEMENT_WEIGHT = 100
"""Bytes that an element takes beside its attributes and texts."""

ATTRIBUTES_WEIGHT = 250
"""Bytes that an element's attributes take, if it has any, beside their values."""

SHARED_VALUES = 256
"""Values of attributes that are kept once however often they come: those of the last stanzas."""

MAX_SHARED_CHARACTERS = 256
"""Of such a value, which is at hand beyond `MAX_WEIGHT`: longer than nearly every address."""

Direction: TypeAlias = Literal["in", "out"]
Tracing: TypeAlias = Callable[[Direction, Element | str], None]
"""Takes each piece of one connection."""


def untraced(direction: Direction, xml: Element | str) -> None:
    """Keep nothing."""
    del direction, xml


@dataclass(frozen=True, slots=True)
class Traced:
    """One stanza, or another piece of the stream."""

    number: int
    at: float
    """Seconds since the epoch."""
    direction: Direction
    connection: str
    """Which of the connections that there have been."""
    xml: Element | str
    """Without secrets; text for what is no element: the head and the end of a stream, and a
    comment of ours on what cannot be seen in it."""


class Trace(Ring[Traced]):
    """Keeps the last `capacity` pieces, as far as `max_weight` allows."""

    def __init__(
        self, numbering: Numbering, capacity: int = CAPACITY, *, max_weight: int = MAX_WEIGHT
    ) -> None:
        super().__init__(numbering, capacity, max_weight)
        self._listeners: list[Callable[[Traced], None]] = []
        self._connections = 0

    def of_connection(self, clock: Callable[[], float], what: str = "") -> Tracing:
        """Return what takes the pieces of one more connection; `what` says what it is for."""
        self._connections += 1
        label = f"{what} {self._connections}".strip()
        return lambda direction, xml: self.append(direction, label, xml, clock())

    def append(self, direction: Direction, connection: str, xml: Element | str, at: float) -> None:
        """Keep one piece; its secrets go no further than this."""
        if not isinstance(xml, str):
            xml = redacted(xml)
            _share_values(xml)
        weight = _weight(xml)
        if weight > MAX_PIECE_WEIGHT:
            xml = f"<!-- left out: {weight} bytes in memory are too many to keep -->"
            weight = _weight(xml)
        traced = Traced(self.numbering.next(), at, direction, connection, xml)
        self._keep(traced, weight)
        for listener in self._listeners:
            listener(traced)

    def listen(self, listener: Callable[[Traced], None]) -> None:
        """Call `listener` with each piece from now on."""
        self._listeners.append(listener)


def _share_values(xml: Element) -> None:
    """Let what stands in attributes again and again, as addresses do, take memory once."""
    for one in xml.iter():
        for name, value in one.items():
            if len(value) <= MAX_SHARED_CHARACTERS:
                one.set(name, _shared(value))


@lru_cache(SHARED_VALUES)
def _shared(value: str) -> str:
    return value


def _weight(xml: Element | str) -> int:
    if isinstance(xml, str):
        return ELEMENT_WEIGHT + getsizeof(xml)
    weight = 0
    for one in xml.iter():
        weight += ELEMENT_WEIGHT
        if one.text:
            weight += getsizeof(one.text)
        if one.tail:
            weight += getsizeof(one.tail)
        if one.keys():  # `attrib` would make, and keep, a dictionary where there is none
            weight += ATTRIBUTES_WEIGHT + sum(map(getsizeof, one.attrib.values()))
    return weight
