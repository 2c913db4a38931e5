"""Loading of the settings: every variable of the table, with every problem named at once.

`load` takes the environment, the current directory and the folder beside the package as values,
reads files, and returns a `Configuration`; it prints nothing and never raises for what somebody
wrote into a setting. `${...}` is never expanded.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.escaping import one_line
from bridge.settings import values
from bridge.settings.sources import (
    TO_TRUST_IT,
    Problem,
    Search,
    Source,
    UnusableError,
    absolute,
    check_readable,
)
from bridge.settings.table import TABLE, Configuration, Setting, Settings, Variable

MAX_SHOWN = 80
"""Characters of a value that is shown; enough to recognise it by."""

MIN_MASKED = 8
"""A secret of at least so many characters is masked wherever a text would show it. A shorter one
occurs in ordinary words by chance, and masking those would point at it."""


def load(
    environ: Mapping[str, str],
    *,
    cwd: Path,
    package_root: Path,
    env_file: Path | None = None,
    searching: bool = True,
    at_start: Configuration | None = None,
    table: Sequence[Variable[Any]] = TABLE,
) -> Configuration:
    """Read and check all settings.

    `cwd` and `package_root` (the folder that holds `bridge/`) are absolute; `env_file` is what
    `--env-file` names. Without `searching` no other file is looked for. `at_start` is what a bridge
    that runs was started with: a file in the current directory that was not used then is not used
    now, since a `git pull` may have brought it.
    """
    search = Search(
        environ,
        cwd=cwd,
        package_root=package_root,
        env_file=env_file,
        searching=searching,
        strangers=at_start is None
        or (at_start.env_file == str(cwd / ".env") and not at_start.trusted),
        deciding=[row.name for row in table if row.participant == "decides"],
        restricting=[row.name for row in table if row.who == "restriction"],
    )
    loading = _Loading(search, table)
    return Configuration(
        settings=loading.settings(),
        problems=tuple(search.problems),
        warnings=tuple(search.warnings),
        env_file=search.env_file,
        trusted=search.used is None or search.used.trusted,
        candidates=tuple(search.candidates),
        loaded=loading.loaded,
        in_effect=loading.in_effect,
    )


class _Loading:
    """One pass over the table; what does not do becomes a problem or a warning of the search."""

    def __init__(self, search: Search, table: Sequence[Variable[Any]]) -> None:
        self._search, self._table = search, table
        self._sources = (search.environment, *search.files)
        self._secret = [row.name for row in table if row.secret]
        secrets = {
            one.values.get(name, "").strip() for one in self._sources for name in self._secret
        }
        # The longest first, lest a part of it be masked and the rest stay.
        self._masked = sorted((s for s in secrets if len(s) >= MIN_MASKED), key=len, reverse=True)
        self.in_effect: dict[str, Setting] = {}
        self._written = self._merged()
        self.loaded = {
            row.name: self._strictest(row) if row.who == "restriction" else self._value(row)
            for row in table
        }

    def _merged(self) -> dict[str, tuple[str, Source]]:
        """What is written for each variable: in the environment, else in the file that is used."""
        own, file = self._search.environment, self._search.used
        written = {
            row.name: (own.values[row.name], own) for row in self._table if row.name in own.values
        }
        if file is not None:
            endangered = " and ".join(name for name in self._secret if name in written)
            for row in self._table:
                value = self._permitted(row, file)
                if not value or row.name in written:
                    continue
                if row.who == "refused" and not file.trusted and endangered:
                    self._reject(
                        row.name,
                        f"holds {self._shown(row.name, value)} in {file.name}, which was found "
                        "only by lying in the current directory and so has no say in where "
                        f"{endangered} of the environment is sent; {TO_TRUST_IT}",
                    )
                else:
                    written[row.name] = value, file
        if "MCP_BOT_NICKNAME" in written:  # the other one is not read, and so not judged
            written.pop("BOT_NICKNAME", None)
        return written

    def _permitted(self, row: Variable[Any], file: Source) -> str:
        """As much of what the file says as it may say; empty if that is nothing."""
        value = file.values.get(row.name, "")
        if not value or row.who == "environment only":
            return ""
        if file.trusted or row.who not in {"ignored", "installed"}:
            return value
        kept, ignored = "", row.name
        if row.who == "installed":
            # MODULE:ATTRIBUTE imports what lies beside the file; other names are installed.
            names = [one.strip() for one in value.split(",")]
            kept = ",".join(one for one in names if ":" not in one)
            code = ",".join(one for one in names if ":" in one)
            ignored = f"{self._shown(row.name, code)} of {row.name}" if code else ""
        if ignored:
            self._warn(
                f"{ignored} in {file.name} is ignored, because that file was found only by lying "
                f"in the current directory; {TO_TRUST_IT}"
            )
        return kept

    def _value(self, row: Variable[Any]) -> Any:
        """The value of a variable; its default if it is unset or does not do."""
        text, source = self._written.get(row.name, ("", self._search.environment))
        value = self._parsed(row, text) if text else None
        if value is None:
            return None if row.default is None else row.parse(row.default)
        if isinstance(value, Path):
            text = str(value := absolute(value, source.folder, self._search.environment.values))
        elif row.parse is values.names:
            # They are shown later on, so that none may hold a secret.
            kept = tuple(one for one in value if self._masked_in(one) == one)
            if kept != value:
                self._reject(
                    row.name,
                    "holds a secret of yours among its names (it is not shown here, and left "
                    "out); names of toolsets alone would be right",
                )
            value, text = kept, ",".join(kept)
        self._note(row, text.strip(), source.name)
        return value

    def _note(self, row: Variable[Any], text: str, source: str) -> None:
        shown = "***" if row.secret else one_line(self._without_credentials(text), MAX_SHOWN)
        self.in_effect[row.name] = Setting(row.name, shown, one_line(source))

    def _parsed(self, row: Variable[Any], text: str, where: str = "") -> Any:
        """The value; None if it does not do, which becomes a problem."""
        try:
            return row.parse(text if row.secret else text.strip())
        except values.FlawError as flaw:
            shown = "" if row.secret else f"{self._shown(row.name, text.strip())}{where}, "
            self._reject(row.name, f"holds {shown}{flaw} would be right")
        except values.FlawsError as error:
            for problem in self._of_list(row.name, text.strip(), error.flaws):
                self._reject(row.name, problem)
        return None

    def _of_list(self, name: str, text: str, flaws: Sequence[values.FlawError]) -> Iterator[str]:
        """A problem for each flaw of a list, with the item that it is about.

        A comma in a secret makes two items of it, the second of which looks like anything: behind
        an item that might be the first half of one, no other is shown.
        """
        hidden = any("," in secret and secret in text for secret in self._masked)
        for flaw in flaws:
            if flaw.item is None:
                yield f"holds {self._shown(name, text)}, {flaw} would be right"
                continue
            number, item = flaw.item
            if hidden:
                yield (
                    f"holds as room {number} what is not shown here, since it may be part of a "
                    "secret; a bare JID would be right"
                )
                continue
            # The colon of `xmpp:room@...` is that of a scheme, and no password comes after it.
            address = item.removeprefix("xmpp:" if "@" in item else "")
            hidden = not {":", "?", "#"}.isdisjoint(address)
            if "@" not in item:
                item = re.sub(":.+", ":***", item, flags=re.DOTALL)
            yield f"holds {self._shown(name, item)} (room {number}), {flaw} would be right"

    def _strictest(self, row: Variable[Any]) -> Any:
        """The strictest of all that is said about a restriction; warn of it where it matters.

        A file that is not trusted makes it stricter than it would be otherwise, never looser.
        """
        default = row.parse(row.default or "")
        said: dict[str, Any] = {}
        trusted = False
        for source in self._sources:
            if text := source.values.get(row.name):
                value = self._parsed(row, text, f" in {source.name}")
                said[source.name] = row.parse(row.unreadable) if value is None else value
                trusted = trusted or source.trusted
        held = row.strictest([*said.values()] if trusted else [*said.values(), default])
        by = " and ".join(source for source, value in said.items() if value == held)
        others = " and ".join(source for source, value in said.items() if value != held)
        if by:
            self._note(row, str(int(held)), by)
            whatever = f", whatever {others} may say" if others else ""
            if others or (held != default and held == row.strictest((held, default))):
                self._warn(f"{row.name} in {by} holds{whatever}: {row.effect.format(held)}")
        elif others:
            self._warn(
                f"{row.name} in {others} is ignored: a file that was found only by lying in the "
                "current directory may restrict, and not permit"
            )
        return held

    def settings(self) -> Settings | None:
        """What the participant needs, or None if one of the problems concerns it."""
        loaded = self.loaded
        username, of_account, resource = loaded["XMPP_USERNAME"] or ("", None, None)
        if resource is not None:
            self._warn(
                "XMPP_USERNAME holds a resource, the part from '/' on; it is ignored, since the "
                "server gives each connection its own"
            )
        domain = self._domain(of_account)
        self._expect_readable("XMPP_TLS_CA_FILE")
        if not loaded["NODE_TLS_REJECT_UNAUTHORIZED"]:
            self._warn(
                "NODE_TLS_REJECT_UNAUTHORIZED is 0: the server's certificate is not checked, so "
                "that anybody on the way can pose as the server; unset it once it is not needed"
            )
        for row in self._table:
            if row.required:
                self._require(row.name, row.required)
        if self._rejected("--env-file", *(row.name for row in self._table if row.participant)):
            return None
        preferred = "MCP_BOT_NICKNAME" in self._written
        return Settings(
            username=username,
            domain=domain,
            password=loaded["XMPP_PASSWORD"],
            rooms=loaded["MUC_ROOM"],
            nickname=loaded["MCP_BOT_NICKNAME" if preferred else "BOT_NICKNAME"],
            service=loaded["XMPP_SERVICE"],
            room_password=loaded["MUC_PASSWORD"],
            tls_ca_file=loaded["XMPP_TLS_CA_FILE"],
            tls_verify=loaded["NODE_TLS_REJECT_UNAUTHORIZED"],
            allow_plaintext=loaded["XMPP_ALLOW_PLAINTEXT"],
        )

    def _domain(self, of_account: str | None) -> str:
        """The domain of the account, else `XMPP_DOMAIN`, else the host; empty for a problem."""
        named: str | None = self.loaded["XMPP_DOMAIN"]
        service: values.Service | None = self.loaded["XMPP_SERVICE"]
        if of_account and named and named != of_account:
            shown = [self._shown("XMPP_DOMAIN", one) for one in (named, of_account)]
            self._reject(
                "XMPP_DOMAIN",
                f"holds {shown[0]}, but XMPP_USERNAME is a JID of {shown[1]}; the same domain in "
                "both, or a domain in one of them only, would be right",
            )
        if found := of_account or named:
            return found
        if service is None:
            if not self._rejected("XMPP_SERVICE", "XMPP_USERNAME"):
                self._require(
                    "XMPP_DOMAIN",
                    "the account's domain (example.org), here or in XMPP_USERNAME as a full JID,",
                )
            return ""
        if not values.is_ip(service.host):
            return service.host
        self._warn(
            "XMPP_DOMAIN is not set and XMPP_SERVICE has only an IP address to put in its place, "
            "to which most servers do not answer; set XMPP_DOMAIN"
        )
        return f"[{service.host}]" if ":" in service.host else service.host

    def _expect_readable(self, name: str) -> None:
        path = self.loaded[name]
        try:
            if path is not None:
                check_readable(path)
        except UnusableError as error:
            self._reject(
                name,
                f"names {str(path)!r}, which cannot be used ({error}); the path of a readable PEM "
                "file would be right",
            )

    def _require(self, name: str, right: str) -> None:
        # What a rejected value or an unusable --env-file meant to say is not known to be missing.
        if name not in self._written and not self._rejected(name, "--env-file"):
            self._reject(name, f"is not set; {right} would be right")

    def _rejected(self, *names: str) -> bool:
        return any(problem.variable in names for problem in self._search.problems)

    def _reject(self, name: str, message: str) -> None:
        self._search.problems.append(Problem(name, self._masked_in(message)))
        self.in_effect.pop(name, None)

    def _warn(self, message: str) -> None:
        self._search.warnings.append(message)

    def _masked_in(self, text: str) -> str:
        for secret in self._masked:
            text = text.replace(secret, "***")
        return text

    def _shown(self, name: str, value: str) -> str:
        """`value` as a problem may show it: quoted, on one line, without a secret.

        Credentials get into values that are not secret as a whole: `user:password@host`,
        `?password=`, `user:password` for a user name.
        """
        value = self._without_credentials(value)
        if name == "XMPP_USERNAME" and ":" in value:
            value = f"{value.partition(':')[0]}:***"
        return repr(_cut(re.sub(r"([?#]).+", r"\1***", value, flags=re.DOTALL)))

    def _without_credentials(self, value: str) -> str:
        """`value` without a secret, and without what stands like one before an `@`."""
        value = self._masked_in(value)
        head, at, tail = value.rpartition("@")
        return f"{head.partition(':')[0]}:***{at}{tail}" if ":" in head else value


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
