from collections.abc import Mapping
from typing import Any

import pytest

from bridge.mcp.context import CannotAskError, Context
from tests.mcp.sample_tools import climb


def listening(**more: Any) -> tuple[Context, list[tuple[object, ...]]]:
    told: list[tuple[object, ...]] = []
    return Context(lambda *one: told.append(one), lambda *one: told.append(one), **more), told


def test_progress_needs_neither_a_total_nor_words() -> None:
    context, told = listening()
    context.progress(1)
    context.progress(2.5, 3, "nearly")
    assert told == [(1, None, None), (2.5, 3, "nearly")]


def test_a_log_message_has_a_level_and_any_json() -> None:
    context, told = listening()
    context.log("info", {"a": [1]})
    assert told == [("info", {"a": [1]})]


def test_a_caller_that_declared_nothing_can_do_nothing_for_us() -> None:
    assert listening()[0].capabilities == {}
    assert listening(capabilities={"roots": {}})[0].capabilities == {"roots": {}}


def test_a_tool_is_called_with_a_context_as_with_any_collaborator() -> None:
    context, told = listening()
    assert climb(context, heights=[1, 2]) == "up"
    assert told == [
        (1, 9, "at 1"),
        (2, 9, "at 2"),
        ("debug", "looked down"),
        ("warning", {"top": 2}),
    ]


async def test_a_caller_is_asked_nothing_unless_there_is_a_way() -> None:
    context, _ = listening()
    assert not context.can_ask("sampling/createMessage")
    with pytest.raises(CannotAskError):
        await context.ask("sampling/createMessage", {}, 1.0)


async def test_where_there_is_one_the_question_takes_it() -> None:
    async def put(method: str, params: Mapping[str, object], seconds: float) -> dict[str, object]:
        return {"asked": [method, params, seconds]}

    context, _ = listening(takes=lambda method: method == "roots/list", put=put)
    assert context.can_ask("roots/list")
    assert not context.can_ask("sampling/createMessage")
    assert await context.ask("roots/list", {"a": 1}, 2.5) == {
        "asked": ["roots/list", {"a": 1}, 2.5]
    }
