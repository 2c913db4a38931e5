"""One value put into JSON text, or taken out, and every other character left as it is. Pure.

Text is edited, not written anew: comments, order, indentation and the spelling of numbers are
other people's. Each edit is read back and compared before anybody gets it.
"""

import copy
import json
import re
from collections.abc import Sequence
from typing import Any

from bridge.registration.jsontree import JsonError, Node, parse, plain, read, too_deep

_SURROGATE = re.compile("[\ud800-\udfff]")


def load(text: str, *, comments: bool = True) -> Any:
    """Return what the text holds; blank text holds an empty object. Raises `JsonError`.

    Without `comments` they, and trailing commas, are damage.
    """
    bare = text.removeprefix("\ufeff")
    if not bare.strip():
        return {}
    try:
        value = parse(bare)
    except json.JSONDecodeError as error:
        if not comments:
            raise JsonError(f"line {error.lineno}: {error.msg}") from None
        return plain(read(text))
    except RecursionError:
        raise JsonError("it is nested too deep") from None
    if too_deep(value):
        raise JsonError("it is nested too deep")
    return value


def dumps(value: object, indent: str | None = None) -> str:
    """Return `value` as JSON; raises `JsonError` for a number that Python cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    except TypeError:
        raise JsonError("a number in it is too large to be written anew") from None
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def put(text: str, path: Sequence[str], value: object) -> str:
    """Set the member at `path` to `value`, making the objects on the way. Raises `JsonError`.

    Of an object that is there only those members are touched that differ.
    """
    text = _started(text)
    wanted = load(text)
    present = _find(wanted, path)
    if isinstance(present, dict) and isinstance(value, dict):
        for key in present.keys() - value.keys():
            text = drop(text, (*path, key))
        for key, member in value.items():
            if key not in present or present[key] != member:
                text = put(text, (*path, key), member)
        return text
    _object(wanted, path[:-1])[path[-1]] = copy.deepcopy(value)
    parent, known = _walk(text, path[:-1])
    missing = list(path[known + 1 :])
    for key in reversed(missing):
        value = {key: value}
    key = path[known]
    for child in parent.children:
        if child.key == key:
            written = _dump(text, value, _indent_of(text, child.start))
            return _checked(text[: child.node.start] + written + text[child.node.end :], wanted)
    return _checked(_insert(text, parent, value, key), wanted)


def append(text: str, path: Sequence[str], value: object) -> str:
    """Add `value` at the end of the array at `path`, unless it is in there. Raises `JsonError`."""
    array = _find(load(_started(text)), path)
    if array is None:
        return put(text, path, [value])
    if not isinstance(array, list):
        raise JsonError(f"{'.'.join(path)} is no list")
    if value in array:
        return text
    wanted = load(text)
    _find(wanted, path).append(value)
    parent, _ = _walk(text, path[:-1])
    (child,) = [child for child in parent.children if child.key == path[-1]]
    return _checked(_insert(text, child.node, value, None), wanted)


def drop(text: str, path: Sequence[str]) -> str:
    """Take the member at `path` out, if it is there. Raises `JsonError`."""
    wanted = load(text)
    holder = _find(wanted, path[:-1])
    if not isinstance(holder, dict) or path[-1] not in holder:
        return text
    del holder[path[-1]]
    parent, _ = _walk(text, path[:-1])
    index = [child.key for child in parent.children].index(path[-1])
    return _checked(_remove(text, parent, index), wanted)


def discard(text: str, path: Sequence[str], value: object) -> str:
    """Take `value` out of the array at `path`, if it is in there. Raises `JsonError`."""
    wanted = load(text)
    array = _find(wanted, path)
    if not isinstance(array, list) or value not in array:
        return text
    parent, _ = _walk(text, path[:-1])
    (child,) = [child for child in parent.children if child.key == path[-1]]
    index = array.index(value)
    del array[index]
    return discard(_checked(_remove(text, child.node, index), wanted), path, value)


def _started(text: str) -> str:
    return text if text.removeprefix("\ufeff").strip() else f"{text.rstrip()}{{}}\n"


def _find(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _object(value: Any, path: Sequence[str]) -> dict[str, Any]:
    for step, key in enumerate((None, *path)):
        if key is not None:
            value = value.setdefault(key, {})
        if not isinstance(value, dict):
            raise JsonError(f"{'.'.join(path[:step]) or 'the whole'} is no object")
    found: dict[str, Any] = value
    return found


def _walk(text: str, path: Sequence[str]) -> tuple[Node, int]:
    """Return the innermost object on `path` that is there, and how many steps away it is."""
    node = read(text)
    for step, key in enumerate(path):
        found = [child for child in node.children if child.key == key]
        if len(found) > 1:
            raise JsonError(f"{key} stands there twice")
        if not found:
            return node, step
        node = found[0].node
    return node, len(path)


def _checked(after: str, wanted: object) -> str:
    if load(after) != wanted:
        raise JsonError("it is written in a way that cannot be edited safely")
    return after


def _insert(text: str, parent: Node, value: object, key: str | None) -> str:
    newline = _newline(text)
    name = "" if key is None else dumps(key) + ": "
    head, tail = text[: parent.inner_end], text[parent.inner_end :]
    if not parent.children:
        base = _indent_of(text, parent.start)
        inner = base + _unit(text)
        gap = "" if "\n" in text[parent.inner_end : parent.end] else newline + base
        return f"{head}{newline}{inner}{name}{_dump(text, value, inner)}{gap}{tail}"
    last = parent.children[-1]
    comma = "" if last.comma is None else ","  # as it was done before us
    if last.comma is None:
        head = f"{text[: last.node.end]},{text[last.node.end : parent.inner_end]}"
    if "\n" not in text[parent.start : parent.end]:
        return f"{head} {name}{dumps(value)}{comma}{tail}"
    inner = _indent_of(text, last.start)
    return f"{head}{newline}{inner}{name}{_dump(text, value, inner)}{comma}{tail}"


def _remove(text: str, parent: Node, index: int) -> str:
    child = parent.children[index]
    if child.comma is None and index > 0:
        comma = parent.children[index - 1].comma
        assert comma is not None
        if not text[comma + 1 : child.start].strip(" \t"):
            return text[:comma] + text[child.node.end :]
        after = _without(text, child.start, child.node.end)
        return after[:comma] + after[comma + 1 :]
    end = child.node.end if child.comma is None else child.comma + 1
    rest = text[parent.start + 1 : child.start] + text[end : parent.end - 1]
    if len(parent.children) == 1 and not rest.strip():  # not even a comment is left in there
        return text[: parent.start + 1] + text[parent.end - 1 :]
    return _without(text, child.start, end)


def _without(text: str, start: int, end: int) -> str:
    """Cut a piece out, and its lines with it where nothing else stands on them."""
    line = text.rfind("\n", 0, start) + 1
    following = re.compile(r"[ \t]*(\r?\n|$)").match(text, end)
    if following is not None and not text[line:start].strip():
        return text[:line] + text[following.end() :]
    if following is None:  # the next one on the same line moves up
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    return text[:start] + text[end:]


def _indent_of(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    match = re.search(r"\n([ \t]+)[\"/\]}]", text)
    return match[1] if match else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _dump(text: str, value: object, indent: str) -> str:
    lines = dumps(value, _unit(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)
