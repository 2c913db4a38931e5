"""Tools: typed functions with a docstring, gathered in sets. Pure.

Adding a tool is writing one function::

    @tool(title="Count words", read_only=True, open_world=False)
    def word_count(text: Annotated[str, "what to count in"]) -> str:
        '''Count the words of a text. Returns the number.'''
        return str(len(text.split()))

Parameters before a `/` are collaborators, handed in by type when the set is bound; the others
are the caller's arguments. The function returns a dataclass or text and raises `ToolError` for
what its caller can act on. A plain `def` is answered in the turn of the loop that read the
call; an `async def` gets a task, a deadline and cancellation.
"""

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from bridge.mcp.schema import Schema, SchemaError, Signature, describe

DEFAULT_DEADLINE_SECONDS = 60.0
"""How long a call may take in all; the longest wait the tools allow is 50 s."""


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ToolError(Exception):
    """The tool could not do what was asked, and its caller can act on the reason."""

    def __init__(self, message: str, *, condition: str, hint: str) -> None:
        self.message = message
        self.condition = condition
        """In the standard's own words where one has a word for it, such as `not-authorized`."""
        self.hint = hint
        super().__init__(message)


class ArgumentError(ToolError):
    """An argument that its type allows and its meaning does not."""


class ToolsetError(ValueError):
    """The author of a tool or a set made a mistake."""


@dataclass(frozen=True)
class Tool:
    """One function that an agent can call, and what is said of it."""

    name: str
    """On the wire: `[A-Za-z0-9_.-]`, 1 to 128 of them (MCP 2025-11-25, "Tool Names")."""
    title: str
    description: str
    function: Callable[..., Any]
    signature: Signature
    output_schema: Schema | None
    """None for a tool that returns text."""
    read_only: bool
    """It changes nothing, so it may be called without asking anybody."""
    destructive: bool
    """What it changes may be lost. Means something only if not `read_only`."""
    idempotent: bool
    """A second call with the same arguments changes nothing more."""
    open_world: bool
    """It reaches beyond this process, to other people and machines."""
    deadline: float
    """Seconds after which a call of an `async def` is given up."""

    @property
    def waits(self) -> bool:
        """Whether the function is a coroutine."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself."""
        return self.function(*args, **kwargs)


def tool(
    name: str | None = None,
    *,
    title: str,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    open_world: bool = True,
    deadline: float = DEFAULT_DEADLINE_SECONDS,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of the function below it; without `name` it is called as the function is.

    The defaults are the cautious ones: not read-only, reaching outside.
    """

    def make(function: Callable[..., Any]) -> Tool:
        if not _NAME.fullmatch(name or function.__name__):
            raise ToolsetError(f"{name or function.__name__!r} is no name for a tool")
        description = inspect.getdoc(function)
        if not description:
            raise ToolsetError(f"{function.__name__} has no docstring to tell a model what it does")
        signature = Signature.of(function)
        text = signature.result is str
        try:
            output = None if text else describe(signature.result)[0]
        except SchemaError as error:
            raise ToolsetError(f"{function.__name__}: its result: {error}") from error
        if output is not None and output.get("type") != "object":
            raise ToolsetError(f"{function.__name__} returns neither text nor a dataclass")
        return Tool(
            name=name or function.__name__,
            title=title,
            description=description,
            function=function,
            signature=signature,
            output_schema=output,
            read_only=read_only,
            destructive=destructive and not read_only,
            idempotent=idempotent or read_only,
            open_world=open_world,
            deadline=deadline,
        )

    return make


@dataclass(frozen=True)
class BoundTool:
    """A tool with its collaborators in hand."""

    tool: Tool
    run: Callable[..., Any] = field(repr=False)


@dataclass(frozen=True)
class Toolset:
    """Tools that are switched on together, under a name."""

    name: str
    tools: tuple[Tool, ...]

    @classmethod
    def of_module(cls, name: str, module: ModuleType) -> "Toolset":
        """Return all tools of `module`, in the order they are written there."""
        return cls(name, tuple(one for one in vars(module).values() if isinstance(one, Tool)))

    def that_only_read(self) -> "Toolset":
        """Return the set without the tools that change anything."""
        return Toolset(self.name, tuple(one for one in self.tools if one.read_only))

    def bind(self, collaborators: Iterable[object]) -> "dict[str, BoundTool]":
        """Return the tools by name, each with the collaborators it asks for by type."""
        given = tuple(collaborators)
        return {one.name: BoundTool(one, _bind(one, given)) for one in self.tools}


def merge(sets: Iterable[Toolset]) -> Toolset:
    """Return one set of all `sets`' tools, in order; raises `ToolsetError` when two names clash."""
    owners: dict[str, str] = {}
    tools: list[Tool] = []
    for one in sets:
        for each in one.tools:
            if each.name in owners:
                raise ToolsetError(
                    f"the toolsets {owners[each.name]} and {one.name} both have a tool {each.name}"
                )
            owners[each.name] = one.name
            tools.append(each)
    return Toolset("+".join(dict.fromkeys(owners.values())), tuple(tools))


def _bind(one: Tool, given: tuple[object, ...]) -> Callable[..., Any]:
    found = []
    for wanted in one.signature.collaborators:
        fitting = [each for each in given if isinstance(each, wanted)]
        if len(fitting) != 1:
            raise ToolsetError(
                f"{one.name} wants a {wanted.__name__}; there are {len(fitting)} here"
            )
        found.append(fitting[0])
    return partial(one.function, *found) if found else one.function
