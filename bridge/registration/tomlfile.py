"""Edits one table in TOML text and keeps every other character. Pure.

tomlkit finds where the table stands and writes the new one. The standard library's reader, which
is stricter and faster, reads every edit back before it is returned.
"""

import copy
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Table, Whitespace

from bridge.registration.errors import EditError
from bridge.registration.jsonfile import too_deep

MAX_EDITED = 1 << 20
"""Characters of a file in which a table is exchanged or taken out: for so many tomlkit needs some
seconds and 160 MiB. A new table can be added to a file of any size."""

_MARK = "\0\n"
"""Stands where a part of the table was: TOML has no such character."""


class _NaN(float):
    """`nan`, equal to itself, so that two readings of a file can be compared."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    __hash__ = float.__hash__


def load(text: str) -> dict[str, Any]:
    """Return what the text holds; raises `EditError`."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_float)
    except tomllib.TOMLDecodeError as error:
        raise EditError(str(error)) from None
    except ValueError:
        raise EditError("a number in it has too many digits") from None
    except RecursionError:
        raise EditError("it is nested too deep") from None
    if too_deep(document):
        raise EditError("it is nested too deep")
    return document


def _float(text: str) -> float:
    value = float(text)
    return _NaN(value) if math.isnan(value) else value


def put(text: str, path: tuple[str, str], table: Mapping[str, Any]) -> str:
    """Set the table at `path` to `table`, where it stands or at the end. Raises `EditError`."""
    wanted = load(text)
    holder = wanted.setdefault(path[0], {})
    if not isinstance(holder, dict):
        raise EditError(f"{path[0]} is no table")
    there = path[1] in holder
    holder[path[1]] = copy.deepcopy(dict(table))
    newline = "\r\n" if "\r\n" in text else "\n"
    block = snippet(path, table).replace("\n", newline) + newline
    marked = _marked(text, path) if there else ""
    if _MARK in marked:
        return _checked(_unmarked(marked.replace(_MARK, block, 1)), wanted)
    if text and not text.endswith("\n"):
        text += newline
    gap = newline if text.strip() else ""
    return _checked(f"{text}{gap}{block}", wanted)


def drop(text: str, path: tuple[str, str]) -> str:
    """Remove the table at `path`, if it is there. Raises `EditError`."""
    wanted = load(text)
    holder = wanted.get(path[0])
    if not isinstance(holder, dict) or path[1] not in holder:
        return text
    del holder[path[1]]
    return _checked(_unmarked(_marked(text, path)), wanted)


def snippet(path: tuple[str, str], table: Mapping[str, Any]) -> str:
    """Return the table as text that a person can paste."""
    return tomlkit.dumps({path[0]: {path[1]: table}}).rstrip("\n")


def _checked(after: str, wanted: dict[str, Any]) -> str:
    try:
        as_wanted = filled(load(after)) == filled(wanted)
    except EditError:  # the edit broke the text; that is no fault of the file
        as_wanted = False
    if not as_wanted:
        raise EditError("our table is written there in a way that cannot be edited safely")
    return after


def filled(document: dict[str, Any]) -> dict[str, Any]:
    """Return `document` without its empty tables: a header alone means nothing to a client."""
    return {key: value for key, value in document.items() if value != {}}


def _marked(text: str, path: tuple[str, str]) -> str:
    """Return the text with `_MARK` in place of each part of the table that has a header."""
    if len(text) > MAX_EDITED:
        raise EditError(f"it has more than {MAX_EDITED:,} characters, too many to edit")
    start = 1 if text.startswith("\ufeff") else 0
    try:
        document = tomlkit.parse(text[start:])
    except (TOMLKitError, RecursionError):
        raise EditError("it is written in a way that cannot be edited safely") from None
    if document.as_string() != text[start:]:
        raise EditError("it is written in a way that cannot be edited safely")
    for _, holder in _with_headers(document, path[0]):
        for index, part in _with_headers(holder.value, path[1]):
            holder.value.body[index] = (None, Whitespace(_left_of(part)))
    return text[:start] + document.as_string()


def _with_headers(container: Container, key: str) -> list[tuple[int, Table]]:
    """Return the tables called `key` with their index in the body; parts may stand apart."""
    return [
        (index, item)
        for index, (name, item) in enumerate(container.body)
        if name is not None and name.key == key and not name.is_dotted() and isinstance(item, Table)
    ]


def _left_of(part: Table) -> str:
    """Return what stays of a removed table: a mark, and the comments after its last value.

    They may belong to what follows; so it is in each of its subtables.
    """
    text = _MARK
    for key, item in part.value.body:
        if isinstance(item, AoT):
            text += "".join(map(_left_of, item.body))
        elif isinstance(item, Table) and key is not None and not key.is_dotted():
            text += _left_of(item)
        else:
            text = text + item.as_string() if key is None else _MARK
    return text


def _unmarked(text: str) -> str:
    """Take the marks out, and with each the blank line that sets it apart from what is before."""
    return re.sub(f"((?<=\n)\r?\n)?{_MARK}", "", text)
