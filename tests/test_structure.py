"""What can be counted of the layout: cycles, late imports, names and sizes of modules."""

import ast
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

from tests.code_lines import code_lines
from tests.test_layers import PACKAGE, imports, trees

LATE = {
    "bridge.__main__": "Ctrl-C has its meaning before anything else is imported",
    "bridge.commands.configuration": "a sandbox is not part of the way to the first answer",
    "bridge.tools.diagnose": "the rules for a bot's log, likewise",
    "bridge.client.conversation": "its terminal loads prompt_toolkit, which a pipe does without",
    "bridge.testing.plugin": "pytest loads it in every run, whether or not a test asks for it",
}
"""The modules that import others of ours inside functions, and why. `cli` loads the module of its
command by name."""

MAX_CODE_LINES = 450
"""Of one module, as `tests/code_lines.py` counts them: more is more than one concept."""


SOURCES = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = defaultdict[str, set[str]](set)
    for each in imports():
        if each.on_loading:
            whole = each.imported if each.imported in trees() else each.imported.rpartition(".")[0]
            graph[each.importer] |= {whole} & trees().keys()
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None


def test_modules_of_ours_are_imported_at_the_top_and_for_more_than_their_types() -> None:
    late = {each.importer for each in imports() if each.of("bridge") and not each.on_loading}
    assert late == set(LATE)
    assert [path for path, source in SOURCES.items() if "TYPE_CHECKING" in source] == []


def test_the_exceptions_of_a_package_have_one_root() -> None:
    bases = {
        (name.split(".")[1], node.name): {ast.unparse(base) for base in node.bases}
        for name, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error")
    }
    names = {name for _, name in bases}
    # A value without bases is no exception, whatever its name.
    roots = [package for (package, _), above in bases.items() if above and not above & names]
    assert "mcp" in roots
    assert sorted(roots) == sorted(set(roots))


def test_no_module_is_too_long_to_be_one_concept() -> None:
    long = {path: source for path, source in SOURCES.items() if source.count("\n") > MAX_CODE_LINES}
    assert long
    assert [path for path, source in long.items() if code_lines(source) > MAX_CODE_LINES] == []
