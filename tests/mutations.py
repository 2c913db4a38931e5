"""Small changes of what a function does, each told by the function's name and by texts.

Left out is what no test could tell or what is none of the behaviour: texts of the log, assertions,
annotations, `__repr__`, and what is evaluated when a module is loaded.
"""

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PAIRS = (
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
)
OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    one: other for pair in PAIRS for one, other in (pair, pair[::-1])
}
CHANGED_THEMSELVES = (ast.Compare, ast.UnaryOp)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Site = tuple[str, str, ast.expr | ast.stmt, ast.expr | ast.stmt, Callable[[ast.AST], None]]
"""The function, the kind, the node, what may stand for it, and how to put it there."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: `nth` of those in the function that read alike; the module is only a hint."""

    module: str
    function: str
    kind: str
    before: str
    after: str
    nth: int


def _replacements(field: str, node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """What may stand for a node in that field of its parent."""
    if field == "test" and isinstance(node, ast.expr) and not isinstance(node, CHANGED_THEMSELVES):
        yield "negated", ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for index, op in enumerate(ops):
                others = [*ops[:index], OTHER[type(op)](), *ops[index + 1 :]]
                yield "comparison", ast.Compare(left, others, comparators)
        case ast.BoolOp(op=op, values=values):
            yield "and/or", ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not dropped", operand
        case ast.Return(value=ast.Constant(value=bool() as value)):
            yield "return", ast.Return(ast.Constant(not value))
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return", ast.Return(ast.Constant(None))
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            yield "number", ast.Constant(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield "call left out", ast.Pass()


def _is_no_matter(node: ast.AST) -> bool:
    """Whether a change in it could not be told, or is none of the behaviour."""
    match node:
        case ast.Assert():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log" | "logger"))):
            return True
        case ast.Expr(value=value):
            return _is_no_matter(value)
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.If(test=test):
            return ast.unparse(test).endswith("TYPE_CHECKING")
        case _:
            return False


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST, Callable[[ast.AST], None]]]:
    """The field of each child of a node, the child, and how to put another in its place."""
    for field, value in list(ast.iter_fields(node)):
        if isinstance(value, list):
            for index, child in enumerate(value):
                yield field, child, partial(value.__setitem__, index)
        else:
            yield field, value, partial(setattr, node, field)


def _sites(node: ast.AST, names: tuple[str, ...] = (), *, runs: bool = False) -> Iterator[Site]:
    """Where a node can be changed; it `runs` where it is of a function's body."""
    for field, child, put in _children(node):
        if field == "annotation" or (field != "body" and isinstance(node, DEFINITIONS)):
            continue
        if not isinstance(child, ast.AST) or _is_no_matter(child):
            continue
        if isinstance(child, DEFINITIONS):
            function = not isinstance(child, ast.ClassDef)
            yield from _sites(child, (*names, child.name), runs=function)
            continue
        if runs and isinstance(child, ast.expr | ast.stmt):
            for kind, new in _replacements(field, child):
                yield ".".join(names), kind, child, new, put
        yield from _sites(child, names, runs=runs)


def mutants_of(source: str, module: str) -> Iterator[tuple[Mutant, int, Callable[[], str]]]:
    """Each mutant of a module's source, the line it is in, and what makes the mutated source."""
    seen = Counter[tuple[str, str, str, str]]()
    tree = ast.parse(source)

    def mutated(node: ast.AST, new: ast.AST, put: Callable[[ast.AST], None]) -> str:
        put(new)
        text = ast.unparse(tree)
        put(node)
        return text

    for function, kind, node, new, put in _sites(tree):
        key = (function, kind, ast.unparse(node), ast.unparse(new))
        yield Mutant(module, *key, seen[key]), node.lineno, partial(mutated, node, new, put)
        seen[key] += 1


def found(mutant: Mutant, root: Path) -> tuple[str, int, str] | None:
    """The module, line and mutated source of where a mutant's function is today."""

    def distance(path: Path) -> tuple[bool, bool, Path]:
        relative = path.relative_to(root)
        return str(relative) != mutant.module, path.name != Path(mutant.module).name, relative

    for path in sorted((root / "bridge").rglob("*.py"), key=distance):
        source = path.read_text("utf-8")
        if mutant.function.rpartition(".")[2] in source:
            for one, line, mutated in mutants_of(source, mutant.module):
                if one == mutant:
                    return str(path.relative_to(root)), line, mutated()
    return None
