"""Which of the bridge's own tools are served (`BRIDGE_TOOLS`), and what is said of the others."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import Any

from bridge.mcp.errors import ToolError
from bridge.mcp.toolset import Tool, Toolset
from bridge.settings.sources import Problem
from bridge.text import nearest, quoted

SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")

WITHHELD = "BRIDGE_TOOLS does not name it"
"""What a call of a tool that is not served is told."""

ADVICE = frozenset({"hint", "retry", "standing"})
"""The fields of results that say what to do next, in our own words."""


def serving(toolset: Toolset, names: Collection[str]) -> Toolset:
    """Return the set with the tools of these `names`; with all tools if none has such a name."""
    tools = tuple(tool for tool in toolset.tools if tool.name in names)
    others = [tool.name for tool in toolset.tools if tool.name not in names]
    if not tools:
        return toolset
    return replace(toolset, tools=tools, withheld=dict.fromkeys(others, WITHHELD))


def unknown_names(toolset: Toolset, names: Sequence[str]) -> list[Problem]:
    """Return a problem with each of the `names` that no tool of the set has."""
    known = [tool.name for tool in toolset.tools]
    return [
        Problem("BRIDGE_TOOLS", f"names no tool: {quoted(name)}{nearest(name, known)}")
        for name in names
        if name not in known
    ]


def naming_only_served(toolset: Toolset, own: Toolset) -> Toolset:
    """Return the set in which the bridge's `own` tools do not mention tools that are withheld."""
    if not (others := [*toolset.withheld]):
        return toolset
    tools = (_alone(tool, others) if tool in own.tools else tool for tool in toolset.tools)
    return replace(toolset, tools=tuple(tools))


def without(text: str, names: Collection[str]) -> str:
    """Return `text` without the sentences, or parts of them, that mention one of these tools."""
    if not names:
        return text
    mentioned = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    left = " ".join(part for part in SENTENCE_END.split(text) if not mentioned.search(part))
    return f"{left[:-1]}." if left.endswith(";") else left


def _alone(tool: Tool, others: Sequence[str]) -> Tool:
    """Return the tool, whose description and results do not mention the `others`."""
    function: Callable[..., Any] = tool.function

    @wraps(function)
    def call(*given: Any, **arguments: Any) -> Any:
        with _cleaned_errors(others):
            return _cleaned(function(*given, **arguments), others)

    @wraps(function)
    async def call_and_wait(*given: Any, **arguments: Any) -> Any:
        with _cleaned_errors(others):
            return _cleaned(await function(*given, **arguments), others)

    summary, blank, rest = tool.description.partition("\n\n")
    description = f"{summary}{blank}{without(rest, others)}".rstrip()
    served = call_and_wait if tool.waits else call
    return tool._replace(function=served, description=description)


@contextmanager
def _cleaned_errors(others: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except ToolError as error:
        error.hint = without(error.hint, others)
        raise


def _cleaned(result: Any, others: Sequence[str]) -> Any:
    """Return a result without advice, or a next step, that needs one of the `others`."""
    if isinstance(result, list):
        return [_cleaned(item, others) for item in result]
    if not isinstance(result, dict):
        return result
    cleaned = {
        key: without(value, others)
        if key in ADVICE and isinstance(value, str)
        else _cleaned(value, others)
        for key, value in result.items()
    }
    if isinstance(step := cleaned.get("nextStep"), dict) and step.get("tool") in others:
        del cleaned["nextStep"]
    return cleaned
