"""docs/architecture.md speaks of the code as it is."""

import ast
import json
import re

import pytest

from tests.benchmarks.report import RESULTS, outcome_of
from tests.docs.pages import PAGES, TOP, blocks, quoted, section, tables

PAGE = PAGES["docs/architecture.md"]

HOPS = [
    (path.removesuffix(".py"), function)
    for block in blocks(section("docs/architecture.md", "## The path of a message"), "text")
    for path, function, *_ in map(str.split, block.text.splitlines())
]
"""The module and the function of each hop of the flows, in order."""


def _defined(tree: ast.Module) -> set[str]:
    """The functions of a module, those of its classes under the name of the class."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    names = {each.name for each in tree.body if isinstance(each, functions)}
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            names |= {
                f"{each.name}.{inner.name}" for inner in each.body if isinstance(inner, functions)
            }
    return names


@pytest.mark.parametrize(("module", "function"), sorted(set(HOPS)))
def test_each_hop_of_the_flows_is_in_the_code(module: str, function: str) -> None:
    path = TOP / "bridge" / f"{module}.py"
    assert path.exists()
    assert function in _defined(ast.parse(path.read_text("utf-8")))


def test_every_module_has_its_place_in_the_table() -> None:
    (rows,) = tables(section("docs/architecture.md", "## Modules")).values()
    names = {folder: quoted(modules) for (folder,), modules in ((quoted(a), b) for a, b in rows)}
    parts = [path.parent.relative_to(TOP) for path in (TOP / "bridge").rglob("[a-z]*.py")]
    folders = {part.relative_to("bridge").as_posix() for part in parts} - {"."}
    assert len(names) == len(rows)
    assert names.keys() == {"bridge/", *folders}
    for folder, named in names.items():
        path = TOP / "bridge" / folder.removeprefix("bridge/")
        modules = {module.stem for module in path.glob("*.py")} - {"__init__"}
        assert sorted(named) == sorted(modules), folder


def _drawing() -> str:
    (drawing,) = blocks(section("docs/architecture.md", "## Layers"), "text")
    return drawing.text


def test_every_package_and_every_module_on_top_is_in_the_layers() -> None:
    packages = {path.parent.name for path in (TOP / "bridge").rglob("__init__.py")} - {"bridge"}
    assert packages == set(re.findall(r"\b([a-z]+)/", _drawing()))
    modules = {path.name for path in (TOP / "bridge").glob("[a-z]*.py")}
    assert modules == set(re.findall(r"\b[a-z]+\.py", _drawing()))


def test_the_figures_are_those_of_the_benchmarks() -> None:
    results = json.loads(RESULTS.read_text("utf-8"))
    outcomes = {plain["name"]: outcome_of(plain) for plain in results["outcomes"]}
    bare, sdk = (aim.value for aim in outcomes["first-answer"].aims)
    medians = {
        (name, series.contender, series.what): series.median
        for name in ("echo", "intake")
        for series in outcomes[name].series
    }
    date, _, _ = results["machine"]["when"].partition(" ")
    said = " ".join(
        section(
            "docs/architecture.md", "## Why MCP is implemented here, and little of slixmpp is used"
        ).split()
    )
    for figure in (
        f"{sdk:.2f} times sooner than a server on the official Python SDK",
        f"takes {bare:.2f} times as long as a bare asyncio process",
        f"One `echo` call takes {medians['echo', 'xmpp-bridge', 'p50']:,.0f} µs",
        f"{medians['echo', 'MCP SDK, low level', 'p50']:,.0f} µs with the SDK",
        f"{medians['intake', 'xmpp-bridge', 'CPU']:,.0f} µs of CPU here",
        f"{medians['intake', 'bare slixmpp', 'CPU']:,.0f} µs with slixmpp",
        f"`mcp` {results['machine']['mcp']}",
        f"slixmpp {results['machine']['slixmpp']}",
        f"The figures are of {date}",
    ):
        assert figure in said
