"""What can be counted of the layout: cycles, late imports, names and sizes of modules."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import bridge
from tests.code_lines import code_lines

PACKAGE = Path(bridge.__file__).parent

LATE = {
    "bridge.store.opening": "a database of a team loads psycopg, of the extra `[postgresql]`",
    "bridge.commands.sandbox": "its certificate is made by a library of the extra `[expect]`",
    "bridge.testing.server": "the certificate of its sandbox, likewise",
    "bridge.client.conversation": "its terminal loads prompt_toolkit, which a pipe does without",
    "bridge.testing.plugin": "pytest loads it in every run, whether or not a test asks for it",
}
"""The modules that import others of ours inside functions, and why. `cli` loads the module of its
command by name."""

MAX_CODE_LINES = 450
"""Of one module, as `tests/code_lines.py` counts them: more is more than one concept."""


SOURCES = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {path: ast.parse(source) for path, source in SOURCES.items()}


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path) for path in SOURCES}


def _imported(node: ast.AST) -> list[str]:
    """The modules of ours that an import statement loads."""
    match node:
        case ast.Import(names=names):
            found = [one.name for one in names]
        case ast.ImportFrom(module=str(source), names=names):
            found = [f"{source}.{one.name}" for one in names]
            found = [one if one in MODULES else source for one in found]
        case _:
            found = []
    return [one for one in found if one in MODULES]


def _late(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements inside functions that import modules of ours."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    within = {
        statement
        for function in ast.walk(tree)
        if isinstance(function, functions)
        for statement in ast.walk(function)
        if isinstance(statement, ast.Import | ast.ImportFrom)
    }
    yield from (one for one in within if _imported(one))


def _on_loading(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that are imported when the module is loaded."""
    late = set(_late(tree))
    for node in ast.walk(tree):
        if node not in late:
            yield from _imported(node)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {_name(path): set(_on_loading(tree)) for path, tree in TREES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_modules_of_ours_are_imported_at_the_top_and_for_more_than_their_types() -> None:
    late = {_name(path) for path, tree in TREES.items() if any(_late(tree))}
    assert late == set(LATE)
    assert [path for path, source in SOURCES.items() if "TYPE_CHECKING" in source] == []


def test_the_exceptions_of_a_package_have_one_root() -> None:
    bases = {
        (_name(path).split(".")[1], node.name): {ast.unparse(base) for base in node.bases}
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    names = {name for _, name in bases}
    # A value without bases is no exception, whatever its name.
    roots = [package for (package, _), above in bases.items() if above and not above & names]
    assert "mcp" in roots
    assert sorted(roots) == sorted(set(roots))


def test_no_module_is_too_long_to_be_one_concept() -> None:
    sizes = {_name(path): code_lines(source) for path, source in SOURCES.items()}
    assert sizes["bridge.service"] > 0
    assert {name: size for name, size in sizes.items() if size > MAX_CODE_LINES} == {}
