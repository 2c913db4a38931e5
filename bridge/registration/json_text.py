"""Puts a value into the text of a JSON file, or takes it out, and leaves all other bytes. Pure.

Clients' files are JSON as people write it: with comments, trailing commas, and any layout.
"""

import json
import re
from typing import Any, NamedTuple, TypeAlias

from bridge.registration.errors import EditError

Path: TypeAlias = tuple[str | int, ...]
"""The keys that lead from the root to a value. The last may be the index of an item in an array: a
new value goes before this item."""

MISSING = object()
"""Stands for the new value of a key that is to be taken out."""

_WS = " \t\r\n"
_BLANKS = re.compile(f"[{_WS}]*")
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
# A comma without a value before it is a mistake, and stays.
_COMMA = re.compile(rf'"(?:[^"\\]|\\.)*"|[\[{{:,][{_WS}]*,|(,)(?=[{_WS}]*[}}\]])', re.DOTALL)

_written = "\0{}".format
_DECODER = json.JSONDecoder(parse_float=_written, parse_int=_written, parse_constant=_written)
"""Numbers stay as they are written: JavaScript writes 0.00001, Python 1e-05."""


class _MemberSpan(NamedTuple):
    """A member of an object or an item of an array: where it begins, and its value's place."""

    start: int
    value: int
    end: int


def load(text: str) -> Any:
    """Return the value of `text`, each number as a NUL and its digits; raises `ValueError`."""
    try:
        return _DECODER.decode(text if text.strip(_WS) else "{}")
    except ValueError:
        return _DECODER.decode(_plain(_bare(text)))


def dump(value: object, indent: str | None = None) -> str:
    """Return a value as JSON; on several lines if `indent` is given."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return re.sub(r'"\\u0000([^"]*)"', r"\1", text)


def put(text: str, path: Path, value: object) -> str:
    """Return `text` with `value` at `path`, or without it if the value is `MISSING`.

    Raises `EditError` if comments would be lost.
    """
    if not text.strip(_WS):
        text += "{}\n"
    bare = _bare(text)
    plain = _plain(bare)
    at, (key, *inner) = _after_blanks(plain, 0), path
    members, close = _members(plain, at)
    while inner and key in members:
        at, (key, *inner) = members[key].value, inner
        members, close = _members(plain, at)
    member = members.get(key)
    if member is None or (isinstance(key, int) and value is not MISSING):
        for each in reversed(inner):
            value = [value] if isinstance(each, int) else {each: value}
        first = min(members.values(), default=None)
        return _with_first(text, at, first, _unit(text, plain), key, value)
    if value is MISSING:
        return _without(text, bare, at, close, member, sorted(members.values()))
    if bare[member.value : member.end] != text[member.value : member.end]:
        raise EditError("comments in it would be lost")
    is_long = "\n" in text[member.value : member.end]
    words = _words(text, value, _unit(text, plain) if is_long else None, member.start)
    return text[: member.value] + words + text[member.end :]


def _bare(text: str) -> str:
    """Return `text` with blanks in place of comments."""
    return _COMMENT.sub(lambda match: " " * len(match[0]) if match[1] else match[0], text)


def _plain(bare: str) -> str:
    """Return `bare` with blanks in place of trailing commas."""
    return _COMMA.sub(lambda match: " " if match[1] else match[0], bare)


def _after_blanks(text: str, start: int) -> int:
    match = _BLANKS.match(text, start)
    assert match is not None  # it matches an empty text
    return match.end()


def _members(plain: str, at: int) -> tuple[dict[str | int, _MemberSpan], int]:
    """Return the members of what begins at `at`, and where its closing bracket is.

    If several members have the same key, the last counts, as in parsers.
    """
    members: dict[str | int, _MemberSpan] = {}
    position = _after_blanks(plain, at + 1)
    while plain[position] not in "}]":
        key, start = len(members), position
        if plain[at] == "{":
            key, position = _DECODER.raw_decode(plain, position)
            position = _after_blanks(plain, _after_blanks(plain, position) + 1)
        end = _DECODER.raw_decode(plain, position)[1]
        members[key] = _MemberSpan(start, position, end)
        position = _after_blanks(plain, end)
        if plain[position] == ",":
            position = _after_blanks(plain, position + 1)
    return members, position


def _unit(text: str, plain: str) -> str:
    """Return the blanks by which one level is indented."""
    return _indent(text, _after_blanks(plain, _after_blanks(plain, 0) + 1)) or "  "


def _indent(text: str, position: int) -> str:
    """Return the blanks at the beginning of the line of `position`."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _words(text: str, value: object, unit: str | None, position: int) -> str:
    """Return a value as JSON for a line of `text`; on several lines if there is a `unit`."""
    newline = ("\r\n" if "\r\n" in text else "\n") + _indent(text, position)
    return dump(value, unit).replace("\n", newline)


def _with_first(
    text: str, at: int, first: _MemberSpan | None, unit: str, key: str | int, value: object
) -> str:
    """Return `text` with a new first member of the object or array at `at`."""
    name = f"{dump(key)}: " if isinstance(key, str) else ""
    if first is not None:
        start = first.start
        blanks = text[at + 1 : start]
        blanks = blanks[len(blanks.rstrip(_WS)) :] or " "
        words = name + _words(text, value, unit if "\n" in blanks else None, start)
        return f"{text[:start]}{words},{blanks}{text[start:]}"
    is_long = "\n" in text.strip(_WS) or not text[:at].strip(_WS)
    new = {key: value} if name else [value]
    words = _words(text, new, unit if is_long else None, at)[1:-1]
    return text[: at + 1] + words + text[at + 1 :]


def _without(
    text: str, bare: str, at: int, close: int, member: _MemberSpan, members: list[_MemberSpan]
) -> str:
    """Return `text` without a member of the object or array at `at`; comments beside it stay."""
    number, end = members.index(member), member.end
    before = at + 1 + len(text[at + 1 : member.start].rstrip(_WS))
    is_last = member is members[-1]
    comma = bare.find(",", end, close if is_last else members[number + 1].start)
    if not is_last:
        return text[: member.start] + text[end:comma] + text[_after_blanks(text, comma + 1) :]
    if comma >= 0:
        return text[:before] + text[end:comma] + text[comma + 1 :]
    if number:
        comma = bare.find(",", members[number - 1].end)
        return text[:comma] + text[comma + 1 : before] + text[end:]
    is_alone = before == at + 1 and _after_blanks(text, end) == close
    return text[:before] + text[close if is_alone else end :]
