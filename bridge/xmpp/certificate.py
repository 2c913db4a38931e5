"""What a server's certificate says of itself, trusted or not (RFC 5280). Pure.

Python's `ssl` tells it only of certificates that it has verified, and the others are those that
people need to be told about.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address

from bridge.escaping import quoted
from bridge.xmpp import der
from bridge.xmpp.der import DerError, Node

MAX_TOLD_NAMES = 10
"""Of the names in a certificate, in a sentence; the rest are counted."""

_ATTRIBUTES = {
    "2.5.4.3": "CN",
    "2.5.4.5": "serialNumber",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "emailAddress",
}
"""Short names (RFC 4514, section 3, and custom); others stand by their number."""

_ENCODINGS = {
    0x0C: "utf-8",
    0x12: "ascii",
    0x13: "ascii",
    0x14: "latin-1",
    0x16: "ascii",
    0x1C: "utf-32-be",
    0x1E: "utf-16-be",
}
"""Of ASN.1's kinds of text, by tag."""

_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_SUBJECT_ALT_NAME = "2.5.29.17"
_XMPP_ADDR, _SRV_NAME = "1.3.6.1.5.5.7.8.5", "1.3.6.1.5.5.7.8.7"


@dataclass(frozen=True)
class Certificate:
    """The parts of a certificate that tell whose it is, and when."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    """For which it is valid: domains, addresses, XMPP addresses and SRV names (RFC 6125)."""

    not_before: datetime
    not_after: datetime


def decode(data: bytes) -> Certificate:
    """Read a certificate in DER; raises `DerError` where it is none."""
    body = der.all_in(der.first(der.first(data, der.SEQUENCE), der.SEQUENCE))
    fields = body[1:] if body and body[0].tag == _VERSION else body
    if len(fields) < 6 or any(one.tag != der.SEQUENCE for one in fields[1:6]):
        raise DerError("a certificate has more to it")
    _, _, issuer, validity, subject, _ = fields[:6]
    times = der.all_in(validity.contents)
    if len(times) != 2:
        raise DerError("a certificate is valid from one time to another")
    return Certificate(
        subject=_name(subject.contents),
        issuer=_name(issuer.contents),
        names=_names(fields[6:]),
        not_before=_time(times[0]),
        not_after=_time(times[1]),
    )


def describe(certificate: Certificate, now: datetime) -> str:
    """Tell a certificate in a few words, with the days it has left from `now` on."""
    told = ", ".join(map(quoted, certificate.names[:MAX_TOLD_NAMES])) or "none"
    more = len(certificate.names) - MAX_TOLD_NAMES
    names = f"{told} and {more} more" if more > 0 else told
    subject, issuer = (
        quoted(name) if name else "nobody" for name in (certificate.subject, certificate.issuer)
    )
    return (
        f"certificate of {subject}, issued by {issuer}, names: {names}, "
        f"{_validity(certificate, now)}"
    )


def _validity(certificate: Certificate, now: datetime) -> str:
    if now < certificate.not_before:
        return f"valid only from {certificate.not_before:%Y-%m-%d %H:%M} UTC on"
    end = f"{certificate.not_after:%Y-%m-%d}"
    if now > certificate.not_after:
        return f"expired on {end} ({_days((now - certificate.not_after).days)} ago)"
    return f"valid until {end} ({_days((certificate.not_after - now).days)} left)"


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def _name(contents: bytes) -> str:
    """Return a distinguished name in the order of the certificate."""
    parts = []
    for group in der.all_in(contents):
        for attribute in der.all_in(group.contents):
            kind, value = _pair(attribute)
            parts.append(f"{_ATTRIBUTES.get(kind, kind)}={_text(value)}")
    return ", ".join(parts)


def _pair(node: Node) -> tuple[str, Node]:
    """Return an object identifier and what stands last behind it."""
    identifier, *rest = der.all_in(node.contents) or [node]
    if identifier.tag != der.OID or not rest:
        raise DerError("something has no identifier, or nothing but that")
    return der.dotted(identifier.contents), rest[-1]


def _text(node: Node) -> str:
    encoding = _ENCODINGS.get(node.tag)
    if encoding is None:
        return f"#{node.contents.hex()}"
    return node.contents.decode(encoding, "replace")


def _time(node: Node) -> datetime:
    """Return a time as RFC 5280, section 4.1.2.5, has them: to the second, in UTC."""
    digits = node.contents[:-1]
    length = {_UTC_TIME: 12, _GENERALIZED_TIME: 14}.get(node.tag)
    if len(digits) != length or not digits.isdigit() or node.contents[-1:] != b"Z":
        raise DerError("a time is none")
    text = digits.decode("ascii")
    if node.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    month, day, hour, minute, second = (int(text[at : at + 2]) for at in range(4, 14, 2))
    try:
        return datetime(int(text[:4]), month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise DerError("a time is none") from error


def _names(rest: list[Node]) -> tuple[str, ...]:
    """Return the names in the extension that has them (section 4.2.1.6)."""
    for node in rest:
        if node.tag != _EXTENSIONS:
            continue
        for extension in der.all_in(der.first(node.contents, der.SEQUENCE)):
            kind, value = _pair(extension)
            if kind == _SUBJECT_ALT_NAME:
                names = der.all_in(der.first(value.contents, der.SEQUENCE))
                return tuple(told for one in names if (told := _alternative(one)) is not None)
    return ()


def _alternative(node: Node) -> str | None:
    match node.tag:  # [2] a domain, [7] an address, [0] a name of some other kind
        case 0x82:
            return node.contents.decode("ascii", "replace")
        case 0x87 if len(node.contents) in {4, 16}:
            return str(ip_address(node.contents))
        case 0xA0:
            kind, value = _pair(node)
            if kind in {_XMPP_ADDR, _SRV_NAME}:
                return _text(der.all_in(value.contents)[0]) if value.contents else None
    return None
