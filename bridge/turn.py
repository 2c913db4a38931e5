"""What one turn of the event loop brings, told together at its end."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

log = logging.getLogger(__name__)


class Turn(Generic[Item]):
    """Gathers items, and calls each of its `listeners` with those of one turn.

    A flood brings many in one turn, and to write each down by itself costs as much as all else that
    is done with it.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self.listeners: list[Callable[[Sequence[Item]], None]] = []

    def add(self, item: Item) -> None:
        """Take an item in; needs a running loop."""
        if not self._items:
            asyncio.get_running_loop().call_soon(self.end)
        self._items.append(item)

    def end(self) -> None:
        """Tell now what has been gathered, if anything; called by itself when the turn ends."""
        items, self._items = self._items, []
        if not items:
            return
        for listener in self.listeners:
            try:
                listener(items)
            except Exception as error:  # asyncio would put it where nobody looks
                log.error(
                    "what happened was not told (%s)",
                    type(error).__name__,
                    exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
                )
