"""What a tool may return, and the result that its caller gets for it. Pure.

MCP has content blocks and, since 2025-06-18, structured content (2025-11-25, "Tool Result"). In the
bare dialect the result of an object is the object itself.
"""

from typing import Generic, NamedTuple, TypeVar

from bridge.mcp.jsonrpc import Json, compact
from bridge.mcp.revisions import Revision
from bridge.mcp.schema import render

Data = TypeVar("Data", covariant=True)


class Interpret(NamedTuple, Generic[Data]):
    """Data, and an instruction to the model on how to report it to a person.

    Under MCP the data is the structured content, and as text the first part of the content; the
    prompt is a second part for the assistant. In the older dialect and under bare JSON-RPC they
    are two parts, of the types `json` and `interpret`. The output schema is that of the data.
    """

    data: Data
    """A dataclass."""
    prompt: str
    """Ours: nothing goes into it that came from outside."""


def text_block(text: str) -> dict[str, Json]:
    """Return a content block of type `text`."""
    return {"type": "text", "text": text}


def bare_result(value: object) -> Json:
    """Return the result of a bare call; raises `SchemaError` for what has no JSON form."""
    match value:
        case str():
            return {"content": [text_block(value)]}
        case Interpret():
            return {"content": _typed_parts(value)}
    return render(value)


def tool_result(value: object, revision: Revision) -> dict[str, Json]:
    """Return the result of `tools/call`; raises `SchemaError` for what has no JSON form."""
    if isinstance(value, str):
        return {"content": [text_block(value)], "isError": False}
    blocks: list[Json] = []
    if isinstance(value, Interpret):
        if revision.typed_parts:
            return {"content": _typed_parts(value), "isError": False}
        blocks = [{**text_block(value.prompt), "annotations": {"audience": ["assistant"]}}]
        value = value.data
    json = render(value)
    result = {"content": [text_block(compact(json)), *blocks], "isError": False}
    return result | {"structuredContent": json} if revision.structured else result


def _typed_parts(value: Interpret[object]) -> list[Json]:
    return [
        {"type": "json", "json": render(value.data)},
        {"type": "interpret", "prompt": value.prompt},
    ]
