"""A function that a model computes: typed on both sides, and checked where the model comes in."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, cast

from bridge.llm.answer import read_answer
from bridge.llm.prompt import Material, Misfit, Prompt, written
from bridge.mcp.schema import MismatchError, Reader, Schema, describe
from bridge.mcp.toolset import ToolError

TRIES = 2
"""How often a model is asked for an answer that fits: once more, knowing what was wrong."""

QUESTION_SECONDS = 120.0
"""How long one question to a model may take; a client may show it to a person first."""

DEADLINE_SECONDS = TRIES * QUESTION_SECONDS + 10.0
"""The deadline of a tool that runs one node."""

CODE_BYTES = 16
"""Of randomness in the markers around data: nobody guesses it."""

Input = TypeVar("Input")
Output = TypeVar("Output")


class Model(Protocol):
    """Something that answers in words."""

    async def complete(self, prompt: Prompt) -> str:
        """Return the model's answer; raises `ToolError` when there is none."""


def accept(given: Any, answer: Any) -> None:
    """Take every answer that fits its type."""
    del given, answer


@dataclass(frozen=True, kw_only=True)
class LlmNode(Generic[Input, Output]):
    """Makes a prompt of an `Input`, and an `Output` of what a model answers."""

    instruction: str
    """What the model is for: fixed, whatever the input."""
    output: type[Output]
    """A dataclass; the descriptions and `Bounds` in its annotations are told and checked."""
    write: Callable[[Input], Material]
    """Builds the prompt."""
    check: Callable[[Input, Output], None] = accept
    """Raises `MismatchError`, in words for the model, where a type cannot tell that it is wrong."""

    def __post_init__(self) -> None:
        # A type that JSON Schema has no words for shows when the node is written.
        assert self._form

    @cached_property
    def _form(self) -> tuple[Schema, Reader]:
        return describe(self.output)

    async def run(self, model: Model, given: Input) -> Output:
        """Return the model's answer; raises `ToolError` when none fits, or the model fails."""
        schema, read = self._form
        material = self.write(given)
        misfit = None
        for _ in range(TRIES):
            code = secrets.token_hex(CODE_BYTES)
            text = await model.complete(written(self.instruction, material, schema, code, misfit))
            try:
                answer = cast("Output", read_answer(text, read))
                self.check(given, answer)
            except MismatchError as mismatch:
                misfit = Misfit(text, str(mismatch))
            else:
                return answer
        raise ToolError(
            f"The model's answer did not fit what was asked of it, {TRIES} times.",
            condition="not-acceptable",
            hint="Ask something simpler, about less, or use a more capable model.",
        )
