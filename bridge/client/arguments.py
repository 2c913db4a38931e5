"""The arguments of tools and prompts, as a schema describes them and a person types them. Pure.

This module reads the type, `enum` and `default` of a schema, and one level of `anyOf` or `oneOf`.
If these name no known type, it accepts any JSON or text. The server validates the value.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import NamedTuple

from bridge.client.errors import InvalidInputError
from bridge.mcp.jsonrpc import Json, compact, objects, parse
from bridge.text import one_line

YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
"""What a person may type for a boolean."""

NEVER_TEXT = frozenset({"boolean", "integer", "number", "object", "array"})
"""The types of JSON Schema whose values a person types as JSON. A boolean may also be one of `YES`
and `NO`, and an array may be a list with commas."""

SHOWN_CHARACTERS = 300
"""The most characters of a server's text within a sentence of ours."""

_TRAILING = re.compile(r"""\s+(\w+)=("[^"]*"|'[^']*'|\S*)\s*$""")
"""An argument at the end of a line, whose value may be quoted."""


class Parameter(NamedTuple):
    """An argument of a tool or a prompt, or a field of a form."""

    name: str
    types: tuple[str, ...]
    """The types as JSON Schema calls them; empty if the schema gives none."""
    required: bool
    description: str = ""
    default: Json = None
    choices: tuple[Json, ...] = ()
    """The allowed values (`enum`, `const`) of the argument, or of its items if it is an array;
    empty if other values are allowed too."""
    items: tuple[str, ...] = ()
    """The types of an array's items."""

    @property
    def kind(self) -> str:
        """The types and choices, in a few words."""
        types = " or ".join(name for name in self.types if name != "null")
        if not self.choices:
            return one_line(types or "any JSON", SHOWN_CHARACTERS)
        choices = ", ".join(map(as_typed, self.choices))
        return one_line(f"{types or 'one of'}: {choices}", SHOWN_CHARACTERS)

    @property
    def question(self) -> str:
        """The prompt that asks a person for the argument; `*` marks one that must be given."""
        state = " *" if self.required else ""
        if self.default is not None:
            state = f" [{one_line(as_typed(self.default), SHOWN_CHARACTERS)}]"
        return f"  {one_line(self.name, SHOWN_CHARACTERS)} ({self.kind}){state}: "

    def read(self, text: str) -> Json:
        """Return the value that `text` means; raises `InvalidInputError`."""
        word = text.strip().lower()
        if "array" in self.types and not word.startswith("["):
            item = Parameter(self.name, self.items, required=False)
            return [item.read(part.strip()) for part in text.split(",") if part.strip()]
        if self.choices and "array" not in self.types:
            for choice in self.choices:
                if text == as_typed(choice):
                    return choice
        elif "string" in self.types:
            return text
        elif "boolean" in self.types and word in YES + NO:
            return word in YES
        else:
            with suppress(ValueError, RecursionError):
                return _read_json(text)
            if NEVER_TEXT.isdisjoint(self.types):
                return text
        name = one_line(self.name, SHOWN_CHARACTERS)
        raise InvalidInputError(f"{name}: {self.kind} is wanted, not {one_line(text)!r}")


def parameters(schema: Json) -> tuple[Parameter, ...]:
    """Return the arguments that a tool's input schema describes, in the order of the schema."""
    root = schema if isinstance(schema, dict) else {}
    properties, required = root.get("properties"), root.get("required")
    if not isinstance(properties, dict):
        return ()
    needed = required if isinstance(required, list) else []
    return tuple(_parameter(str(name), own, name in needed) for name, own in properties.items())


def prompt_parameters(prompt: Mapping[str, Json]) -> tuple[Parameter, ...]:
    """Return the arguments of a prompt, all of which are strings (MCP, "Prompts")."""
    return tuple(
        _parameter(str(own.get("name")), {**own, "type": "string"}, own.get("required") is True)
        for own in objects(prompt, "arguments")
    )


def read_arguments(
    text: str, known: Sequence[Parameter], main: str | None = None
) -> dict[str, Json]:
    """Return the arguments in `text`: one JSON object, or `name=value` pairs and other words.

    The other words are joined into the argument `main`. Raises `InvalidInputError`.
    """
    if text.startswith("{"):
        try:
            value = _read_json(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInputError(f"the arguments are no JSON: {error}") from error
        return value if isinstance(value, dict) else {}
    by_name = {parameter.name: parameter for parameter in known}
    arguments: dict[str, Json] = {}
    words: list[str] = []
    for word in _words(text):
        name, equals, value = word.partition("=")
        if equals and name in by_name:
            arguments[name] = by_name[name].read(value)
        elif equals and name.isidentifier() and by_name:
            near = get_close_matches(name, by_name, 1)
            others = f"{near[0]}?" if near else f"there are {', '.join(by_name)}"
            raise InvalidInputError(one_line(f"no argument {name}: {others}", SHOWN_CHARACTERS))
        else:
            words.append(word)
    if words:
        joined = " ".join(words)
        if main is None:
            names = one_line(", ".join(by_name), SHOWN_CHARACTERS) or "none"
            raise InvalidInputError(
                f"{one_line(joined)!r}: arguments are written name=value or as one JSON object; "
                f"the names are {names}"
            )
        arguments[main] = by_name[main].read(joined) if main in by_name else joined
    return arguments


def trailing_arguments(text: str, known: Sequence[Parameter]) -> tuple[str, dict[str, Json]]:
    """Take the `name=value` pairs with known names off the end of `text`.

    Return the rest of the text, and the pairs. Raises `InvalidInputError`.
    """
    by_name = {parameter.name: parameter for parameter in known}
    arguments: dict[str, Json] = {}
    while (match := _TRAILING.search(text)) and (parameter := by_name.get(match[1])):
        value = match[2]
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        arguments[parameter.name] = parameter.read(value[1:-1] if is_quoted else value)
        text = text[: match.start()]
    return text, arguments


def as_typed(value: Json) -> str:
    """Return the text that a person types for a value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an unpaired apostrophe, as in don't
        return text.split()


def _read_json(text: str) -> Json:
    """Return the JSON value in `text`; raises `ValueError`, `RecursionError`."""
    value = parse(text)
    compact(value)  # refuses a number that a float cannot hold
    return value


def _parameter(name: str, schema: Json, required: bool) -> Parameter:
    variants = _variants(schema)
    arrays = [variant["items"] for variant in variants if "items" in variant]
    items = [item for schema in arrays for item in _variants(schema)]
    own = schema if isinstance(schema, dict) else {}
    description, choices = str(own.get("description") or ""), _choices(variants) or _choices(items)
    types, default = _types(variants), own.get("default")
    return Parameter(name, types, required, description, default, choices, _types(items))


def _variants(schema: Json) -> list[dict[str, Json]]:
    """Return the schemas in `anyOf` or `oneOf`; if there are none, the schema itself."""
    own = schema if isinstance(schema, dict) else {}
    return objects(own, "anyOf") or objects(own, "oneOf") or [own]


def _types(schemas: Sequence[Mapping[str, Json]]) -> tuple[str, ...]:
    names: list[Json] = []
    for schema in schemas:
        declared = schema.get("type")
        names += declared if isinstance(declared, list) else [declared]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _choices(schemas: Sequence[Mapping[str, Json]]) -> tuple[Json, ...]:
    """Return the values that the schemas list; none if a schema allows other values."""
    listed: list[Json] = []
    for schema in schemas:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(choices, list):
            listed += choices
        elif schema.get("type") != "null":
            return ()
    return tuple(choice for choice in listed if choice is not None)
