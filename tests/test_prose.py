"""What can be counted of the rules for prose: beginnings of docstrings, names, booleans."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

BRIDGE = Path(__file__).parent.parent / "bridge"

LEANING = ("Of", "For", "By", "Its", "Their", "Between", "Beside", "Behind")
"""A docstring that begins so has neither subject nor verb: it leans on the name above."""

NAMELESS = {"one", "found", "told", "shown", "far"}
"""Variables called so hold a thing that has a name: an occupant, an entry, a path."""

TWICE = {
    "Finding": "what is wrong with a client: in the room's eyes, on its stream, and on a page",
    "Occupant": "an occupant, as the sandbox and as the bridge have it",
    "Room": "a room, as the sandbox, the bridge, its store, and a client whose log is read have it",
    "Stream": "an XML stream, as the sandbox, the bridge, and a client whose log is read have it",
}
"""Class names that several modules have, and the one noun that they are."""

Place = tuple[str, int]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(BRIDGE.rglob("*.py")):
        yield str(path.relative_to(BRIDGE.parent)), ast.parse(path.read_text("utf-8"))


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
    leaning = [
        f"{path}:{node.lineno}: {node.value.value.splitlines()[0]}"
        for path, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value.split(maxsplit=1)[:1]
        and node.value.value.split(maxsplit=1)[0] in LEANING
    ]
    assert not leaning, "\n".join(leaning)


def test_a_variable_has_the_name_of_what_it_holds() -> None:
    nameless = [
        f"{path}:{getattr(node, 'lineno', 0)}: {name}"
        for path, module in modules()
        for node in ast.walk(module)
        for name in bound(node)
        if name in NAMELESS
    ]
    assert not nameless, "\n".join(nameless)


def test_a_class_name_means_one_thing() -> None:
    places = defaultdict[str, list[str]](list)
    for path, module in modules():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert twice.keys() == TWICE.keys(), twice
