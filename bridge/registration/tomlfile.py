"""One table put into TOML text, or taken out, and every other character left as it is. Pure.

The standard library reads TOML and does not write it. So the lines of our own tables are found
and exchanged, and what comes of it is read back and compared before anybody gets it.
"""

import copy
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from bridge.registration.jsontree import too_deep

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})
          |"(?:\\.|[^"\\\n])*"|'[^'\n]*')
      | (?P<comment>\#[^\n]*)
      | (?P<open>[\[{]) | (?P<close>[\]}])
      | (?P<newline>\n)
      | (?P<other>[^"'\#\[\]{}\n]+)''',
    re.VERBOSE | re.DOTALL,
)


class TomlError(Exception):
    """The text is not TOML, or cannot be edited safely; says which."""


@dataclass(frozen=True)
class Statement:
    """One header or one `key = value`, over as many lines as it takes, line ends included."""

    start: int
    end: int
    header: tuple[str, ...] | None
    """The table that it opens, if it is a header."""


def load(text: str) -> dict[str, Any]:
    """Return what the text holds; raises `TomlError`."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_float)
    except tomllib.TOMLDecodeError as error:
        raise TomlError(str(error)) from None
    except ValueError:
        raise TomlError("a number in it has too many digits") from None
    except RecursionError:
        raise TomlError("it is nested too deep") from None
    if too_deep(document):
        raise TomlError("it is nested too deep")
    return document


def _float(text: str) -> float | bytes:
    """Return `nan` as it is written: the number is not equal to itself."""
    value = float(text)
    return text.encode() if math.isnan(value) else value


def put(text: str, path: tuple[str, str], table: Mapping[str, Any]) -> str:
    """Set the table at `path` to `table`, where it stands or at the end. Raises `TomlError`."""
    wanted = load(text)
    holder = wanted.setdefault(path[0], {})
    if not isinstance(holder, dict):
        raise TomlError(f"{path[0]} is no table")
    holder[path[1]] = copy.deepcopy(dict(table))
    newline = "\r\n" if "\r\n" in text else "\n"
    block = newline.join(_lines(path, table)) + newline
    pieces = _pieces(text, path)
    if pieces:
        pieces[1:] = [_with_blank_line(text, piece) for piece in pieces[1:]]
        return _checked(_cut(text, pieces, block), wanted)
    if text and not text.endswith("\n"):
        text += newline
    gap = newline if text.strip() else ""
    return _checked(f"{text}{gap}{block}", wanted)


def drop(text: str, path: tuple[str, str]) -> str:
    """Take the table at `path` out, if it is there. Raises `TomlError`."""
    wanted = load(text)
    holder = wanted.get(path[0])
    if not isinstance(holder, dict) or path[1] not in holder:
        return text
    del holder[path[1]]
    pieces = [_with_blank_line(text, piece) for piece in _pieces(text, path)]
    return _checked(_cut(text, pieces, ""), wanted)


def _checked(after: str, wanted: dict[str, Any]) -> str:
    if _filled(_reload(after)) != _filled(wanted):
        raise TomlError("our table is written there in a way that cannot be edited safely")
    return after


def _reload(text: str) -> dict[str, Any]:
    # For text of our own making: what it breaks is not the reader's fault.
    try:
        return load(text)
    except TomlError:
        raise TomlError("it is written in a way that cannot be edited safely") from None


def _filled(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out tables that hold nothing: a header without anything says nothing."""
    return {key: value for key, value in document.items() if value != {}}


def _cut(text: str, pieces: Sequence[tuple[int, int]], block: str) -> str:
    """Put `block` in the place of the first piece, and nothing in the place of the others."""
    kept: list[str] = []
    position = 0
    for start, end in pieces:
        kept += (text[position:start], "" if position else block)
        position = end
    return "".join((*kept, text[position:]))


def _with_blank_line(text: str, piece: tuple[int, int]) -> tuple[int, int]:
    """Take the blank line along that sets it apart from what is before it."""
    start, end = piece
    before = re.search(r"(?<=\n)\r?\n\Z", text[max(0, start - 3) : start])
    return (start - len(before[0]) if before else start, end)


def _pieces(text: str, path: tuple[str, str]) -> list[tuple[int, int]]:
    """Where our tables stand: each from its header to the end of its last statement."""
    found: list[tuple[int, int]] = []
    within = False
    for statement in _statements(text):
        if statement.header is not None:
            within = statement.header[:2] == path
            if within:
                found.append((statement.start, statement.end))
        elif within:
            found[-1] = (found[-1][0], statement.end)
    return found


def _statements(text: str) -> Iterator[Statement]:
    """Read text that is known to be TOML."""
    start = position = 1 if text.startswith("\ufeff") else 0
    depth = 0
    said = False
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TomlError("it is written in a way that cannot be edited safely")
        position = match.end()
        match match.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth -= 1
            case "newline" if depth == 0:
                if said:
                    yield _statement(text, start, position)
                start, said = position, False
                continue
        said = said or (match.lastgroup != "comment" and bool(match[0].strip()))
    if said:
        yield _statement(text, start, position)


def _statement(text: str, start: int, end: int) -> Statement:
    line = text[start:end].strip()
    if not line.startswith("["):
        return Statement(start, end, None)
    keys: list[str] = []
    value: Any = tomllib.loads(line)
    while value:
        ((key, value),) = value.items()
        keys.append(key)
        value = value[0] if isinstance(value, list) else value
    return Statement(start, end, tuple(keys))


def _lines(path: Sequence[str], table: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{'.'.join(map(_key, path))}]"
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield ""
            yield from _lines((*path, key), value)


def snippet(path: tuple[str, str], table: Mapping[str, Any]) -> str:
    """Return the table as text that a person can paste."""
    return "\n".join(_lines(path, table))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return _string(value)
        case bytes():
            return value.decode()
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            raise TomlError(f"a {type(value).__name__} cannot be written")
