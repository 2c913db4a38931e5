"""Changes a client's configuration file as text, in JSON or TOML. Pure.

A text is changed only if loading and dumping it gives exactly the same text. So nothing is lost
that a loaded document does not hold: comments in JSON, a byte order mark, a key that is there
twice, or a user's own indentation. A file with any of these is left to its user.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, TypeAlias

import tomlkit
from tomlkit.exceptions import TOMLKitError

from bridge.registration.errors import EditError
from bridge.text import one_line

Document: TypeAlias = dict[str, Any]
Format: TypeAlias = Literal["json", "toml"]


def load(text: str, form: Format) -> Document:
    """Return what `text` holds, as plain values; raises `EditError`."""
    with _explained():
        document = _parsed(text, form)
        return document.unwrap() if isinstance(document, tomlkit.TOMLDocument) else document


def edited(text: str, form: Format, change: Callable[[Document], None]) -> str:
    """Return `text` after `change` was applied to its document; raises `EditError`."""
    wanted = load(text, form)
    change(wanted)
    if wanted == load(text, form):
        return text
    with _explained():
        document = _parsed(text, form)
        same = (dump for dump in DUMPS[form] if not text.strip() or dump(document) == text)
        if (dump := next(same, None)) is None:
            raise EditError("comments or a layout of its own would be lost")
        change(document)
        after = dump(document)
        after.encode()  # raises if a path in it is not UTF-8
    # tomlkit counts the comments after a table as a part of the table.
    if load(after, form) != wanted or (form == "toml" and after.count("#") < text.count("#")):
        raise EditError("a comment or another entry would be lost")
    return after


def table_in(holder: Document, key: str) -> Document:
    """Return the table at `key`, which is made if it is missing; raises `EditError`."""
    table = holder.setdefault(key, {})
    if not isinstance(table, dict):
        raise EditError(f"{key} in it is no table")
    return table


def _json(document: Document, *, indent: int | str | None, end: str) -> str:
    text = json.dumps(document, ensure_ascii=False, indent=indent)
    return re.sub(r'"\\u0000([^"]*)"', r"\1", text) + end


DUMPS: dict[Format, list[Callable[[Document], str]]] = {
    "toml": [tomlkit.dumps],
    "json": [
        partial(_json, indent=indent, end=end)
        for indent in (2, 4, "\t", None)
        for end in ("\n", "")
    ],
}
"""The layouts of the clients' files. A new file gets the first layout of its format."""


def _parsed(text: str, form: Format) -> Any:
    if form == "toml":
        return tomlkit.parse(text)
    # Numbers stay as they are written: JavaScript writes 0.00001, Python 1e-05.
    document = json.loads(text if text.strip() else "{}", parse_float="\0{}".format)
    if not isinstance(document, dict):
        raise EditError("it holds no object")
    return document


@contextmanager
def _explained() -> Iterator[None]:
    """Raise the exceptions of the JSON and TOML libraries as `EditError`."""
    try:
        yield
    except (ValueError, RecursionError, TOMLKitError) as error:
        raise EditError(f"it cannot be parsed: {one_line(str(error))}") from error
