"""Edits one value in JSON text, with or without comments, and keeps every other character. Pure.

The text is edited rather than rewritten, so that comments, order, indentation and the spelling
of numbers stay. Every edit is read back and compared before it is returned.

The standard library reads the values: comments and trailing commas are blanked out beforehand,
character by character, so that every position in the blanked text is one in the original.
"""

import copy
import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from bridge.registration.errors import EditError

MAX_DEPTH = 100
"""Containers within containers; a client's file has ten, and Python's own stack ends at 1,000."""

Path = Sequence[str | int]
"""The keys and indexes that lead to a value."""

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
"""Matched by both expressions below, so that nothing is found within one; an unclosed string ends
with the text."""
_COMMENT = re.compile(_STRING + r"|(?P<blanked>//[^\r\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(_STRING + r"|[\[{:,]\s*,|(?P<blanked>,(?=\s*[\]}]))", re.DOTALL)

_SPACE = re.compile(r"[ \t\r\n]*")
_SURROGATE = re.compile("[\ud800-\udfff]")


class _Child(NamedTuple):
    """A member of an object or an element of an array, and its positions in the text."""

    key: str | int
    start: int
    """Of the key in an object, of the value in an array."""
    value: int
    """Of the value."""
    end: int
    comma: int | None
    """Of the comma after it, if there is one."""


class _Container(NamedTuple):
    """An object or an array, and its positions in the text."""

    start: int
    children: list[_Child]
    inner_end: int
    """Where the last value or comment before the closing bracket ends."""
    end: int


def load(text: str, *, comments: bool = True) -> Any:
    """Return the value in `text`; blank text holds an empty object. Raises `EditError`.

    Without `comments` they, and trailing commas, are errors. A number that Python cannot hold
    (5,000 digits, 1e999) is returned as bytes: so it equals itself alone, and cannot be written in
    another way than it was.
    """
    bare = text.removeprefix("\ufeff")
    if not bare.strip():
        return {}
    try:
        value = _DECODER.decode(_plain(bare) if comments else bare)
    except json.JSONDecodeError as error:
        raise EditError(f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise EditError("it is nested too deep") from None
    if too_deep(value):
        raise EditError("it is nested too deep")
    return value


def dumps(value: object, indent: str | None = None) -> str:
    """Return `value` as JSON; raises `EditError` for a number that Python cannot hold."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
    except TypeError:
        raise EditError("a number in it is too large to be written again") from None
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def put(text: str, path: Path, value: object) -> str:
    """Set the value at `path`, making the objects on the way. Raises `EditError`.

    Of an object that is there only those members are touched that differ. The index after the last
    one of an array appends to it.
    """
    if not text.removeprefix("\ufeff").strip():
        text = f"{text.rstrip()}{{}}\n"
    wanted = load(text)
    present = find(wanted, path)
    if isinstance(present, dict) and isinstance(value, dict):
        for key in present.keys() - value.keys():
            text = drop(text, (*path, key))
        for key, member in value.items():
            if key not in present or present[key] != member:
                text = put(text, (*path, key), member)
        return text
    _set(wanted, path, copy.deepcopy(value))
    parent, known = _walk(text, path[:-1])
    for key in reversed(path[known + 1 :]):
        value = {key: value}
    for child in parent.children:
        if child.key == path[known]:
            written = _indented(text, value, _indent_of(text, child.start))
            return _checked(text[: child.value] + written + text[child.end :], wanted)
    return _checked(_insert(text, parent, path[known], value), wanted)


def drop(text: str, path: Path) -> str:
    """Remove the value at `path`, if it is there. Raises `EditError`."""
    wanted = load(text)
    holder = find(wanted, path[:-1])
    match holder, path[-1]:
        case dict(), str(key) if key in holder:
            del holder[key]
        case list(), int(index):
            del holder[index]
        case _:
            return text
    parent, _ = _walk(text, path[:-1])
    number = [child.key for child in parent.children].index(path[-1])
    return _checked(_remove(text, parent, number), wanted)


def append(text: str, path: Path, value: object) -> str:
    """Add `value` at the end of the array at `path`, unless it is in there. Raises `EditError`."""
    array = find(load(text), path)
    if array is None:
        return put(text, path, [value])
    if not isinstance(array, list):
        raise EditError(f"{'.'.join(map(str, path))} is no list")
    return text if value in array else put(text, (*path, len(array)), value)


def discard(text: str, path: Path, value: object) -> str:
    """Remove `value` from the array at `path`, as often as it is there. Raises `EditError`."""
    array = find(load(text), path)
    if not isinstance(array, list) or value not in array:
        return text
    return discard(drop(text, (*path, array.index(value))), path, value)


def find(document: Any, path: Path) -> Any:
    """Return the value at `path`; None if there is none."""
    for key in path:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def too_deep(value: object) -> bool:
    """Whether there are more than `MAX_DEPTH` containers within containers."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _integer(text: str) -> int | bytes:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return text.encode()


def _float(text: str) -> float | bytes:
    value = float(text)
    return value if math.isfinite(value) else text.encode()


def _constant(text: str) -> NoReturn:
    raise EditError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant)


def _blanked(pattern: re.Pattern[str], text: str, filler: str = " ") -> str:
    """Return `text` with `filler` for every character of what `pattern` finds, lines kept."""

    def blank(match: re.Match[str]) -> str:
        if match["blanked"] is None:
            return match[0]
        if match[0].startswith("/*") and not match[0].endswith("*/", 2):
            line = text.count("\n", 0, match.start()) + 1
            raise EditError(f"line {line}: a comment is not closed")
        return re.sub(r"[^\r\n]", filler, match[0])

    return pattern.sub(blank, text)


def _plain(text: str) -> str:
    return _blanked(_TRAILING_COMMA, _blanked(_COMMENT, text))


def _walk(text: str, path: Path) -> tuple[_Container, int]:
    """Return the innermost container on `path` that is there, and how many steps away it is.

    `text` is known to be valid.
    """
    # The byte order mark counts as a blank.
    text = text.replace("\ufeff", " ", 1) if text.startswith("\ufeff") else text
    uncommented = _blanked(_COMMENT, text)
    plain = _blanked(_TRAILING_COMMA, uncommented)
    marked = _blanked(_COMMENT, text, "/")

    def following(position: int) -> int:
        match = _SPACE.match(uncommented, position)
        return position if match is None else match.end()

    def container(start: int) -> _Container:
        children: list[_Child] = []
        position = following(start + 1)
        while uncommented[position] not in "]}":
            first, key = position, len(children)
            if plain[start] == "{":
                key, position = _DECODER.raw_decode(plain, first)
                position = following(following(position) + 1)
            _, end = _DECODER.raw_decode(plain, position)
            after = following(end)
            comma = after if uncommented[after] == "," else None
            children.append(_Child(key, first, position, end, comma))
            position = after if comma is None else following(comma + 1)
        inner_end = len(marked[:position].rstrip(" \t\r\n"))
        return _Container(start, children, inner_end, position + 1)

    found = container(following(0))
    for step, key in enumerate(path):
        matching = [child for child in found.children if child.key == key]
        if len(matching) > 1:
            raise EditError(f"{key} stands there twice")
        if not matching:
            return found, step
        found = container(matching[0].value)
    return found, len(path)


def _set(document: Any, path: Path, value: object) -> None:
    """Set the value at `path` in `document`, making the objects on the way."""
    *way, last = path
    for step, key in enumerate((None, *way)):
        if key is not None:
            document = document.setdefault(key, {})
        if not isinstance(document, dict | list if isinstance(last, int) else dict):
            raise EditError(f"{'.'.join(map(str, way[:step])) or 'the whole'} is no object")
    if isinstance(document, list):
        document.append(value)
    else:
        document[last] = value


def _checked(after: str, wanted: object) -> str:
    if load(after) != wanted:
        raise EditError("it is written in a way that cannot be edited safely")
    return after


def _insert(text: str, parent: _Container, key: str | int, value: object) -> str:
    newline = _newline(text)
    name = f"{dumps(key)}: " if isinstance(key, str) else ""
    head, tail = text[: parent.inner_end], text[parent.inner_end :]
    if not parent.children:
        base = _indent_of(text, parent.start)
        inner = base + _unit(text)
        gap = "" if "\n" in text[parent.inner_end : parent.end] else newline + base
        return f"{head}{newline}{inner}{name}{_indented(text, value, inner)}{gap}{tail}"
    last = parent.children[-1]
    comma = "" if last.comma is None else ","  # as it was done before us
    if last.comma is None:
        head = f"{text[: last.end]},{text[last.end : parent.inner_end]}"
    if "\n" not in text[parent.start : parent.end]:
        return f"{head} {name}{dumps(value)}{comma}{tail}"
    inner = _indent_of(text, last.start)
    return f"{head}{newline}{inner}{name}{_indented(text, value, inner)}{comma}{tail}"


def _remove(text: str, parent: _Container, index: int) -> str:
    child = parent.children[index]
    before = parent.children[index - 1].comma if index > 0 else None
    if child.comma is None and before is not None:
        if not text[before + 1 : child.start].strip(" \t"):
            return text[:before] + text[child.end :]
        after = _cut(text, child.start, child.end)
        return after[:before] + after[before + 1 :]
    end = child.end if child.comma is None else child.comma + 1
    rest = text[parent.start + 1 : child.start] + text[end : parent.end - 1]
    if len(parent.children) == 1 and not rest.strip():  # not even a comment is left in there
        return text[: parent.start + 1] + text[parent.end - 1 :]
    return _cut(text, child.start, end)


def _cut(text: str, start: int, end: int) -> str:
    """Remove a piece, and its lines with it where nothing else stands on them."""
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


def _indented(text: str, value: object, indent: str) -> str:
    lines = dumps(value, _unit(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)
