import asyncio
from collections.abc import Sequence

import pytest

from bridge.xmpp.muc.publisher import TurnBatcher


class Told(TurnBatcher[int]):
    def __init__(self) -> None:
        super().__init__()
        self.told: list[Sequence[int]] = []
        self.listeners.append(self.told.append)


async def test_what_comes_in_one_turn_is_told_together_and_in_order() -> None:
    def echo(items: Sequence[int]) -> None:
        if items == [3]:
            turn.add(4)

    turn = Told()
    turn.listeners.append(echo)
    turn.add(1)
    turn.add(2)
    assert turn.told == []
    await asyncio.sleep(0)
    turn.add(3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert turn.told == [[1, 2], [3], [4]]


async def test_a_turn_that_is_ended_early_tells_nothing_twice() -> None:
    turn = Told()
    turn.add(1)
    turn.flush()
    turn.flush()
    await asyncio.sleep(0)
    assert turn.told == [[1]]


async def test_a_mistake_of_one_listener_is_logged_and_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(items: Sequence[int]) -> None:
        raise KeyError(items)

    turn = Told()
    turn.listeners.insert(0, fail)
    turn.add(1)
    await asyncio.sleep(0)
    assert turn.told == [[1]]
    assert [record.getMessage() for record in caplog.records] == ["a listener failed (KeyError)"]
