"""Loads the settings: reads every variable of the table, and reports all problems at once.

`load` takes the environment, the current directory and the folder that holds the package as values,
reads files, and returns a `Configuration`. It prints nothing, and no value of a setting makes it
raise. `${...}` is never expanded.

Files are never mixed: only one is used, in general the first candidate that sets an account, a
server or a room. Restrictions alone are taken from all files.
"""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.settings import sources, spelling, values
from bridge.settings.database_url import DatabaseUrl, password_in
from bridge.settings.doubts import doubts_about
from bridge.settings.table import (
    SECRETS,
    TABLE,
    VARIABLES,
    Configuration,
    Setting,
    Settings,
    Variable,
)
from bridge.text import one_line

DECIDING = frozenset(row.name for row in TABLE if row.participant == "decides")
"""A file that the user did not name is used only if it sets at least one of these variables."""

RESTRICTIONS = [row.name for row in TABLE if row.is_restriction]
"""The variables that are in effect from any file, even if the file is not used."""

APPEARED = "appeared since the start: restart the bridge to use it"
NAMED_IS_MISSING = "not used, since TIA_ENV_PATH names no readable file"
"""Why a file is not used although it sets an account, a server or a room."""

MAX_SHOWN = 80
"""The most characters of a value that are shown; enough to recognise it by."""

USER_INFO = ":.*@"
"""A regular expression that finds `user:password@host`. A valid value in which it is found is not
shown. A wrong value is searched for the `credential` of its row instead."""

MIN_MASKED = 8
"""A secret of at least so many characters is masked wherever a text would show it. A shorter one
occurs in ordinary words by chance, and masking these would reveal it."""


def load(
    environ: Mapping[str, str],
    *,
    cwd: Path,
    package_root: Path,
    env_file: Path | None = None,
    searching: bool = True,
    at_start: Configuration | None = None,
) -> Configuration:
    """Read and check all settings.

    `cwd` and `package_root` (the folder that holds `bridge/`) are absolute; `env_file` is what
    `--env-file` names. Without `searching` no other file is looked for. `at_start` is the
    configuration with which a running bridge was started. If a file in the current directory was
    not used then, it is not used now: a `git pull` may have brought it.
    """
    environment = sources.VariableSource("the environment", cwd, True, sources.set_in(environ))
    named = sources.named_in(environment.values, cwd)
    users = sources.users_file(environment.values)
    loading = _Loading(environment, outright=env_file is not None, named=named)
    places = sources.places(environment.values, cwd, package_root) if searching else {}
    if env_file is not None:
        places = {sources.absolute(env_file, cwd, environ): True}
    takes_untrusted = at_start is None or not at_start.trusted
    candidates = []
    for path, trusted in places.items():
        barred = "" if trusted or takes_untrusted else APPEARED
        if path == users and loading.lacks_named:  # a typing mistake must not join another room
            barred = NAMED_IS_MISSING
        reason = loading.look_at(path, trusted=trusted, barred=barred)
        candidates.append(sources.Candidate(str(path), reason))
    loading.read_table()
    return Configuration(
        settings=loading.settings(),
        problems=tuple(loading.problems),
        warnings=tuple(loading.warnings),
        env_file=next((path for path, reason in candidates if reason == "used"), None),
        trusted=loading.used is None or loading.used.trusted,
        candidates=tuple(candidates),
        loaded=loading.loaded,
        in_effect=loading.in_effect,
    )


class _Loading:
    """One reading of the files, then of the table; collects what a `Configuration` holds."""

    def __init__(
        self, environment: sources.VariableSource, *, outright: bool, named: Path | None
    ) -> None:
        self._environment, self._outright, self._named = environment, outright, named
        self._places: list[sources.VariableSource] = []
        """Every place whose restrictions are in effect."""
        self.used: sources.VariableSource | None = None
        self.lacks_named = False
        """Whether the file that `TIA_ENV_PATH` names cannot be read."""
        self._refused: dict[str, str] = {}
        """What an untrusted file holds for variables that it may not set."""
        self.problems: list[sources.Problem] = []
        self.warnings: list[str] = []
        self.loaded: dict[str, Any] = {}
        self.in_effect: dict[str, Setting] = {}
        self._secrets: list[str] = []
        self._restrict(environment)

    def look_at(self, path: Path, *, trusted: bool, barred: str) -> str:
        """Read a file, use it if none is used yet, and return the reason for its candidate.

        The file of `--env-file` is always used. The file that `TIA_ENV_PATH` names is used if it
        sets any of our variables, and any other file if it sets one of the `DECIDING` variables.
        `barred` is the reason not to use it whatever it sets; empty if there is none.
        """
        used, reason = self.used, "not needed, an earlier one was used"
        try:
            file = sources.read(path, trusted=trusted)
        except sources.UnusableError as error:
            if self._outright:
                self._reject("--env-file", _unusable_file(path, error, "UTF-8"))
            elif path == self._named:
                self.lacks_named = True
                self.warnings.append(f"TIA_ENV_PATH {_unusable_file(path, error, 'UTF-8')}")
            return "missing" if str(error) == "missing" else f"unusable: {error}"
        if used is not None:
            if not used.trusted and "XMPP_USERNAME" in file.values:
                self.warnings.append(
                    f"{used.name} is used, because it lies in the current directory, and "
                    f"{file.name} is not, although it names an account; to use that one wherever "
                    "the bridge is started, name it with --env-file"
                )
        elif not self._outright and file.values.keys().isdisjoint(VARIABLES):
            reason = "sets none of our variables"
        elif path != self._named and not self._outright and DECIDING.isdisjoint(file.values):
            reason = "not used, since it sets no account, server or room"
        elif barred:
            reason = barred
        else:
            self.used, reason = file, "used"
        # A file that is neither trusted nor used is another project's. It gets no warning.
        if file.unparsed and (trusted or file is self.used):
            self.warnings.append(file.unparsed)
        restrictions = self._restrict(file)
        if restrictions and file is not self.used:
            reason += f", except for {restrictions}"
        return reason

    def _restrict(self, place: sources.VariableSource) -> str:
        """Add a place whose restrictions are in effect, and return their names as written there.

        A misspelt restriction is in effect too, since its author relies on it. It counts as a
        restriction in a place of its own.
        """
        self._places.append(place)
        names = [name for name in RESTRICTIONS if name in place.values]
        misspelt = spelling.misspelt(place.values)
        for name, right in misspelt.items():
            if right in RESTRICTIONS:
                names.append(spelling.shown(name))
                where = f"{place.name} (as {names[-1]})"
                self._places.append(place._replace(name=where, values={right: place.values[name]}))
        if misspelt and place in (self._environment, self.used):
            pairs = [f"{spelling.shown(name)} for {right}" for name, right in misspelt.items()]
            listed = spelling.first_of(pairs)
            self.warnings.append(f"probably misspelt in {place.name}: {listed}")
        return spelling.first_of(names, " and ")

    def read_table(self) -> None:
        """Find the value of each variable, once all files have been looked at."""
        secrets = {secret for place in self._places for secret in _secrets_in(place).values()}
        # The longest first: if a shorter secret in it were masked first, the rest would be shown.
        self._secrets = sorted((s for s in secrets if len(s) >= MIN_MASKED), key=len, reverse=True)
        for row in TABLE:
            self.loaded[row.name] = self._value(row)
        self._reject_refused()
        self._warn_of_exposure()
        named = self.loaded["BRIDGE_TOOLSETS"]
        if self.loaded["LLM_BASE_URL"] and self.loaded["LLM_MODEL"] and "llm" not in named:
            self.loaded["BRIDGE_TOOLSETS"] = (*named, "llm")

    def _value(self, row: Variable[Any]) -> Any:
        """Return the value of a variable; its default if it is unset or its value is wrong."""
        places = [self._environment]
        if row.is_restriction:
            places = self._places
        elif self.used is not None and row.name != "TIA_ENV_PATH":
            places.append(self.used)
        said = [(text, place) for place in places if (text := self._permitted(row, place))]
        default = None if row.default is None else row.parse(row.default)
        if row.is_restriction:
            return self._strictest(row, said, default)
        if not said or (row.name == "BOT_NICKNAME" and self._is_set("MCP_BOT_NICKNAME")):
            return default
        text, place = said[0]
        self._doubt(row, text, place)
        value = self._parsed(row, text, place)
        if value is None:
            return default
        if isinstance(value, DatabaseUrl):
            self.warnings += filter(None, [value.warning])
            self.in_effect[row.name] = Setting(row.name, one_line(str(value)), one_line(place.name))
        else:
            self._note(row, str(value) if isinstance(value, Path) else text.strip(), place.name)
        return value

    def _doubt(self, row: Variable[Any], text: str, place: sources.VariableSource) -> None:
        """Warn of a value that is probably not what was meant."""
        cut_off = place.cut_off.get(row.name)
        for doubt in doubts_about(text, secret=row.secret, cut_off=cut_off):
            self.warnings.append(f"{row.name} in {place.name} {doubt}")

    def _warn_of_exposure(self) -> None:
        """Warn of passwords that other users of this machine can read in the file that is used."""
        if self.used is not None and self.used.is_exposed and (exposed := _secrets_in(self.used)):
            self.warnings.append(
                f"{' and '.join(exposed)} in {self.used.name} can be read by other users of this "
                f"machine: chmod 600 {self.used.name}"
            )

    def _reject_refused(self) -> None:
        """Add a problem that names what the untrusted file may not set, and says what to type."""
        if self._refused and self.used is not None:
            (name, value), *others = self._refused.items()
            holds = "".join(f", {other} holds {held}" for other, held in others)
            endangered = " and ".join(name for name in SECRETS if name in self._environment.values)
            path = shlex.quote(str(self.used.folder / ".env"))
            self._reject(
                name,
                f"holds {value}{holds} in {self.used.name}, which was found only by lying in the "
                f"current directory and so has no say in where {endangered} of the environment is "
                f"sent; if the file is yours, type xmpp-bridge --env-file {path} COMMAND, or set "
                "TIA_ENV_PATH to it",
            )

    def _permitted(self, row: Variable[Any], place: sources.VariableSource) -> str:
        """Return the part of a variable's text that this place may set; empty if there is none."""
        text = place.values.get(row.name, "")
        if not text or place.trusted or row.who == "anybody":
            return text
        if row.who == "refused":
            endangered = any(name in self._environment.values for name in SECRETS)
            if not endangered or row.name in self._environment.values:
                return text
            self._refused[row.name] = repr(self._shown(text, row.credential))
            return ""
        # MODULE:ATTRIBUTE imports code from the folder of the file; other names are installed.
        names = values.names(text)
        kept = ",".join(n for n in names if row.parse is values.names and ":" not in n)
        if kept != ",".join(names):
            self._ignore(row, place.name, f", but for {self._shown(kept)!r}" if kept else "")
        return kept

    def _ignore(self, row: Variable[Any], places: str, exception: str = "") -> None:
        self.warnings.append(
            f"{row.name} in {places} is ignored{exception}, because that file was found only by "
            f"lying in the current directory; {sources.TO_TRUST_IT}"
        )

    def _parsed(self, row: Variable[Any], text: str, place: sources.VariableSource) -> Any:
        """Return the value; if it is wrong, add a problem and return None."""
        if row.parse is values.names:
            text = self._masked(text)  # the loader of toolsets shows the names
        elif not row.secret:
            text = text.strip()
        try:
            value = row.parse(text)
        except values.FlawError as error:
            for number, item, flaw in error.flaws:
                held = repr(self._shown(text, row.credential, item))
                if number:
                    held += f" (room {number})"
                elif row.is_restriction:
                    held += f" in {place.name}"
                holds = "holds" if row.secret else f"holds {held},"
                self._reject(row.name, f"{holds} {flaw} would be right")
            return None
        if isinstance(value, Path):
            return sources.absolute(value, place.folder, self._environment.values)
        return value

    def _strictest(
        self, row: Variable[Any], said: list[tuple[str, sources.VariableSource]], default: Any
    ) -> Any:
        """Return the strictest value that any place sets for a restriction; warn if it matters.

        A file that is not trusted can make the restriction stricter, but never looser.
        """
        meant: dict[str, Any] = {}
        for text, place in said:
            self._doubt(row, text, place)
            value = self._parsed(row, text, place)
            meant[place.name] = row.parse(row.unreadable) if value is None else value
        trusted = any(place.trusted for _, place in said)
        held = row.strictest([*meant.values()] if trusted else [*meant.values(), default])
        by = spelling.first_of([name for name, value in meant.items() if value == held], " and ")
        others = spelling.first_of([name for name in meant if meant[name] != held], " and ")
        if by:
            self._note(row, str(int(held)), by)
            if others or (held != default and held == row.strictest((held, default))):
                whatever = f", whatever {others} may say" if others else ""
                effect = row.effect.format(held)
                self.warnings.append(f"{row.name} in {by} holds{whatever}: {effect}")
        elif others:
            self._ignore(row, others)
        return held

    def settings(self) -> Settings | None:
        """Return the participant's settings; None if one of the problems concerns them."""
        loaded = self.loaded
        username, of_account, resource = loaded["XMPP_USERNAME"] or ("", None, None)
        if resource is not None:
            self.warnings.append(
                "XMPP_USERNAME holds a resource, the part from '/' on; it is ignored, since the "
                "server gives each connection its own"
            )
        named, service = loaded["XMPP_DOMAIN"], loaded["XMPP_SERVICE"]
        if of_account and named and named != of_account:
            self._reject(
                "XMPP_DOMAIN",
                f"holds {self._shown(named)!r}, but XMPP_USERNAME is a JID of "
                f"{self._shown(of_account)!r}; the same domain in both, or a domain in one of them "
                "only, would be right",
            )
        domain = of_account or named or (service.domain if service else "")
        if (anchors := loaded["XMPP_TLS_CA_FILE"]) is not None:
            try:
                sources.check_readable(anchors)
            except sources.UnusableError as error:
                self._reject("XMPP_TLS_CA_FILE", _unusable_file(anchors, error, "PEM"))
        if not loaded["NODE_TLS_REJECT_UNAUTHORIZED"]:
            self.warnings.append(
                "NODE_TLS_REJECT_UNAUTHORIZED is 0: the server's certificate is not checked, so "
                "that anybody on the way can pose as the server; unset it once it is not needed"
            )
        required = {row.name: row.required for row in TABLE if row.required}
        if not domain and not self._rejected("XMPP_SERVICE", "XMPP_USERNAME"):
            required["XMPP_DOMAIN"] = (
                "the account's domain (example.org), here or in the JID in XMPP_USERNAME,"
            )
        for name, right in required.items():
            # An unusable --env-file may set the variable: whether it is missing is not known.
            if not self._is_set(name) and not self._rejected("--env-file"):
                self._reject(name, f"is not set; {right} would be right")
        if self._rejected("--env-file", *(row.name for row in TABLE if row.participant)):
            return None
        if not self._is_set("MCP_BOT_NICKNAME"):
            loaded["MCP_BOT_NICKNAME"] = loaded["BOT_NICKNAME"]
        given = {field: loaded[vars(Configuration)[field].name] for field in Settings._fields}
        return Settings(**given | {"username": username, "domain": domain})

    def _is_set(self, name: str) -> bool:
        """Whether a variable that was looked for is set, even to a wrong value."""
        return name in self.in_effect or self._rejected(name)

    def _rejected(self, *names: str) -> bool:
        named = {*self._refused, *(problem.variable for problem in self.problems)}
        return not named.isdisjoint(names)

    def _reject(self, name: str, message: str) -> None:
        self.problems.append(sources.Problem(name, self._masked(message)))
        self.in_effect.pop(name, None)

    def _note(self, row: Variable[Any], text: str, place: str) -> None:
        value = "***" if row.secret else one_line(self._shown(text))
        self.in_effect[row.name] = Setting(row.name, value, one_line(place))

    def _shown(self, text: str, credential: str = USER_INFO, item: str = "") -> str:
        """Return a value, or an item of it, as a problem or a warning may show it.

        It is cut if it is long. It is `***` if the whole value has a secret or `credential` in it.
        """
        if self._masked(text) != text or re.search(credential, text, re.DOTALL):
            return "***"
        text = item or text
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"

    def _masked(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text


def _secrets_in(place: sources.VariableSource) -> dict[str, str]:
    """Return the secrets that a place sets, by the variables that hold them."""
    secrets = {name: place.values.get(name, "").strip() for name in SECRETS}
    secrets["BRIDGE_STORE"] = password_in(place.values.get("BRIDGE_STORE", ""))
    return {name: secret for name, secret in secrets.items() if secret}


def _unusable_file(path: Path, error: sources.UnusableError, kind: str) -> str:
    return (
        f"names {str(path)!r}, which cannot be used ({error}); the path of a readable {kind} file "
        "would be right"
    )
