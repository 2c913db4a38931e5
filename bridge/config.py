"""Settings: what the user said, checked, with every problem named at once.

`load` is the only door. It takes the environment, the current directory and the folder beside the
package as values, reads files, and returns a `Configuration`; it prints nothing and never raises
for what somebody wrote into a setting. `${...}` is never expanded.
"""

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, TypeVar

from bridge.environment import (
    VARIABLES,
    Candidate,
    Environment,
    Problem,
    UnusableError,
    check_readable,
)

__all__ = [
    "VARIABLES",
    "Candidate",
    "ConfigError",
    "Configuration",
    "Problem",
    "Secret",
    "Service",
    "Settings",
    "load",
]

MAX_JID_PART_BYTES = 1023
"""Longest local part, domain or nickname, in bytes of UTF-8 (RFC 7622 §3)."""

SEND_RATES = range(1, 6001)
"""Messages a minute; 6,000 is a hundred a second, beyond which no room keeps up."""

HISTORIES = range(100, 1_000_001)
"""Events kept in memory; fewer than 100 would not cover one burst, a million is about a GB."""

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


class Secret:
    """A value that is never shown: what prints, logs, formats or pickles it gets no text."""

    __slots__ = ("_value",)
    _value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "_value", value)

    def reveal(self) -> str:
        """Give the value itself, for the one place that hands it over."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return self._value == other.reveal() if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    # `dataclasses.asdict` copies deeply, which without this would go through pickling.
    def __deepcopy__(self, memo: dict[int, object]) -> "Secret":
        return self

    def __copy__(self) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


@dataclass(frozen=True)
class Service:
    """The address of a server, where the user named one."""

    scheme: Literal["xmpp", "xmpps"]
    host: str
    """Name or IP address in lower case, an IPv6 one without its brackets."""

    port: int
    """1 to 65535."""

    @property
    def direct_tls(self) -> bool:
        """Whether TLS starts at once (XEP-0368) rather than by STARTTLS."""
        return self.scheme == "xmpps"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that the participant needs, complete and valid."""

    username: str
    """Local part of the account's JID, as the user wrote it."""

    domain: str
    """In lower case, an IPv6 address in brackets (RFC 7622 §3.2)."""

    password: Secret
    room: str
    """Bare JID, its domain in lower case."""

    nickname: str = "McpDebug"
    service: Service | None = None
    """None: SRV records of the domain, then domain:5222."""

    room_password: Secret | None = None
    tls_ca_file: Path | None = None
    """Absolute path of further trust anchors, PEM; it could be opened when settings were read."""

    tls_verify: bool = True
    allow_plaintext: bool = False

    @property
    def jid(self) -> str:
        """Bare JID of the account."""
        return f"{self.username}@{self.domain}"


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Everything that `load` found out."""

    settings: Settings | None
    """None exactly when one of the problems concerns the participant."""

    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    env_file: str | None
    """Absolute path of the file that is used."""

    candidates: tuple[Candidate, ...]
    read_only: bool
    send_rate: int
    """Messages a minute, 1 to 6,000."""

    history: int
    """Events kept in memory, 100 to 1,000,000."""

    traffic_log: Path | None
    """Absolute path; not looked at yet."""

    toolsets: tuple[str, ...]
    """Each once, in the order written; not checked against what there is."""

    llm_base_url: str | None
    """`http` or `https`, with neither credentials nor query."""

    llm_api_key: Secret | None
    llm_model: str | None
    log_level: str
    """`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`."""


def load(
    environ: Mapping[str, str],
    *,
    cwd: Path,
    package_root: Path,
    env_file: Path | None = None,
    searching: bool = True,
) -> Configuration:
    """Read and check all settings.

    `cwd` and `package_root` (the folder that holds `bridge/`) are absolute; `env_file` is what
    `--env-file` names. Without `searching` no other file is looked for.
    """
    environment = Environment(
        environ, cwd=cwd, package_root=package_root, env_file=env_file, searching=searching
    )
    reading = _Reading(environment)
    # One after the other: each adds to the problems.
    settings = reading.settings()
    send_rate = reading.parsed("BRIDGE_SEND_RATE", _whole_number(SEND_RATES))
    history = reading.parsed("BRIDGE_HISTORY", _whole_number(HISTORIES))
    read_only = reading.read_only()
    traffic_log = reading.path("BRIDGE_TRAFFIC_LOG")
    toolsets = reading.parsed("BRIDGE_TOOLSETS", _names)
    llm_base_url = reading.parsed("LLM_BASE_URL", _base_url)
    llm_api_key = reading.key("LLM_API_KEY")
    llm_model = reading.parsed("LLM_MODEL", _visible)
    log_level = reading.parsed("LOG_LEVEL", _log_level)
    return Configuration(
        settings=settings,
        problems=tuple(environment.problems),
        warnings=tuple(environment.warnings),
        env_file=None if environment.env_file is None else str(environment.env_file),
        candidates=tuple(environment.candidates),
        read_only=read_only,
        send_rate=send_rate or 60,
        history=history or 10_000,
        traffic_log=traffic_log,
        toolsets=toolsets or (),
        llm_base_url=llm_base_url,
        llm_api_key=llm_api_key,
        llm_model=llm_model,
        log_level=log_level or "INFO",
    )


class _FlawError(Exception):
    """A value does not do. The text continues `holds '...', ` and says what would be right."""


_Value = TypeVar("_Value")


class _Reading:
    """One pass over the variables; what does not do becomes a problem of the environment."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def parsed(self, name: str, parse: Callable[[str], _Value]) -> _Value | None:
        """What the variable holds; None if it is unset or does not do."""
        if name not in self._environment:
            return None
        value = self._environment[name].strip()
        try:
            return parse(value)
        except _FlawError as flaw:
            self._environment.reject(
                name, f"holds {self._environment.shown(name, value)}, {flaw} would be right"
            )
            return None

    def password(self, name: str) -> Secret | None:
        """A password, surrounding blanks included."""
        if name not in self._environment:
            return None
        value = self._environment[name]
        if _CONTROL.search(value) or not _is_utf8(value):  # SASLprep (RFC 4013 §2.3)
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
        if not _KEY.fullmatch(value):
            self._environment.reject(
                name,
                "holds blanks or characters beyond ASCII (it is not shown here); the key alone, "
                "as its issuer wrote it, would be right",
            )
            return None
        return Secret(value)

    def path(self, name: str) -> Path | None:
        text = self.parsed(name, _path)
        return None if text is None else self._environment.path(name, text)

    def read_only(self) -> bool:
        value = self.parsed("BRIDGE_READ_ONLY", _switch)
        # Whoever wrote something unreadable here wanted a restriction; so it is in force.
        return "BRIDGE_READ_ONLY" in self._environment if value is None else value

    def settings(self) -> Settings | None:
        """What the participant needs, or None if one of the problems concerns it."""
        service = self.parsed("XMPP_SERVICE", _service)
        account = self.parsed("XMPP_USERNAME", _account)
        domain = self._domain(account, service)
        password = self.password("XMPP_PASSWORD")
        room = self.parsed("MUC_ROOM", _room)
        preferred = "MCP_BOT_NICKNAME" in self._environment
        nickname = self.parsed("MCP_BOT_NICKNAME" if preferred else "BOT_NICKNAME", _nickname)
        room_password = self.password("MUC_PASSWORD")
        tls_ca_file = self._tls_ca_file()
        tls_verify = self.parsed("NODE_TLS_REJECT_UNAUTHORIZED", _certificate_checks)
        allow_plaintext = self.parsed("XMPP_ALLOW_PLAINTEXT", _switch)
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

    def _domain(self, account: "_Account | None", service: Service | None) -> str | None:
        named = self.parsed("XMPP_DOMAIN", _domain)
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
        if not _is_ip(service.host):
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


@dataclass(frozen=True)
class _Account:
    local: str
    domain: str | None
    resource: str | None


_SCHEMES: dict[str, tuple[Literal["xmpp", "xmpps"], int]] = {
    "xmpp": ("xmpp", 5222),
    "xmpps": ("xmpps", 5223),
}
_SERVICE_FORMS = "xmpp://host[:port] (STARTTLS) or xmpps://host[:port] (direct TLS)"
_AUTHORITY = re.compile(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::([^:]*))?", re.DOTALL)
_NOT_IN_DOMAINS = re.compile(r"[\x00-,/:-@[-^`{-\x7f]|\.\.|^\.|\.$")  # `_` is common
_NOT_IN_LOCAL_PARTS = frozenset("\"&'/:<>@ ")  # RFC 7622 §3.3.1
_JOINERS = "\u200c\u200d"  # They build letters and emoji and are no formatting of their own.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_KEY = re.compile(r"[!-~]+")
_BASE_URL = re.compile(r"https?://[^\s/?#@]+(?:/[^\s?#@]*)?", re.IGNORECASE)
_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("0", "false", "no", "off"), False
)
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _service(value: str) -> Service:
    scheme, separator, authority = value.partition("://")
    if not separator:
        try:
            port = _authority(value, 0)[1]
        except _FlawError:
            raise _FlawError(f"which has no scheme; {_SERVICE_FORMS}") from None
        likely = "xmpps" if port == _SCHEMES["xmpps"][1] else "xmpp"
        raise _FlawError(f"which has no scheme; {likely}://{value}")
    if scheme.lower() not in _SCHEMES:
        raise _FlawError(
            "whose scheme is not that of a plain XMPP connection (neither BOSH nor WebSocket is "
            f"spoken here); {_SERVICE_FORMS}"
        )
    if "@" in authority:
        raise _FlawError(
            "which has a user name in it; the account in XMPP_USERNAME and XMPP_PASSWORD, and "
            f"here {_SERVICE_FORMS}"
        )
    if any(mark in authority for mark in "/?#"):
        raise _FlawError(f"which goes on after host and port; {_SERVICE_FORMS}")
    known, default_port = _SCHEMES[scheme.lower()]
    return Service(known, *_authority(authority, default_port))


def _authority(text: str, default_port: int) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        if _is_ip(text):
            raise _FlawError(f"which has an IPv6 address without brackets; xmpp://[{text}]:5222")
        raise _FlawError(f"which is not a host with a port; {_SERVICE_FORMS}")
    address, host, port = match.groups()
    if address is not None and not (":" in address and _is_ip(address)):
        raise _FlawError("whose brackets hold no IPv6 address; one such as xmpp://[::1]:5222")
    if address is None and not host:
        raise _FlawError(f"which names no host; {_SERVICE_FORMS}")
    if port is None:
        return (_domain(host) if address is None else address.lower()), default_port
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise _FlawError("whose port is none; a port of 1 to 65535, or none at all,")
    return (_domain(host) if address is None else address.lower()), int(port)


def _is_ip(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return True
    return False


def _account(value: str) -> _Account:
    if "@" not in value:
        return _Account(_local_part(value), None, None)
    bare, slash, resource = value.partition("/")
    local, _, domain = bare.partition("@")
    return _Account(_local_part(local), _domain(domain), resource if slash else None)


def _room(value: str) -> str:
    if value.lower().startswith("xmpp:"):
        raise _FlawError("which is a URI; the JID alone (room@conference.example.org)")
    bare, slash, _ = value.partition("/")
    local, at, domain = bare.partition("@")
    if not at:
        raise _FlawError("which names no room at a service; room@conference.example.org")
    room = f"{_local_part(local)}@{_domain(domain)}"
    if slash:
        raise _FlawError(
            f"which has a resource after the '/'; the bare JID {room}, and the nickname in "
            "MCP_BOT_NICKNAME,"
        )
    return room


def _local_part(value: str) -> str:
    _expect_length("local part", value)
    for character in value:
        if character in _NOT_IN_LOCAL_PARTS or not character.isprintable():
            raise _FlawError(f"whose local part must not have {character!r} in it; one without")
    return value


def _domain(value: str) -> str:
    if value.startswith("[") and value.endswith("]") and _is_ip(value[1:-1]):
        return value.lower()
    domain = value.removesuffix(".").lower()
    _expect_length("domain", domain)
    if _NOT_IN_DOMAINS.search(domain) or not domain.isprintable():
        raise _FlawError("whose domain is not letters, digits and dots; one such as example.org")
    return domain


def _nickname(value: str) -> str:
    _expect_length("nickname", value)
    for character in value:
        if character not in _JOINERS and not character.isprintable():
            raise _FlawError(f"a nickname that must not have {character!r} in it; one without")
    return value


def _expect_length(what: str, value: str) -> None:
    if not value:
        raise _FlawError(f"whose {what} is empty; one with a {what}")
    # Lone surrogates are no UTF-8; whatever counts them here, their own check rejects them.
    size = len(value.encode(errors="surrogatepass"))
    if size > MAX_JID_PART_BYTES:
        raise _FlawError(
            f"whose {what} is {size:,} bytes long; one of at most {MAX_JID_PART_BYTES:,} bytes"
        )


def _certificate_checks(value: str) -> bool:
    if value not in {"0", "1"}:
        raise _FlawError("which is neither; 1 (certificates are checked) or 0 (they are not)")
    return value == "1"


def _switch(value: str) -> bool:
    if value.lower() not in _SWITCHES:
        raise _FlawError("which is neither on nor off; 1 or 0")
    return _SWITCHES[value.lower()]


def _whole_number(bounds: range) -> Callable[[str], int]:
    def parse(value: str) -> int:
        # No more digits than int() takes in its stride, and no others than 0 to 9.
        if not re.fullmatch("[0-9]{1,9}", value) or int(value) not in bounds:
            raise _FlawError(
                f"which is out of bounds; a whole number from {bounds[0]} to {bounds[-1]}"
            )
        return int(value)

    return parse


def _is_utf8(value: str) -> bool:
    """False if a byte of the environment that is no UTF-8 came in as a lone surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _log_level(value: str) -> str:
    if value.upper() not in _LOG_LEVELS:
        raise _FlawError(f"which is no level; one of {', '.join(_LOG_LEVELS)}")
    return value.upper()


def _names(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


def _path(value: str) -> str:
    if _CONTROL.search(value):
        raise _FlawError("which has control characters in it; a path without")
    return value


def _base_url(value: str) -> str:
    if not _BASE_URL.fullmatch(value) or not value.isprintable():
        raise _FlawError(
            "which is not a plain base URL; one such as https://llm.example.org/v1, without "
            "credentials or query, the key in LLM_API_KEY,"
        )
    return value


def _visible(value: str) -> str:
    if not value.isprintable():
        raise _FlawError("which has invisible characters in it; one without")
    return value
