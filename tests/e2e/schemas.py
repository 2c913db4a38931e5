"""What the bridge promises of its results, to hold every result against."""

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.toolset import Toolset
from bridge.service import MODULES


@cache
def output_schemas() -> dict[str, Any]:
    """The output schema of each tool, as `tools/list` tells it."""
    tools = Toolset.of_modules("bridge", *MODULES).tools
    return {one.name: one.output_schema for one in tools if one.output_schema is not None}


def check(tool: str, structured: object) -> None:
    """Fail if a result of `tool` is not what its output schema says."""
    schema = output_schemas().get(tool)
    if schema is not None:
        Draft202012Validator(schema).validate(structured)
