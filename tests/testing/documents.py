"""The schema of scenario files, made from the types that `bridge.testing.scenario` reads them by.

python -m tests.testing.documents    writes docs/scenario.schema.json anew
"""

import json
from collections.abc import Callable, Mapping
from inspect import Parameter, getdoc
from types import UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from bridge.testing.collector import VERBS
from bridge.testing.scenario import MAX_SECONDS, Bot, Verbs, parameters
from tests.docs.pages import TOP

PATH = TOP / "docs" / "scenario.schema.json"

Schema: TypeAlias = dict[str, Any]

SCALARS: dict[Any, Schema] = {
    Any: {"type": ["string", "boolean", "number"]},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    float: {"type": "number", "minimum": 0, "maximum": MAX_SECONDS},
}


def schema(verbs: Verbs = VERBS) -> Schema:
    """Return the schema of scenario files; draft 7, which editors of TOML know."""
    step = {
        "type": "object",
        "description": "Something that an actor does or expects: one key beside `actor`.",
        "properties": {
            "actor": {"type": "string", "description": "Who does it, under this nickname."},
            **{verb: _of_verb(function) for verb, function in verbs.items()},
        },
        "oneOf": [{"required": [verb]} for verb in verbs],
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A scenario in an XMPP room",
        "type": "object",
        "properties": {
            "bot": _of_call(Bot),
            "step": {"type": "array", "minItems": 1, "items": step},
        },
        "required": ["step"],
        "additionalProperties": False,
    }


def _of_verb(function: Callable[..., object]) -> Schema:
    known = [*parameters(function).values()]
    if not known:
        either: list[Schema] = [{"const": True}, {"type": "object", "maxProperties": 0}]
    elif get_origin(known[0].annotation) is Mapping:
        either = [_of_type(known[0].annotation)]
    else:
        either = [_of_type(known[0].annotation), _of_call(function)]
    return {"description": _summary(function), "anyOf": either}


def _of_call(function: Callable[..., object]) -> Schema:
    known = parameters(function)
    made: Schema = {
        "type": "object",
        "description": _summary(function),
        "properties": {key: _of_parameter(each) for key, each in known.items()},
        "additionalProperties": False,
    }
    required = [key for key, each in known.items() if each.default is Parameter.empty]
    return {**made, "required": required} if required else made


def _of_parameter(parameter: Parameter) -> Schema:
    made = _of_type(parameter.annotation)
    if isinstance(parameter.default, (str, int, float)):
        made = {**made, "default": parameter.default}
    return made


def _of_type(hint: Any) -> Schema:
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return _of_type(arguments[0])
    if kind is Literal:
        return {"enum": list(arguments)}
    if kind is tuple:
        return {"type": "array", "minItems": 1, "items": _of_type(arguments[0])}
    if kind is Mapping:
        return {"type": "object", "additionalProperties": _of_type(arguments[1])}
    return SCALARS[kind]


def _summary(function: Callable[..., object]) -> str:
    return " ".join((getdoc(function) or "").partition("\n\n")[0].split())


def written(made: Schema) -> str:
    return json.dumps(made, indent=2) + "\n"


if __name__ == "__main__":
    PATH.write_text(written(schema()), "utf-8")
