"""Tools, resources and prompts: typed functions with a docstring, gathered in sets. Pure.

Adding a tool is writing one function::

    @tool(title="Count words", read_only=True, open_world=False)
    def word_count(text: Annotated[str, "what to count in"]) -> str:
        '''Count the words of a text. Returns the number.'''
        return str(len(text.split()))

Parameters before a `/` are collaborators, handed in by type when the set is bound; the others
are the caller's arguments. The function returns a dataclass, an object (a dict), `Content`
(`bridge.mcp.content`: text, pictures, sounds, resources) or a list of these in its own order, or an
`Interpret` of a dataclass, and raises `ToolError` for what its caller can act on. A plain
`def` runs at once, before the next message is read; an `async def` runs in a task of its own, with
a deadline, and can be cancelled.

A resource is read without arguments and returns text, bytes, or a dataclass, which its reader gets
as JSON. A prompt takes text arguments and returns what a person hands to a model: `Content`, or a
list of it and of `Message`::

    @resource("bridge://status", title="Status")
    def status(link: RoomLink, /) -> Status:
        '''The state of the connection.'''

A resource whose URI has variables is a template: its function takes them as its arguments. There
is a resource for each value of a variable; if the argument has `Completes`, only for the values
that this returns::

    @resource("bridge://room/{room}/messages", title="Messages in a room")
    def room_messages(link: RoomLink, /, room: Annotated[str, Completes(rooms)]) -> Messages:
        '''What was said last in a room.'''
"""

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import ModuleType, UnionType
from typing import Any, NamedTuple, get_args, get_origin
from urllib.parse import quote, unquote

from bridge.mcp.content import CONTENT_TYPES, INTERPRET, Interpret
from bridge.mcp.context import Context
from bridge.mcp.errors import McpError
from bridge.mcp.jsonrpc import Object
from bridge.mcp.schema import Member, Schema, SchemaError, describe, object_of, read_members

DEFAULT_DEADLINE_SECONDS = 60.0
"""How long a call may take in all; the longest wait the tools allow is 50 s."""

_VARIABLE = re.compile(r"\{(\w+)\}")
"""A variable of a URI template (RFC 6570, section 3.2.2)."""

MAX_VALUE_CHARACTERS = 16_384
"""The longest value of a variable in a URI. A room's JID has at most 2,047 bytes, and three times
as many characters when escaped."""

_VALUE = f"([^/?#]{{1,{MAX_VALUE_CHARACTERS}}})"
"""The pattern for the value of such a variable in a URI."""

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")

RESERVED = frozenset({"initialize", "ping"})
"""Methods of MCP. No tool can have such a name: a bare call of the tool would hide the method."""


class ToolsetError(McpError):
    """A tool or a set of tools is defined wrongly: a mistake of its author."""


class CollaboratorError(ToolsetError):
    """A function needs a collaborator that is missing, or there are several of its type."""


class Completes(NamedTuple):
    """Says, in an `Annotated` argument of a prompt or a template, which values it can have.

    The function `values` may have collaborators, and returns all values. A client is offered the
    values that begin with the text that its user typed.
    """

    values: Callable[..., list[str]]


class Signature(NamedTuple):
    """What a function takes: collaborators from this process, arguments from the caller.

    Positional-only parameters (before the `/`) are collaborators, found by their type; all
    others are arguments.
    """

    collaborators: tuple[type, ...]
    parameters: tuple[Member, ...]
    completions: Mapping[str, Callable[..., list[str]]]
    """The function that returns the values of a parameter, by the parameter's name in JSON."""
    result: Any

    @property
    def wants_context(self) -> bool:
        """Whether the function takes a `Context` with each call."""
        return Context in self.collaborators

    @classmethod
    def of(cls, function: Callable[..., object]) -> "Signature":
        """Read `function`'s signature; raises `SchemaError` for a type without a JSON Schema."""
        hints = typing.get_type_hints(function, include_extras=True)
        collaborators: list[type] = []
        parameters: list[Member] = []
        completions: dict[str, Callable[..., list[str]]] = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in hints:
                raise SchemaError(f"{function.__name__}: {parameter.name} has no type")
            hint = hints[parameter.name]
            if parameter.kind is parameter.POSITIONAL_ONLY:
                collaborators.append(hint)
                continue
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
                raise SchemaError(f"{function.__name__}: a tool names each of its arguments")
            required = parameter.default is parameter.empty
            member = Member.of(parameter.name, hint, required=required)
            if not required:
                member = member.with_default(parameter.default)
            parameters.append(member)
            for note in getattr(hint, "__metadata__", ()):
                if isinstance(note, Completes):
                    completions[member.wire] = note.values
        return cls(tuple(collaborators), tuple(parameters), completions, hints.get("return"))

    def inject(
        self, name: str, function: Callable[..., Any], given: Iterable[object]
    ) -> Callable[..., Any]:
        """Return `function` with its collaborators injected; they are found in `given` by type.

        A `Context` is not injected: each call passes its own. Raises `CollaboratorError`.
        """
        collaborators = []
        for wanted in self.collaborators:
            if wanted is Context:
                continue
            fitting = [each for each in given if isinstance(each, wanted)]
            if len(fitting) != 1:
                wants = f"{name} wants a {wanted.__name__}; there are {len(fitting)} here"
                raise CollaboratorError(wants)
            collaborators += fitting
        return partial(function, *collaborators) if collaborators else function


class Tool(NamedTuple):
    """A function that an agent can call, with its schemas and annotations."""

    name: str
    """1 to 128 characters of `[A-Za-z0-9_.-]` (MCP 2025-11-25, "Tool Names")."""
    title: str
    description: str
    function: Callable[..., Any]
    signature: Signature
    input_schema: Schema
    waits: bool
    """Whether the function is a coroutine."""
    output_schema: Schema | None
    """None for a tool that returns content."""
    read_only: bool
    """Whether the tool changes nothing, so that a client need not ask its user first."""
    destructive: bool
    """Whether the tool's changes can destroy something; never true with `read_only`."""
    idempotent: bool
    """Whether a second call with the same arguments changes nothing more."""
    open_world: bool
    """Whether the tool reaches beyond this process, to other people and machines."""
    deadline: float
    """Seconds after which a call of an `async def` is given up."""
    requires: tuple[str, ...] = ()
    """The tool cannot work without these capabilities of the client."""
    schema_is_written: bool = False
    """Whether the author gave the `input_schema`; otherwise it comes from the parameters."""
    own_slots: bool = False
    """Whether the tool has slots of its own, since its calls mostly wait for other people. Then
    they do not use up the slots in which the calls of other tools run."""

    def bound(self, arguments: Object) -> dict[str, object]:
        """Return the arguments of the function; raises `MismatchError`.

        If the author gave the schema, the function has one argument: the caller's arguments, not
        checked.
        """
        if self.schema_is_written:
            return {self.signature.parameters[0].name: arguments}
        return read_members(self.signature.parameters, arguments)

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
    requires: tuple[str, ...] = (),
    input_schema: Schema | None = None,
    output_schema: Schema | None = None,
    own_slots: bool = False,
) -> Callable[[Callable[..., Any]], Tool]:
    """Make a tool of the decorated function; without a `name` it has the function's name.

    A given schema is listed as it is, in place of the schema of the function's types. With an
    `input_schema` the function takes one argument: an object with the caller's arguments, which are
    not checked.

    The defaults are cautious: a tool is not read-only, and reaches outside. Raises `ToolsetError`,
    or `SchemaError` for a parameter whose type has no JSON Schema.
    """

    def make(function: Callable[..., Any]) -> Tool:
        function_name, called = function.__name__, name or function.__name__
        if not _NAME.fullmatch(called) or called in RESERVED:
            raise ToolsetError(f"{called!r} is no name for a tool")
        description = inspect.getdoc(function)
        if not description:
            raise ToolsetError(f"{function_name} has no docstring to tell a model what it does")
        signature = Signature.of(function)
        returned = output_schema or _output_schema(function_name, signature.result)
        if Context in signature.collaborators[:-1]:
            raise ToolsetError(f"{function_name}: the Context comes last before the `/`")
        for schema in (input_schema, output_schema):
            if schema is not None and schema.get("type") != "object":
                raise ToolsetError(f"{function_name}: a schema has no `type: object` at its root")
        if input_schema is not None and len(signature.parameters) != 1:
            raise ToolsetError(f"{function_name} takes one argument, as `input_schema` is given")
        return Tool(
            name=called,
            title=title,
            description=description,
            function=function,
            signature=signature,
            input_schema=input_schema or object_of(signature.parameters),
            waits=inspect.iscoroutinefunction(function),
            output_schema=returned,
            read_only=read_only,
            destructive=destructive and not read_only,
            idempotent=idempotent or read_only,
            open_world=open_world,
            deadline=deadline,
            requires=requires,
            schema_is_written=input_schema is not None,
            own_slots=own_slots,
        )

    return make


def _output_schema(name: str, result: Any) -> Schema | None:
    """Return the schema of a tool's result; None for content."""
    if _is_content(result):
        return None
    if interpreted := get_origin(result) is Interpret:
        (result,) = get_args(result)
    try:
        schema, _ = describe(result)
    except SchemaError as error:
        raise ToolsetError(f"{name}: its result: {error}") from error
    if schema.get("type") != "object":
        raise ToolsetError(f"{name} returns neither content nor an object")
    if interpreted:
        properties: Any = schema.get("properties", {})
        schema = {**schema, "properties": {**properties, **INTERPRET}}
    return schema


def _is_content(hint: Any) -> bool:
    """Whether a value of this type is content: a `Content`, a union of such types, or any list."""
    if get_origin(hint) in {typing.Union, UnionType}:
        return all(map(_is_content, get_args(hint)))
    return hint in CONTENT_TYPES or list in {hint, get_origin(hint)}


class Resource(NamedTuple):
    """A function whose result can be read under a URI, and subscribed to."""

    uri: str
    """The URI, or for a template the URI template (RFC 6570, level 1)."""
    name: str
    title: str
    description: str
    function: Callable[..., Any]
    signature: Signature
    mime_type: str

    def expanded(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Return the URIs of this template for `values`: by RFC 6570, and with a plain `@`.

        RFC 6570 writes `@` as `%40`. A URI may have a plain `@` there, and people write it so.
        """

        def written(safe: str) -> str:
            return _VARIABLE.sub(
                lambda variable: quote(values[variable[1]], safe, errors="replace"), self.uri
            )

        return written(""), written("@")

    def variables(self, uri: str) -> dict[str, str] | None:
        """Return the values for which this template expands to `uri`; None if there are none."""
        literals = map(re.escape, _VARIABLE.split(self.uri)[::2])
        if match := re.fullmatch(_VALUE.join(literals), uri):
            names = _VARIABLE.findall(self.uri)
            values = dict(zip(names, map(unquote, match.groups()), strict=True))
            return values if uri in self.expanded(values) else None
        return None


class Prompt(NamedTuple):
    """A function that writes out a request to a model, for a person to send."""

    name: str
    title: str
    description: str
    function: Callable[..., Any]
    signature: Signature
    waits: bool
    """Whether the function is a coroutine."""
    deadline: float = DEFAULT_DEADLINE_SECONDS
    """Seconds after which a coroutine is given up."""

    @property
    def input_schema(self) -> Schema:
        """The schema of its arguments."""
        return object_of(self.signature.parameters)

    def bound(self, arguments: Object) -> dict[str, object]:
        """Return the arguments of the function; raises `MismatchError`."""
        return read_members(self.signature.parameters, arguments)


def resource(
    uri: str, *, title: str, mime_type: str | None = None
) -> Callable[[Callable[..., Any]], Resource]:
    """Make a resource of the decorated function.

    Without a `mime_type`, the type that the function returns decides whether the resource is plain
    text, bytes or JSON. Raises `ToolsetError`, or `SchemaError` as `tool` does.
    """

    def make(function: Callable[..., Any]) -> Resource:
        name, description = function.__name__.replace("_", "-"), inspect.getdoc(function) or ""
        signature = Signature.of(function)
        wanted = sorted(member.wire for member in signature.parameters)
        if sorted(_VARIABLE.findall(uri)) != wanted:
            raise ToolsetError(f"{function.__name__} takes what varies in {uri}, each once")
        types = {str: "text/plain", bytes: "application/octet-stream"}
        of_result = types.get(signature.result, "application/json")
        return Resource(uri, name, title, description, function, signature, mime_type or of_result)

    return make


def prompt(name: str, *, title: str) -> Callable[[Callable[..., Any]], Prompt]:
    """Make a prompt of the decorated function; raises `SchemaError` as `tool` does."""

    def make(function: Callable[..., Any]) -> Prompt:
        description, waits = inspect.getdoc(function) or "", inspect.iscoroutinefunction(function)
        return Prompt(name, title, description, function, Signature.of(function), waits)

    return make


@dataclass(eq=False)
class Toolset:
    """Tools, resources and prompts that are switched on together, under a name."""

    name: str
    tools: tuple[Tool, ...]
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    withheld: Mapping[str, str] = field(default_factory=dict)
    """The tools that were left out, as by `that_only_read`, each with the reason: a clause that can
    follow a colon."""

    def __post_init__(self) -> None:
        for kind, given in ((Tool, self.tools), (Resource, self.resources), (Prompt, self.prompts)):
            wanted = kind.__name__.lower()
            for each in given:
                if not isinstance(each, kind):
                    called = getattr(each, "__name__", type(each).__name__)
                    raise ToolsetError(
                        f"the toolset {self.name}: {called} is no {wanted}; is there an @{wanted} "
                        "above it?"
                    )

    @classmethod
    def of_modules(cls, name: str, *modules: ModuleType) -> "Toolset":
        """Return all tools, resources and prompts of `modules`, in the order written there."""
        values = [value for module in modules for value in vars(module).values()]
        return cls(
            name,
            tuple(value for value in values if isinstance(value, Tool)),
            tuple(value for value in values if isinstance(value, Resource)),
            tuple(value for value in values if isinstance(value, Prompt)),
        )

    def that_only_read(self, reason: str) -> "Toolset":
        """Return the set without the tools that change anything.

        If such a tool is called, the error gives `reason`.
        """
        tools = tuple(tool for tool in self.tools if tool.read_only)
        withheld = {tool.name: reason for tool in self.tools if not tool.read_only}
        return replace(self, tools=tools, withheld={**self.withheld, **withheld})


def merge(sets: Iterable[Toolset]) -> Toolset:
    """Return one set with all members of `sets`, in order; raises `ToolsetError` if names clash."""
    given = tuple(sets)
    owners: dict[tuple[str, str], str] = {}
    for each in given:
        names = [("tool", tool.name) for tool in each.tools]
        names += [("resource", resource.uri) for resource in each.resources]
        names += [("prompt", prompt.name) for prompt in each.prompts]
        for kind, name in names:
            owner = owners.get((kind, name))
            if owner == each.name:
                raise ToolsetError(f"the toolset {owner} has two of the {kind} {name}")
            if owner is not None:
                both = f"{owner} and {each.name}"
                raise ToolsetError(f"the toolsets {both} both have a {kind} {name}")
            owners[kind, name] = each.name
    return Toolset(
        "+".join(dict.fromkeys(each.name for each in given)),
        tuple(tool for each in given for tool in each.tools),
        tuple(resource for each in given for resource in each.resources),
        tuple(prompt for each in given for prompt in each.prompts),
        {name: reason for each in given for name, reason in each.withheld.items()},
    )
