import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID, ObjectIdentifier
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.link.certificate import (
    MAX_NAMES,
    Certificate,
    DerError,
    decode,
    describe,
    signature_hash,
    validity,
)

START = datetime(2026, 1, 1, 12, 30, 59, tzinfo=UTC)
END = datetime(2026, 12, 31, tzinfo=UTC)
KEY = ec.generate_private_key(ec.SECP256R1())
CERTIFICATE = Certificate("chat.example", "CA", ("chat.example",), START, END)


def issued(
    subject: list[x509.NameAttribute[str]],
    *names: x509.GeneralName,
    start: datetime = START,
    end: datetime = END,
    algorithm: hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None = hashes.SHA256(),  # noqa: B008
) -> bytes:
    issuer = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Väike & Söhne")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(issuer)
        .public_key(KEY.public_key())
        .serial_number(4711)
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    key = ed25519.Ed25519PrivateKey.generate() if algorithm is None else KEY
    return builder.sign(key, algorithm).public_bytes(Encoding.DER)


def common_name(text: str) -> x509.NameAttribute[str]:
    return x509.NameAttribute(NameOID.COMMON_NAME, text)


@pytest.mark.parametrize("key_type", list(trustme.KeyType))
def test_a_real_certificate_tells_what_the_library_would(key_type: trustme.KeyType) -> None:
    made = trustme.CA(key_type=key_type).issue_cert(
        "chat.example", "::1", common_name="chat", not_before=START, not_after=END
    )
    read = decode(ssl.PEM_cert_to_DER_cert(made.cert_chain_pems[0].bytes().decode()))
    assert read.names == ("chat.example", "::1")
    assert (read.not_before, read.not_after) == (START, END)
    assert read.subject.endswith("chat")
    assert "Testing CA #" in read.issuer


def test_names_keep_their_order_and_their_letters() -> None:
    subject = [
        x509.NameAttribute(NameOID.COUNTRY_NAME, "EE"),
        common_name("tšätt.example"),
        x509.NameAttribute(ObjectIdentifier("1.3.6.1.4.1.1"), "own"),
    ]
    read = decode(issued(subject))
    assert read.subject == "EE, tšätt.example, own"
    assert read.issuer == "Väike & Söhne"
    assert read.names == ()


def test_the_hash_is_the_signatures_and_a_signature_without_one_defines_no_binding() -> None:
    for algorithm in (hashes.SHA256(), hashes.SHA384(), hashes.SHA512()):
        assert signature_hash(issued([], algorithm=algorithm)) == algorithm.name
    assert signature_hash(issued([], algorithm=None)) is None


def test_the_names_are_those_that_are_checked() -> None:
    xmpp = ObjectIdentifier("1.3.6.1.5.5.7.8.5")
    srv = ObjectIdentifier("1.3.6.1.5.5.7.8.7")
    read = decode(
        issued(
            [],
            x509.DNSName("*.chat.example"),
            x509.IPAddress(ip_address("192.0.2.7")),
            x509.OtherName(xmpp, b"\x0c\x0cchat.example"),
            x509.OtherName(srv, b"\x16\x19_xmpp-client.chat.example"),
            x509.OtherName(ObjectIdentifier("1.2.3"), b"\x0c\x04what"),
            x509.RFC822Name("somebody@chat.example"),
        )
    )
    assert read.subject == ""
    assert read.names == ("*.chat.example", "192.0.2.7")


@pytest.mark.parametrize("year", [1950, 2049, 2050, 9999])
def test_times_are_read_in_both_forms_which_change_in_2050(year: int) -> None:
    start, end = (datetime(it, 2, 3, 4, 5, 6, tzinfo=UTC) for it in (min(year, 2049), year))
    read = decode(issued([common_name("x")], start=start, end=end.replace(month=3)))
    assert (read.not_before, read.not_after) == (start, end.replace(month=3))


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (END - timedelta(days=31, hours=1), "valid until 2026-12-31 (31 days left)"),
        (END - timedelta(days=1), "valid until 2026-12-31 (1 day left)"),
        (END, "valid until 2026-12-31 (0 days left)"),
        (END + timedelta(days=1, hours=1), "expired on 2026-12-31 (1 day ago)"),
        (START - timedelta(days=1), "valid only from 2026-01-01 12:30 UTC on"),
    ],
)
def test_the_days_left_are_told(now: datetime, told: str) -> None:
    assert validity(CERTIFICATE, now) == told


def test_of_many_names_some_are_told_and_the_rest_counted() -> None:
    names = [x509.DNSName(f"n{number}.example") for number in range(MAX_NAMES + 1)]
    told = describe(decode(issued([], *names)))
    assert told.endswith(f'"n{MAX_NAMES - 1}.example" and 1 more')
    assert f"n{MAX_NAMES}.example" not in told
    assert describe(decode(issued([], *names[:-1]))).endswith(f'"n{MAX_NAMES - 1}.example"')


WHOLE = issued(
    [common_name("chat.example")],
    x509.DNSName("chat.example"),
    x509.OtherName(ObjectIdentifier("1.3.6.1.5.5.7.8.5"), b"\x0c\x0cchat.example"),
)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_certificate_that_was_cut_short_is_refused(length: int) -> None:
    with pytest.raises(DerError):
        decode(WHOLE[:length])


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4))))
def test_a_changed_certificate_is_read_or_refused(changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(WHOLE)
    for at, piece in changes:
        data[at : at + len(piece)] = piece
    with contextlib.suppress(DerError):
        describe(decode(bytes(data)))
        validity(decode(bytes(data)), END)
    signature_hash(bytes(data))
