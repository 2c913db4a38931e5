"""Collects the items of one turn of the event loop, and hands them on together."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

log = logging.getLogger(__name__)


class TurnBatcher(Generic[Item]):
    """Collects items, and calls its `listeners` at the end of each turn with the turn's items.

    A flood brings many items in one turn. Logging each item by itself would double its cost.
    """

    def __init__(self) -> None:
        self._items: list[Item] = []
        self.listeners: list[Callable[[Sequence[Item]], None]] = []

    def add(self, item: Item) -> None:
        """Take an item in; needs a running loop."""
        if not self._items:
            asyncio.get_running_loop().call_soon(self.flush)
        self._items.append(item)

    def flush(self) -> None:
        """Call the listeners now, if there are items; the loop calls this when the turn ends."""
        items, self._items = self._items, []
        if not items:
            return
        for listener in self.listeners:
            try:
                listener(items)
            except Exception as error:  # asyncio would report it in its own log only
                log.error("a listener failed (%s)", type(error).__name__)
                log.debug("where it failed", exc_info=error)
