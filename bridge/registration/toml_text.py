"""Puts a value into the text of a TOML file, or takes it out, and leaves all other bytes. Pure."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from bridge.registration import json_text
from bridge.registration.errors import EditError
from bridge.registration.json_text import MISSING, Path

_BARE = re.compile("[A-Za-z0-9_-]+")
_QUOTES = re.compile(r"\"{3}|'{3}")
_KEY = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'=])+=[ \t]*""")


class _Statement(NamedTuple):
    """A header of a table, or a key with its value."""

    start: int
    text: str
    """The statement with its comment and the end of its line."""

    table: Path
    """The keys of the table that it is in, or if it is a header, of the table that it begins."""

    path: Path
    """The keys that lead from the root to the value; if it is a header, the same as `table`."""

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def load(text: str) -> dict[str, Any]:
    """Return the value of `text`, each float as a NUL and its digits; raises `ValueError`."""
    return tomllib.loads(text, parse_float="\0{}".format)


def dump(table: Mapping[str, Any]) -> str:
    """Return a document that holds `table`."""
    return "\n\n".join(_tables((), table)) + "\n"


def put(text: str, path: Path, value: object) -> str:
    """Return `text` with `value` at `path`, or without it if the value is `MISSING`.

    Raises `EditError` if comments would be lost.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    statements = list(_statements(text))
    if value is MISSING:
        return _without(text, [each for each in statements if each.path[: len(path)] == path])
    held = [each for each in statements if each.path == path != each.table]
    if held:
        return text[: held[0].start] + _replaced(held[0].text, value) + text[held[0].end :]
    headers = [each for each in statements if each.path == each.table == path[:-1]]
    if headers and not (isinstance(value, dict) and value):
        line = f"{_keys(path[-1:])} = {_value(value)}"
        at, above = headers[0].end, text[: headers[0].end]
        return above + (f"{line}{newline}" if above.endswith("\n") else newline + line) + text[at:]
    words = "\n\n".join(_tables(path[:-1], {str(path[-1]): value})).replace("\n", newline)
    # Without a last line end there is none afterwards, so that the edit can be undone.
    if text and not text.endswith("\n"):
        return f"{text}{newline}{newline}{words}"
    return f"{text}{newline if text else ''}{words}{newline}"


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of a text that is TOML."""
    table: Path = ()
    start = 0
    words = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        words += line
        # A line within a value is not tried: with a long text in the file it would take minutes.
        quotes = _QUOTES.search(words)
        end = quotes[0] if quotes else "]"
        if words != line and end not in line and not line.lstrip().startswith("]"):
            continue
        with suppress(tomllib.TOMLDecodeError):  # it goes on in the next line
            if tomllib.loads(words):
                key = _KEY.match(words)
                if words.lstrip().startswith("["):
                    path = table = _path(words)
                elif key is not None:
                    path = table + _path(f"{key[0]}0")
                yield _Statement(start, words, table, path)
            start += len(words)
            words = ""


def _path(statement: str) -> Path:
    """Return the keys in a header, or before the value of a key."""
    path: list[str | int] = []
    held: Any = tomllib.loads(statement)
    while isinstance(held, dict) and held:
        ((key, held),) = held.items()
        path.append(key)
    return tuple(path)


def _replaced(statement: str, value: object) -> str:
    """Return a statement with another value, and with the comment behind it."""
    key, end = _KEY.match(statement), len(statement)
    assert key is not None
    for mark in re.finditer("#", statement):
        with suppress(tomllib.TOMLDecodeError):  # it is in a string
            if tomllib.loads(statement[: mark.start()]):
                end = mark.start()
                break
    end = len(statement[:end].rstrip())
    if re.search("#.*\n", statement[:end]):
        raise EditError("comments in it would be lost")
    return key[0] + _value(value) + statement[end:]


def _without(text: str, ours: list[_Statement]) -> str:
    """Return `text` without statements, and without the blank line before each header."""
    if not ours:
        raise EditError("its entry is within another value")
    is_open = ours[-1].end == len(text) and not text.endswith("\n")
    for statement in reversed(ours):
        above = text[: statement.start]
        if statement.path == statement.table:
            above = re.sub(r"(^|\n)[ \t]*\r?\n\Z", r"\1", above)
        text = above + text[statement.end :]
    return text.removesuffix("\n").removesuffix("\r") if is_open else text


def _tables(path: Path, table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a table and of the tables in it, each with its header."""
    inner = {key: value for key, value in table.items() if isinstance(value, dict) and value}
    lines = [f"{_keys((key,))} = {_value(table[key])}" for key in table if key not in inner]
    if lines:
        yield "\n".join([f"[{_keys(path)}]", *lines])
    for key, value in inner.items():
        yield from _tables((*path, key), value)


def _keys(path: Path) -> str:
    return ".".join(part if _BARE.fullmatch(str(part)) else _value(part) for part in map(str, path))


def _value(value: object) -> str:
    """Return a value on one line, where texts, booleans and arrays of them are as in JSON."""
    return json_text.dump(value).replace("\x7f", "\\u007f")
