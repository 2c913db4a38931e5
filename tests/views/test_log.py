"""The command `log`, without a store."""

from collections.abc import AsyncIterator
from math import inf
from time import process_time
from typing import Any

from bridge.store.database import Recorded
from bridge.views.log import Log
from tests.store.shelf import NIGHTLY, ROOM


class Stanzas:
    """A walk through very many short stanzas."""

    oldest_at, unreadable, more, next = inf, 0, False, "end"

    async def __aiter__(self) -> AsyncIterator[Recorded]:
        stanza = {"kind": "stanza", "direction": "in", "xml": ""}
        row = Recorded(1, 0.0, ROOM, stanza, NIGHTLY, shared=True)
        while True:
            yield row


async def test_ten_times_the_newest_take_no_more_than_some_twenty_times_as_long() -> None:
    async def walk(**_: object) -> Any:
        return Stanzas()

    async def seconds(limit: int) -> float:
        began = process_time()
        await Log(walk, (), as_json=False, names_rooms=False).show(limit=limit)
        return process_time() - began

    few = min([await seconds(4_000) for _ in range(3)])
    assert await seconds(40_000) < 20 * few
