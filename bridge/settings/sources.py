"""What is written for each variable, where, and by whom.

A variable is written in the process environment or in one `.env` file. Files are never mixed: the
first candidate that says something about the account or the room is used, alone. Only restrictions
add up, over all candidates, so that no place lifts what another one says. An agent starts in
whatever project it works on, so that the `.env` of the current directory may be anybody's; what
such a stranger's file may not say is decided here, and nowhere else.
"""

import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bridge.frozen import dataclass

DECIDING = ("XMPP_SERVICE", "XMPP_DOMAIN", "XMPP_USERNAME", "XMPP_PASSWORD", "MUC_ROOM")
"""A file is used if it gives a non-empty value to at least one of these."""

RESTRICTING = ("BRIDGE_READ_ONLY", "BRIDGE_SEND_RATE")
"""The strictest value counts, of all that the environment and every candidate say."""

SECRET = ("XMPP_PASSWORD", "MUC_PASSWORD", "LLM_API_KEY")
"""Their values are never shown, and never go where a stranger's file says."""

IGNORED_FROM_STRANGERS = (
    "BRIDGE_TRAFFIC_LOG",
    "LLM_BASE_URL",
    "LLM_API_KEY",
    "LLM_MODEL",
    "OPEN_METEO_GEOCODING_URL",
    "OPEN_METEO_FORECAST_URL",
)
REFUSED_FROM_STRANGERS = (
    "XMPP_SERVICE",
    "XMPP_DOMAIN",
    "XMPP_USERNAME",
    "MUC_ROOM",
    "XMPP_TLS_CA_FILE",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "XMPP_ALLOW_PLAINTEXT",
)
"""Refused while a secret comes from the process environment: each could divert it."""

VARIABLES = (
    *REFUSED_FROM_STRANGERS,
    *IGNORED_FROM_STRANGERS,
    "BRIDGE_TOOLSETS",
    "XMPP_PASSWORD",
    "MCP_BOT_NICKNAME",
    "BOT_NICKNAME",
    "MUC_PASSWORD",
    "BRIDGE_READ_ONLY",
    "BRIDGE_SEND_RATE",
    "BRIDGE_HISTORY",
    "LOG_LEVEL",
    "TIA_ENV_PATH",
)
"""Every variable that is read; `TIA_ENV_PATH` in the process environment only."""

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

MAX_SHOWN = 80
"""Characters of a value that a problem shows; enough to recognise it by."""

MIN_MASKED = 8
"""A secret of at least so many characters is masked wherever a text would show it. A shorter one
occurs in ordinary words by chance, and masking those would point at it."""

# Compiled where they are used: most starts need neither.
_NEWLINE = r"\r\n|\n|\r"
_BLANKS = r"[^\S\r\n]+"
_TO_TRUST_IT = "to trust that file, name it with --env-file or TIA_ENV_PATH"


class UnusableError(Exception):
    """A file cannot be used; the text says why in a few words (`missing`, `a directory`)."""


@dataclass(frozen=True)
class Problem:
    """What is wrong with one variable, what it holds (never a secret), what would be right."""

    variable: str
    """The variable's name, or `--env-file`."""

    message: str
    """The rest of a sentence that begins with the name."""

    def __str__(self) -> str:
        return f"{self.variable} {self.message}"


@dataclass(frozen=True)
class Candidate:
    """A `.env` file that was looked for, and what came of it."""

    path: str
    """Absolute path as it was named: links are not followed, nothing is escaped."""

    reason: str
    """`used`, `missing`, `unreadable or not UTF-8: <detail>`, `sets none of our variables`,
    `not needed, an earlier one was used` or `appeared since the start: restart the bridge to use
    it`; with `, except for <names>` where restrictions of a file that is not used count."""


@dataclass(frozen=True)
class Restriction:
    """What one place says about a variable of `RESTRICTING`."""

    source: str
    """`the environment`, or the path of a file in quotation marks."""

    value: str
    trusted: bool
    """A file that is not may only make it stricter than it would be otherwise."""


class Environment:
    """The process environment and one `.env` file, as one."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        cwd: Path,
        package_root: Path,
        env_file: Path | None,
        searching: bool = True,
        strangers: bool = True,
    ) -> None:
        self.env_file: Path | None = None
        """The file that is used."""

        self.trusted = True
        """False if that file was found only by lying in the current directory."""

        self.candidates: list[Candidate] = []
        """In the order of the search. A file that two places name is listed once."""

        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self._environ = environ
        self._masked: list[str] = []
        self._restrictions: dict[str, list[Restriction]] = {name: [] for name in RESTRICTING}
        self._restrict(environ, "the environment", trusted=True)
        # What each variable holds, and the folder from which its relative paths start.
        self._written = {name: (environ[name], cwd) for name in VARIABLES if _says(environ, name)}

        if env_file is not None:
            places = {_absolute(str(env_file), cwd, environ): True}
        else:
            places = _places(environ, cwd, package_root) if searching else {}
        files = self._search(places, outright=env_file is not None, strangers=strangers)

        sources = (environ, *files.values())
        secrets = {text.get(name, "").strip() for name in SECRET for text in sources}
        # The longest first, lest a part of it be masked and the rest stay.
        self._masked = sorted((s for s in secrets if len(s) >= MIN_MASKED), key=len, reverse=True)
        if self.env_file is not None:
            self.trusted = places[self.env_file]
            self._take(files[self.env_file], self.env_file)
            self._tell_of_accounts_passed_over(
                path for path in files if places[path] and _says(files[path], "XMPP_USERNAME")
            )

    def __contains__(self, name: str) -> bool:
        return name in self._written

    def __getitem__(self, name: str) -> str:
        """What the variable holds, never only blanks, as it was written."""
        return self._written[name][0]

    def restrictions(self, name: str) -> list[Restriction]:
        """What is said about a variable of `RESTRICTING`, in the order of the search."""
        return self._restrictions[name]

    def path(self, name: str, text: str) -> Path:
        """Make `text`, which the variable names as a path, absolute.

        A relative one starts from the folder of the `.env` file that names it, else from the
        current directory.
        """
        return _absolute(text, self._written[name][1], self._environ)

    def reject(self, name: str, message: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(name, self._without_secrets(message)))

    def holds_a_secret(self, text: str) -> bool:
        """Whether `text` has one of our secrets in it, and so is fit for nobody to see."""
        return self._without_secrets(text) != text

    def shown(self, name: str, value: str) -> str:
        """`value` as a problem may show it: quoted, on one line, without a secret.

        Credentials get into values that are not secret as a whole: `user:password@host`,
        `?password=`, `user:password` for a user name.
        """
        value = self._without_secrets(value)
        head, at, tail = value.rpartition("@")
        if ":" in head:
            value = f"{head.partition(':')[0]}:***{at}{tail}"
        elif name == "XMPP_USERNAME" and ":" in value:
            value = f"{value.partition(':')[0]}:***"
        value = re.sub(r"([?#]).+", r"\1***", value, flags=re.DOTALL)
        return repr(value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}…")

    def _without_secrets(self, text: str) -> str:
        for secret in self._masked:
            text = text.replace(secret, "***")
        return text

    def _search(
        self, places: Mapping[Path, bool], *, outright: bool, strangers: bool
    ) -> dict[Path, dict[str, str]]:
        """What each readable file says, as written; note which is used, and what came of each."""
        files: dict[Path, dict[str, str]] = {}
        for path, trusted in places.items():
            needed = self.env_file is None
            reason = "not needed, an earlier one was used"
            try:
                values, unparsed = _read(path, outright=outright, trusted=trusted)
            except UnusableError as error:
                missing = str(error) == "missing"
                if not missing:
                    reason = f"unreadable or not UTF-8: {error}"
                elif needed:
                    reason = "missing"
                if outright:
                    self.reject(
                        "--env-file",
                        f"names {str(path)!r}, which cannot be used ({error}); the path of a "
                        "readable UTF-8 file would be right",
                    )
            else:
                files[path] = values
                restricting = self._restrict(values, repr(str(path)), trusted=trusted)
                except_for = f", except for {' and '.join(restricting)}" if restricting else ""
                if not needed:
                    reason += except_for
                elif not outright and not any(_says(values, name) for name in DECIDING):
                    reason = f"sets none of our variables{except_for}"
                elif trusted or strangers:
                    self.env_file, reason = path, "used"
                else:
                    reason = "appeared since the start: restart the bridge to use it"
                # Another project's file that is passed over is not ours to criticise.
                if trusted or reason == "used":
                    self.warnings.extend(_about_lines(path, unparsed))
            self.candidates.append(Candidate(str(path), reason))
        return files

    def _restrict(self, values: Mapping[str, str], source: str, *, trusted: bool) -> list[str]:
        """Note what a place says of restrictions; return their names."""
        names = [name for name in RESTRICTING if _says(values, name)]
        for name in names:
            self._restrictions[name].append(Restriction(source, values[name], trusted))
        return names

    def _tell_of_accounts_passed_over(self, ours: Iterable[Path]) -> None:
        """Say so where a stranger's file is used although files of ours name an account."""
        for path in () if self.trusted else ours:
            self.warnings.append(
                f"{str(self.env_file)!r} is used, because it lies in the current directory, and "
                f"{str(path)!r} is not, although it names an account; to use that one wherever "
                "the bridge is started, name it with --env-file"
            )

    def _take(self, values: Mapping[str, str], path: Path) -> None:
        """Add what the file says, where the process environment does not say it already."""
        endangered = " and ".join(name for name in SECRET if name in self)
        for name in (name for name in VARIABLES if _says(values, name)):
            value, ignored = values[name], ""
            if not self.trusted and name in IGNORED_FROM_STRANGERS:
                value, ignored = "", name
            elif not self.trusted and name == "BRIDGE_TOOLSETS":
                # MODULE:ATTRIBUTE imports what lies beside the file; other names are installed.
                names = [one.strip() for one in value.split(",")]
                value = ",".join(one for one in names if ":" not in one)
                if code := ",".join(one for one in names if ":" in one):
                    ignored = f"{self.shown(name, code)} of {name}"
            if ignored:
                self.warnings.append(
                    f"{ignored} in {str(path)!r} is ignored, because that file was found only by "
                    f"lying in the current directory; {_TO_TRUST_IT}"
                )
            if not value or name in self:
                continue
            if not self.trusted and name in REFUSED_FROM_STRANGERS and endangered:
                self.reject(
                    name,
                    f"holds {self.shown(name, value)} in {str(path)!r}, which was found "
                    "only by lying in the current directory and so has no say in where "
                    f"{endangered} of the environment is sent; {_TO_TRUST_IT}",
                )
            else:
                self._written[name] = value, path.parent


def check_readable(path: Path) -> None:
    """Raise `UnusableError` unless `path` is a regular file that can be opened."""
    with _open(path):
        pass


def _says(source: Mapping[str, str], name: str) -> bool:
    """Whether there is more than blanks under the name; blanks count as unset."""
    return bool(source.get(name, "").strip())


def _absolute(text: str, base: Path, environ: Mapping[str, str]) -> Path:
    """Expand `~` (not `~name`) by the environment we were given, not the process's own."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if home and (text == "~" or text.startswith(("~/", f"~{os.sep}"))):
        return base / home / text[2:]
    return base / text


def _places(environ: Mapping[str, str], cwd: Path, package_root: Path) -> dict[Path, bool]:
    """Every candidate in the order of the search, with whether it is trusted.

    Where the current directory's file is also, by whatever path, the one that `TIA_ENV_PATH` names
    or the one beside our package, it was not found *only* by lying there: it is listed once, under
    that path, and trusted. So a developer in the checkout has the whole of his own `.env`.
    """
    here = cwd / ".env"
    ours = [package_root / ".env"]
    if _says(environ, "TIA_ENV_PATH"):
        ours.insert(0, _absolute(environ["TIA_ENV_PATH"].strip(), cwd, environ))
    known = next((path for path in ours if _same_file(here, path)), None)
    return ({known: True} if known else {here: False}) | dict.fromkeys(ours, True)


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one == other or one.samefile(other)
    except (OSError, ValueError):
        return False


def _read(path: Path, *, outright: bool, trusted: bool) -> tuple[dict[str, str], list[int]]:
    """What a file says, and which of its lines say nothing that can be read."""
    limit = MAX_FILE_BYTES if trusted else MAX_STRANGERS_BYTES
    try:
        with _open(path) as file:
            content = file.read(limit + 1)
    except OSError as error:
        raise UnusableError(error.strerror or "cannot be read") from error
    if len(content) > limit:
        whose = "" if trusted else f" in a file that only lies there; {_TO_TRUST_IT}"
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
    if not outright and not any(name in text for name in (*DECIDING, *RESTRICTING)):
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
    return values, unparsed


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
