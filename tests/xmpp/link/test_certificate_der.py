"""The reader of DER, and what reads certificates with it, against bytes made to break them."""

import contextlib
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.link.certificate import (
    OID,
    SEQUENCE,
    DerElement,
    DerError,
    contents_of,
    decode,
    describe,
    elements_in,
    signature_hash,
)
from bridge.xmpp.link.certificate import validity as validity_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
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


def test_the_shortest_forms_are_the_right_ones() -> None:
    for size in (0, 1, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000):
        contents = b"x" * size
        assert elements_in(element(0x04, contents) * 2) == [DerElement(0x04, contents)] * 2


FULL = HANDSHAKE_BYTES
OLD: Callable[[int], bytes] = lambda size: named(b"\x55\x04\x03", element(0x0C, b"x" * size))  # noqa: E731
HUGE = {
    "depth": lambda: nested(FULL // 8),
    "depth without lengths": lambda: b"\x30\x80" * (FULL // 2),
    "one long name": lambda: certificate(subject=OLD(FULL)),
    "many short names": lambda: certificate(subject=OLD(1) * (FULL // 12)),
    "many empty groups": lambda: certificate(subject=element(SET, b"") * (FULL // 2)),
    "long numbers for names": lambda: certificate(
        subject=named(b"\x2a" + b"\xff" * FULL + b"\x7f", b"\x0c\x01x")
    ),
    "many alternatives": lambda: certificate(names=b"\x82\x01x" * (FULL // 3)),
    "one long alternative": lambda: certificate(names=element(0x82, b"x" * FULL)),
    "many bytes that are no text": lambda: certificate(
        subject=named(b"\x55\x04\x03", element(0x1C, b"\xff" * FULL))
    ),
    "many times": lambda: certificate(validity=TIME * (FULL // 15)),
    "a time without end": lambda: certificate(validity=TIME + element(0x18, b"9" * FULL + b"Z")),
    "an algorithm without end": lambda: certificate(algorithm=oid(b"\xff" * FULL)),
}


def nested(depth: int) -> bytes:
    data = b""
    for _ in range(min(depth, 10_000)):
        data = sequence(data)
    return data


@pytest.mark.parametrize("shape", HUGE)
def test_what_fills_a_handshake_is_read_or_refused_in_time(shape: str) -> None:
    data = HUGE[shape]()
    began = time.monotonic()
    with contextlib.suppress(DerError):
        describe(decode(data))
    signature_hash(data)
    assert time.monotonic() - began < SECONDS


_tags = st.sampled_from([0x02, 0x04, 0x06, 0x0C, 0x17, 0x18, 0x1C, 0x1E, 0x30, 0x31, 0x82, 0xA0])
_leaves = st.one_of(
    st.binary(max_size=20), st.just(b"\x55\x1d\x11"), st.just(b"260101000000Z"), st.just(SAN)
)
_elements = st.recursive(
    st.builds(element, _tags, _leaves),
    lambda inner: st.builds(element, _tags, st.lists(inner, max_size=7).map(b"".join)),
    max_leaves=40,
)


@given(_elements, _elements, _elements, _elements, st.binary(max_size=3))
def test_whatever_stands_where_a_certificate_has_something_is_read_or_refused(
    subject: bytes, validity: bytes, algorithm: bytes, names: bytes, behind: bytes
) -> None:
    for data in (
        certificate(subject=subject, algorithm=algorithm, names=names) + behind,
        certificate(validity=validity + behind),
        sequence(subject, validity, algorithm, names),
        subject + behind,
    ):
        with contextlib.suppress(DerError):
            describe(decode(data))
            validity_of(decode(data), NOW)
        signature_hash(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_elements_or_are_refused(data: bytes) -> None:
    for read in (elements_in, lambda data: contents_of(data, SEQUENCE)):
        with contextlib.suppress(DerError):
            read(data)
