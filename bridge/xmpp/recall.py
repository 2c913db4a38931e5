"""What was said lately, so that nothing is told twice and our own words are known. Pure."""

from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from typing import Generic, TypeAlias, TypeVar

from bridge.xmpp.events import MessageReceived, Source

REMEMBERED = 5_000
"""Messages: more than a room says in the overlap of two stays."""

Key: TypeAlias = int
"""A hash, since what is remembered is to be small whatever was said. Python's is seeded anew in
each process, so nobody can make two messages alike."""

Item = TypeVar("Item", bound=Hashable)


class Recall:
    """The last `capacity` messages that came, and those that we sent."""

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._met: _Newest[Key] = _Newest(capacity)
        self._sent: _Newest[str] = _Newest(capacity)

    def sent(self, id_: str) -> None:
        """Note a message of ours."""
        self._sent.add(id_)

    def meet(self, message: MessageReceived) -> MessageReceived | None:
        """Return `message` as it is to be told; None if it has been told before.

        One nickname may be shared by several sessions (XEP-0045, section 7.2.9 leaves it to the
        room), and somebody else may have had ours before: what came under it is our own only if
        we sent it.
        """
        if message.own and message.id not in self._sent:
            message = replace(message, own=False)
        key = _key(message)
        if key in self._met:
            # Live messages are never held back: two may well be alike.
            return message if message.source is Source.LIVE else None
        self._met.add(key)
        return message


class _Newest(Generic[Item]):
    """The last `capacity` things that were added."""

    def __init__(self, capacity: int) -> None:
        self._items: set[Item] = set()
        self._order: deque[Item] = deque()
        self._capacity = capacity

    def add(self, item: Item) -> None:
        self._items.add(item)
        self._order.append(item)
        if len(self._order) > self._capacity:
            self._items.discard(self._order.popleft())

    def __contains__(self, item: object) -> bool:
        return item in self._items


def _key(message: MessageReceived) -> Key:
    if message.stanza_id is not None:
        return hash(message.stanza_id)
    concerns = (message.reacts_to, message.reactions, message.retracts)
    silent = (message.encrypted, message.payload)
    return hash((message.from_, message.id, message.body, concerns, silent))
