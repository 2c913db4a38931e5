"""docs/architecture.md speaks of the code as it is."""

import ast
import re

import pytest

from tests.docs.pages import PAGES, TOP, blocks, quoted, section, tables

PAGE = PAGES["docs/architecture.md"]
MOST_LINES = 270

HOPS = [
    tuple(quoted(cell))
    for part in PAGE.split("\n## ")
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


def test_every_module_has_its_place_in_a_table() -> None:
    found = tables(section("docs/architecture.md", "## Modules"))
    packages = {path.parent.name for path in (TOP / "bridge").glob("*/__init__.py")}
    assert set(found) == {"directly in `bridge/`", *(f"`{package}/`" for package in packages)}
    for head, rows in found.items():
        (folder,) = quoted(head)
        folder = "" if folder == "bridge/" else folder
        modules = {path.stem for path in (TOP / "bridge" / folder).glob("*.py")} - {"__init__"}
        named = [one for row in rows for one in quoted(row[0])]
        assert sorted(named) == sorted(modules), head


def test_every_module_and_package_that_it_names_is_there() -> None:
    named = re.findall(r"`(?:bridge/)?([a-z]+/[a-z]*)`", PAGE)
    drawn = re.findall(r"\b[a-z]+(?:\.py|/)", _drawing())
    assert len(drawn) > 15
    for name in {*named, *drawn}:
        path = TOP / "bridge" / name
        known = path.exists() or path.with_suffix(".py").exists() or (TOP / name).exists()
        assert known, name


def _drawing() -> str:
    (drawing,) = blocks(section("docs/architecture.md", "## Layers"), "text")
    return drawing.text


def test_every_package_and_every_module_on_top_is_in_the_layers() -> None:
    packages = {path.parent.name for path in (TOP / "bridge").glob("*/__init__.py")}
    assert packages == set(re.findall(r"\b([a-z]+)/", _drawing()))
    modules = {path.name for path in (TOP / "bridge").glob("[a-z]*.py")}
    assert modules == set(re.findall(r"\b[a-z]+\.py", _drawing()))


def test_the_rules_of_import_are_those_that_are_held() -> None:
    layers = section("docs/architecture.md", "## Layers")
    law = " ".join(layers.partition("The rules of import")[2].split())
    tree = ast.parse((TOP / "tests" / "test_layers.py").read_text("utf-8"))
    held = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for told, test in {
        "do not import each other": "test_the_two_wings_do_not_know_of_each_other",
        "`tools/` but `service.py`": "test_only_the_composition_root_imports_the_tools",
        "Nothing below imports": "test_nothing_below_imports_what_is_above",
        "knows neither": ("test_registration_is_for_the_command_line_alone_and_knows_neither_wing"),
        "`testing/` knows neither": (
            "test_tests_of_bots_know_neither_agents_nor_tools_and_are_known_to_commands_alone"
        ),
        "`console/terminal.py` and": "test_only_the_terminal_imports_what_edits_lines",
        "some modules of `xmpp/` only": "test_slixmpp_is_imported_in_one_corner_only",
        "while it is loaded": "test_nothing_imports_that_corner_when_it_is_loaded",
        "calls itself pure": "test_a_pure_module_touches_nothing_outside",
        "standard library alone": (
            "test_what_stands_on_the_standard_library_stands_on_nothing_else"
        ),
    }.items():
        assert told in law
        assert test in held


def test_it_is_short() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES
