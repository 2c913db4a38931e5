"""The arguments of tools and prompts: what a schema describes, and what a person typed. Pure."""

import json
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from types import NoneType
from typing import Any, NamedTuple

from bridge.client.errors import ArgumentError
from bridge.client.formatting import objects
from bridge.mcp.jsonrpc import Json
from bridge.text import one_line

BOOLEANS = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(
    ("false", "no", "off", "0"), False
)
"""What a person may type for a boolean."""

TYPES: dict[str, type | tuple[type, ...]] = {
    "null": NoneType,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
    "string": str,
}
"""The types of JSON Schema, each with those of the values that `json` reads."""

MAX_SUBSCHEMAS = 200
"""Most subschemas that are read for one argument: references may lead round in circles."""

SHOWN_CHARACTERS = 300
"""Characters that are shown of what a server declares or answers, in a sentence of ours."""


class Parameter(NamedTuple):
    """One argument that a tool takes."""

    name: str
    types: tuple[str, ...]
    """As JSON Schema calls them; empty where anything goes."""
    required: bool
    description: str = ""
    default: Json = None
    choices: tuple[Json, ...] = ()
    """The allowed values (`enum`, `const`), of the argument or, in an array, of its items; empty
    where others are allowed too."""
    bounds: str = ""
    items: tuple[str, ...] = ()
    """The types of an array's items."""

    @property
    def kind(self) -> str:
        """The types, bounds and choices, in a few words."""
        unnamed = "one of" if self.choices else "any JSON"
        shown = [one for one in self.types if one != "null"] or [unnamed]
        words = " or ".join(shown) + self.bounds
        if self.choices:
            words += ": " + ", ".join(as_typed(one) for one in self.choices)
        return one_line(words, SHOWN_CHARACTERS)

    @property
    def question(self) -> str:
        """The prompt that asks a person for it; `*` marks a required one."""
        state = " *" if self.required else ""
        if self.default is not None:
            state = f" [{one_line(as_typed(self.default), SHOWN_CHARACTERS)}]"
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
        if self.choices and "array" not in self.types:
            for choice in self.choices:
                if text == as_typed(choice):
                    return choice
        else:
            for value in self._readings(text):
                if not self.types or any(_is_a(value, type_) for type_ in self.types):
                    return value
        name = one_line(self.name, SHOWN_CHARACTERS)
        raise ArgumentError(f"{name}: {self.kind} is wanted, not {one_line(text)!r}")

    def _readings(self, text: str) -> Iterator[Json]:
        """Yield the values that `text` can stand for, the likeliest first."""
        with suppress(ValueError, RecursionError):
            value = _read_json(text)
            # For a string argument `null` is a text, even if the argument is nullable.
            if value is not None or "string" not in self.types:
                yield value
        if "boolean" in self.types and (word := text.strip().lower()) in BOOLEANS:
            yield BOOLEANS[word]
        if "array" in self.types and not text.lstrip().startswith("["):
            item = Parameter(self.name, self.items, required=False)
            try:
                yield [item.read(one.strip()) for one in text.split(",") if one.strip()]
            except ArgumentError:
                if "string" not in self.types:
                    raise
        yield text


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
    return tuple(
        Parameter(
            str(one.get("name")),
            ("string",),
            required=one.get("required") is True,
            description=str(one.get("description") or ""),
        )
        for one in objects(prompt, "arguments")
    )


def read_arguments(
    text: str, known: Sequence[Parameter], main: str | None = None, *, verbatim: bool = False
) -> dict[str, Json]:
    """Return the arguments in `text`: one JSON object, or `name=value` pairs and other words.

    The other words are joined into the argument `main`; with `verbatim` the whole text
    becomes its value, unparsed. Raises `ArgumentError`.
    """
    if verbatim and main is not None:
        return {main: text} if text else {}
    if text.startswith("{"):
        try:
            return dict(_read_json(text))
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"the arguments are no JSON: {error}") from error
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


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe, as in don't
        return text.split()


def _parameter(name: str, schema: Json, required: bool, root: Mapping[str, Json]) -> Parameter:
    own = schema if isinstance(schema, dict) else {}
    parts = _leaf_schemas(own, root)
    item_parts = [
        item
        for part in parts
        if isinstance(items := part.get("items"), dict)
        for item in _leaf_schemas(items, root)
    ]
    descriptions = (str(one["description"]) for one in (own, *parts) if one.get("description"))
    return Parameter(
        name,
        _types(parts),
        required,
        next(descriptions, ""),
        own.get("default"),
        _choices(parts) or _choices(item_parts),
        next((bounds for part in parts if (bounds := _bounds(part))), ""),
        _types(item_parts),
    )


def _leaf_schemas(schema: Mapping[str, Json], root: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Flatten `anyOf`, `oneOf`, `allOf` and references into the schemas that they lead to.

    It looks at `MAX_SUBSCHEMAS` schemas at most: references may lead back.
    """
    found: list[Mapping[str, Json]] = []
    waiting = deque([schema])
    for _ in range(MAX_SUBSCHEMAS):
        if not waiting:
            break
        one = waiting.popleft()
        nested = [part for key in ("anyOf", "oneOf", "allOf") for part in objects(one, key)]
        if isinstance(reference := one.get("$ref"), str):
            waiting.append(_referred(reference, root))
        elif nested:
            waiting += nested[:MAX_SUBSCHEMAS]
        else:
            found.append(one)
    return found


def _referred(reference: str, root: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the schema that a reference leads to; an empty one if it leads nowhere."""
    found: Json = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _types(schemas: Sequence[Mapping[str, Json]]) -> tuple[str, ...]:
    types = [schema.get("type") for schema in schemas]
    listed = [type_ for one in types for type_ in (one if isinstance(one, list) else [one])]
    return tuple(
        dict.fromkeys(type_ for type_ in listed if isinstance(type_, str) and type_ in TYPES)
    )


def _choices(schemas: Sequence[Mapping[str, Json]]) -> tuple[Json, ...]:
    """Return the values that the schemas list; none if one of them allows others too."""
    listed: list[Json] = []
    for schema in schemas:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(choices, list):
            listed += choices
        elif schema.get("type") != "null":
            return ()
    return tuple(one for one in listed if one is not None)


def _bounds(schema: Mapping[str, Json]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return "" if high is None else f" up to {high}"
    return f" from {low}" if high is None else f" {low} to {high}"


def as_typed(value: Json) -> str:
    """Return the text that a person types for a value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_json(text: str) -> Any:
    """Return the JSON value in `text`; raises `ValueError`, `RecursionError`.

    NaN, Infinity and numbers that a float cannot hold are refused.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(f"{text} is not JSON")
    return value


def _is_a(value: Json, type_: str) -> bool:
    # To Python, true is a number.
    return isinstance(value, TYPES[type_]) and isinstance(value, bool) == (type_ == "boolean")
