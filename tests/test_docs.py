"""docs/architecture.md speaks of the code as it is."""

import ast
import re

import pytest

from tests.readme import TEXT, TOP, quoted, tables

PAGE = TOP / "docs" / "architecture.md"
PAGE_TEXT = PAGE.read_text("utf-8")
MOST_LINES = 120

HOPS = [
    tuple(quoted(cell))
    for part in PAGE_TEXT.split("\n## ")
    for table in re.split(r"\n\n", part)
    for cell, _ in tables(f"{table}\n").get("module and function", [])
]
"""The module and the function of each hop of the flows, in order."""


def _defined(tree: ast.Module) -> set[str]:
    """The functions of a module, those of its classes under the name of the class."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {one.name for one in tree.body if isinstance(one, functions)}
    for one in tree.body:
        if isinstance(one, ast.ClassDef):
            found |= {
                f"{one.name}.{inner.name}" for inner in one.body if isinstance(inner, functions)
            }
    return found


def test_both_flows_are_there() -> None:
    modules = [one[0] for one in HOPS]
    assert modules[0] == "xmpp/stream"
    assert modules.count("mcp/stdio") == 2
    assert modules[-1] == "xmpp/stream"
    assert all(len(one) == 2 for one in HOPS)


@pytest.mark.parametrize(("module", "function"), sorted(set(HOPS)))
def test_each_hop_of_the_flows_is_in_the_code(module: str, function: str) -> None:
    path = TOP / "bridge" / f"{module}.py"
    assert path.exists()
    assert function in _defined(ast.parse(path.read_text("utf-8")))


def test_every_module_and_package_that_it_names_is_there() -> None:
    named = re.findall(r"`(?:bridge/)?([a-z]+/[a-z]*)`", PAGE_TEXT)
    drawn = re.findall(r"\b[a-z]+(?:\.py|/)", PAGE_TEXT.partition("```text")[2].partition("```")[0])
    assert len(drawn) > 15
    for name in {*named, *drawn}:
        path = TOP / "bridge" / name
        assert path.exists() or path.with_suffix(".py").exists(), name


def test_every_package_is_in_the_layers() -> None:
    drawn = PAGE_TEXT.partition("```text")[2].partition("```")[0]
    packages = {path.parent.name for path in (TOP / "bridge").glob("*/__init__.py")}
    assert packages == set(re.findall(r"\b([a-z]+)/", drawn))


def test_it_is_short_and_found_from_the_readme() -> None:
    assert len(PAGE_TEXT.splitlines()) <= MOST_LINES
    assert "](docs/architecture.md)" in TEXT.partition("## How it is built")[2]
