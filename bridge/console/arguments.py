"""The arguments of tools and prompts: what a schema describes, and what a person typed. Pure."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite

from bridge.console.errors import ArgumentError
from bridge.console.formatting import objects
from bridge.mcp.jsonrpc import Json
from bridge.text import one_line

TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})

TYPES = ("null", "integer", "number", "boolean", "object", "array", "string")
"""The types of JSON Schema, the narrow ones first: almost any text is an array or a string."""

MAX_PARTS = 200
"""Schemas that are read for one argument: references may lead round in circles."""

SHOWN_CHARACTERS = 300
"""Characters that are shown of what a server declares or answers, in a sentence of ours."""


@dataclass(frozen=True)
class Parameter:
    """One argument that a tool takes."""

    name: str
    types: tuple[str, ...]
    """As JSON Schema calls them; empty where anything goes."""
    required: bool
    description: str = ""
    default: Json = None
    choices: tuple[Json, ...] = ()
    """The only values there are, of the argument or, in an array, of its items."""
    bounds: str = ""
    items: tuple[str, ...] = ()
    """The types of an array's items."""

    @property
    def kind(self) -> str:
        """The types, bounds and choices, in a few words."""
        shown = [one for one in self.types if one != "null"] or ["any JSON"]
        words = " or ".join(shown) + self.bounds
        if self.choices:
            words += ": " + ", ".join(_as_typed(one) for one in self.choices)
        return one_line(words, SHOWN_CHARACTERS)

    @property
    def question(self) -> str:
        """The prompt that asks a person for it; `*` marks a required one."""
        state = " *" if self.required else ""
        if self.default is not None:
            state = f" [{one_line(_as_typed(self.default), SHOWN_CHARACTERS)}]"
        return f"  {one_line(self.name, SHOWN_CHARACTERS)} ({self.kind}){state}: "

    @property
    def summary(self) -> str:
        """The line that describes it in the definition of its tool."""
        state = "required" if self.required else "optional"
        if self.default is not None:
            state += f", {one_line(json.dumps(self.default, ensure_ascii=False))} without it"
        said = f": {one_line(self.description)}" if self.description else ""
        return f"  {one_line(self.name)} ({self.kind}; {state}){said}"

    def read(self, text: str) -> Json:
        """Return the value that `text` stands for; raises `ArgumentError`."""
        if not self.types and not self.choices:
            return _json_or_text(text)
        if self.choices and "array" not in self.types:
            for choice in self.choices:
                if text == _as_typed(choice):
                    return choice
        else:
            for type_ in sorted(self.types, key=TYPES.index):
                with suppress(ValueError):
                    return self._read_as(type_, text)
        name = one_line(self.name, SHOWN_CHARACTERS)
        raise ArgumentError(f"{name}: {self.kind} is wanted, not {one_line(text)!r}")

    def _read_as(self, type_: str, text: str) -> Json:
        """Return the value of one of `TYPES`; raises `ValueError` if `text` is none."""
        word = text.strip().lower()
        match type_:
            case "null" if text == "null" and "string" not in self.types:
                return None
            case "integer":
                return int(text)
            case "number":
                return _number(text)
            case "boolean" if word in TRUE | FALSE:
                return word in TRUE
            case "object" if isinstance(value := _json_or_text(text), dict):
                return value
            case "array" if not text.lstrip().startswith("["):
                item = Parameter(self.name, self.items, required=False)
                return [item.read(one.strip()) for one in text.split(",") if one.strip()]
            case "array" if isinstance(value := _json_or_text(text), list):
                return value
            case "string" if len(text) > 1 and text[0] == text[-1] == '"':
                # In quotation marks a text can be empty, and have line breaks.
                return _json_or_text(text)
            case "string":
                return text
        raise ValueError(f"{text!r} is no {type_}")


def parameters(schema: Json) -> tuple[Parameter, ...]:
    """Return the arguments that a tool's input schema describes, in its order."""
    root = schema if isinstance(schema, dict) else {}
    properties, required = root.get("properties"), root.get("required")
    if not isinstance(properties, dict):
        return ()
    needed = required if isinstance(required, list) else []
    return tuple(
        _parameter(str(name), one, name in needed, root) for name, one in properties.items()
    )


def prompt_parameters(prompt: Mapping[str, Json]) -> tuple[Parameter, ...]:
    """Return the arguments of a prompt, which are strings all (MCP, "Prompts")."""
    declared = {str(one.get("name")): one for one in objects(prompt, "arguments")}
    properties = {
        name: {"type": "string", "description": one.get("description")}
        for name, one in declared.items()
    }
    required = [name for name, one in declared.items() if one.get("required") is True]
    return parameters({"properties": properties, "required": required})


def read_arguments(
    text: str, known: Sequence[Parameter], main: str | None = None, *, verbatim: bool = False
) -> dict[str, Json]:
    """Return the arguments in `text`: one JSON object, or `name=value` pairs and other words.

    The other words together are the value of `main`; with `verbatim`, the whole text is. Raises
    `ArgumentError`.
    """
    if verbatim and main is not None:
        return {main: text} if text else {}
    if text.startswith("{"):
        return _object(text)
    by_name = {one.name: one for one in known}
    arguments: dict[str, Json] = {}
    words: list[str] = []
    for word in _words(text):
        name, equals, value = word.partition("=")
        if equals and name in by_name:
            arguments[name] = by_name[name].read(value)
        else:
            words.append(word)
    if words:
        if main is None:
            names = one_line(", ".join(by_name), SHOWN_CHARACTERS) or "none"
            raise ArgumentError(
                f"{one_line(' '.join(words))!r}: arguments are written name=value or as one JSON "
                f"object; the names are {names}"
            )
        joined = " ".join(words)
        arguments[main] = by_name[main].read(joined) if main in by_name else joined
    return arguments


def _object(text: str) -> dict[str, Json]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise ArgumentError(f"the arguments are no JSON: {error}") from error
    except RecursionError as error:
        raise ArgumentError("the arguments are nested too deeply") from error
    assert isinstance(value, dict)
    return value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe, as in don't
        return text.split()


def _parameter(name: str, schema: Json, required: bool, root: Mapping[str, Json]) -> Parameter:
    own = schema if isinstance(schema, dict) else {}
    parts = list(_alternatives(own, root, set()))
    item_parts = [
        item
        for part in parts
        if isinstance(items := part.get("items"), dict)
        for item in _alternatives(items, root, set())
    ]
    descriptions = (str(one["description"]) for one in (own, *parts) if one.get("description"))
    return Parameter(
        name,
        _types(parts),
        required,
        next(descriptions, ""),
        own.get("default"),
        tuple(choice for part in parts + item_parts for choice in _choices(part)),
        next((bounds for part in parts if (bounds := _bounds(part))), ""),
        _types(item_parts),
    )


def _alternatives(
    schema: Mapping[str, Json], root: Mapping[str, Json], seen: set[int]
) -> Iterator[Mapping[str, Json]]:
    """Yield the schemas that a value may fit, with references followed, at most `MAX_PARTS`.

    `seen` holds the ids of the schemas that were looked at before: references may lead back.
    """
    if id(schema) in seen or len(seen) >= MAX_PARTS:
        return
    seen.add(id(schema))
    if isinstance(reference := schema.get("$ref"), str):
        nested = [_referred(reference, root)]
    else:
        nested = [
            one for key in ("anyOf", "oneOf", "allOf") for one in objects(schema, key)[:MAX_PARTS]
        ]
        if not nested:
            yield schema
    for one in nested:
        yield from _alternatives(one, root, seen)


def _referred(reference: str, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the schema that a reference leads to; an empty one if it leads nowhere."""
    found: Json = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _types(schemas: Sequence[Mapping[str, Json]]) -> tuple[str, ...]:
    types = [schema.get("type") for schema in schemas]
    listed = [type_ for one in types for type_ in (one if isinstance(one, list) else [one])]
    return tuple(dict.fromkeys(type_ for type_ in listed if type_ in TYPES))


def _choices(schema: Mapping[str, Json]) -> list[Json]:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum")
    return [one for one in choices if one is not None] if isinstance(choices, list) else []


def _bounds(schema: Mapping[str, Json]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" {low} to {high}"
    if low is not None:
        return f" from {low}"
    return "" if high is None else f" up to {high}"


def _as_typed(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _json_or_text(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        value = float(text)
        if not isfinite(value):
            raise
        return value
