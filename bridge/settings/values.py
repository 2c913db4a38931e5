"""The parsers of the settings: what each value may be, and what it means.

A parser takes the text of a variable, and returns the value or raises `FlawError`. The text has no
blanks around it, unless it is a secret.
"""

import re
import socket
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bridge.text import JOINERS

MAX_JID_PART_BYTES = 1023
"""Longest local part, domain or nickname, in bytes of UTF-8 (RFC 7622 §3)."""

MAX_ROOMS = 50
"""Most rooms that one bridge is in: they share one history, and even the smallest history, of 100
events, keeps two events for each room."""


class SettingsError(Exception):
    """Anything that this package raises: a value or a file that cannot be used."""


class FlawError(SettingsError):
    """A value is not allowed.

    The text completes the sentence "XMPP_DOMAIN holds '...', <text> would be right". That sentence
    leaves out the value of a secret. The text repeats nothing of the value that could be a
    credential. `flaws` has a tuple for each flaw: the number of the item in a list, from 1, the
    item, and the text about it. If the whole value is wrong, the number is 0 and the item empty.
    """

    def __init__(self, text: str, flaws: Sequence[tuple[int, str, str]] = ()) -> None:
        super().__init__(text)
        self.flaws = flaws or [(0, "", text)]


class Secret:
    """A value that is never shown: printing, logging or formatting it gives nothing of it.

    It is no dataclass, since `dataclasses.asdict` would copy its value.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself, for the one place that hands it over."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return self._value == other.reveal() if isinstance(other, Secret) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)


class Service(NamedTuple):
    """The address of a server, where the user named one."""

    scheme: str
    """`xmpp` or `xmpps`."""

    host: str
    """Name or IP address in lower case, an IPv6 one without its brackets."""

    port: int
    """1 to 65535."""

    @property
    def direct_tls(self) -> bool:
        """Whether TLS starts at once (XEP-0368) rather than by STARTTLS."""
        return self.scheme == "xmpps"

    @property
    def domain(self) -> str:
        """The host as an XMPP domain: an IPv6 address in brackets."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def __str__(self) -> str:
        return f"{self.scheme}://{self.domain}:{self.port}"


_PORTS = {"xmpp": 5222, "xmpps": 5223}
_SERVICE = re.compile(r"(?ai:(xmpps?))://(\[[^\[\]]+\]|[^:\[\]/?#@]+)(?::([0-9]{1,5}))?")
_NOT_IN_DOMAINS = re.compile(r"[\x00-,/:-@[-^`{-\x7f]|\.\.|^\.|\.$")  # `_` is common
_NOT_IN_LOCAL_PARTS = "\"&'/:<>@ "  # RFC 7622 §3.3.1
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Compiled where it is used: most starts do not need it.
_BASE_URL = r"(?i:https?)://[^\s/?#@]+(?:/[^\s?#@]*)?"
_ON, _OFF = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def service(value: str) -> Service:
    """Parse the address of a server."""
    if match := _SERVICE.fullmatch(value):
        scheme = match[1].lower()
        port = int(match[3] or _PORTS[scheme])
        if 1 <= port <= 65535:
            return Service(scheme, domain(match[2]).strip("[]"), port)
    raise FlawError(
        "which is not the address of an XMPP server (neither BOSH nor WebSocket is spoken here); "
        "xmpp://host[:port] (STARTTLS) or xmpps://host[:port] (direct TLS), with an IPv6 address "
        "in brackets, a port of 1 to 65535, and the account in XMPP_USERNAME,"
    )


def account(value: str) -> tuple[str, str | None, str | None]:
    """Parse the account, a JID or a local part: local part, domain and resource."""
    bare, slash, resource = value.partition("/") if "@" in value else (value, "", "")
    local, at, host = bare.partition("@")
    return _local_part(local), domain(host) if at else None, resource if slash else None


def room(value: str) -> str:
    """Parse the bare JID of a room."""
    uri = "which is a URI; the JID alone (room@conference.example.org)"
    _expect(not value.lower().startswith("xmpp:"), uri)
    bare, slash, _ = value.partition("/")
    local, at, host = bare.partition("@")
    _expect(at, "which names no room at a service; room@conference.example.org")
    _expect("@" not in host, "which has more than one '@'; one room, or commas between several,")
    jid = f"{_local_part(local)}@{domain(host)}"
    _expect(
        not slash,
        "which has a resource after the '/'; the bare JID before it, and the nickname in "
        "MCP_BOT_NICKNAME,",
    )
    return jid


def rooms(value: str) -> tuple[str, ...]:
    """Parse the bare JIDs of rooms between commas, each room once; blank items are left out."""
    items = [item.strip() for item in value.split(",") if item.strip()]
    if len(items) < 2:
        return (room("".join(items)),)
    flaws: list[tuple[int, str, str]] = []
    numbers: dict[str, int] = {}
    jids: list[str] = []
    for number, item in enumerate(items[:MAX_ROOMS], 1):
        try:
            jids.append(room(item))
            first = numbers.setdefault(_prepared(jids[-1]), number)
            _expect(first == number, f"which is room {first} again; each room once")
        except FlawError as flaw:
            flaws.append((number, item, str(flaw)))
    if len(items) > MAX_ROOMS:
        flaws.append((0, "", f"which names {len(items):,} rooms; at most {MAX_ROOMS} of them"))
    if flaws:
        raise FlawError("", flaws)
    return tuple(jids)


def _prepared(jid: str) -> str:
    """Return `jid` for comparison, nearly as Nodeprep and Nameprep (RFC 6122) prepare it."""
    local, _, host = jid.partition("@")
    return unicodedata.normalize("NFKC", f"{local}@{host.encode('idna').decode()}").casefold()


def domain(value: str) -> str:
    """Parse an XMPP domain, into lower case; an IPv6 address keeps its brackets."""
    if value.startswith("[") and value.endswith("]"):
        with suppress(OSError, ValueError):
            socket.inet_pton(socket.AF_INET6, value[1:-1])
            return value.lower()
    domain = value.removesuffix(".").lower()
    odd = "whose domain is not letters, digits and dots; one such as example.org"
    _expect(not _NOT_IN_DOMAINS.search(domain), odd)
    try:
        _jid_part("domain", domain).encode("idna")
    except UnicodeError as error:
        raise FlawError("whose domain DNS cannot have; one such as example.org") from error
    return domain


def nickname(value: str) -> str:
    """Parse a nickname, which the server prepares further (RFC 8266)."""
    return _jid_part("nickname", value, permitted="".join(JOINERS))


def _local_part(value: str) -> str:
    return _jid_part("local part", value, forbidden=_NOT_IN_LOCAL_PARTS)


def _jid_part(what: str, value: str, *, forbidden: str = "", permitted: str = "") -> str:
    """Return `value` if it has a valid length, and only visible or `permitted` characters."""
    _expect(value, f"whose {what} is empty; one with a {what}")
    # UTF-8 cannot encode lone surrogates. `surrogatepass` counts them; the loop below refuses them.
    size = len(value.encode(errors="surrogatepass"))
    most = MAX_JID_PART_BYTES
    _expect(size <= most, f"whose {what} is {size:,} bytes long; one of at most {most:,} bytes")
    for character in value:
        _expect(
            character not in forbidden and (character.isprintable() or character in permitted),
            f"whose {what} must not have {character!r} in it; one without",
        )
    return value


def certificate_checks(value: str) -> bool:
    """Parse what Node.js understands by its variable: 0 turns the checks off."""
    _expect(value in {"0", "1"}, "which is neither 1 nor 0; 1 (certificates are checked) or 0")
    return value == "1"


def switch(value: str) -> bool:
    """Parse on or off, as people spell it."""
    _expect(value.lower() in (*_ON, *_OFF), "which is neither on nor off; 1 or 0")
    return value.lower() in _ON


def whole_number(bounds: range) -> Callable[[str], int]:
    """Return a parser of whole numbers within `bounds`."""
    beyond = f"which is out of bounds; a whole number from {bounds[0]} to {bounds[-1]}"

    def parse(value: str) -> int:
        # `int` also accepts digits other than 0 to 9, and is slow for very many digits.
        _expect(re.fullmatch("[0-9]{1,9}", value) and int(value) in bounds, beyond)
        return int(value)

    return parse


def log_level(value: str) -> str:
    """Parse a level of the log, into capitals."""
    _expect(value.upper() in _LOG_LEVELS, f"which is no level; one of {', '.join(_LOG_LEVELS)}")
    return value.upper()


def names(value: str) -> tuple[str, ...]:
    """Parse names between commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


def path(value: str) -> Path:
    """Parse a path that a file could have; it may be relative, or begin with `~/`."""
    _expect(not _CONTROL.search(value), "which has control characters in it; a path without")
    _expect(not re.match("~[^/]", value), "which begins with the name of a user; the whole path")
    return Path(value)


def paths_by_name(value: str) -> dict[str, Path]:
    """Parse `NAME=PATH` between commas; the paths may be relative, or begin with `~/`."""
    pairs = [pair.strip().rpartition("=") for pair in value.split(",") if pair.strip()]
    whole = all(name.strip() and file.strip() for name, _, file in pairs)
    _expect(whole, "which is not NICKNAME=PATH, or several of these between commas")
    return {name.strip(): path(file.strip()).expanduser() for name, _, file in pairs}


def base_url(value: str) -> str:
    """Parse an HTTP address to which paths are added: no credentials, no query."""
    _expect(
        re.fullmatch(_BASE_URL, value) and value.isprintable(),
        "which is not a plain base URL; one such as https://api.example.org/v1, without "
        "credentials or query (the key of a model goes into LLM_API_KEY),",
    )
    return value


def password(value: str) -> Secret:
    """Parse a password; blanks at its ends belong to it."""
    # SASLprep forbids these (RFC 4013 §2.3). Python reads a byte of the environment that is not
    # UTF-8 as a lone surrogate.
    _expect(
        not _CONTROL.search(value)
        and not any("\ud800" <= character <= "\udfff" for character in value),
        "a control character or broken UTF-8 (it is not shown here); a password without, "
        "between single quotes where a .env file would otherwise read \\n or \\t as an escape,",
    )
    return Secret(value)


def key(value: str) -> Secret:
    """Parse a key that goes into an HTTP header."""
    _expect(
        re.fullmatch("[!-~]+", value.strip()),
        "blanks or characters beyond ASCII (it is not shown here); the key alone, as its issuer "
        "wrote it,",
    )
    return Secret(value.strip())


def visible(value: str) -> str:
    """Parse text without invisible characters."""
    _expect(value.isprintable(), "which has invisible characters in it; one without")
    return value


def _expect(condition: object, flaw: str) -> None:
    """Raise `FlawError` with the text `flaw` unless `condition` holds."""
    if not condition:
        raise FlawError(flaw)
