"""Small changes of what a function does, each told by the function's name and by texts."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: `nth` of those in the function that read alike; the module is only a hint."""

    module: str
    function: str
    kind: str
    before: str
    after: str
    nth: int


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST, Callable[[ast.AST], None]]]:
    """The field of each child of a node, the child, and how to put another in its place."""
    for field, value in list(ast.iter_fields(node)):
        if isinstance(value, list):
            for index, child in enumerate(value):
                yield field, child, partial(value.__setitem__, index)
        else:
            yield field, value, partial(setattr, node, field)


def _sites(
    node: ast.AST, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, ast.stmt | ast.expr, Callable[[ast.AST], None]]]:
    """The function, the node, and how to put another in its place; no annotation, no assertion."""
    for field, child, put in _children(node):
        if field == "annotation" or (field != "body" and isinstance(node, DEFINITIONS)):
            continue
        if not isinstance(child, ast.AST) or isinstance(child, ast.Assert):
            continue
        if isinstance(child, DEFINITIONS):
            yield from _sites(child, (*names, child.name))
            continue
        if isinstance(child, ast.stmt | ast.expr):
            yield ".".join(names), child, put
        yield from _sites(child, names)


def _mutated(source: str, mutant: Mutant) -> tuple[int, str] | None:
    """The line of the change, and the source with it."""
    tree = ast.parse(source)
    alike = [
        (node, put)
        for function, node, put in _sites(tree)
        if function == mutant.function and ast.unparse(node) == mutant.before
    ]
    if len(alike) <= mutant.nth:
        return None
    node, put = alike[mutant.nth]
    (after,) = ast.parse(mutant.after).body
    put(after.value if isinstance(node, ast.expr) and isinstance(after, ast.Expr) else after)
    return node.lineno, ast.unparse(tree)


def found(mutant: Mutant, root: Path) -> tuple[str, int, str] | None:
    """The module, line and mutated source of where a mutant's function is today."""

    def distance(path: Path) -> tuple[bool, bool, Path]:
        relative = path.relative_to(root)
        return str(relative) != mutant.module, path.name != Path(mutant.module).name, relative

    for path in sorted((root / "bridge").rglob("*.py"), key=distance):
        source = path.read_text("utf-8")
        if mutant.function.rpartition(".")[2] in source and (site := _mutated(source, mutant)):
            return str(path.relative_to(root)), *site
    return None
