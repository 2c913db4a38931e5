"""The reader of DER, and what reads certificates with it, against bytes made to break them."""

import contextlib
import time
from collections.abc import Callable

import pytest

from bridge.xmpp.link.certificate import (
    OID,
    SEQUENCE,
    DerError,
    decode,
    describe,
    elements_in,
    signature_hash,
)

HANDSHAKE_BYTES = 100 * 1024
"""The longest chain of certificates that OpenSSL takes in (SSL_CTX_set_max_cert_list)."""
SECONDS = 5.0
"""Ten times and more what any of them takes; what grew with the square would take minutes."""


def element(tag: int, contents: bytes) -> bytes:
    size = len(contents)
    if size < 0x80:
        return bytes([tag, size]) + contents
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + contents


INTEGER, OCTET_STRING, SET = 0x02, 0x04, 0x31


def sequence(*parts: bytes) -> bytes:
    return element(SEQUENCE, b"".join(parts))


def oid(contents: bytes) -> bytes:
    return element(OID, contents)


SAN = oid(b"\x55\x1d\x11")
TIME = element(0x17, b"260101000000Z")


def named(identifier: bytes, value: bytes) -> bytes:
    return element(SET, sequence(oid(identifier), value))


def certificate(
    *,
    subject: bytes = b"",
    validity: bytes = TIME + TIME,
    algorithm: bytes = b"",
    names: bytes = b"",
) -> bytes:
    extension = sequence(SAN, element(OCTET_STRING, sequence(names)))
    body = sequence(
        element(INTEGER, b"\x01"),
        sequence(),
        sequence(),
        sequence(validity),
        sequence(subject),
        sequence(),
        element(0xA3, sequence(extension)),
    )
    return sequence(body, sequence(algorithm))


NOT_DER = {
    "a tag alone": b"\x30",
    "a length that is not given": b"\x30\x80\x02\x01\x05\x00\x00",
    "the reserved length": b"\x30\xff" + b"\x00" * 200,
    "a length of five bytes": b"\x30\x85\x00\x00\x00\x00\x01x",
    "four gigabytes": b"\x30\x84\xff\xff\xff\xff",
    "one byte too few": b"\x30\x05\x00\x00\x00\x00",
    "a length cut in half": b"\x30\x82\x01",
    "a short length in the long form": b"\x30\x81\x01x",
    "a length with zeros in front": b"\x30\x82\x00\x80" + b"x" * 0x80,
    "a tag of two bytes": b"\x1f\x01\x01x",
}


@pytest.mark.parametrize("form", NOT_DER)
def test_forms_that_der_does_not_have_are_refused_wherever_they_stand(form: str) -> None:
    data = NOT_DER[form]
    with pytest.raises(DerError):
        elements_in(data)
    for _ in range(4):
        with pytest.raises(DerError):
            decode(data)
        assert signature_hash(data) is None
        data = sequence(data)


FULL = HANDSHAKE_BYTES
OLD: Callable[[int], bytes] = lambda size: named(b"\x55\x04\x03", element(0x0C, b"x" * size))  # noqa: E731
HUGE = {
    "depth": lambda: nested(10_000),
    "one long name": lambda: certificate(subject=OLD(FULL)),
    "many empty groups": lambda: certificate(subject=element(SET, b"") * (FULL // 2)),
    "long numbers for names": lambda: certificate(
        subject=named(b"\x2a" + b"\xff" * FULL + b"\x7f", b"\x0c\x01x")
    ),
    "many alternatives": lambda: certificate(names=b"\x82\x01x" * (FULL // 3)),
    "many bytes that are no text": lambda: certificate(
        subject=named(b"\x55\x04\x03", element(0x1C, b"\xff" * FULL))
    ),
    "many times": lambda: certificate(validity=TIME * (FULL // 15)),
    "a name without a value": lambda: certificate(subject=element(SET, sequence(oid(b"x")))),
    "a time without end": lambda: certificate(validity=TIME + element(0x18, b"9" * FULL + b"Z")),
    "an algorithm without end": lambda: certificate(algorithm=oid(b"\xff" * FULL)),
}


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(depth):
        data = sequence(data)
    return data


@pytest.mark.parametrize("shape", HUGE)
def test_what_fills_a_handshake_is_read_or_refused_in_time(shape: str) -> None:
    data = HUGE[shape]()
    began = time.process_time()
    with contextlib.suppress(DerError):
        describe(decode(data))
    signature_hash(data)
    assert time.process_time() - began < SECONDS
