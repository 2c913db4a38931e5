"""Edits one table in TOML text and keeps every other character. Pure.

The text is cut at its headers, and the sections of the table are exchanged or left out. tomlkit
writes the new table; the standard library's reader reads every edit back before it is returned.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import tomlkit

from bridge.registration.errors import EditError
from bridge.registration.jsonfile import check_depth, find


def load(text: str) -> dict[str, Any]:
    """Return what the text holds; raises `EditError`."""
    try:
        document = tomllib.loads(text.removeprefix("\ufeff"), parse_float=_float)
    except ValueError as error:
        raise EditError(str(error)) from None
    except RecursionError:
        raise EditError("it is nested too deep") from None
    check_depth(document)
    return document


def _float(text: str) -> float:
    value = float(text)
    # Two readings of a file can be compared: containers take one and the same object for equal.
    return math.nan if math.isnan(value) else value


def edit(text: str, path: tuple[str, str], table: Mapping[str, Any] | None) -> str:
    """Return `text` with the table at `path` set to `table`; without it if that is None.

    It is written where it stands, or at the end. Raises `EditError`.
    """
    wanted = load(text)
    if find(wanted, path) == table:
        return text
    holder = wanted.setdefault(path[0], {})
    if not isinstance(holder, dict):
        raise EditError(f"{path[0]} is no table")
    newline = "\r\n" if "\r\n" in text else "\n"
    block = ""
    if table is None:
        del holder[path[1]]
    else:
        holder[path[1]] = table
        block = (snippet(path, table) + "\n").replace("\n", newline)
    after, *sections = _sections(text)
    for section in sections:
        if find(load(_lines(section)[0]), path) is None:
            after += section
            continue
        if block:
            after, block = after + block, ""
        else:  # the blank line that set it apart goes with it
            after = re.sub(r"(?<=\n)\r?\n\Z", "", after)
        after += _comments_behind(section)
    if block:
        end = newline if after and not after.endswith("\n") else ""
        gap = newline if after.strip() else ""
        after += f"{end}{gap}{block}"
    if not _is_toml(after) or filled(load(after)) != filled(wanted):
        raise EditError("our table is written there in a way that cannot be edited safely")
    return after


def snippet(path: tuple[str, str], table: Mapping[str, Any]) -> str:
    """Return the table as text that a person can paste."""
    return tomlkit.dumps({path[0]: {path[1]: table}}).rstrip("\n")


def filled(document: dict[str, Any]) -> dict[str, Any]:
    """Return `document` without its empty tables: a header alone means nothing to a client."""
    return {key: value for key, value in document.items() if value != {}}


def _sections(text: str) -> list[str]:
    """Return the text in pieces, each but the first beginning with the header of a table."""
    sections = [""]
    for line in _lines(text):
        # What is within a string or an array is no header, and what comes before it no whole TOML.
        if line.lstrip("\ufeff \t").startswith("[") and _is_toml(sections[-1]):
            sections.append("")
        sections[-1] += line
    return sections


def _is_toml(text: str) -> bool:
    try:
        load(text)
    except EditError:
        return False
    return True


def _comments_behind(section: str) -> str:
    """Return the comments and blank lines after the last value: they may belong to what follows."""
    lines = reversed(_lines(section))
    kept = takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
    return "".join(reversed([*kept]))


def _lines(text: str) -> list[str]:
    return re.split("(?<=\n)", text)
