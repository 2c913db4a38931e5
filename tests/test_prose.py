"""What can be counted of the rules for prose: beginnings of docstrings, names, booleans."""

import ast
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.test_layers import trees

LEANING = ("Of", "For", "By", "Its", "Their", "Between", "Beside", "Behind")
"""A docstring that begins so has neither subject nor verb: it leans on the name above."""

NAMELESS = {"one", "found"}
"""Variables called so hold a thing that has a name: an occupant, an entry, a path."""

_MAY_BIND = re.compile(rf"\b(?:{'|'.join(NAMELESS)})(?: in |[],):]| :?= )")
"""Matches in most files that bind such a name, and in few others: to parse all takes long."""

NAMELESS_OUTSIDE_TESTS = NAMELESS | {"told", "shown", "far"}

TWICE = {
    "Finding": "what is wrong with a client: in the room's eyes, on its stream, and on a page",
    "Occupant": "an occupant, as the sandbox and as the bridge have it",
    "Room": "a room, as the sandbox, the bridge, its store, and a client whose log is read have it",
    "Stream": "an XML stream, as the sandbox, the bridge, and a client whose log is read have it",
}
"""Class names that several modules have, and the one noun that they are."""


@cache
def nodes() -> Sequence[tuple[str, ast.AST]]:
    return [(module, node) for module, tree in trees().items() for node in ast.walk(tree)]


def bound(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return (name,)
        case ast.arg(arg=name):
            return (name,)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
    return ()


def test_every_docstring_can_be_read_without_the_name_above_it() -> None:
    texts = [
        f"{module}:{node.lineno}: {text}"
        for module, node in nodes()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(text := node.value.value, str) and text.startswith(LEANING)
    ]
    assert not [text for text in texts if text.split()[1] in LEANING]


def test_a_variable_has_the_name_of_what_it_holds() -> None:
    texts = [(str(path), path.read_text()) for path in Path(__file__).parent.rglob("*.py")]
    tests = [
        (path, node)
        for path, text in texts
        if _MAY_BIND.search(text)
        for node in ast.walk(ast.parse(text))
    ]
    assert not [
        f"{place}:{getattr(node, 'lineno', 0)}: {name}"
        for all_of, nameless in ((nodes(), NAMELESS_OUTSIDE_TESTS), (tests, NAMELESS))
        for place, node in all_of
        for name in bound(node)
        if name in nameless
    ]


def test_a_class_name_means_one_thing() -> None:
    names = Counter(node.name.lstrip("_") for _, node in nodes() if isinstance(node, ast.ClassDef))
    assert {name for name, count in names.items() if count > 1} == TWICE.keys()
