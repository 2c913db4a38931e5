from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.scram import ScramClient, ScramError

# The examples of RFC 5802, section 5, and RFC 7677, section 3.
SHA_1 = (
    "SCRAM-SHA-1",
    "fyko+d2lbbFgONRv9qkxdawL",
    "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
SHA_256 = (
    "SCRAM-SHA-256",
    "rOprNGfwEbeRWgbNEkqO",
    "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    (
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    ),
    "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
NONCE = "abcdef"
SALT = b64encode(b"salt").decode()


def _client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", NONCE)


@pytest.mark.parametrize("example", [SHA_1, SHA_256], ids=["RFC 5802", "RFC 7677"])
def test_the_examples_of_the_standards(example: tuple[str, str, str, str, str]) -> None:
    mechanism, nonce, challenge, final, verifier = example
    client = ScramClient(mechanism, "user", nonce)
    assert client.first() == f"n,,n=user,r={nonce}"
    client.challenge(challenge)
    assert client.iterations == 4096
    assert client.final("pencil") == final
    client.verify(verifier)


def test_a_proof_that_comes_before_there_can_be_one_is_none() -> None:
    client = _client()
    client.challenge(f"r={NONCE}more,s={SALT},i=1")
    with pytest.raises(ScramError, match="skipped its own proof"):
        client.verify("v=")


_parts = st.sampled_from(["r=", "s=", "i=", "v=", "m=", ",", NONCE, SALT, "4096", "=", "x"])
_messages = st.one_of(
    st.text(), st.lists(st.one_of(_parts, st.text(max_size=3)), max_size=12).map("".join)
)


@given(_messages, _messages)
def test_whatever_the_server_says_raises_nothing_else(challenge: str, final: str) -> None:
    client = _client()
    try:
        client.challenge(challenge)
    except ScramError:
        return
    client.final("key")
    with pytest.raises(ScramError):
        client.verify(final)


def test_the_hash_of_an_offer_is_that_of_the_standards_example() -> None:
    client = ScramClient("SCRAM-SHA-1", "user", "nonce")
    client.challenge("r=nonce-and-more,s=QSXCR+Q6sek8bf92,i=4096,h=G6k/rBLDqgOhRRaCuuatSDFkJ08=")
    mechanisms, bindings = ["SCRAM-SHA-1-PLUS", "SCRAM-SHA-1"], ["tls-server-end-point"]
    assert client.was_offered(mechanisms, [*bindings, "tls-exporter"])
    assert not client.was_offered(mechanisms, bindings)
    assert not client.was_offered(mechanisms[:1], [*bindings, "tls-exporter"])
