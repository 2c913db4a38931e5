from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest

from bridge.mcp.toolset import (
    DEFAULT_DEADLINE_SECONDS,
    ArgumentError,
    Tool,
    ToolError,
    Toolset,
    ToolsetError,
    merge,
    tool,
)


class Room:
    def __init__(self, name: str) -> None:
        self.name = name


class Lobby(Room):
    pass


@dataclass(frozen=True)
class Count:
    words: int


@tool(title="Count words", read_only=True, open_world=False)
def word_count(text: str) -> Count:
    """Count the words of a text."""
    return Count(len(text.split()))


@tool("room.say", title="Say", destructive=True, deadline=2.5)
async def say(room: Room, /, message: str) -> str:
    """Say something."""
    return f"{room.name}: {message}"


WORDS = Toolset("words", (word_count,))
TALK = Toolset("talk", (say,))


def test_a_typed_function_with_a_docstring_is_a_tool() -> None:
    assert word_count.name == "word_count"
    assert word_count.description == "Count the words of a text."
    assert word_count.output_schema == {
        "type": "object",
        "properties": {"words": {"type": "integer"}},
        "required": ["words"],
        "additionalProperties": False,
    }
    assert not word_count.waits
    assert word_count("a b") == Count(2)


def test_a_coroutine_waits_and_has_a_deadline() -> None:
    assert say.name == "room.say"
    assert say.waits
    assert say.deadline == 2.5
    assert word_count.deadline == DEFAULT_DEADLINE_SECONDS
    assert say.output_schema is None


def test_what_is_not_said_of_a_tool_is_taken_cautiously() -> None:
    @tool(title="Plain")
    def plain() -> str:
        """Do something."""
        return ""

    assert (plain.read_only, plain.destructive, plain.idempotent, plain.open_world) == (
        False,
        False,
        False,
        True,
    )


def test_a_tool_that_only_reads_destroys_nothing_and_may_be_repeated() -> None:
    @tool(title="Read", read_only=True, destructive=True)
    def read() -> str:
        """Read."""
        return ""

    assert not read.destructive
    assert read.idempotent


def no_docstring() -> str:
    return ""


def no_result():  # type: ignore[no-untyped-def]
    """Return who knows what."""


def bare_number() -> int:
    """Return a number."""
    return 1


def raw_bytes() -> bytes:
    """Return bytes."""
    return b""


@pytest.mark.parametrize("function", [no_docstring, no_result, bare_number, raw_bytes])
def test_a_tool_without_docstring_or_a_result_to_describe_is_its_authors_error(
    function: Any,
) -> None:
    with pytest.raises(ToolsetError, match=function.__name__):
        tool(title="Wrong")(function)


@pytest.mark.parametrize(("name", "good"), [("a" * 128, True), ("A.b_c-9", True)])
def test_a_name_of_the_allowed_characters_is_a_name(name: str, good: bool) -> None:
    assert good
    assert tool(name, title="Named")(word_count.function).name == name


@pytest.mark.parametrize("name", ["a" * 129, "tools/call", "with space", "ü", "line\n"])
def test_any_other_name_is_its_authors_error(name: str) -> None:
    with pytest.raises(ToolsetError, match="no name for a tool"):
        tool(name, title="Named")(word_count.function)


async def test_a_tool_is_handed_its_collaborators_by_type() -> None:
    bound = TALK.bind([Count(1), Lobby("lobby")])
    assert await bound["room.say"].run(message="hi") == "lobby: hi"


@pytest.mark.parametrize(
    ("given", "count"),
    [([], 0), ([Count(1)], 0), ([Room("a"), Lobby("b")], 2)],
    ids=["none", "another", "two"],
)
def test_a_collaborator_that_is_missing_or_ambiguous_is_an_error(
    given: list[object], count: int
) -> None:
    with pytest.raises(ToolsetError, match=f"wants a Room; there are {count} here"):
        TALK.bind(given)


def test_collaborators_may_be_any_iterable() -> None:
    both = merge([TALK, Toolset("more", (tool("again", title="Again")(say.function),))])
    assert set(both.bind(iter([Room("a")]))) == {"room.say", "again"}


def test_a_module_gives_its_tools_in_the_order_they_are_written() -> None:
    module = ModuleType("tools")
    vars(module).update(b=say, other="text", a=word_count)
    assert Toolset.of_module("all", module).tools == (say, word_count)


def test_a_read_only_set_withholds_what_changes_anything() -> None:
    assert merge([TALK, WORDS]).that_only_read().tools == (word_count,)


def test_sets_are_merged_in_order() -> None:
    both = merge([TALK, WORDS])
    assert both.tools == (say, word_count)
    assert both.name == "talk+words"
    assert merge([]).tools == ()


def test_two_tools_of_one_name_clash() -> None:
    with pytest.raises(ToolsetError, match="words and more both have a tool word_count"):
        merge([WORDS, Toolset("more", (word_count,))])


def test_a_failure_carries_its_condition_and_a_hint() -> None:
    error = ArgumentError("no", condition="bad-request", hint="try yes")
    assert isinstance(error, ToolError)
    assert (str(error), error.condition, error.hint) == ("no", "bad-request", "try yes")


def test_a_tool_is_a_value() -> None:
    assert isinstance(word_count, Tool)
    with pytest.raises(AttributeError):
        word_count.name = "other"  # type: ignore[misc]
