"""What a client can find here: tools, resources, prompts, ready to be listed and read. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bridge.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Json, RpcError, compact
from bridge.mcp.replies import described, text
from bridge.mcp.revisions import Revision
from bridge.mcp.schema import render
from bridge.mcp.toolset import (
    JSON_TYPE,
    ArgumentsError,
    Completes,
    Prompt,
    Resource,
    Signature,
    Toolset,
    bound,
)

MAX_COMPLETIONS = 100
"""Values in one completion (MCP, "Completion"); the rest are counted."""

Params = Mapping[str, Json]


class Catalogue:
    """A toolset with the collaborators its functions ask for, by type."""

    def __init__(self, toolset: Toolset, collaborators: Iterable[object]) -> None:
        self._given = tuple(collaborators)
        self._withheld = dict.fromkeys(toolset.withheld, toolset.reason)
        self.tools = {
            one.name: (one, self._bind(one.name, one.function, one.signature))
            for one in toolset.tools
        }
        self.resources = {
            one.uri: (one, self._bind(one.uri, one.function, one.signature))
            for one in toolset.resources
        }
        self.prompts = {
            one.name: (one, self._bind(one.name, one.function, one.signature))
            for one in toolset.prompts
        }
        self._completions = {
            (prompt.name, one.name): self._bind_completion(prompt, one.completes)
            for prompt, _ in self.prompts.values()
            for one in prompt.arguments
            if one.completes is not None
        }

    def why_missing(self, name: str) -> str:
        """Return a colon and why a tool of this name is withheld; nothing where none is."""
        return f": {reason}" if (reason := self._withheld.get(name)) else ""

    def list_tools(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `tools/list`."""
        _only_page(params)
        return {"tools": [described(tool, revision) for tool, _ in self.tools.values()]}

    def list_resources(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `resources/list`."""
        _only_page(params)
        return {"resources": [_resource(one, revision) for one, _ in self.resources.values()]}

    def list_resource_templates(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `resources/templates/list`: every resource here has one address."""
        del revision
        _only_page(params)
        return {"resourceTemplates": []}

    def read_resource(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `resources/read`."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "uri: the address of a resource is wanted")
        one, run = self._found_resource(uri, revision)
        written = _ran(uri, lambda: compact(render(run())))
        content = {"uri": one.uri, "mimeType": JSON_TYPE, "text": written}
        return {"contents": [content]}

    def check_resource(self, params: Params, revision: Revision) -> str:
        """Return the `uri` of a resource that exists; raises `RpcError` for any other."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "uri: the address of a resource is wanted")
        self._found_resource(uri, revision)
        return uri

    def list_prompts(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `prompts/list`."""
        _only_page(params)
        return {"prompts": [_prompt(one, revision) for one, _ in self.prompts.values()]}

    def get_prompt(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `prompts/get`."""
        del revision
        prompt, run = self._found_prompt(params.get("name"))
        arguments = params.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            raise RpcError(INVALID_PARAMS, "arguments: an object is wanted")
        try:
            values = prompt.signature.bind(arguments or {})
        except ArgumentsError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error
        message = {"role": "user", "content": text(str(_ran(prompt.name, run, **values)))}
        return {"description": prompt.description, "messages": [message]}

    def complete(self, params: Params, revision: Revision) -> dict[str, Json]:
        """Answer `completion/complete` for an argument of a prompt."""
        reference, argument = params.get("ref"), params.get("argument")
        if not isinstance(reference, dict) or not isinstance(argument, dict):
            raise RpcError(INVALID_PARAMS, "ref and argument: an object each is wanted")
        name, typed = argument.get("name"), argument.get("value")
        if not isinstance(name, str) or not isinstance(typed, str):
            raise RpcError(INVALID_PARAMS, "argument: a name and a value are wanted")
        if reference.get("type") == "ref/resource":
            # No address here has a part to fill in.
            self.check_resource({"uri": reference.get("uri")}, revision)
            return _completion([])
        if reference.get("type") != "ref/prompt":
            raise RpcError(INVALID_PARAMS, "ref: the type is ref/prompt or ref/resource")
        prompt, _ = self._found_prompt(reference.get("name"))
        if name not in (one.name for one in prompt.arguments):
            raise RpcError(INVALID_PARAMS, f"{prompt.name} has no argument {name[:100]!r}")
        return _completion(self._values(prompt, name, typed))

    def _values(self, prompt: Prompt, name: str, typed: str) -> list[str]:
        run = self._completions.get((prompt.name, name))
        if run is None:
            return []
        everything: list[str] = _ran(f"{prompt.name}: {name}", run)
        begun = typed.casefold()
        return [one for one in everything if one.casefold().startswith(begun)]

    def _found_resource(self, uri: str, revision: Revision) -> tuple[Resource, Callable[..., Any]]:
        if uri not in self.resources:
            raise RpcError(
                revision.unknown_resource,
                {"uri": uri[:200], "known": list(self.resources)},
                "Resource not found",
            )
        return self.resources[uri]

    def _found_prompt(self, name: Json) -> tuple[Prompt, Callable[..., Any]]:
        if not isinstance(name, str) or name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise RpcError(INVALID_PARAMS, f"name: the prompts here are {known}")
        return self.prompts[name]

    def _bind_completion(self, prompt: Prompt, completes: Completes) -> Callable[..., Any]:
        return self._bind(prompt.name, completes.values, Signature.of(completes.values))

    def _bind(
        self, name: str, function: Callable[..., Any], signature: Signature
    ) -> Callable[..., Any]:
        return bound(name, function, signature, self._given)


def _ran(name: str, run: Callable[..., Any], /, **arguments: object) -> Any:
    try:
        return run(**arguments)
    except Exception as error:  # its author's mistake must not take the others along
        raise RpcError(INTERNAL_ERROR, f"{name} broke ({type(error).__name__})") from error


def _only_page(params: Params) -> None:
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "cursor: the list has one page, so no cursor was given out")


def _titled(wire: dict[str, Json], title: str, revision: Revision) -> dict[str, Json]:
    return wire | {"title": title} if revision.titles else wire


def _resource(one: Resource, revision: Revision) -> dict[str, Json]:
    wire: dict[str, Json] = {
        "uri": one.uri,
        "name": one.name,
        "description": one.description,
        "mimeType": JSON_TYPE,
    }
    return _titled(wire, one.title, revision)


def _prompt(one: Prompt, revision: Revision) -> dict[str, Json]:
    arguments = []
    for each in one.arguments:
        argument: dict[str, Json] = {"name": each.name, "required": each.required}
        if each.description is not None:
            argument["description"] = each.description
        arguments.append(argument)
    wire: dict[str, Json] = {
        "name": one.name,
        "description": one.description,
        "arguments": arguments,
    }
    return _titled(wire, one.title, revision)


def _completion(values: list[str]) -> dict[str, Json]:
    shown = values[:MAX_COMPLETIONS]
    more = len(values) > len(shown)
    return {"completion": {"values": shown, "total": len(values), "hasMore": more}}
