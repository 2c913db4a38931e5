"""Changes a client's configuration file as text, in JSON or TOML. Pure.

Only what changes is put into the text. The new text is read back: it must hold what is wanted, and
nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from bridge.registration import json_text, toml_text
from bridge.registration.errors import EditError
from bridge.registration.json_text import MISSING, Path
from bridge.text import one_line

Document: TypeAlias = dict[str, Any]
Format: TypeAlias = Literal["json", "toml"]
Change: TypeAlias = tuple[Path, object]
"""Where something changes, and the new value there: see `bridge.registration.json_text.Path`."""

BOM = "\ufeff"


def load(text: str, form: Format) -> Document:
    """Return what `text` holds, as plain values; raises `EditError`."""
    with _explained("it cannot be parsed"):
        return _parsed(text, form)


def dump(document: Document, form: Format) -> str:
    """Return a document as a new file has it."""
    return toml_text.dump(document) if form == "toml" else json_text.dump(document, "  ")


def edited(text: str, form: Format, changes: Sequence[Change]) -> str:
    """Return `text` with `changes` in it; raises `EditError`."""
    put = toml_text.put if form == "toml" else json_text.put
    bom = BOM if text.startswith(BOM) else ""
    wanted, after = load(text, form), text.removeprefix(bom)
    with _explained("it has no place for the entry"):
        for path, value in changes:
            _change(wanted, path, value)
            after = put(after, path, value)
        after.encode()  # raises if a path in it is not UTF-8
        if _filled(_parsed(after, form)) != _filled(wanted):
            raise EditError("another entry would be lost")
    return bom + after


def restored(
    text: str,
    form: Format,
    undoing: Sequence[Change],
    done: Sequence[Change],
    originals: Iterable[str],
) -> str | None:
    """Undo in `text` what was `done`, by the changes in `undoing`; raises `EditError`.

    If `text` is one of the `originals` after `done`, return this original as it was. If `text` is
    an empty file after `done`, return None: there was no file before.
    """
    after = edited(text, form, undoing)
    for original in (*originals, None):
        with suppress(EditError):
            before = original or ""
            is_before = _filled(load(before, form)) == _filled(load(after, form))
            if is_before and edited(before, form, done) == text:
                return original
    return after


def table_in(holder: Document, key: str) -> Document:
    """Return the table at `key`, empty if it is missing; raises `EditError`."""
    table = holder.get(key, {})
    if not isinstance(table, dict):
        raise EditError(f"{key} in it is no table")
    return table


def _parsed(text: str, form: Format) -> Document:
    text = text.removeprefix(BOM)
    document = toml_text.load(text) if form == "toml" else json_text.load(text)
    if not isinstance(document, dict):
        raise EditError("it holds no object")
    return document


def _change(holder: Any, path: tuple[Any, ...], value: object) -> None:
    """Make a change in a document."""
    for key, inner in pairwise(path):
        empty: Any = [] if isinstance(inner, int) else {}
        holder = holder.setdefault(key, empty)
        if type(holder) is not type(empty):
            raise EditError(f"{key} in it is no {'list' if empty == [] else 'table'}")
    if value is MISSING:
        del holder[path[-1]]
    elif isinstance(holder, list):
        holder.insert(path[-1], value)
    else:
        holder[path[-1]] = value


def _filled(value: Any) -> Any:
    """Return a value without the empty tables and lists in its tables."""
    if not isinstance(value, dict):
        return value
    filled = ((key, _filled(item)) for key, item in value.items())
    return {key: item for key, item in filled if item not in ({}, [])}


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn an error of a parser into an `EditError` that begins with `what`."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        raise EditError(f"{what}: {one_line(str(error))}") from error
