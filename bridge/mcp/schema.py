"""Python types as JSON Schema, and values checked against them. Pure.

The dialect is JSON Schema 2020-12, the default of MCP since 2025-11-25. Python names are
snake_case, wire names camelCase; a trailing underscore (`from_`) is dropped.
"""

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin

from bridge.mcp.errors import McpError
from bridge.mcp.jsonrpc import parse
from bridge.text import nearest, wire_name

Schema: TypeAlias = dict[str, object]
Reader: TypeAlias = Callable[[object, str], object]
"""Takes a JSON value and its path; returns the Python value or raises `MismatchError`."""


MAX_WRITTEN_CHARACTERS = 64 * 1024
"""The longest text that we read as JSON in place of an argument: far more than any list needs."""

MAX_WRITTEN_LEVELS = 32
"""The most arrays and objects inside one another in such a text."""


class SchemaError(McpError):
    """A type or a value of a tool has no JSON form: a mistake of the tool's author."""


class MismatchError(McpError):
    """A value from the caller does not fit its type; the text says where, and what would fit."""


class Bounds(NamedTuple):
    """Limits on a value, for `Annotated`: numbers by value, text and lists by length.

    If a value may be a text or a list, the schema names the limits of the text alone.
    """

    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    """In characters for text, in items for lists."""

    def schema(self, of: Schema) -> Schema:
        """Return `of`, the schema of a number, a text or a list, with the limits added."""
        counted = "Items" if "items" in of else "Length"
        names = ("minimum", "maximum", f"min{counted}", f"max{counted}")
        limits = zip(names, self, strict=True)
        return of | {name: limit for name, limit in limits if limit is not None}

    def check(self, value: object, path: str) -> None:
        """Raise `MismatchError` if `value` is outside the limits."""
        if isinstance(value, (str, list, tuple)):
            noun = "characters" if isinstance(value, str) else "items"
            size: float = len(value)
            least: float | None = self.min_length
            most: float | None = self.max_length
            measured = f"{path} has {size} {noun}"
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            size, least, most = value, self.minimum, self.maximum
            measured = f"{path} is {str(value)[:100]}"
        else:
            return
        if least is not None and size < least:
            raise MismatchError(f"{measured}; the least is {least}")
        if most is not None and size > most:
            raise MismatchError(f"{measured}; the most is {most}")


class Unlisted(Bounds):
    """Limits that are checked and not listed: a model reads its tools' schemas in every turn."""

    def schema(self, of: Schema) -> Schema:
        """Return `of` as it is."""
        return of


class Keywords:
    """JSON Schema keywords that a type cannot express, for `Annotated`; values are not checked."""

    def __init__(self, **keywords: object) -> None:
        self.schema: Schema = keywords


def always(**hints: Any) -> Keywords:
    """Return the keywords of an object that always has these fields, and may have others.

    `hints` are the types of the fields by their Python names. Use the result in an `Annotated` of
    `dict[str, object]`.
    """
    schemas = {wire_name(name): describe(hint)[0] for name, hint in hints.items()}
    return Keywords(properties=schemas, required=[*schemas])


class Titles:
    """The titles that people see for the choices of an enumeration or a list, for `Annotated`."""

    def __init__(self, **titles: str) -> None:
        self._choices = [{"const": value, "title": title} for value, title in titles.items()]

    def schema(self, of: Schema) -> Schema:
        """Return `of`, the schema of an enumeration or a list of choices, with the titles added."""
        if "items" in of:
            return {**of, "items": {"anyOf": self._choices}}
        return {name: of[name] for name in of if name != "enum"} | {"oneOf": self._choices}


def describe(hint: Any) -> tuple[Schema, Reader]:
    """Return the JSON Schema of a type and the reader that checks a value against it.

    Raises `SchemaError`. The schema may be part of others, so it must not be changed.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:])
    if origin is Literal:
        return _enumeration(arguments)
    if origin in {Union, types.UnionType}:
        return _union([describe(member) for member in arguments])
    if (container := origin or hint) in _CONTAINERS:
        return _CONTAINERS[container](hint, arguments)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enumeration(tuple(hint))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint)
    raise SchemaError(f"{hint!r} has no JSON Schema")


def render(value: object) -> object:
    """Return the JSON value of a result: dataclasses become objects with camelCase names.

    Raises `SchemaError` for a value without a JSON form.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise SchemaError(f"{value} has no JSON form")
    if isinstance(value, Enum):
        return render(value.value)
    # `isinstance` gets a tuple of types, since a union (`str | bool`) would be built in each call.
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise SchemaError("a key that is not a string has no JSON form")
        return {key: render(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [render(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = dataclasses.fields(value)
        return {wire_name(member.name): render(getattr(value, member.name)) for member in members}
    raise SchemaError(f"{type(value).__name__} has no JSON form")


_TYPES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
"""The names of these types in JSON."""


def _kind(value: object) -> str:
    """Return the name of a value's type, for errors."""
    name = _TYPES.get(type(value), "object")
    article = "" if value is None else "an " if name[0] in "ao" else "a "
    return article + name


def _mismatch(value: object, path: str, wanted: str) -> MismatchError:
    return MismatchError(f"{path} is {_kind(value)}; {wanted} is wanted")


def _instance_reader(kind: type, wanted: str) -> Reader:
    def read(value: object, path: str) -> object:
        if not isinstance(value, kind):
            raise _mismatch(value, path, wanted)
        return value

    return read


_read_any = _instance_reader(object, "any value")
_read_null = _instance_reader(type(None), "null")


def _read_integer(value: object, path: str) -> object:
    # JSON Schema counts 5.0 among the integers.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _mismatch(value, path, "a whole number")
    return value


def _read_number(value: object, path: str) -> object:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise _mismatch(value, path, "a number")
    # JSON has integers of any size, and writes infinity as 1e999.
    if not abs(value) <= sys.float_info.max:
        raise MismatchError(f"{path} is too large a number")
    return value


_SCALARS: dict[Any, tuple[Schema, Reader]] = {
    str: ({"type": "string"}, _instance_reader(str, "a string")),
    bool: ({"type": "boolean"}, _instance_reader(bool, "true or false")),
    int: ({"type": "integer"}, _read_integer),
    float: ({"type": "number"}, _read_number),
    type(None): ({"type": "null"}, _read_null),
    None: ({"type": "null"}, _read_null),
    object: ({}, _read_any),
    Any: ({}, _read_any),
}


def _annotated(hint: Any, notes: Sequence[object]) -> tuple[Schema, Reader]:
    schema, read = describe(hint)
    for note in notes:
        if isinstance(note, str):
            schema = {**schema, "description": note}
        elif isinstance(note, Bounds):
            schema, read = note.schema(schema), _bounded(read, note)
        elif isinstance(note, Keywords):
            schema = {**schema, **note.schema}
        elif isinstance(note, Titles):
            schema = note.schema(schema)
    return schema, read


def _bounded(read: Reader, bounds: Bounds) -> Reader:
    def read_bounded(value: object, path: str) -> object:
        if isinstance(value, list) and len(value) > (bounds.max_length or math.inf):
            bounds.check(value, path)  # before each of its items is read
        inner = read(value, path)
        bounds.check(inner, path)
        return inner

    return read_bounded


def _enumeration(members: Sequence[object]) -> tuple[Schema, Reader]:
    values = [render(member) for member in members]
    # Some clients read only the `type`.
    typed: Schema = {"type": "string"} if all(isinstance(value, str) for value in values) else {}

    def read(value: object, path: str) -> object:
        for spelling, member in zip(values, members, strict=True):
            # In JSON Schema 1 and 1.0 are the same number, and true is no number.
            if spelling == value and isinstance(spelling, bool) is isinstance(value, bool):
                return member
        given = repr(value[:100]) if isinstance(value, str) else _kind(value)
        raise MismatchError(f"{path} is {given}; one of {', '.join(map(str, values))} is wanted")

    return {**typed, "enum": values}, read


def _union(members: Sequence[tuple[Schema, Reader]]) -> tuple[Schema, Reader]:
    def read(value: object, path: str) -> object:
        reasons = []
        for _, member in members:
            try:
                return member(value, path)
            except MismatchError as mismatch:
                if member is not _read_null:  # the caller gave a value, so did not mean null
                    reasons.append(str(mismatch))
        raise MismatchError(" / ".join(reasons))

    schemas = [schema for schema, _ in members]
    given = [schema for schema in schemas if schema != {"type": "null"}]
    if len(given) == 1 and isinstance(kind := given[0].get("type"), str):
        # Clients that do not understand `anyOf` understand this form.
        enum = given[0].get("enum")
        spelt: Schema = {"enum": [*enum, None]} if isinstance(enum, list) else {}
        return {**given[0], "type": [kind, "null"], **spelt}, read
    if all(set(schema) == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return {"type": [schema["type"] for schema in schemas]}, read
    return {"anyOf": schemas}, read


def _array(hint: Any, arguments: Sequence[Any]) -> tuple[Schema, Reader]:
    make: type[list[object] | tuple[object, ...]] = list
    if tuple in {hint, get_origin(hint)}:
        if arguments and tuple(arguments[1:]) != (...,):
            raise SchemaError(f"{hint}: only a tuple of one repeated type is a JSON array")
        make = tuple
    schema, read = describe(arguments[0] if arguments else Any)

    def read_items(value: object, path: str) -> object:
        if not isinstance(value, list):
            raise _mismatch(value, path, "an array")
        return make(read(item, f"{path}[{index}]") for index, item in enumerate(value))

    return {"type": "array", "items": schema}, read_items


def _mapping(hint: Any, arguments: Sequence[Any]) -> tuple[Schema, Reader]:
    key, value = arguments or (str, Any)
    if key is not str:
        raise SchemaError(f"{hint}: the keys of a JSON object are strings")
    schema, read = describe(value)

    def read_values(value: object, path: str) -> object:
        if not isinstance(value, dict):
            raise _mismatch(value, path, "an object")
        return {key: read(member, f"{path}.{key}") for key, member in value.items()}

    # Without `additionalProperties` a schema allows values of any type.
    return {"type": "object"} | ({"additionalProperties": schema} if schema else {}), read_values


_CONTAINERS: dict[Any, Callable[[Any, Sequence[Any]], tuple[Schema, Reader]]] = {
    list: _array,
    tuple: _array,
    Sequence: _array,
    dict: _mapping,
    Mapping: _mapping,
}


@cache
def _dataclass(cls: type) -> tuple[Schema, Reader]:
    hints = typing.get_type_hints(cls, include_extras=True)
    members = []
    for field in dataclasses.fields(cls):
        has_default = field.default is not dataclasses.MISSING
        required = not has_default and field.default_factory is dataclasses.MISSING
        member = Member.of(field.name, hints[field.name], required=required)
        if has_default and field.default is not None:
            member = member.with_default(field.default)
        members.append(member)

    def read_object(value: object, path: str) -> object:
        if not isinstance(value, dict):
            raise _mismatch(value, path, "an object")
        return cls(**read_members(members, value, f"{path}."))

    return object_of(members), read_object


class Member(NamedTuple):
    """A field of an object, or an argument of a function."""

    name: str
    """The name in Python."""
    wire: str
    """The name in JSON."""
    schema: Schema
    read: Reader
    required: bool

    @classmethod
    def of(cls, name: str, hint: Any, *, required: bool) -> "Member":
        """Return the member of this name and type; raises `SchemaError`."""
        return cls(name, wire_name(name), *describe(hint), required)

    def with_default(self, default: object) -> "Member":
        """Return the member with the value that it has if the caller leaves it out.

        None is not part of the schema: a caller leaves the member out instead of giving null.
        """
        if default is None:
            return self._replace(schema=_without_null(self.schema))
        return self._replace(schema={**self.schema, "default": render(default)})


def _without_null(schema: Schema) -> Schema:
    made = dict(schema)
    for name in schema.keys() & {"type", "enum", "anyOf"}:
        if isinstance(choices := schema[name], list):
            left = [choice for choice in choices if choice not in ("null", None, {"type": "null"})]
            made[name] = left[0] if name == "type" and len(left) == 1 else left
    return made


def object_of(members: Sequence[Member]) -> Schema:
    """Return the schema of an object that has these members, and no others."""
    properties = {member.wire: member.schema for member in members}
    schema: Schema = {"type": "object", "properties": properties}
    if required := [member.wire for member in members if member.required]:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def read_members(
    members: Sequence[Member], given: Mapping[str, object], path: str = ""
) -> dict[str, object]:
    """Return the values of an object by their Python names.

    Raises `MismatchError`, which names everything that is wrong. `path` goes before each name.
    """
    values: dict[str, object] = {}
    problems: list[str] = []
    for member in members:
        if member.wire in given:
            try:
                values[member.name] = member.read(given[member.wire], f"{path}{member.wire}")
            except MismatchError as mismatch:
                problems.append(str(mismatch))
        elif member.required:
            problems.append(f"{path}{member.wire} is missing")
    if problems or len(values) < len(given):
        known = dict.fromkeys(member.wire for member in members)
        unknown = [name for name in given if name not in known][:5]
        problems += [
            f"{path}{name!r} is not known{nearest(name, known)}"
            for name in (name[:100] for name in unknown)
        ]
    if problems:
        raise MismatchError("; ".join(problems))
    return values


def as_meant(schema: Schema, given: Mapping[str, object]) -> dict[str, object]:
    """Return a tool's arguments as the caller meant them, by the tool's input schema.

    An argument is changed only if the schema refuses it, and if it can mean one thing alone:

    - Clients give null for an argument that they leave out.
    - Models write a number, a boolean, an array or an object as a string of JSON.
    - Clients add arguments of their own, with names that begin with `_`.
    """
    properties = schema.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    closed = schema.get("additionalProperties") is False
    meant: dict[str, object] = {}
    for name, value in given.items():
        if name not in declared:
            if not (closed and name.startswith("_")):
                meant[name] = value
            continue
        types = _types_of(declared[name])
        if isinstance(value, str) and "string" not in types:
            value = _read_written(value, types)
        if value is not None or "null" in types:
            meant[name] = value
    return meant


def _types_of(schema: object) -> set[str]:
    """Return the JSON types that may fit `schema`; all types if it names none.

    An integer counts as a number.
    """
    own = schema if isinstance(schema, dict) else {}
    if variants := own.get("anyOf") or own.get("oneOf"):
        return {name for variant in variants for name in _types_of(variant)}
    if choices := [own["const"]] if "const" in own else own.get("enum"):
        return {_TYPES.get(type(choice), "object") for choice in choices}
    types = own.get("type") or [*_TYPES.values()]
    names = [types] if isinstance(types, str) else types
    return {"number" if name == "integer" else name for name in names}


def _read_written(text: str, types: set[str]) -> object:
    """If `text` is exactly the JSON of a value with one of `types`, return that value.

    Otherwise return `text` itself.
    """
    if len(text) > MAX_WRITTEN_CHARACTERS or text != text.strip():
        return text
    try:
        value = parse(text)
    except ValueError:
        return text
    is_meant = value is not None and _TYPES[type(value)] in types
    return value if is_meant and _is_flat(value, MAX_WRITTEN_LEVELS) else text


def _is_flat(value: object, levels: int) -> bool:
    """Whether arrays and objects in `value` are nested at most `levels` deep."""
    if not isinstance(value, (list, dict)):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_flat(item, levels - 1) for item in inner)
