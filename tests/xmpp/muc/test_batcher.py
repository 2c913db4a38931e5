import asyncio
from collections.abc import Sequence

import pytest

from bridge.xmpp.muc.batcher import TurnBatcher


@pytest.fixture
def told() -> list[Sequence[int]]:
    return []


@pytest.fixture
def turn(told: list[Sequence[int]]) -> TurnBatcher[int]:
    one: TurnBatcher[int] = TurnBatcher()
    one.listeners.append(told.append)
    return one


async def test_what_comes_in_one_turn_is_told_together_and_in_order(
    turn: TurnBatcher[int], told: list[Sequence[int]]
) -> None:
    def echo(items: Sequence[int]) -> None:
        if items == [3]:
            turn.add(4)

    turn.listeners.append(echo)
    turn.add(1)
    turn.add(2)
    assert told == []
    await asyncio.sleep(0)
    turn.add(3)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert told == [[1, 2], [3], [4]]


async def test_a_turn_that_is_ended_early_tells_nothing_twice(
    turn: TurnBatcher[int], told: list[Sequence[int]]
) -> None:
    turn.add(1)
    turn.flush()
    turn.flush()
    await asyncio.sleep(0)
    assert told == [[1]]


async def test_a_mistake_of_one_listener_is_logged_and_keeps_nothing_from_the_others(
    turn: TurnBatcher[int], told: list[Sequence[int]], caplog: pytest.LogCaptureFixture
) -> None:
    def fail(items: Sequence[int]) -> None:
        raise KeyError(items)

    turn.listeners.insert(0, fail)
    turn.add(1)
    await asyncio.sleep(0)
    assert told == [[1]]
    assert [record.getMessage() for record in caplog.records] == ["a listener failed (KeyError)"]
