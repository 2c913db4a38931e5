"""Sets and removes variables in the text of a `.env` file, and shows what that changes."""

import io
import re
from collections.abc import Mapping
from difflib import unified_diff

from dotenv.parser import parse_stream

from bridge.settings.table import SECRETS

_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./\[\]-]+")
"""Values that mean the same without quotation marks."""

_SECRET = re.compile(rf"^([-+](?:{'|'.join(SECRETS)})=).*")
"""A line of a diff that has a secret."""


def with_variables(text: str, values: Mapping[str, str]) -> str:
    """Return `text` with these values of variables; a variable whose value is empty is removed.

    Comments, other variables, and lines that have the value already or cannot be parsed stay as
    they are. A variable that is not there yet is added at the end.
    """
    pieces, present = [], set()
    for binding in parse_stream(io.StringIO(text.removeprefix("\ufeff"), newline="")):
        statement, name, value = binding.original.string, binding.key or "", binding.value or ""
        present.add(name)
        if values.get(name, value) != value:
            blank = statement[: len(statement) - len(statement.lstrip())]
            statement = blank + _assignment(name, values[name])
        pieces.append(statement)
    added = "".join(_assignment(*item) for item in values.items() if item[0] not in present)
    kept = "".join(pieces)
    return f"{kept}\n{added}" if added and kept[-1:] not in ("", "\n") else kept + added


def difference(before: str, after: str, path: str) -> list[str]:
    """Return the lines that differ, as a unified diff without context, with secrets as `***`."""
    old, new = (_secrets_on_one_line(text).splitlines() for text in (before, after))
    lines = unified_diff(old, new, path, f"{path} (new)", n=0, lineterm="")
    return [_SECRET.sub(r"\1***", line) for line in lines]


def _secrets_on_one_line(text: str) -> str:
    """Return `text` with each secret as `NAME=` and its value on one line, however it was written.

    So the rest of a secret is never on a line that does not name it.
    """
    return "".join(
        f"{binding.key}={binding.value!r}\n" if binding.key in SECRETS else binding.original.string
        for binding in parse_stream(io.StringIO(text.removeprefix("\ufeff"), newline=""))
    )


def _assignment(name: str, value: str) -> str:
    if value and not _PLAIN.fullmatch(value):
        value = "'" + value.replace("\\", r"\\").replace("'", r"\'") + "'"
    return f"{name}={value}\n" if value else ""
