"""What a tool's function takes and returns, read off its signature. Pure."""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bridge.mcp.schema import (
    MismatchError,
    Reader,
    Schema,
    SchemaError,
    describe,
    object_of,
    render,
    wire_name,
)


class ArgumentsError(ValueError):
    """The caller's arguments do not fit the tool; `problems` has one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class Parameter(NamedTuple):
    """One argument a caller may give."""

    name: str
    """As Python has it."""
    wire: str
    schema: Schema
    read: Reader
    required: bool


class Signature(NamedTuple):
    """What a tool's function takes: collaborators from the house, arguments from the caller.

    Positional-only parameters (before the `/`) are collaborators, found by their type; all
    others are arguments.
    """

    collaborators: tuple[type, ...]
    parameters: tuple[Parameter, ...]
    result: Any

    @classmethod
    def of(cls, function: Callable[..., object]) -> "Signature":
        """Read `function`'s signature; raises `SchemaError` where JSON Schema has no words."""
        hints = typing.get_type_hints(function, include_extras=True)
        collaborators: list[type] = []
        parameters: list[Parameter] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in hints:
                raise SchemaError(f"{function.__name__}: {parameter.name} has no type")
            hint = hints[parameter.name]
            if parameter.kind is parameter.POSITIONAL_ONLY:
                collaborators.append(hint)
                continue
            if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
                raise SchemaError(f"{function.__name__}: a tool names each of its arguments")
            schema, read = describe(hint)
            required = parameter.default is parameter.empty
            if not required and parameter.default is not None:
                schema = {**schema, "default": render(parameter.default)}
            wire = wire_name(parameter.name)
            parameters.append(Parameter(parameter.name, wire, schema, read, required))
        return cls(tuple(collaborators), tuple(parameters), hints.get("return"))

    def input_schema(self) -> Schema:
        """Return the schema of the arguments object; nothing beyond the named ones is allowed."""
        return object_of(
            {one.wire: one.schema for one in self.parameters},
            [one.wire for one in self.parameters if one.required],
        )

    def bind(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return keyword arguments, or raise `ArgumentsError` naming every fault."""
        bound: dict[str, object] = {}
        problems: list[str] = []
        given = 0
        for one in self.parameters:
            if one.wire in arguments:
                given += 1
                try:
                    bound[one.name] = one.read(arguments[one.wire], one.wire)
                except MismatchError as mismatch:
                    problems.append(str(mismatch))
            elif one.required:
                problems.append(f"{one.wire} is missing")
        if given < len(arguments):
            known = sorted(one.wire for one in self.parameters)
            expected = ", ".join(known) or "none"
            unknown = [name for name in arguments if name not in known]
            problems += [f"{name[:100]!r} is not an argument ({expected})" for name in unknown[:5]]
        if problems:
            raise ArgumentsError(problems)
        return bound
