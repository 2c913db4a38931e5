"""Sets and removes variables in the text of a `.env` file."""

import io
import re
from collections.abc import Iterable, Mapping

from dotenv.parser import parse_stream

from bridge.settings.sources import parsed
from bridge.settings.table import VARIABLES
from bridge.settings.values import SettingsError

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./\[\]-]+")
"""Values that mean the same without quotation marks."""

_STATEMENT = re.compile(
    r"""(\s*)((?:export[^\S\r\n]+)?(?:'[^']+'|[^=\#\s]+)[^\S\r\n]*=?)"""
    r"""([^\S\r\n]*(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|[^\r\n]*?(?=\s+\#|\s*\Z))"""
    r"""([^\S\r\n]*(?:\#[^\r\n]*)?)(\s*)""",
    re.DOTALL,
)
"""Matches blank lines, a variable's name, its value, the comment behind it, and the line's end."""


def with_variables(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with these values of variables; a variable whose value is empty is removed.

    Lines stay as they are if they are comments, set other variables, have the value already, or
    cannot be parsed. A variable that is not there yet is added at the end. Raises `SettingsError`
    if the result would not be read as meant, for example if a quotation mark is not closed.
    """
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    newline = "\r\n" if "\r\n" in text else "\n"
    kept, present = bom, set()
    for binding in parse_stream(io.StringIO(text.removeprefix(bom), newline="")):
        statement, name, value = binding.original.string, binding.key or "", binding.value or ""
        present.add(name)
        if values.get(name, value) != value:
            statement = _with_value(statement, values[name])
        kept += statement
    new = (f"{name}={_quoted(value)}" for name, value in values.items() if name not in present)
    lines = [line for line in new if not line.endswith("=")]
    if lines and kept.removeprefix(bom)[-1:] not in ("", "\n"):
        kept += newline
    after = kept + "".join(f"{line}{newline}" for line in lines)
    _check(text, after, values)
    return after


def _check(before: str, after: str, values: Mapping[str, str]) -> None:
    """Raise `SettingsError` unless `after` has the values, and all other variables as `before`."""
    was, _, unread, _ = parsed(before)
    now = parsed(after).values
    wanted = {name: value for name, value in {**was, **values}.items() if value}
    wrong = {name for name in wanted | now if wanted.get(name, "") != now.get(name, "")}
    if wrong:
        named = ", ".join(sorted(wrong & {*VARIABLES})) or "another variable"
        where = f" in line {unread[0]}" if unread else ""
        raise SettingsError(
            f"the file was left alone: with the answers in it {named} would be read in another way;"
            f" close the quotation mark{where}"
        )


def changed(before: str, after: str, names: Iterable[str]) -> list[str]:
    """Return the names of the variables that have another value in `after`."""
    was, now = parsed(before).values, parsed(after).values
    return [name for name in names if was.get(name, "") != now.get(name, "")]


def _with_value(statement: str, value: str) -> str:
    """Return the statement with another value; if `value` is empty, only its comment."""
    match = _STATEMENT.fullmatch(statement)
    assert match is not None  # it was parsed
    blank, name, _, comment, end = match.groups()
    if not value:
        return blank + (comment.lstrip() + end if comment.strip() else "")
    comment = f" {comment}" if comment.startswith("#") else comment
    return f"{blank}{name.removesuffix('=')}={_quoted(value)}{comment}{end}"


def _quoted(value: str) -> str:
    if value and not _PLAIN.fullmatch(value):
        return "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
    return value
