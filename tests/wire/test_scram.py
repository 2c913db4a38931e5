from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire.scram import MAX_ITERATIONS, ScramClient, ScramError

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


def _client(mechanism: str = "SCRAM-SHA-256", username: str = "user") -> ScramClient:
    return ScramClient(mechanism, username, NONCE)


def _challenged() -> ScramClient:
    client = _client()
    client.challenge(f"r={NONCE}more,s={SALT},i=1")
    return client


@pytest.mark.parametrize("example", [SHA_1, SHA_256], ids=["RFC 5802", "RFC 7677"])
def test_the_examples_of_the_standards(example: tuple[str, str, str, str, str]) -> None:
    mechanism, nonce, challenge, final, verifier = example
    client = ScramClient(mechanism, "user", nonce)
    assert client.first() == f"n,,n=user,r={nonce}"
    client.challenge(challenge)
    assert client.iterations == 4096
    assert client.final("pencil") == final
    client.verify(verifier)


def test_commas_and_equals_signs_in_a_name_are_escaped() -> None:
    assert _client(username="a=b,c").first() == f"n,,n=a=3Db=2Cc,r={NONCE}"


def test_a_server_that_does_not_know_the_password_is_found_out() -> None:
    mechanism, nonce, challenge, _, verifier = SHA_256
    client = ScramClient(mechanism, "user", nonce)
    client.challenge(challenge)
    client.final("another password")
    with pytest.raises(ScramError, match="signature is wrong"):
        client.verify(verifier)


def test_a_server_that_skips_its_proof_is_found_out() -> None:
    client = _challenged()
    with pytest.raises(ScramError, match="skipped its own proof"):
        client.verify("v=")  # before there can be one
    client.final("key")
    for message in ("e=other-error", "x=y"):
        with pytest.raises(ScramError, match="skipped its own proof"):
            client.verify(message)
    with pytest.raises(ScramError, match="signature is wrong"):
        client.verify("v=")


@pytest.mark.parametrize("nonce", [NONCE, "other", NONCE[:-1], ""])
def test_a_nonce_that_does_not_continue_ours_is_refused(nonce: str) -> None:
    with pytest.raises(ScramError, match="nonce"):
        _client().challenge(f"r={nonce},s={SALT},i=4096")


def test_the_most_iterations_pass_and_one_more_is_refused() -> None:
    told = f"r={NONCE}more,s={SALT},i="
    client = _client()
    client.challenge(f"{told}{MAX_ITERATIONS}")
    assert (client.salt, client.iterations) == (b"salt", MAX_ITERATIONS)
    with pytest.raises(ScramError, match="the most is 1000000"):
        _client().challenge(f"{told}{MAX_ITERATIONS + 1}")
    with pytest.raises(ScramError, match="0 iterations"):
        _client().challenge(f"{told}0")


@pytest.mark.parametrize("iterations", ["", "many", "-1", "1.5", "٣", "²", "9" * 5000, " 1", "1_0"])
def test_an_iteration_count_that_is_no_number_is_refused(iterations: str) -> None:
    with pytest.raises(ScramError, match="iteration count is no number"):
        _client().challenge(f"r={NONCE}more,s={SALT},i={iterations}")


@pytest.mark.parametrize("salt", ["!", "c2FsdA", "ü", "c2Fs dA=="])
def test_a_salt_that_is_no_base64_is_refused(salt: str) -> None:
    with pytest.raises(ScramError, match="Base64"):
        _client().challenge(f"r={NONCE}more,s={salt},i=1")


def test_an_extension_that_we_do_not_know_is_refused() -> None:
    with pytest.raises(ScramError, match="extension"):
        _client().challenge(f"m=ext,r={NONCE}more,s={SALT},i=1")


@pytest.mark.parametrize("message", ["", "hello", "rr=1", "=", ",", "r=1,,i=2"])
def test_a_message_that_is_not_made_of_fields_is_refused(message: str) -> None:
    with pytest.raises(ScramError, match="fields"):
        _client().challenge(message)


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


@given(_messages)
def test_no_final_message_passes_for_a_proof(final: str) -> None:
    client = _challenged()
    client.final("key")
    with pytest.raises(ScramError):
        client.verify(final)
