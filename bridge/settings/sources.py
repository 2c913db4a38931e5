"""The places where variables are written: the process environment, and `.env` files.

This module finds and reads `.env` files; `bridge.settings.load` decides which of their variables
count. An agent starts in the folder of any project that it works on. So the `.env` of the current
directory may be a stranger's, and is not trusted.
"""

import io
import os
import re
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bridge.settings.values import SettingsError

MAX_FILE_BYTES = 1 << 20
"""Largest `.env` file that is read, in bytes; a thousand times what people write by hand."""

MAX_STRANGERS_BYTES = 64 << 10
"""Largest `.env` file, in bytes, that is read if it was found only in the current directory.

A line that cannot be parsed costs python-dotenv 10 µs, so that a megabyte of `?` lines in a cloned
repository would delay every start by 5 s; a file of this size takes a third of a second.
"""

MAX_BLANKS = 256
"""Longest run of blanks within a line of a `.env` file, in characters.

The time in which python-dotenv looks for a comment after a value is quadratic in such a run: 32,768
blanks take over a second, a megabyte takes half an hour. A cloned repository may have such a file.
"""

MAX_LINES_NAMED = 5
"""The most unreadable lines of a file that are named; a file of rubbish has thousands."""

USERS_FILE = "xmpp-bridge.env"
"""Name of the user's own file, which `xmpp-bridge init` writes, in the folder of configurations."""

TO_TRUST_IT = "to trust that file, name it with --env-file or TIA_ENV_PATH"
"""What a user can do if a file is trusted less than intended."""


class UnusableError(SettingsError):
    """A file cannot be used; the text says why in a few words (`missing`, `a directory`)."""


class Problem(NamedTuple):
    """What is wrong with one variable, what it holds (never a secret), what would be right."""

    variable: str
    """The variable's name, or `--env-file`."""

    message: str
    """The rest of a sentence that begins with the name."""

    def __str__(self) -> str:
        return f"{self.variable} {self.message}"


class Candidate(NamedTuple):
    """A `.env` file that was looked for, and the result."""

    path: str
    """Absolute path as it was named: links are not followed, nothing is escaped."""

    reason: str
    """`used`, `missing`, `unusable: <detail>`, `sets none of our variables`, `not used, since it
    sets no account, server or room`, `not needed, an earlier one was used`, `appeared since the
    start: restart the bridge to use it` or `not used, since TIA_ENV_PATH names no readable file`.
    If a file is not used, but its restrictions count, `, except for <names>` follows."""


class VariableSource(NamedTuple):
    """One place where variables are written."""

    name: str
    """`the environment`, or the path of a file in quotation marks."""

    folder: Path
    """The folder from which its relative paths start."""

    trusted: bool
    """False for a file that was found only because it is in the current directory."""

    values: Mapping[str, str]
    """The texts as they are written. A blank variable counts as unset, and is left out."""

    unparsed: str = ""
    """A warning about the lines of a file that cannot be read; empty if there are none."""

    cut_off: Mapping[str, str] = {}
    """What python-dotenv took for a comment behind a value without quotation marks, from `#` on, by
    variable. It may be the rest of a password."""

    is_exposed: bool = False
    """Whether other users of this machine may read the file."""


def places(environ: Mapping[str, str], cwd: Path, package_root: Path) -> dict[Path, bool]:
    """Return every candidate in the order of the search, with whether it is trusted.

    The current directory's file may also be one of the others, even if the paths differ. Then it
    was not found *only* because it is in the current directory: it is listed once, under the other
    path, and trusted. So a developer can use the `.env` of a checkout.
    """
    here = cwd / ".env"
    others = named_in(environ, cwd), package_root / ".env", users_file(environ)
    ours = [path for path in others if path]
    known = next((path for path in ours if _same_file(here, path)), None)
    return ({known: True} if known else {here: False}) | dict.fromkeys(ours, True)


def named_in(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the path of the file that `TIA_ENV_PATH` names, if it names one."""
    named = environ.get("TIA_ENV_PATH")
    return absolute(Path(named.strip()), cwd, environ) if named else None


def users_file(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the user's own file (XDG Base Directory Specification).

    None if the environment does not say where the user's home is: a relative path would lead into
    the current directory, which may be a stranger's.
    """
    config, home = environ.get("XDG_CONFIG_HOME", ""), environ.get("HOME", "")
    if config.startswith("/"):
        return Path(config, USERS_FILE)
    return Path(home, ".config", USERS_FILE) if home.startswith("/") else None


def absolute(path: Path, base: Path, environ: Mapping[str, str]) -> Path:
    """Return `path` joined to `base`, with `~` expanded by `environ`.

    The environment of the process is not used. `values.path` refuses `~name`, which only the
    system's list of users could expand.
    """
    home = environ.get("HOME")
    if home and path.parts[:1] == ("~",):
        return base.joinpath(home, *path.parts[1:])
    return base / path


def read(path: Path, *, trusted: bool) -> VariableSource:
    """Read a `.env` file; raises `UnusableError`."""
    whose = "" if trusted else f" in a file that only lies there; {TO_TRUST_IT}"
    text = read_text(path, MAX_FILE_BYTES if trusted else MAX_STRANGERS_BYTES, whose)
    # Plain letters in UTF-16 are valid UTF-8, with a NUL for every letter.
    if "\0" in text:
        raise UnusableError("NUL bytes in it")
    if re.search(rf"[^\S\r\n]{{{MAX_BLANKS + 1}}}", text):
        raise UnusableError(f"more than {MAX_BLANKS} blanks in a row")
    values, cut_off, unread, again = parsed(text)
    name, warnings = repr(str(path)), list[str]()
    if unread:
        form = "not of the form NAME=value, or a quotation mark is not closed"
        warnings.append(f"{_numbered(unread)} ignored: {form}")
    if again:
        warnings.append(f"{_numbered(again)} in effect in place of the same variable above")
    warning = f"{name}: {'; '.join(warnings)}" if warnings else ""
    exposed = _is_exposed(path)
    return VariableSource(name, path.parent, trusted, set_in(values), warning, cut_off, exposed)


def _numbered(lines: Sequence[int]) -> str:
    named = ", ".join(map(str, lines[:MAX_LINES_NAMED]))
    named += " and more" if len(lines) > MAX_LINES_NAMED else ""
    return f"lines {named}" if len(lines) > 1 else f"line {named}"


def _behind(statement: str) -> str:
    """Return what follows a value without quotation marks as a comment, from `#` on."""
    value = statement.partition("=")[2].strip()
    comment = None if value.startswith(("'", '"')) else re.search(r"\s(#.*)", value)
    return comment[1] if comment else ""


def _is_exposed(path: Path) -> bool:
    """Whether other users may read a file.

    If another user owns it, its group may read it: the owner has shared it on purpose.
    """
    with suppress(OSError):  # it was read just now, and is gone
        status = path.stat()
        own = status.st_uid == os.geteuid()
        return bool(status.st_mode & (stat.S_IROTH | (stat.S_IRGRP if own else 0)))
    return False


class Parsed(NamedTuple):
    """What is in the text of a `.env` file."""

    values: dict[str, str]
    cut_off: dict[str, str]
    """What follows each value without quotation marks as a comment, from `#` on."""

    unread: list[int]
    """The numbers of the lines that cannot be read."""
    again: list[int]
    """The numbers of the lines that give a variable another value than a line above."""


def parsed(text: str) -> Parsed:
    """Parse the text of a `.env` file."""
    # Imported only if there is a file. `dotenv_values` is not used, since it logs the lines that it
    # cannot read instead of returning them.
    from dotenv.parser import parse_stream

    result = Parsed({}, {}, [], [])
    for binding in parse_stream(io.StringIO(text.removeprefix("\ufeff"), newline=None)):
        statement = binding.original.string
        blank = len(statement) - len(statement.lstrip())
        line = binding.original.line + statement.count("\n", 0, blank)
        if binding.error:
            result.unread.append(line)
        elif binding.key is not None:
            if result.values.get(binding.key, binding.value or "") != (binding.value or ""):
                result.again.append(line)
            result.values[binding.key] = binding.value or ""
            result.cut_off[binding.key] = _behind(statement)
    return result


def set_in(values: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold more than blanks."""
    return {name: value for name, value in values.items() if value.strip()}


def _same_file(path: Path, other: Path) -> bool:
    try:
        return path == other or path.samefile(other)
    except (OSError, ValueError):
        return False


def read_text(path: Path, limit: int, whose: str = "") -> str:
    """Return the text of a regular file of at most `limit` bytes; raises `UnusableError`.

    `whose` is a clause that is added to the error about a larger file.
    """
    content = _read_regular(path, limit + 1)
    if len(content) > limit:
        raise UnusableError(f"more than {limit:,} bytes{whose}")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnusableError(f"byte {error.start + 1} is not UTF-8") from error


def check_readable(path: Path) -> None:
    """Raise `UnusableError` unless `path` is a regular file that can be opened."""
    _read_regular(path, 0)


def _read_regular(path: Path, limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file; raises `UnusableError`."""
    try:
        # Opening a device can already do something (rewind a tape), so the path is checked first. A
        # FIFO that is put there in between must not block us, hence O_NONBLOCK and the second
        # check.
        _expect_regular(path.stat())
        with open(path, "rb", opener=_without_waiting) as file:
            _expect_regular(os.fstat(file.fileno()))
            return file.read(limit) or b""  # None: a file such as /proc/kmsg has nothing to say yet
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnusableError("missing") from error
    except OSError as error:
        raise UnusableError(error.strerror or "cannot be read") from error
    except ValueError as error:
        raise UnusableError("no file can have such a name") from error


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _expect_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise UnusableError(kind)
