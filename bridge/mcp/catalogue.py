"""What a client can list, read and call: a toolset with its collaborators. Pure."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from bridge.mcp.content import resource_contents
from bridge.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Json, Object, RpcError, param
from bridge.mcp.revisions import V2025_03_26, V2025_06_18, Revision
from bridge.mcp.schema import MismatchError, read_members
from bridge.mcp.toolset import Prompt, Resource, Signature, Tool, Toolset
from bridge.text import nearest

MAX_COMPLETIONS = 100
"""The most values in one completion (MCP, "Completion"); the rest are only counted."""

Definition = TypeVar("Definition", Tool, Resource, Prompt)


class Catalogue:
    """A toolset whose functions have been given their collaborators, by type.

    Raises `ToolsetError` if one of them is missing, or there are several of its type. The methods
    that answer a request raise `RpcError`.
    """

    def __init__(self, toolset: Toolset, collaborators: Iterable[object]) -> None:
        given = tuple(collaborators)
        self._withheld = toolset.withheld
        self.tools = {tool.name: _inject(tool.name, tool, given) for tool in toolset.tools}
        self.prompts = {
            prompt.name: _inject(prompt.name, prompt, given) for prompt in toolset.prompts
        }
        self.resources: dict[str, Resource] = {}
        self._templates: dict[str, Resource] = {}
        for resource in toolset.resources:
            kind = self._templates if resource.signature.parameters else self.resources
            kind[resource.uri] = _inject(resource.uri, resource, given)
        self._completions = {
            (name, wire): Signature.of(values).inject(name, values, given)
            for name, signature in (
                *((prompt.name, prompt.signature) for prompt in toolset.prompts),
                *((resource.uri, resource.signature) for resource in toolset.resources),
            )
            for wire, values in signature.completions.items()
        }

    def why_missing(self, name: str) -> str:
        """Return a colon and why this tool is withheld, or which tool the caller may have meant.

        Return an empty text if there is neither.
        """
        reason = self._withheld.get(name)
        return f": {reason}" if reason else nearest(name[:100], self.tools)

    def list_tools(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `tools/list`."""
        return _page(params, "tools", (_tool(tool, revision) for tool in self.tools.values()))

    def list_resources(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `resources/list`."""
        resources = self.resources.values()
        return _page(params, "resources", (_resource(each, "uri", revision) for each in resources))

    def list_resource_templates(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `resources/templates/list`."""
        templates = (_resource(each, "uriTemplate", revision) for each in self._templates.values())
        return _page(params, "resourceTemplates", templates)

    def list_prompts(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `prompts/list`."""
        return _page(params, "prompts", (_prompt(each, revision) for each in self.prompts.values()))

    def read_resource(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `resources/read`."""
        resource = self.find_resource(params, revision)
        uri, mime_type = resource.uri, resource.mime_type
        contents = _guarded(uri, lambda: resource_contents(uri, resource.function(), mime_type))
        return {"contents": [contents]}

    def find_resource(self, params: Object, revision: Revision) -> Resource:
        """Return the resource that `params` name by its `uri`; raises `RpcError`."""
        uri = param(params, "uri", str, "the address of a resource")
        # Some libraries write an empty path as `/` (RFC 3986, section 6.2.3).
        if resource := self.resource_at(uri) or self.resources.get(uri.removesuffix("/")):
            return resource
        known = [*self.resources, *chain(*map(self._examples, self._templates.values()))]
        raise RpcError(
            revision.unknown_resource,
            {"uri": uri[:200], "known": known},
            f"Resource not found: {uri[:200]!r}. The resources are {', '.join(known)}",
        )

    def resource_at(self, uri: str) -> Resource | None:
        """Return the resource at this URI, perhaps from a template; None if there is none."""
        if uri in self.resources:
            return self.resources[uri]
        for template in self._templates.values():
            values = template.variables(uri)
            if values is not None and all(
                value in self._values(template.uri, name)
                for name, value in values.items()
                if (template.uri, name) in self._completions
            ):
                with suppress(MismatchError):  # a value is out of bounds
                    arguments = read_members(template.signature.parameters, values)
                    function = partial(template.function, **arguments)
                    return template._replace(uri=uri, function=function)
        return None

    def complete(self, params: Object, revision: Revision) -> dict[str, Json]:
        """Answer `completion/complete` for an argument of a prompt or a template."""
        reference = param(params, "ref", dict, "an object")
        argument = param(params, "argument", dict, "an object")
        name = param(argument, "name", str, "the name of an argument")
        typed = param(argument, "value", str, "what was typed").casefold()
        match reference.get("type"):
            case "ref/resource":
                of = param(reference, "uri", str, "the address of a resource")
                if of not in self._templates:
                    self.find_resource(reference, revision)
            case "ref/prompt":
                prompt = self.find_prompt(reference)
                of = prompt.name
                if name not in (member.wire for member in prompt.signature.parameters):
                    raise RpcError(INVALID_PARAMS, f"{of} has no argument {name[:100]!r}")
            case _:
                raise RpcError(INVALID_PARAMS, "ref: the type is ref/prompt or ref/resource")
        values = [value for value in self._values(of, name) if value.casefold().startswith(typed)]
        total, more = len(values), len(values) > MAX_COMPLETIONS
        return {"completion": {"values": values[:MAX_COMPLETIONS], "total": total, "hasMore": more}}

    def _examples(self, template: Resource) -> list[str]:
        """Return the URIs of a template with one variable, or else the template's own."""
        names = [parameter.wire for parameter in template.signature.parameters]
        values = self._values(template.uri, names[0]) if len(names) == 1 else []
        uris = [template.expanded({names[0]: value})[1] for value in values[:MAX_COMPLETIONS]]
        return uris or [template.uri]

    def _values(self, of: str, name: str) -> list[str]:
        """Return the values of an argument of a prompt, or of the variable of a template."""
        values: list[str] = _guarded(f"{of}: {name}", self._completions.get((of, name), list))
        return values

    def find_tool(self, params: Object) -> Tool:
        """Return the tool that `params` name; raises `RpcError`."""
        name = param(params, "name", str, "the name of a tool")
        if name not in self.tools:
            unknown = f"Unknown tool: {name[:100]!r}{self.why_missing(name)}"
            raise RpcError(INVALID_PARAMS, f"{unknown}; the tools are {', '.join(self.tools)}")
        return self.tools[name]

    def find_prompt(self, params: Object) -> Prompt:
        """Return the prompt that `params` name; raises `RpcError`."""
        name = params.get("name")
        if not isinstance(name, str) or name not in self.prompts:
            known = ", ".join(self.prompts) or "none"
            raise RpcError(INVALID_PARAMS, f"name: the prompts here are {known}")
        return self.prompts[name]


def _inject(name: str, definition: Definition, given: Iterable[object]) -> Definition:
    function = definition.signature.inject(name, definition.function, given)
    return definition._replace(function=function)


def _guarded(name: str, run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:  # a mistake of the function's author must not end the session
        raise RpcError(INTERNAL_ERROR, f"{name} broke ({type(error).__name__})") from error


def _page(params: Object, key: str, items: Iterable[dict[str, Json]]) -> dict[str, Json]:
    if params.get("cursor") not in (None, ""):
        raise RpcError(INVALID_PARAMS, "cursor: the list has one page, so no cursor was given out")
    return {key: list(items)}


def _named(definition: Definition, revision: Revision) -> dict[str, Json]:
    named: dict[str, Json] = {"name": definition.name, "description": definition.description}
    return named | {"title": definition.title} if revision >= V2025_06_18 else named


def _tool(tool: Tool, revision: Revision) -> dict[str, Json]:
    wire = _named(tool, revision) | {"inputSchema": tool.input_schema}
    if revision.typed_parts:
        wire["input_schema"] = tool.input_schema
    if revision >= V2025_06_18 and tool.output_schema is not None:
        wire["outputSchema"] = tool.output_schema
    if revision >= V2025_03_26:
        wire["annotations"] = {
            **({"title": tool.title} if revision < V2025_06_18 else {}),
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": tool.open_world,
        }
    return wire


def _resource(resource: Resource, key: str, revision: Revision) -> dict[str, Json]:
    return {key: resource.uri, **_named(resource, revision), "mimeType": resource.mime_type}


def _prompt(prompt: Prompt, revision: Revision) -> dict[str, Json]:
    arguments = [
        {"name": member.wire, "required": member.required}
        | {key: text for key, text in member.schema.items() if key == "description"}
        for member in prompt.signature.parameters
    ]
    return {**_named(prompt, revision), "arguments": arguments}
