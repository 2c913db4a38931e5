"""Reads scenario files, which have a bot under test, and the steps of actors in a room. Pure.

The file is TOML. Python types define what its tables may hold: a table has the fields of
`Scenario`, `Bot` or `ScenarioStep`, and the verb of a step has the arguments of the function that
carries it out. A trailing underscore of a name is dropped: `from_` is `from` in the file.
docs/scenario.schema.json is made from the same types.
"""

import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from inspect import Parameter, isclass, signature
from operator import getitem
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from bridge.testing.errors import XmppTestError
from bridge.text import one_line

MAX_SECONDS = 3600.0
"""Most seconds that a single wait of a scenario may take."""

Verbs: TypeAlias = Mapping[str, Callable[..., object]]
"""The verbs of steps, each with its function, whose first parameter is the actor or the server."""

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indices that lead to a value."""


class ScenarioError(XmppTestError):
    """A file is no scenario; the text says in which line, at which key, and what would be right."""


@dataclass(frozen=True)
class Bot:
    """The program under test, started in the folder of the file and ended after the last step."""

    command: tuple[str, ...]
    """The program and its arguments; `python` is the one that runs the tests."""
    joins_as: str
    """The nickname of the bot: the steps begin when it is in the room."""
    within: float = 20.0
    """How many seconds it may take to be in the room."""
    account: str = ""
    """The bot's account in the sandbox."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further variables. In their values, `${XMPP_USERNAME}` and the like are replaced by the
    variables that the bot gets."""


@dataclass(frozen=True)
class ScenarioStep:
    """One thing that an actor does or expects."""

    verb: str
    arguments: Mapping[str, Any]
    actor: str
    """The nickname of the actor, who enters with their first step. If it is empty, the actor of the
    step before goes on."""


@dataclass(frozen=True)
class Scenario:
    """A whole file."""

    step: tuple[ScenarioStep, ...]
    bot: Bot | None = None


def parse(text: str, verbs: Verbs) -> Scenario:
    """Return the scenario that `text` holds; raises `ScenarioError`."""
    try:
        scenario: Scenario = _TomlReader(text, verbs).read(Scenario, tomllib.loads(text), ())
    except (ValueError, RecursionError) as error:  # `int` refuses more than 4,300 digits
        raise ScenarioError(one_line(str(error))) from None
    return scenario


def line_of(text: str, path: Path) -> int:
    """Return the line in which the value at `path` begins.

    `tomllib` does not say it. It is the first line without which the value is missing.
    """
    lines = text.split("\n")

    def is_there(count: int) -> bool:
        for end in range(count, len(lines)):
            try:
                reduce(getitem, path, tomllib.loads("\n".join(lines[:end])))  # type: ignore[arg-type]
            except tomllib.TOMLDecodeError:  # the text is cut within a value
                continue
            except LookupError:
                return False
            break
        return True

    return bisect_left(range(len(lines)), True, key=is_there) or 1


def parameters(function: Callable[..., object]) -> dict[str, Parameter]:
    """Return the keys of a table with arguments for `function`, each with its parameter."""
    known = [*signature(function, eval_str=True).parameters.values()]
    if not isclass(function):
        del known[0]
    if known and known[-1].kind is Parameter.VAR_KEYWORD:  # `Unpack` of a `TypedDict`
        hints = get_type_hints(get_args(known.pop().annotation)[0])
        for key, hint in hints.items():
            known.append(Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=hint))
    return {parameter.name.rstrip("_"): parameter for parameter in known}


_FORMS: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    bool: (bool, "true or false"),
    float: ((int, float), "a number"),
    tuple: (list, "a list"),
}
"""What `tomllib` returns for each type that is asked for: the type, and its name. All other types
are tables."""


@dataclass(frozen=True)
class _TomlReader:
    """Reads values of TOML as the types that are asked for; raises `ScenarioError`."""

    text: str
    """The text of the file."""
    verbs: Verbs

    def read(self, hint: Any, value: Any, path: Path) -> Any:
        """Return `value`, which is at `path`, as the type that `hint` names."""
        kind, arguments = get_origin(hint) or hint, get_args(hint)
        if kind in (Union, UnionType):  # with None, which TOML does not have
            return self.read(arguments[0], value, path)
        if kind is Any or (kind is Literal and value in arguments):
            return value
        if kind is Literal:
            raise self._wrong(path, f"one of {', '.join(arguments)} is wanted")
        form, name = _FORMS.get(kind, (dict, "a table"))
        if not isinstance(value, form) or isinstance(value, bool) is not (kind is bool):
            raise self._wrong(path, f"{name} is wanted")
        if kind is float and not 0 <= value <= MAX_SECONDS:
            raise self._wrong(path, f"0 to {MAX_SECONDS:g} seconds are wanted")
        if kind is tuple and not value:
            raise self._wrong(path, "it is empty")
        if kind is tuple:
            return tuple(self.read(arguments[0], item, (*path, i)) for i, item in enumerate(value))
        if kind is Mapping:
            return {key: self.read(arguments[1], item, (*path, key)) for key, item in value.items()}
        if kind is ScenarioStep:
            return self._step(value, path)
        return value if kind in _FORMS else kind(**self._call(kind, value, path))

    def _call(self, function: Callable[..., object], table: Any, path: Path) -> dict[str, Any]:
        """Return the arguments for `function` that `table` holds."""
        known = parameters(function)
        self._refuse_unknown(table, known, path)
        for name, parameter in known.items():
            if parameter.default is Parameter.empty and name not in table:
                problem = f"{name} is missing" if path else f"there is no [[{name}]]"
                raise self._wrong(path, problem)
        return {
            known[key].name: self.read(known[key].annotation, value, (*path, key))
            for key, value in table.items()
        }

    def _step(self, table: Mapping[str, Any], path: Path) -> ScenarioStep:
        self._refuse_unknown(table, ("actor", *self.verbs), path)
        actor = self.read(str, table.get("actor", ""), (*path, "actor"))
        verbs = [key for key in table if key != "actor"]
        if len(verbs) != 1:
            raise self._wrong(path, f"exactly one of {', '.join(self.verbs)} is wanted")
        verb, value, path = verbs[0], table[verbs[0]], (*path, verbs[0])
        first = next(iter(parameters(self.verbs[verb]).values()), None)
        takes_mapping = first is not None and get_origin(first.annotation) is Mapping
        if first is not None and (takes_mapping or not isinstance(value, dict)):
            return ScenarioStep(verb, {first.name: self.read(first.annotation, value, path)}, actor)
        given = {} if value is True else self.read(Mapping[str, Any], value, path)
        return ScenarioStep(verb, self._call(self.verbs[verb], given, path), actor)

    def _refuse_unknown(self, table: Iterable[str], known: Iterable[str], path: Path) -> None:
        for key in table:
            if key not in known:
                problem = f"there is no such key; known are {', '.join(known)}"
                raise self._wrong((*path, key), problem)

    def _wrong(self, path: Path, problem: str) -> ScenarioError:
        """Return the error that the value at `path` does not fit."""
        where = "".join(
            f" {key + 1}" if isinstance(key, int) else f".{one_line(key, 99)}" for key in path
        ).removeprefix(".")
        place = f"{where}: " if where else ""
        return ScenarioError(f"line {line_of(self.text, path)}: {place}{problem}")
