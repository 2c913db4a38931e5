"""Where variables are written: the process environment, and `.env` files that are looked for.

Files are never mixed: the first candidate that says something about the account or the room is
used, alone. An agent starts in whatever project it works on, so that the `.env` of the current
directory may be anybody's, and is not trusted. What such a file may say of each variable is a
matter of the table.
"""

import io
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

MAX_FILE_BYTES = 1 << 20
"""Largest `.env` file that is read, in bytes; a thousand times what anybody writes by hand."""

MAX_STRANGERS_BYTES = 64 << 10
"""Largest `.env` file that is read where it was found only by lying in the current directory.

A line that cannot be parsed costs python-dotenv 10 µs, so that a megabyte of `?` lines in a cloned
repository would hold up every start for 5 s; this much of them takes a third of a second.
"""

MAX_BLANKS = 256
"""Longest run of blanks within a line of a `.env` file, in characters.

python-dotenv looks for the comment after a value in time quadratic in such a run: 32,768 blanks
take over a second, a megabyte of them half an hour, and a cloned repository can hold that file.
"""

MAX_LINES_NAMED = 5
"""How many unreadable lines of a file are named one by one; a file of rubbish has thousands."""

# Compiled where they are used: most starts need neither.
_NEWLINE = r"\r\n|\n|\r"
_BLANKS = r"[^\S\r\n]+"
_NOT_NEEDED = "not needed, an earlier one was used"
TO_TRUST_IT = "to trust that file, name it with --env-file or TIA_ENV_PATH"
"""What there is to do where a file is trusted with less than its user wants."""


class UnusableError(Exception):
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
    """A `.env` file that was looked for, and what came of it."""

    path: str
    """Absolute path as it was named: links are not followed, nothing is escaped."""

    reason: str
    """`used`, `missing`, `unreadable or not UTF-8: <detail>`, `sets none of our variables`,
    `not needed, an earlier one was used` or `appeared since the start: restart the bridge to use
    it`; with `, except for <names>` where restrictions of a file that is not used count."""


class Source(NamedTuple):
    """One place where variables are written."""

    name: str
    """`the environment`, or the path of a file in quotation marks."""

    folder: Path
    """Where its relative paths start."""

    trusted: bool
    """False of a file that was found only by lying in the current directory."""

    values: Mapping[str, str]
    """As they are written. Blank ones count as unset and are not in there."""


class Search:
    """The search for `.env` files, done on creation.

    `deciding` are the variables of which a file has to set one to be used; `restricting` are those
    that count in a file that is not used, too. With `env_file` that file is used outright. If
    `strangers` is false, no file is used that is not trusted.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        cwd: Path,
        package_root: Path,
        env_file: Path | None,
        searching: bool,
        strangers: bool,
        deciding: Collection[str],
        restricting: Collection[str],
    ) -> None:
        self.environment = Source("the environment", cwd, True, _set_in(environ))
        self.files: list[Source] = []
        """Those that can be read, in the order of the search."""

        self.used: Source | None = None
        """One of the files."""

        self.candidates: list[Candidate] = []
        """In the order of the search. A file that two places name is listed once."""

        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self._outright = env_file is not None
        self._strangers = strangers
        self._deciding = deciding
        self._restricting = restricting
        if env_file is not None:
            places = {absolute(env_file, cwd, environ): True}
        else:
            places = _places(self.environment.values, cwd, package_root) if searching else {}
        for path, trusted in places.items():
            self.candidates.append(Candidate(str(path), self._look_at(path, trusted=trusted)))
        if self.used is not None and not self.used.trusted:
            self.warnings.extend(
                f"{self.used.name} is used, because it lies in the current directory, and "
                f"{file.name} is not, although it names an account; to use that one wherever the "
                "bridge is started, name it with --env-file"
                for file in self.files
                if file.trusted and "XMPP_USERNAME" in file.values
            )

    @property
    def env_file(self) -> str | None:
        """Absolute path of the file that is used."""
        return next((one.path for one in self.candidates if one.reason == "used"), None)

    def _look_at(self, path: Path, *, trusted: bool) -> str:
        """Take what a file says; return what comes of it."""
        needed = self.used is None
        wanted = None if self._outright else (*self._deciding, *self._restricting)
        try:
            values, unparsed = _read(path, wanted, trusted=trusted)
        except UnusableError as error:
            if self._outright:
                message = (
                    f"names {str(path)!r}, which cannot be used ({error}); the path of a readable "
                    "UTF-8 file would be right"
                )
                self.problems.append(Problem("--env-file", message))
            if str(error) != "missing":
                return f"unreadable or not UTF-8: {error}"
            return "missing" if needed else _NOT_NEEDED
        file = Source(repr(str(path)), path.parent, trusted, values)
        self.files.append(file)
        restricted = " and ".join(name for name in self._restricting if name in values)
        except_for = f", except for {restricted}" if restricted else ""
        if not needed:
            reason = f"{_NOT_NEEDED}{except_for}"
        elif not self._outright and values.keys().isdisjoint(self._deciding):
            reason = f"sets none of our variables{except_for}"
        elif trusted or self._strangers:
            self.used, reason = file, "used"
        else:
            reason = "appeared since the start: restart the bridge to use it"
        # Another project's file that is passed over is not ours to criticise.
        if trusted or reason == "used":
            self.warnings.extend(_about_lines(path, unparsed))
        return reason


def check_readable(path: Path) -> None:
    """Raise `UnusableError` unless `path` is a regular file that can be opened."""
    with _open(path):
        pass


def absolute(path: Path, base: Path, environ: Mapping[str, str]) -> Path:
    """Expand `~` (not `~name`) by the environment we were given, not the process's own."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if home and path.parts[:1] == ("~",):
        return base.joinpath(home, *path.parts[1:])
    return base / path


def _set_in(values: Mapping[str, str]) -> dict[str, str]:
    """The variables that hold more than blanks; of the list of rooms, more than commas too."""
    return {
        name: value
        for name, value in values.items()
        if (value.replace(",", "") if name == "MUC_ROOM" else value).strip()
    }


def _places(environ: Mapping[str, str], cwd: Path, package_root: Path) -> dict[Path, bool]:
    """Every candidate in the order of the search, with whether it is trusted.

    Where the current directory's file is also, by whatever path, the one that `TIA_ENV_PATH` names
    or the one beside our package, it was not found *only* by lying there: it is listed once, under
    that path, and trusted. So a developer in the checkout has the whole of his own `.env`.
    """
    here = cwd / ".env"
    ours = [package_root / ".env"]
    if named := environ.get("TIA_ENV_PATH"):
        ours.insert(0, absolute(Path(named.strip()), cwd, environ))
    known = next((path for path in ours if _same_file(here, path)), None)
    return ({known: True} if known else {here: False}) | dict.fromkeys(ours, True)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except (OSError, ValueError):
        return False


def _read(
    path: Path, wanted: Collection[str] | None, *, trusted: bool
) -> tuple[dict[str, str], list[int]]:
    """What a file says, and which of its lines say nothing that can be read.

    A file in which no name of `wanted` occurs says nothing.
    """
    limit = MAX_FILE_BYTES if trusted else MAX_STRANGERS_BYTES
    try:
        with _open(path) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise UnusableError(error.strerror or "cannot be read") from error
    if len(content) > limit:
        whose = "" if trusted else f" in a file that only lies there; {TO_TRUST_IT}"
        raise UnusableError(f"more than {limit:,} bytes{whose}")
    # UTF-16 of plain letters is valid UTF-8, with a NUL after each.
    if b"\0" in content:
        raise UnusableError("NUL bytes in it")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableError(f"byte {error.start + 1} is not UTF-8") from error
    # Importing the parser costs more than everything else here, and most projects' own `.env`
    # files name nothing of ours.
    if wanted is not None and not any(name in text for name in wanted):
        return {}, []
    if any(len(blanks) > MAX_BLANKS for blanks in re.findall(_BLANKS, text)):
        raise UnusableError(f"more than {MAX_BLANKS} blanks in a row")
    return _parse(text)


def _parse(text: str) -> tuple[dict[str, str], list[int]]:
    # Not `dotenv_values`: it logs the lines it cannot read instead of telling us.
    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    unparsed: list[int] = []
    for binding in parse_stream(io.StringIO(text, newline="")):
        if binding.error:
            statement = binding.original.string
            leading = statement[: len(statement) - len(statement.lstrip())]
            unparsed.append(binding.original.line + len(re.findall(_NEWLINE, leading)))
        elif binding.key is not None:
            values[binding.key] = binding.value or ""
    return _set_in(values), unparsed


def _about_lines(path: Path, unparsed: list[int]) -> Iterator[str]:
    for line in unparsed[:MAX_LINES_NAMED]:
        yield f"{str(path)!r}, line {line}: not of the form NAME=value, ignored"
    further = len(unparsed) - MAX_LINES_NAMED
    if further > 0:
        yield f"{str(path)!r} has {further:,} more lines that are not of the form NAME=value"


def _open(path: Path) -> io.BufferedReader:
    try:
        # Opening a device can already do something (rewind a tape), so it is looked at first; a
        # FIFO put there in between must not hang us, hence O_NONBLOCK and the second look.
        _expect_regular(path.stat())
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            _expect_regular(os.fstat(descriptor))
        except UnusableError:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnusableError("missing") from error
    except OSError as error:
        raise UnusableError(error.strerror or "cannot be opened") from error
    except ValueError as error:
        raise UnusableError("no file can have such a name") from error


def _expect_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise UnusableError("a directory")
    if not stat.S_ISREG(status.st_mode):
        raise UnusableError("not a regular file")
