"""From what a person types to the arguments of a tool, as its schema has them. Pure."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.escaping import one_line
from bridge.mcp.jsonrpc import Json

TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})
MAX_PARTS = 200
"""Of the schema of one argument: what is longer is no help to whoever types one."""

SHOWN_CHARACTERS = 300
"""Of what a server says of an argument, in a question or an error."""


class TypedError(Exception):
    """What was typed cannot be an argument; says what is wanted."""


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
        """What is wanted, in a few words."""
        shown = [one for one in self.types if one != "null"] or ["any JSON"]
        words = " or ".join(shown) + self.bounds
        if self.choices:
            words += ": " + ", ".join(_plain(one) for one in self.choices)
        return one_line(words, SHOWN_CHARACTERS)

    @property
    def question(self) -> str:
        """The prompt that asks for it."""
        state = " *" if self.required else ""
        if self.default is not None:
            state = f" [{one_line(_plain(self.default), SHOWN_CHARACTERS)}]"
        return f"  {one_line(self.name, SHOWN_CHARACTERS)} ({self.kind}){state}: "

    def read(self, text: str) -> Json:
        """Return the value that `text` stands for; raises `TypedError`."""
        if self.choices and "array" not in self.types:
            candidates: Iterable[tuple[bool, Json]] = (
                (text == _plain(one), one) for one in self.choices
            )
        elif not self.types:
            return _loose(text)
        else:
            candidates = (_READERS[one](self, text) for one in sorted(self.types, key=_ORDER.index))
        for fits, value in candidates:
            if fits:
                return value
        name = one_line(self.name, SHOWN_CHARACTERS)
        raise TypedError(f"{name}: {self.kind} is wanted, not {one_line(text)!r}")


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


def of_prompt(declared: Json) -> tuple[Parameter, ...]:
    """Return the arguments of a prompt, which are texts all (MCP, "Prompts")."""
    listed = declared if isinstance(declared, list) else []
    return tuple(
        Parameter(
            str(one.get("name")),
            ("string",),
            one.get("required") is True,
            str(one.get("description") or ""),
        )
        for one in listed
        if isinstance(one, dict)
    )


def read_arguments(
    text: str, known: Sequence[Parameter], main: str | None = None, *, verbatim: bool = False
) -> dict[str, Json]:
    """Return the arguments in `text`: an object, or `name=value` beside words that are `main`.

    Raises `TypedError`.
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
            raise TypedError(
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
        raise TypedError(f"the arguments are no JSON: {error}") from error
    except RecursionError as error:
        raise TypedError("the arguments are nested too deeply") from error
    assert isinstance(value, dict)
    return value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an apostrophe, as in don't
        return text.split()


def _parameter(name: str, schema: Json, required: bool, root: Mapping[str, Json]) -> Parameter:
    own = schema if isinstance(schema, dict) else {}
    parts = _alternatives(own, root)
    types = list(dict.fromkeys(type_ for part in parts for type_ in _types(part)))
    item_parts = [
        item
        for part in parts
        if isinstance(items := part.get("items"), dict)
        for item in _alternatives(items, root)
    ]
    return Parameter(
        name,
        tuple(types),
        required,
        next(
            (str(one["description"]) for one in (own, *parts) if one.get("description")),
            "",
        ),
        own.get("default"),
        tuple(choice for part in parts + item_parts for choice in _choices(part)),
        next((bounds for part in parts if (bounds := _bounds(part))), ""),
        tuple(dict.fromkeys(type_ for part in item_parts for type_ in _types(part))),
    )


def _alternatives(schema: Mapping[str, Json], root: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Return the schemas that a value may fit, references followed."""
    found: list[Mapping[str, Json]] = []
    seen: set[int] = set()
    waiting = [schema]
    while waiting and len(seen) < MAX_PARTS:
        part = waiting.pop(0)
        if id(part) in seen:  # a reference led back to it
            continue
        seen.add(id(part))
        reference = part.get("$ref")
        if isinstance(reference, str):
            referred = _referred(reference, root)
            waiting[:0] = [] if referred is None else [referred]
            continue
        nested = [
            one
            for key in ("anyOf", "oneOf", "allOf")
            if isinstance(several := part.get(key), list)
            for one in several[:MAX_PARTS]
            if isinstance(one, dict)
        ]
        if not nested:
            found.append(part)
        waiting[:0] = nested
    return found


def _referred(reference: str, root: Mapping[str, Json]) -> Mapping[str, Json] | None:
    found: Json = root
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _types(schema: Mapping[str, Json]) -> list[str]:
    types = schema.get("type")
    listed = types if isinstance(types, list) else [types]
    return [one for one in listed if isinstance(one, str) and one in _READERS]


def _choices(schema: Mapping[str, Json]) -> list[Json]:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum")
    return [one for one in choices if one is not None] if isinstance(choices, list) else []


def _bounds(schema: Mapping[str, Json]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    match low is not None, high is not None:
        case True, True:
            return f" {low} to {high}"
        case True, False:
            return f" from {low}"
        case False, True:
            return f" up to {high}"
        case _:
            return ""


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _loose(text: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _json_of(wanted: type[object], text: str) -> tuple[bool, Json]:
    value = _loose(text)
    return isinstance(value, wanted), value


def _number(text: str) -> tuple[bool, Json]:
    try:
        return True, int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return False, None
    return abs(value) != float("inf") and value == value, value


def _whole(text: str) -> tuple[bool, Json]:
    read, value = _number(text)
    return read and isinstance(value, int), value


def _truth(text: str) -> tuple[bool, Json]:
    word = text.strip().lower()
    return word in TRUE | FALSE, word in TRUE


def _list(parameter: Parameter, text: str) -> tuple[bool, Json]:
    if text.lstrip().startswith("["):
        return _json_of(list, text)
    item = Parameter(parameter.name, parameter.items, False)
    return True, [item.read(one.strip()) for one in text.split(",") if one.strip()]


def _text(text: str) -> tuple[bool, Json]:
    # A text in quotes is what stands between them: so it can be empty, or have line breaks.
    if len(text) > 1 and text[0] == text[-1] == '"':
        read, value = _json_of(str, text)
        if read:
            return True, value
    return True, text


_READERS: dict[str, Callable[[Parameter, str], tuple[bool, Json]]] = {
    "null": lambda parameter, text: (text == "null" and "string" not in parameter.types, None),
    "integer": lambda parameter, text: _whole(text),
    "number": lambda parameter, text: _number(text),
    "boolean": lambda parameter, text: _truth(text),
    "object": lambda parameter, text: _json_of(dict, text),
    "array": _list,
    "string": lambda parameter, text: _text(text),
}
"""How a text is read as each type."""

_ORDER = tuple(_READERS)
"""The narrow types first: almost any text is an array or a string."""
