"""What one setting may hold, and what it means: each value on its own.

A parser takes the text, a secret with the blanks around it and all others without, and returns the
value or raises `FlawError`; that of a list, `FlawsError` if there may be several.
"""

import re
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

MAX_JID_PART_BYTES = 1023
"""Longest local part, domain or nickname, in bytes of UTF-8 (RFC 7622 §3)."""

MAX_ROOMS = 50
"""Most rooms that one bridge is in: they share one history, of which the smallest, 100 events,
still leaves two events to each."""


class FlawError(Exception):
    """A value does not do.

    The text goes between `holds '...', ` (of a secret, which is not shown, `holds `) and ` would be
    right`. `item` is the item of a list that it is about, with its number from 1; None if it is
    about the whole value.
    """

    def __init__(self, text: str, item: tuple[int, str] | None = None) -> None:
        super().__init__(text)
        self.item = item


class FlawsError(Exception):
    """A list does not do, for one reason or several."""

    def __init__(self, flaws: Sequence[FlawError]) -> None:
        super().__init__("; ".join(map(str, flaws)))
        self.flaws = flaws


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

    def __setattr__(self, *given: object) -> NoReturn:
        raise AttributeError("a Secret cannot be changed")

    __delattr__ = __setattr__

    # `dataclasses.asdict` copies deeply, which without this would go through pickling.
    def __deepcopy__(self, *memo: object) -> "Secret":
        return self

    __copy__ = __deepcopy__

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret cannot be pickled")


class Service(NamedTuple):
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
_SURROGATE = re.compile("[\ud800-\udfff]")
# Compiled where it is used: most starts do not need it.
_BASE_URL = r"(?i:https?)://[^\s/?#@]+(?:/[^\s?#@]*)?"
_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("0", "false", "no", "off"), False
)
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def service(value: str) -> Service:
    """The address of a server."""
    scheme, separator, authority = value.partition("://")
    if not separator:
        try:
            port = _authority(value, 0)[1]
        except FlawError:
            raise FlawError(f"which has no scheme; {_SERVICE_FORMS}") from None
        likely = "xmpps" if port == _SCHEMES["xmpps"][1] else "xmpp"
        raise FlawError(f"which has no scheme; {likely}://{value}")
    if scheme.lower() not in _SCHEMES:
        raise FlawError(
            "whose scheme is not that of a plain XMPP connection (neither BOSH nor WebSocket is "
            f"spoken here); {_SERVICE_FORMS}"
        )
    if "@" in authority:
        raise FlawError(
            "which has a user name in it; the account in XMPP_USERNAME and XMPP_PASSWORD, and "
            f"here {_SERVICE_FORMS}"
        )
    if any(mark in authority for mark in "/?#"):
        raise FlawError(f"which goes on after host and port; {_SERVICE_FORMS}")
    known, default_port = _SCHEMES[scheme.lower()]
    return Service(known, *_authority(authority, default_port))


def _authority(text: str, default_port: int) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        if is_ip(text):
            raise FlawError(f"which has an IPv6 address without brackets; xmpp://[{text}]:5222")
        raise FlawError(f"which is not a host with a port; {_SERVICE_FORMS}")
    address, host, port = match.groups()
    if address is not None and not (":" in address and is_ip(address)):
        raise FlawError("whose brackets hold no IPv6 address; one such as xmpp://[::1]:5222")
    if address is None and not host:
        raise FlawError(f"which names no host; {_SERVICE_FORMS}")
    if port is not None and not (re.fullmatch("[0-9]{1,5}", port) and 1 <= int(port) <= 65535):
        raise FlawError("whose port is none; a port of 1 to 65535, or none at all,")
    return (domain(host) if address is None else address.lower()), int(port or default_port)


def is_ip(host: str) -> bool:
    """Whether `host` is an IP address rather than a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return True
    return False


def account(value: str) -> tuple[str, str | None, str | None]:
    """Local part, domain and resource of the account: a local part, or a JID."""
    bare, slash, resource = value.partition("/") if "@" in value else (value, "", "")
    local, _, host = bare.partition("@")
    return _local_part(local), domain(host) if "@" in value else None, resource if slash else None


def room(value: str) -> str:
    """The bare JID of a room."""
    if value.lower().startswith("xmpp:"):
        raise FlawError("which is a URI; the JID alone (room@conference.example.org)")
    bare, slash, _ = value.partition("/")
    local, at, host = bare.partition("@")
    if not at:
        raise FlawError("which names no room at a service; room@conference.example.org")
    jid = f"{_local_part(local)}@{domain(host)}"
    if slash:
        raise FlawError(
            f"which has a resource after the '/'; the bare JID {jid}, and the nickname in "
            "MCP_BOT_NICKNAME,"
        )
    return jid


def rooms(value: str) -> tuple[str, ...]:
    """The bare JIDs of rooms between commas, each room once; blank items are left out.

    Raises `FlawError` for the only item, `FlawsError` for some of several.
    """
    items = [item for one in value.split(",") if (item := one.strip())]
    if len(items) == 1:
        return (room(items[0]),)
    flaws: list[FlawError] = []
    numbers: dict[str, int] = {}
    jids: list[str] = []
    for number, item in enumerate(items[:MAX_ROOMS], 1):
        try:
            jid = room(item)
        except FlawError as flaw:
            flaws.append(FlawError(str(flaw), (number, item)))
            continue
        first = numbers.setdefault(_prepared(jid), number)
        if first != number:
            flaws.append(FlawError(f"which is room {first} again; each room once", (number, item)))
        jids.append(jid)
    if len(items) > MAX_ROOMS:
        flaws.append(FlawError(f"which names {len(items):,} rooms; at most {MAX_ROOMS} of them"))
    if flaws:
        raise FlawsError(flaws)
    return tuple(jids)


def _prepared(jid: str) -> str:
    """`jid` as comparison has it: Nodeprep and Nameprep (RFC 6122), the domain in ASCII."""
    local, _, host = jid.partition("@")
    if not jid.isascii():
        # Imported here because most rooms are ASCII and need no tables of stringprep.
        from encodings.idna import nameprep

        # Nodeprep maps as Nameprep does; what it forbids beyond that is for the server to refuse.
        with suppress(UnicodeError):
            local = nameprep(local)
        with suppress(UnicodeError):
            host = host.encode("idna").decode()
    return f"{local}@{host}".lower()


def _local_part(value: str) -> str:
    _expect_length("local part", value)
    for character in value:
        if character in _NOT_IN_LOCAL_PARTS or not character.isprintable():
            raise FlawError(f"whose local part must not have {character!r} in it; one without")
    return value


def domain(value: str) -> str:
    """An XMPP domain, in lower case."""
    if value.startswith("[") and value.endswith("]") and is_ip(value[1:-1]):
        return value.lower()
    domain = value.removesuffix(".").lower()
    _expect_length("domain", domain)
    if _NOT_IN_DOMAINS.search(domain) or not domain.isprintable():
        raise FlawError("whose domain is not letters, digits and dots; one such as example.org")
    return domain


def nickname(value: str) -> str:
    """A nickname, which the server prepares further (RFC 8266)."""
    _expect_length("nickname", value)
    for character in value:
        if character not in _JOINERS and not character.isprintable():
            raise FlawError(f"a nickname that must not have {character!r} in it; one without")
    return value


def _expect_length(what: str, value: str) -> None:
    if not value:
        raise FlawError(f"whose {what} is empty; one with a {what}")
    # Lone surrogates are no UTF-8; whatever counts them here, their own check rejects them.
    size = len(value.encode(errors="surrogatepass"))
    if size > MAX_JID_PART_BYTES:
        raise FlawError(
            f"whose {what} is {size:,} bytes long; one of at most {MAX_JID_PART_BYTES:,} bytes"
        )


def certificate_checks(value: str) -> bool:
    """What Node.js understands by its variable: 0 turns them off."""
    if value not in {"0", "1"}:
        raise FlawError("which is neither; 1 (certificates are checked) or 0 (they are not)")
    return value == "1"


def switch(value: str) -> bool:
    """On or off, as people spell it."""
    if value.lower() not in _SWITCHES:
        raise FlawError("which is neither on nor off; 1 or 0")
    return _SWITCHES[value.lower()]


def whole_number(bounds: range) -> Callable[[str], int]:
    """A parser of whole numbers within `bounds`."""

    def parse(value: str) -> int:
        # No more digits than int() takes in its stride, and no others than 0 to 9.
        if not re.fullmatch("[0-9]{1,9}", value) or int(value) not in bounds:
            raise FlawError(
                f"which is out of bounds; a whole number from {bounds[0]} to {bounds[-1]}"
            )
        return int(value)

    return parse


def log_level(value: str) -> str:
    """A level of the log, in capitals."""
    if value.upper() not in _LOG_LEVELS:
        raise FlawError(f"which is no level; one of {', '.join(_LOG_LEVELS)}")
    return value.upper()


def names(value: str) -> tuple[str, ...]:
    """Names between commas, each once."""
    return tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))


def path(value: str) -> Path:
    """A path that a file could have, not absolute yet."""
    if _CONTROL.search(value):
        raise FlawError("which has control characters in it; a path without")
    return Path(value)


def llm_url(value: str) -> str:
    """The base URL of a model, to which a key goes."""
    return _base_url(value, "https://llm.example.org/v1", " the key in LLM_API_KEY,")


def public_url(value: str) -> str:
    """The base URL of a service that wants no key."""
    return _base_url(value, "https://api.example.org/v1", "")


def _base_url(value: str, example: str, addition: str) -> str:
    """An HTTP address to which paths are added: no credentials, no query."""
    if not re.fullmatch(_BASE_URL, value) or not value.isprintable():
        raise FlawError(
            f"which is not a plain base URL; one such as {example}, without credentials or query,"
            f"{addition}"
        )
    return value


def password(value: str) -> Secret:
    """A password, surrounding blanks included."""
    # SASLprep (RFC 4013 §2.3); a byte of the environment that is no UTF-8 is a lone surrogate.
    if _CONTROL.search(value) or _SURROGATE.search(value):
        raise FlawError(
            "a control character or broken UTF-8 (it is not shown here); a password without, "
            "between single quotes where a .env file would otherwise read \\n or \\t as an escape,"
        )
    return Secret(value)


def key(value: str) -> Secret:
    """A key that goes into an HTTP header."""
    if not re.fullmatch("[!-~]+", value.strip()):
        raise FlawError(
            "blanks or characters beyond ASCII (it is not shown here); the key alone, as its "
            "issuer wrote it,"
        )
    return Secret(value.strip())


def visible(value: str) -> str:
    """Text without invisible characters."""
    if not value.isprintable():
        raise FlawError("which has invisible characters in it; one without")
    return value
