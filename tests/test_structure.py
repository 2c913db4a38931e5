"""What can be counted of the layout: cycles, late imports, names and sizes of modules."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import bridge
from tests.code_lines import code_lines

PACKAGE = Path(bridge.__file__).parent

MAX_LATE_IMPORTS = 15
"""Statements inside functions that import modules of ours; each has its reason beside it."""

MAX_TYPES_ONLY = 8
"""Files that import under `TYPE_CHECKING`."""

MAX_CODE_LINES = 500
"""Of one module, as `tests/code_lines.py` counts them: more is more than one concept."""

SAME_NOUN = {
    "check": "the staged check: its command, its lines on a terminal, its tool",
    "client": "the interactive client: its command, and the protocol that it speaks",
    "errors": "the root of the exceptions of each package",
    "formatting": "lines for people: of replies, of events",
    "log": "what was recorded: its command, and what it shows",
    "register": "registering with a client: its command, and what it does",
    "room": "a chat room: the server's side, ours",
    "scram": "SCRAM: the server's side, ours",
    "server": "a server: of MCP, of XMPP for trying out, of XMPP under a test",
    "session": "a session: with a client over MCP, with a server over XMPP",
    "stream": "an XML stream: the server's side, ours",
    "trace": "the stanzas that went over the wire: kept, shown by a tool",
    "watch": "following the rooms in the terminal: its command, and what it shows",
}
"""The names that several modules have, each with the noun that it stands for in all of them."""

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


def _is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _on_loading(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that are imported when the module is loaded."""
    late: set[ast.AST] = set(_late(tree))
    late |= {one for node in tree.body if _is_for_types_only(node) for one in ast.walk(node)}
    for node in ast.walk(tree):
        if node not in late:
            yield from _imported(node)


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {_name(path): set(_on_loading(tree)) for path, tree in TREES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_few_modules_of_ours_are_imported_inside_functions() -> None:
    late = [f"{_name(path)}:{one.lineno}" for path, tree in TREES.items() for one in _late(tree)]
    assert "bridge.service" in {one.partition(":")[0] for one in late}
    assert len(late) <= MAX_LATE_IMPORTS, late


def test_few_files_import_for_types_only() -> None:
    found = {_name(path) for path, tree in TREES.items() if any(map(_is_for_types_only, tree.body))}
    assert "bridge.tools.link" in found
    assert len(found) <= MAX_TYPES_ONLY, found


def test_two_modules_of_one_name_are_of_one_noun() -> None:
    by_name = defaultdict(list)
    for path in SOURCES:
        if not path.name.startswith("__"):
            by_name[path.stem].append(_name(path))
    twice = {name: modules for name, modules in by_name.items() if len(modules) > 1}
    assert set(twice) == set(SAME_NOUN), twice


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
