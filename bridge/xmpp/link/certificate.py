"""Reads a server's certificate, verified or not: names, dates, signature hash (RFC 5280). Pure.

Python's `ssl` decodes only certificates that it has verified, but a check has to describe refused
ones. pyasn1, which slixmpp brings, takes 0.13 s to import, and ten times as long as this module to
decode. So this module reads DER (X.690), as far as certificates need it. The bytes come from an
unverified server. So this module refuses lengths that reach beyond the data, and forms that DER
does not have.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import NamedTuple

from bridge.text import counted, listed, quoted
from bridge.xmpp.errors import XmppError

MAX_NAMES = 10
"""Most names in the description of a certificate; the rest are only counted."""

_PKCS_1, _ECDSA = (bytes.fromhex(oid) for oid in ("2a 86 48 86 f7 0d 01 01", "2a 86 48 ce 3d 04"))
"""Beginnings of object identifiers, as DER writes them: 1.2.840.113549.1.1 and 1.2.840.10045.4.
They are compared in this form, since a number in an identifier may have any length."""

_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_SUBJECT_ALT_NAME = b"\x55\x1d\x11"  # 2.5.29.17

_SIGNATURE_HASHES = {
    _PKCS_1 + b"\x04": "sha256",  # MD5 and SHA-1 count as SHA-256 (RFC 5929, section 4.1)
    _PKCS_1 + b"\x05": "sha256",
    _PKCS_1 + b"\x0b": "sha256",
    _PKCS_1 + b"\x0c": "sha384",
    _PKCS_1 + b"\x0d": "sha512",
    _ECDSA + b"\x01": "sha256",
    _ECDSA + b"\x03\x02": "sha256",
    _ECDSA + b"\x03\x03": "sha384",
    _ECDSA + b"\x03\x04": "sha512",
}
"""The hash functions by the OID of a certificate's signature algorithm. Other algorithms, such as
Ed25519, define none."""

OID, SEQUENCE = 0x06, 0x30
"""Tags. Each is one byte with its class and form, as is every tag in a certificate."""

MAX_LENGTH_BYTES = 4
"""Most bytes of an element's length. They allow 4 GB, more than a handshake carries."""


class DerError(XmppError, ValueError):
    """The bytes are not DER, or are no certificate."""


class DerElement(NamedTuple):
    """One element of DER."""

    tag: int
    contents: bytes


@dataclass(frozen=True)
class Certificate:
    """The owner of a certificate, its issuer, and its time of validity."""

    subject: str
    issuer: str
    names: tuple[str, ...]
    """The domains and IP addresses that the certificate is valid for. Python checks no names of
    other kinds."""

    not_before: datetime
    not_after: datetime
    der: bytes = field(default=b"", repr=False)
    """The bytes that were decoded."""


def decode(data: bytes) -> Certificate:
    """Decode a certificate in DER; raises `DerError` where it is none."""
    body = elements_in(contents_of(contents_of(data, SEQUENCE), SEQUENCE))
    fields = body[1:] if body and body[0].tag == _VERSION else body
    if len(fields) < 6 or any(field.tag != SEQUENCE for field in fields[1:6]):
        raise DerError("a certificate lacks a field")
    _, _, issuer, validity, subject, _ = fields[:6]
    times = elements_in(validity.contents)
    if len(times) != 2:
        raise DerError("a certificate's validity is not two times")
    return Certificate(
        subject=_name(subject.contents),
        issuer=_name(issuer.contents),
        names=_names(fields[6:]),
        not_before=_time(times[0]),
        not_after=_time(times[1]),
        der=data,
    )


def signature_hash(data: bytes) -> str | None:
    """Return the hash function that `tls-server-end-point` takes for a certificate in DER.

    Return None if its signature algorithm defines none, or if `data` is no certificate.
    """
    try:
        _, algorithm, *_ = elements_in(contents_of(data, SEQUENCE))
        return _SIGNATURE_HASHES.get(contents_of(algorithm.contents, OID))
    except ValueError:  # too few elements, or no DER at all
        return None


def describe(certificate: Certificate) -> str:
    """Describe in a few words the owner and the issuer of a certificate."""
    names = listed(certificate.names, MAX_NAMES, quoted) or "none"
    subject, issuer = (
        quoted(name) if name else "(no name)" for name in (certificate.subject, certificate.issuer)
    )
    return f"certificate of {subject}, issued by {issuer}, names: {names}"


def validity(certificate: Certificate, now: datetime) -> str:
    """Describe when a certificate is valid, with the days it has left from `now` on."""
    if now < certificate.not_before:
        return f"valid only from {certificate.not_before:%Y-%m-%d %H:%M} UTC on"
    end = f"{certificate.not_after:%Y-%m-%d}"
    if now > certificate.not_after:
        return f"expired on {end} ({counted((now - certificate.not_after).days, 'day')} ago)"
    return f"valid until {end} ({counted((certificate.not_after - now).days, 'day')} left)"


def _name(contents: bytes) -> str:
    """Return the values of a distinguished name in the order of the certificate."""
    groups = map(elements_in, (group.contents for group in elements_in(contents)))
    values = (_pair(attribute)[1].contents for group in groups for attribute in group)
    return ", ".join(value.decode("utf-8", "replace") for value in values)


def _pair(node: DerElement) -> tuple[bytes, DerElement]:
    """Return the object identifier at the start of `node`, and the last element of `node`."""
    identifier, *rest = elements_in(node.contents) or [node]
    if identifier.tag != OID or not rest:
        raise DerError("an attribute or a name is not a pair of identifier and value")
    return identifier.contents, rest[-1]


def _time(node: DerElement) -> datetime:
    """Return a time in a form of RFC 5280, section 4.1.2.5: to the second, in UTC."""
    text = node.contents.decode("ascii", "replace")
    if node.tag == _UTC_TIME:
        text = ("19" if text >= "50" else "20") + text
    try:
        if node.tag not in {_UTC_TIME, _GENERALIZED_TIME} or len(text) != len("YYYYMMDDHHMMSSZ"):
            raise ValueError(text)
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise DerError("a time is not of the form that RFC 5280 has") from error


def _names(rest: list[DerElement]) -> tuple[str, ...]:
    """Return the names in the extension for alternative names (section 4.2.1.6)."""
    for node in rest:
        if node.tag != _EXTENSIONS:
            continue
        for extension in elements_in(contents_of(node.contents, SEQUENCE)):
            kind, value = _pair(extension)
            if kind == _SUBJECT_ALT_NAME:
                names = map(_alternative, elements_in(contents_of(value.contents, SEQUENCE)))
                return tuple(name for name in names if name is not None)
    return ()


def _alternative(node: DerElement) -> str | None:
    match node.tag:  # [2] a domain, [7] an address
        case 0x82:
            return node.contents.decode("ascii", "replace")
        case 0x87 if len(node.contents) in {4, 16}:
            return str(ip_address(node.contents))
    return None


def contents_of(data: bytes, tag: int) -> bytes:
    """Return the contents of the element with `tag` at the start of `data`; raises `DerError`."""
    node, _ = _read(data, 0)
    if node.tag != tag:
        raise DerError(f"an element has the tag {node.tag:#x} instead of {tag:#x}")
    return node.contents


def elements_in(data: bytes) -> list[DerElement]:
    """Return the elements that `data` consists of; raises `DerError`."""
    elements, at = [], 0
    while at < len(data):
        element, at = _read(data, at)
        elements.append(element)
    return elements


def _read(data: bytes, at: int) -> tuple[DerElement, int]:
    """Return the element at `at`, and where the next one begins."""
    head, start = data[at : at + 2], at + 2
    if len(head) < 2:
        raise DerError("the data ends where an element should begin")
    if head[0] & 0x1F == 0x1F:
        raise DerError("a tag has more than one byte")
    length = head[1]
    if length & 0x80:
        size = length & 0x7F
        written, start = data[start : start + size], start + size
        length = int.from_bytes(written, "big")
        # DER writes a length in as few bytes as possible (X.690, section 10.1).
        if size > MAX_LENGTH_BYTES or len(written) < size or length < 0x80 or not written[0]:
            raise DerError("an element has no proper length")
    if len(data) < start + length:
        raise DerError("an element is longer than the data")
    return DerElement(head[0], data[start : start + length]), start + length
