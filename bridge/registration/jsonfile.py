"""Edits one value in JSON text, with or without comments, and keeps every other character. Pure.

The text is edited rather than rewritten, so that comments, order, indentation and the spelling
of numbers stay. Every edit is read back and compared before it is returned.

The standard library reads the values: comments and trailing commas are blanked out beforehand,
character by character, so that every position in the blanked text is one in the original.
"""

import json
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from bridge.registration.errors import EditError

MAX_DEPTH = 100
"""Containers within containers; a client's file has ten, and Python's own stack ends at 1,000."""

Path = Sequence[str | int]
"""The keys and indexes that lead to a value."""

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?'
_COMMENT = r"//[^\r\n]*|/\*.*?\*/"
_GAP = rf"(?:\s|{_COMMENT})*+"
# Nothing is blanked within a string. A comma behind no value, and a comment that is not closed,
# are left to be the decoder's errors.
_BLANKED = re.compile(
    rf"{_STRING}|[\[{{:,]{_GAP},|(?P<blanked>{_COMMENT}|,(?={_GAP}[\]}}]))|/\*.*", re.DOTALL
)
_COMMENT_OR_COMMA = re.compile(rf"(?P<comment>{_COMMENT})|,", re.DOTALL)


class _Member(NamedTuple):
    """A member of an object or an element of an array, and its positions in the text."""

    key: str | int | None
    """None of a bracket: the brackets stand in front of the members and behind them."""
    start: int
    """Of the key in an object, of the value in an array."""
    value: int
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
        value = _DECODER.decode(_blanked(bare) if comments else bare)
    except json.JSONDecodeError as error:
        raise EditError(f"line {error.lineno}: {error.msg}") from None
    except RecursionError:
        raise EditError("it is nested too deep") from None
    check_depth(value)
    return value


def dumps(value: object, indent: str | None = None) -> str:
    """Return `value` as JSON; a number that Python cannot hold is a string then."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=bytes.decode)
    return text.encode(errors="backslashreplace").decode()  # a lone surrogate is no UTF-8


def edit(text: str, path: Path, value: object) -> str:
    """Return `text` with `value` at `path`; with nothing there if it is None.

    Objects that are missing on the way are made. Of an object that is there only those members are
    touched that differ. The index behind the last element of an array appends to it. Raises
    `EditError`.
    """
    wanted = load(text)
    *way, key = path
    holder, present = find(wanted, way), find(wanted, path)
    if isinstance(present, dict) and isinstance(value, dict):
        for name in present | value:
            if name not in value or present.get(name) != value[name]:
                text = edit(text, (*path, name), value.get(name))
        return text
    if holder is None and value is None:
        return text
    if holder is None and way:
        return edit(text, way, {key: value})
    fits = isinstance(holder, list if isinstance(key, int) else dict)
    if not fits:
        raise EditError(f"{'.'.join(map(str, way)) or 'the whole'} is no object")
    if not text.removeprefix("\ufeff").strip():
        text = f"{text.rstrip()}{{}}\n"
    members = _members(text, way)
    number = next((n for n, member in enumerate(members) if member.key == key), None)
    if value is None and number is None:
        return text
    if value is None:
        del holder[key]
    elif isinstance(key, int):
        holder[key:] = [value]
    else:
        holder[key] = value
    if number is None:
        after = _inserted(text, members, key, value)
    elif value is None:
        after = _removed(text, members, number)
    else:
        start, end = members[number].value, members[number].end
        after = text[:start] + _indented(text, value, _indent_of(text, start)) + text[end:]
    if load(after) != wanted:
        raise EditError("it is written in a way that cannot be edited safely")
    return after


def append(text: str, path: Path, value: object) -> str:
    """Add `value` at the end of the array at `path`, unless it is in there. Raises `EditError`."""
    array = find(load(text), path)
    if array is None:
        return edit(text, path, [value])
    if not isinstance(array, list):
        raise EditError(f"{'.'.join(map(str, path))} is no list")
    return text if value in array else edit(text, (*path, len(array)), value)


def discard(text: str, path: Path, value: object) -> str:
    """Remove `value` from the array at `path`, as often as it is there. Raises `EditError`."""
    while isinstance(array := find(load(text), path), list) and value in array:
        text = edit(text, (*path, array.index(value)), None)
    return text


def find(document: Any, path: Path) -> Any:
    """Return the value at `path`; None if there is none."""
    for key in path:
        try:
            document = document[key]
        except (IndexError, KeyError, TypeError):
            return None
    return document


def check_depth(value: object, levels: int = MAX_DEPTH) -> None:
    """Raise `EditError` if there are more than `levels` containers within containers."""
    if isinstance(value, dict | list):
        if levels == 0:
            raise EditError("it is nested too deep")
        for inner in value.values() if isinstance(value, dict) else value:
            check_depth(inner, levels - 1)


def _number(text: str) -> Any:
    # `int` refuses more digits than 4,300; what is beyond the floats is infinite.
    with suppress(ValueError, OverflowError):
        if math.isfinite(number := json.loads(text)):
            return number
    return text.encode()


def _constant(text: str) -> NoReturn:
    raise EditError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=_number, parse_constant=_constant)


def _blanked(text: str) -> str:
    """Return `text` with blanks for comments and trailing commas, lines kept."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match["blanked"] is None else re.sub(r"[^\r\n]", " ", match[0])

    return _BLANKED.sub(blank, text)


def _members(text: str, path: Path) -> list[_Member]:
    """Return brackets and members of the container at `path`, which is there, in valid text.

    Raises `EditError`.
    """
    # The byte order mark counts as a blank.
    plain = _blanked(re.sub("^\ufeff", " ", text))
    members = _members_from(plain, _following(plain, 0))
    for key in path:
        found = [member for member in members if member.key == key]
        if len(found) > 1:
            raise EditError(f"{key} stands there twice")
        members = _members_from(plain, found[0].value)
    return members


def _members_from(plain: str, start: int) -> list[_Member]:
    """Return brackets and members of the container that begins at `start`."""
    members = [_Member(None, start, start, start + 1)]
    position = _following(plain, start + 1)
    while plain[position] not in "]}":
        begin, key = position, len(members) - 1
        if plain[start] == "{":
            key, position = _DECODER.raw_decode(plain, begin)
            position = _following(plain, _following(plain, position) + 1)
        _, end = _DECODER.raw_decode(plain, position)
        members.append(_Member(key, begin, position, end))
        position = _following(plain, end)
        if plain[position] == ",":
            position = _following(plain, position + 1)
    return [*members, _Member(None, position, position, position + 1)]


def _following(plain: str, position: int) -> int:
    """Return the position of the first character from `position` on that is no blank."""
    while plain[position].isspace():
        position += 1
    return position


def _inserted(text: str, members: list[_Member], key: str | int, value: object) -> str:
    """Return `text` with a new last member, in the layout of the others."""
    opening, last, closing = members[0], members[-2], members[-1]
    gap = text[last.end : closing.start].rstrip()
    tail = text[last.end + len(gap) : closing.start]
    trailing = "" if _without_comma(gap) == gap else ","  # as it was done before us
    comma = "," if last != opening and not trailing else ""
    name = f"{dumps(key)}: " if isinstance(key, str) else ""
    if last != opening and "\n" not in text[opening.end : closing.start]:
        written = f" {name}{dumps(value)}"
    else:
        newline, base = _newline(text), _indent_of(text, opening.start)
        inner = base + _unit(text) if last == opening else _indent_of(text, last.start)
        written = f"{newline}{inner}{name}{_indented(text, value, inner)}"
        tail = tail if "\n" in tail else newline + base
    return f"{text[: last.end]}{comma}{gap}{written}{trailing}{tail}{text[closing.start :]}"


def _removed(text: str, members: list[_Member], number: int) -> str:
    """Return `text` without a member and its comma, and without its lines if nothing else is there.

    Comments stay.
    """
    begin, end = members[number - 1].end, members[number + 1].start
    before, after = text[begin : members[number].start], text[members[number].end : end]
    if _without_comma(after) == after:
        before = _without_comma(before)
    after = _without_comma(after)
    if members[number + 1].key is not None or after.strip():
        after = after.lstrip()
    elif number == 1 and not before.strip():
        before = after = ""
    else:
        before = before.rstrip(None if "\n" in after else " \t")
    return text[:begin] + before + after + text[end:]


def _without_comma(gap: str) -> str:
    """Return what stands between two members without the comma."""
    return _COMMENT_OR_COMMA.sub(lambda match: match["comment"] or "", gap)


def _indented(text: str, value: object, indent: str) -> str:
    lines = dumps(value, _unit(text)).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _indent_of(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    match = re.search(r"\n([ \t]+)[\"/\]}]", text)
    return match[1] if match else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
