"""The wording of results, dialect by dialect and revision by revision. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from bridge.mcp import jsonrpc
from bridge.mcp.calls import Call, Crashed, Failed, Outcome, Succeeded
from bridge.mcp.interpret import Interpret
from bridge.mcp.jsonrpc import Json, Response, RpcError, compact
from bridge.mcp.revisions import SERVER_INFO, Revision
from bridge.mcp.schema import SchemaError, render
from bridge.mcp.toolset import ArgumentError, Tool

LIST_TTL_MS = 3_600_000
"""How long a list may be kept: none of ours changes while we run."""


class Implementation(NamedTuple):
    """Who we are (MCP schema, `Implementation`)."""

    name: str
    title: str
    version: str
    instructions: str
    """How the tools work together; clients show it to the model."""

    def wire(self, revision: Revision) -> dict[str, Json]:
        """Return what `revision` tells of it."""
        info: dict[str, Json] = {"name": self.name, "version": self.version}
        return info | {"title": self.title} if revision.titles else info


class Caching(NamedTuple):
    """How long a client may keep a result, and who may share it (2026-07-28, "Caching")."""

    ttl_ms: int
    scope: str


LISTS = Caching(LIST_TTL_MS, "public")
"""For what is the same for everybody and for as long as we run."""

CONTENTS = Caching(0, "private")
"""For what may be different a moment later."""


def stamped(
    result: Mapping[str, Json],
    revision: Revision,
    implementation: Implementation,
    caching: Caching | None = None,
) -> dict[str, Json]:
    """Add to `result` what a stateless revision wants in every result."""
    if revision.handshake:
        return dict(result)
    wire: dict[str, Json] = {
        "resultType": "complete",
        **result,
        "_meta": {SERVER_INFO: implementation.wire(revision)},
    }
    if caching is not None:
        wire |= {"ttlMs": caching.ttl_ms, "cacheScope": caching.scope}
    return wire


def reply_to(call: Call, outcome: Outcome, implementation: Implementation) -> Response:
    """Return the reply that `outcome` is, in the words `call` was asked in."""
    try:
        if call.envelope is None:
            return _bare(call.id, outcome)
        return _mcp(call.id, outcome, call.envelope.revision, implementation)
    except (SchemaError, RecursionError) as error:
        reason = f"what the tool {call.tool.name} returned is not JSON: {error}"
        return reply_to(call, Crashed(reason), implementation)


def described(tool: Tool, revision: Revision) -> dict[str, Json]:
    """Return what `tools/list` says of `tool` under `revision`."""
    wire: dict[str, Json] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.signature.input_schema(),
    }
    if revision.titles:
        wire["title"] = tool.title
    if revision.structured and tool.output_schema is not None:
        wire["outputSchema"] = tool.output_schema
    if revision.annotations:
        wire["annotations"] = {
            "title": tool.title,
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": tool.open_world,
        }
    return wire


def text(content: str) -> dict[str, Json]:
    """Return a text block."""
    return {"type": "text", "text": content}


def _parts(value: Interpret[object]) -> list[Json]:
    """Return data and prompt in the older dialect, which has a type of part for each."""
    return [
        {"type": "json", "json": render(value.data)},
        {"type": "interpret", "prompt": value.prompt},
    ]


def _bare(id_: jsonrpc.Id | None, outcome: Outcome) -> Response:
    match outcome:
        case Succeeded(value=str() as content):
            return Response(id_, {"content": [text(content)]})
        case Succeeded(value=Interpret() as value):
            return Response(id_, {"content": _parts(value)})
        case Succeeded(value=value):
            return Response(id_, render(value))
        case Failed(error=error):
            theirs = isinstance(error, ArgumentError)
            code = jsonrpc.INVALID_PARAMS if theirs else jsonrpc.INTERNAL_ERROR
            data = {"condition": error.condition, "hint": error.hint}
            return Response(id_, error=RpcError(code, data, error.message).wire())
        case Crashed(reason=reason):
            data = {"condition": "internal-server-error", "hint": reason}
            return Response(id_, error=RpcError(jsonrpc.INTERNAL_ERROR, data).wire())


def _mcp(
    id_: jsonrpc.Id | None, outcome: Outcome, revision: Revision, implementation: Implementation
) -> Response:
    match outcome:
        case Succeeded(value=str() as content):
            result: dict[str, Json] = {"content": [text(content)], "isError": False}
        case Succeeded(value=Interpret() as value) if revision.typed_parts:
            result = {"content": _parts(value), "isError": False}
        case Succeeded(value=Interpret(data=data, prompt=prompt)):
            wire = render(data)
            told = {**text(prompt), "annotations": {"audience": ["assistant"]}}
            result = {"content": [text(compact(wire)), told], "isError": False}
            if revision.structured:
                result["structuredContent"] = wire
        case Succeeded(value=value):
            wire = render(value)
            result = {"content": [text(compact(wire))], "isError": False}
            if revision.structured:
                result["structuredContent"] = wire
        case Failed(error=error):
            lines = (error.message, f"Condition: {error.condition}", f"Hint: {error.hint}")
            result = {"content": [text("\n".join(lines))], "isError": True}
        case Crashed(reason=reason):
            return Response(id_, error=RpcError(jsonrpc.INTERNAL_ERROR, reason).wire())
    return Response(id_, stamped(result, revision, implementation))
