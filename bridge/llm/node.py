"""A function that a model computes: input and output have types, and each answer is checked."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from bridge.llm.model import QUESTION_SECONDS, Model, model_for
from bridge.llm.prompt import Material, write_prompt
from bridge.mcp.context import Context
from bridge.mcp.errors import ArgumentError, ToolError
from bridge.mcp.jsonrpc import decoder
from bridge.mcp.schema import MismatchError, Reader, describe
from bridge.mcp.toolset import Tool, tool
from bridge.settings.table import Configuration
from bridge.text import visible

TRIES = 2
"""How often a model is asked for an answer that fits. The second time it is told its mistake."""

DEADLINE_SECONDS = TRIES * QUESTION_SECONDS + 10.0
"""The deadline of a tool that runs one node."""

CODE_BYTES = 16
"""The number of random bytes in the markers around data: too many to be guessed."""

MAX_ANSWER_BYTES = 16 * 1024
"""The longest JSON in a model's answer, in bytes, with hidden characters escaped as in the result.
So the result is no longer than a page of the room's history."""

TASK = "Do what you are for with the data below."
"""The task of a node without a `write` of its own."""

MAX_STRAY = 100
"""How many braces of an answer may begin no object: a model's thoughts may quote code. Each costs a
look at the rest of the answer, at worst some 20 ms."""

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, kw_only=True)
class LlmNode(Generic[Input, Output]):
    """Writes a prompt from an `Input`, and reads an `Output` from what a model answers."""

    instruction: str
    """What the model is for: fixed, whatever the input."""
    input: type[Input]
    """A dataclass; its fields are the arguments of the tool that runs the node."""
    output: type[Output]
    """A dataclass; its descriptions and `Bounds` are sent to the model and checked."""
    write: Callable[[Input], Material] = lambda given: Material(TASK, [given])
    """Returns the task and the data of the prompt; without it the input is the data."""
    check: Callable[[Input, Output], None] = lambda given, answer: None
    """Raises `MismatchError` for mistakes that types cannot rule out; its text is for the model."""

    def __post_init__(self) -> None:
        # A type that JSON Schema cannot express fails here, when the node is defined.
        describe(self.output)

    async def run(self, model: Model, given: Input) -> Output:
        """Return the model's answer; raises `ToolError` when none fits, or the model fails."""
        schema, read = describe(self.output)
        material = self.write(given)
        misfit = None
        for _ in range(TRIES):
            code = secrets.token_hex(CODE_BYTES)
            prompt = write_prompt(self.instruction, material, schema, code, misfit)
            text = await model(prompt)
            try:
                answer = cast("Output", read_answer(text, read))
                self.check(given, answer)
            except MismatchError as mismatch:
                misfit = {"answer": text, "problem": str(mismatch)}
            else:
                return answer
        raise ToolError(
            f"The model's answer did not fit what was asked of it, {TRIES} times.",
            condition="not-acceptable",
            hint="Ask something simpler, about less, or use a more capable model.",
            remote=True,
        )

    def as_tool(
        self, *, name: str, title: str, description: str | None = None, read_only: bool = True
    ) -> Tool:
        """Return a tool that runs this node; raises `ToolsetError`, `SchemaError`.

        Without a `description` the instruction tells a model what the tool does.
        """
        schema, read = describe(self.input)

        async def run(
            configuration: Configuration, context: Context, /, arguments: dict[str, object]
        ) -> object:
            try:
                given = cast("Input", read(arguments, "arguments"))
            except MismatchError as error:
                raise ArgumentError(
                    f"{name}: {error}",
                    condition="bad-request",
                    hint="See the schema of its arguments.",
                ) from error
            return await self.run(model_for(configuration, context), given)

        run.__doc__ = description or self.instruction
        return tool(
            name,
            title=title,
            read_only=read_only,
            deadline=DEADLINE_SECONDS,
            input_schema=schema,
            output_schema=describe(self.output)[0],
        )(run)


def read_answer(text: str, read: Reader) -> object:
    """Return the last object in `text`, as `read` checks it; `MismatchError` says the flaw.

    A model may write thoughts before the object, a fence around it, and words behind it. An empty
    object counts only if there is no other.
    """
    reason, answer, json = "there is no object in it", None, ""
    start, stray = text.find("{"), 0
    while start >= 0 and stray < MAX_STRAY:
        end = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
            if value or not json:
                answer, json = value, text[start:end]
        except (ValueError, RecursionError) as error:
            reason, stray = str(error), stray + 1
        start = text.find("{", end)
    if not json:
        raise MismatchError(f"the answer is not JSON: {reason}")
    if len(visible(json[: MAX_ANSWER_BYTES + 1]).encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
        raise MismatchError(
            f"the answer is too long: the most is {MAX_ANSWER_BYTES:,} bytes of JSON, hidden "
            "characters written out"
        )
    return read(answer, "answer")
