"""The example in the package's own words does what they say."""

import inspect
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import bridge.llm
from bridge.llm.node import LlmNode
from bridge.llm.prompt import Material
from bridge.mcp.catalogue import Catalogue
from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import Toolset
from tests.llm.model_service import model_service, saying
from tests.llm.standing import configured
from tests.llm.test_model import context

NAMES = (dataclass, Annotated, Literal, LlmNode, Material, Bounds, Toolset)


def _example() -> dict[str, Any]:
    text = inspect.cleandoc(bridge.llm.__doc__ or "")
    lines = text.partition("::\n")[2].split("\n")
    code = [each for each in lines if each.startswith("    ") or not each]
    names: dict[str, Any] = {"__name__": __name__}
    names |= {
        getattr(each, "__name__", None) or str(each).rpartition(".")[2]: each for each in NAMES
    }
    exec(compile(textwrap.dedent("\n".join(code)), "example", "exec"), names)  # noqa: S102 - ours
    return names


async def test_the_example_judges_a_report(tmp_path: Path) -> None:
    toolset = _example()["TOOLS"]
    async with model_service(saying({"severity": "high", "reason": "it burns"})) as service:
        catalogue = Catalogue(toolset, [configured(tmp_path, service)])
        run = catalogue.tools["triage"].function
        verdict = await run(context(), arguments={"text": "fire"})
    assert (verdict.severity, verdict.reason) == ("high", "it burns")
    assert '{"text":"fire"}' in service.asked[0].user
