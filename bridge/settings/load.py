"""Settings: what the user said, checked, with every problem named at once.

`load` is the only door. It takes the environment, the current directory and the folder beside the
package as values, reads files, and returns a `Configuration`; it prints nothing and never raises
for what somebody wrote into a setting. `${...}` is never expanded.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from bridge.settings import values
from bridge.settings.sources import Environment, Problem, UnusableError, check_readable
from bridge.settings.table import (
    FORECAST_URL,
    GEOCODING_URL,
    HISTORIES,
    SEND_RATE,
    SEND_RATES,
    Configuration,
    Settings,
)
from bridge.settings.values import Secret, Service

_PARTICIPANT = (
    "--env-file",
    "XMPP_SERVICE",
    "XMPP_DOMAIN",
    "XMPP_USERNAME",
    "XMPP_PASSWORD",
    "MUC_ROOM",
    "MCP_BOT_NICKNAME",
    "BOT_NICKNAME",
    "MUC_PASSWORD",
    "XMPP_TLS_CA_FILE",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "XMPP_ALLOW_PLAINTEXT",
)
"""A problem with one of these leaves the participant without settings."""


class ConfigError(Exception):
    """The user's settings do not do; what to mend is in `problems`."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


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
    `--env-file` names. Without `searching` no other file is looked for. `at_start` is what a bridge
    that runs was started with: a file in the current directory that was not used then is not used
    now, since a `git pull` may have brought it.
    """
    environment = Environment(
        environ,
        cwd=cwd,
        package_root=package_root,
        env_file=env_file,
        searching=searching,
        strangers=at_start is None
        or (at_start.env_file == str(cwd / ".env") and not at_start.trusted),
    )
    reading = _Reading(environment)
    # One after the other: each adds to the problems.
    settings = reading.settings()
    send_rate = reading.strictest(
        "BRIDGE_SEND_RATE",
        values.whole_number(SEND_RATES),
        min,
        default=SEND_RATE,
        unreadable=SEND_RATE,
        effect="the agent may send {} messages a minute at most",
    )
    history = reading.parsed("BRIDGE_HISTORY", values.whole_number(HISTORIES))
    read_only = reading.strictest(
        "BRIDGE_READ_ONLY",
        values.switch,
        any,
        default=False,
        # Whoever wrote something unreadable here wanted a restriction.
        unreadable=True,
        effect="no tool that writes to a room is served",
    )
    traffic_log = reading.path("BRIDGE_TRAFFIC_LOG")
    toolsets = reading.toolsets()
    llm_base_url = reading.parsed("LLM_BASE_URL", values.base_url)
    llm_api_key = reading.key("LLM_API_KEY")
    llm_model = reading.parsed("LLM_MODEL", values.visible)
    geocoding_url = reading.parsed("OPEN_METEO_GEOCODING_URL", values.public_base_url)
    forecast_url = reading.parsed("OPEN_METEO_FORECAST_URL", values.public_base_url)
    log_level = reading.parsed("LOG_LEVEL", values.log_level)
    return Configuration(
        settings=settings,
        problems=tuple(environment.problems),
        warnings=tuple(environment.warnings),
        env_file=None if environment.env_file is None else str(environment.env_file),
        trusted=environment.trusted,
        candidates=tuple(environment.candidates),
        set_by=reading.set_by,
        read_only=read_only,
        send_rate=send_rate,
        history=history or 10_000,
        traffic_log=traffic_log,
        toolsets=toolsets,
        llm_base_url=llm_base_url,
        llm_api_key=llm_api_key,
        llm_model=llm_model,
        geocoding_url=geocoding_url or GEOCODING_URL,
        forecast_url=forecast_url or FORECAST_URL,
        log_level=log_level or "INFO",
    )


_Value = TypeVar("_Value")


class _Reading:
    """One pass over the variables; what does not do becomes a problem of the environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self.set_by: dict[str, str] = {}

    def parsed(self, name: str, parse: Callable[[str], _Value]) -> _Value | None:
        """What the variable holds; None if it is unset or does not do."""
        if name not in self._environment:
            return None
        return self._parsed(name, self._environment[name].strip(), parse)

    def _parsed(
        self, name: str, value: str, parse: Callable[[str], _Value], where: str = ""
    ) -> _Value | None:
        try:
            return parse(value)
        except values.FlawError as flaw:
            self._environment.reject(
                name, f"holds {self._environment.shown(name, value)}{where}, {flaw} would be right"
            )
            return None

    def strictest(
        self,
        name: str,
        parse: Callable[[str], _Value],
        strict: Callable[[Iterable[_Value]], _Value],
        *,
        default: _Value,
        unreadable: _Value,
        effect: str,
    ) -> _Value:
        """The strictest of all that is said about a restriction; tell who said it, if it matters.

        A stranger's file makes it stricter than it would be otherwise, never looser.
        """
        said: dict[str, _Value] = {}
        trusted = False
        for one in self._environment.restrictions(name):
            value = self._parsed(name, one.value.strip(), parse, f" in {one.source}")
            said[one.source] = unreadable if value is None else value
            trusted = trusted or one.trusted
        held = strict([*said.values()] if trusted else [*said.values(), default])
        by = " and ".join(source for source, value in said.items() if value == held)
        others = " and ".join(source for source, value in said.items() if value != held)
        if by:
            self.set_by[name] = by
            whatever = f", whatever {others} may say" if others else ""
            if others or (held != default and held == strict((held, default))):
                told = f"{name} in {by} holds{whatever}: {effect.format(held)}"
                self._environment.warnings.append(told)
        elif others:
            self._environment.warnings.append(
                f"{name} in {others} is ignored: a file that was found only by lying in the "
                "current directory may restrict, and not permit"
            )
        return held

    def password(self, name: str) -> Secret | None:
        """A password, surrounding blanks included."""
        if name not in self._environment:
            return None
        value = self._environment[name]
        if values.CONTROL.search(value) or not values.is_utf8(value):  # SASLprep (RFC 4013 §2.3)
            self._environment.reject(
                name,
                "holds a control character or broken UTF-8 (it is not shown here); a password "
                "without, between single quotes where a .env file would otherwise read \\n or "
                "\\t as an escape, would be right",
            )
            return None
        return Secret(value)

    def key(self, name: str) -> Secret | None:
        """A key that goes into an HTTP header."""
        if name not in self._environment:
            return None
        value = self._environment[name].strip()
        if not re.fullmatch(values.KEY, value):
            self._environment.reject(
                name,
                "holds blanks or characters beyond ASCII (it is not shown here); the key alone, "
                "as its issuer wrote it, would be right",
            )
            return None
        return Secret(value)

    def path(self, name: str) -> Path | None:
        text = self.parsed(name, values.path)
        return None if text is None else self._environment.path(name, text)

    def toolsets(self) -> tuple[str, ...]:
        """The names of further sets; they are shown later on, so that none may hold a secret."""
        named = self.parsed("BRIDGE_TOOLSETS", values.names) or ()
        kept = tuple(one for one in named if not self._environment.holds_a_secret(one))
        if kept != named:
            self._environment.reject(
                "BRIDGE_TOOLSETS",
                "holds a secret of yours among its names (it is not shown here, and left out); "
                "names of toolsets alone would be right",
            )
        return kept

    def settings(self) -> Settings | None:
        """What the participant needs, or None if one of the problems concerns it."""
        service = self.parsed("XMPP_SERVICE", values.service)
        account = self.parsed("XMPP_USERNAME", values.account)
        domain = self._domain(account, service)
        password = self.password("XMPP_PASSWORD")
        room = self.parsed("MUC_ROOM", values.room)
        preferred = "MCP_BOT_NICKNAME" in self._environment
        nickname = self.parsed("MCP_BOT_NICKNAME" if preferred else "BOT_NICKNAME", values.nickname)
        room_password = self.password("MUC_PASSWORD")
        tls_ca_file = self._tls_ca_file()
        tls_verify = self.parsed("NODE_TLS_REJECT_UNAUTHORIZED", values.certificate_checks)
        allow_plaintext = self.parsed("XMPP_ALLOW_PLAINTEXT", values.switch)
        if tls_verify is False:
            self._environment.warnings.append(
                "NODE_TLS_REJECT_UNAUTHORIZED is 0: the server's certificate is not checked, so "
                "that anybody on the way can pose as the server; unset it once it is not needed"
            )
        self._require("XMPP_USERNAME", "the account's name or full JID (bot@example.org)")
        self._require("XMPP_PASSWORD", "the account's password")
        self._require("MUC_ROOM", "the bare JID of a room (room@conference.example.org)")
        if self._rejected(*_PARTICIPANT):
            return None
        assert account is not None
        assert domain is not None
        assert password is not None
        assert room is not None
        return Settings(
            username=account.local,
            domain=domain,
            password=password,
            room=room,
            nickname=nickname or Settings.nickname,
            service=service,
            room_password=room_password,
            tls_ca_file=tls_ca_file,
            tls_verify=tls_verify is not False,
            allow_plaintext=allow_plaintext is True,
        )

    def _rejected(self, *names: str) -> bool:
        return any(problem.variable in names for problem in self._environment.problems)

    def _require(self, name: str, right: str) -> None:
        # What a rejected value or an unusable --env-file meant to say is not known to be missing.
        if name not in self._environment and not self._rejected(name, "--env-file"):
            self._environment.reject(name, f"is not set; {right} would be right")

    def _domain(self, account: values.Account | None, service: Service | None) -> str | None:
        named = self.parsed("XMPP_DOMAIN", values.domain)
        if account is not None and account.resource is not None:
            self._environment.warnings.append(
                "XMPP_USERNAME holds a resource, the part from '/' on; it is ignored, since the "
                "server gives each connection its own"
            )
        if account is not None and account.domain is not None:
            if named is not None and named != account.domain:
                self._environment.reject(
                    "XMPP_DOMAIN",
                    f"holds {self._environment.shown('XMPP_DOMAIN', named)}, but XMPP_USERNAME is "
                    f"a JID of {self._environment.shown('XMPP_DOMAIN', account.domain)}; the same "
                    "domain in both, or a domain in one of them only, would be right",
                )
            return account.domain
        if named is not None:
            return named
        if service is None:
            if not self._rejected("XMPP_SERVICE", "XMPP_USERNAME"):
                self._require(
                    "XMPP_DOMAIN",
                    "the account's domain (example.org), here or in XMPP_USERNAME as a full JID,",
                )
            return None
        if not values.is_ip(service.host):
            return service.host
        self._environment.warnings.append(
            "XMPP_DOMAIN is not set and XMPP_SERVICE has only an IP address to put in its place, "
            "to which most servers do not answer; set XMPP_DOMAIN"
        )
        return f"[{service.host}]" if ":" in service.host else service.host

    def _tls_ca_file(self) -> Path | None:
        path = self.path("XMPP_TLS_CA_FILE")
        if path is not None:
            try:
                check_readable(path)
            except UnusableError as error:
                self._environment.reject(
                    "XMPP_TLS_CA_FILE",
                    f"names {str(path)!r}, which cannot be used ({error}); the path of a readable "
                    "PEM file would be right",
                )
        return path
