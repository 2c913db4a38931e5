"""What a server may put into SCRAM's messages to get at the password, or to pass as genuine."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.sandbox.scram import AuthenticationError, Exchange
from bridge.wire.scram import (
    LEAST_UNTRUSTED_ITERATIONS,
    MAX_ITERATIONS,
    ChannelBinding,
    ScramClient,
    ScramError,
)

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
SALT = b64encode(b"salt").decode()
PASSWORD = "pencil"
BINDING = ChannelBinding("tls-server-end-point", b"of the certificate")


def client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", NONCE)


def verifier(first: str, challenge: str, final: str, password: str = PASSWORD) -> str:
    """The server's proof, from the definitions of RFC 5802, section 3."""
    fields = dict(part.split("=", 1) for part in challenge.split(","))
    salt, rounds = b64decode(fields["s"]), int(fields["i"])
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    bare, unproven = first.split(",", 2)[2], final.rpartition(",p=")[0]
    key = hmac.digest(salted, b"Server Key", "sha256")
    signature = hmac.digest(key, f"{bare},{challenge},{unproven}".encode(), "sha256")
    return b64encode(signature).decode()


FIRST_MESSAGES = {
    "our nonce alone": (f"r={NONCE},s={SALT},i=1", "nonce"),
    "a nonce cut by one": (f"r={NONCE[:-1]},s={SALT},i=1", "nonce"),
    "our nonce behind another": (f"r=x{NONCE},s={SALT},i=1", "nonce"),
    "our nonce, cut by a comma": (f"r={NONCE},x=y,s={SALT},i=1", "nonce"),
    "a second nonce that is right": (f"r=evil,r={NONCE}x,s={SALT},i=1", "nonce|twice"),
    "a second count, smaller": (f"r={NONCE}x,s={SALT},i=4096,i=1", "twice"),
    "no nonce": (f"s={SALT},i=4096", "nonce"),
    "no salt": (f"r={NONCE}x,i=4096", "no salt"),
    "an empty salt": (f"r={NONCE}x,s=,i=4096", "no salt"),
    "no count": (f"r={NONCE}x,s={SALT}", "count is no number"),
    "padding for a salt": (f"r={NONCE}x,s====,i=4096", "Base64"),
    "a salt without padding": (f"r={NONCE}x,s=c2FsdA,i=4096", "Base64"),
    "a negative count": (f"r={NONCE}x,s={SALT},i=-1", "count is no number"),
    "a count that is an exponent": (f"r={NONCE}x,s={SALT},i=²", "count is no number"),
    "a count of eleven digits": (f"r={NONCE}x,s={SALT},i=00000004096", "count is no number"),
    "an error": ("e=other-error", "nonce"),
    "an extension behind": (f"r={NONCE}x,s={SALT},i=4096,m=x", "extension"),
    "nothing": ("", "fields"),
    "a field without a name": ("=", "fields"),
    "an attribute of two letters": (f"r={NONCE}x,ss={SALT},i=4096", "fields"),
}


@pytest.mark.parametrize("attack", FIRST_MESSAGES)
def test_a_first_message_that_is_not_as_the_standard_has_it_gets_no_proof(attack: str) -> None:
    message, told = FIRST_MESSAGES[attack]
    with pytest.raises(ScramError, match=told):
        client().challenge(message)


@pytest.mark.parametrize(
    "message",
    [
        f"i=4096,s={SALT},r={NONCE}x",
        f"x=,r={NONCE}x,s={SALT},i=4096,y=z",
        f"r={NONCE}x,s={SALT},i=4096,v=AAAA",
    ],
)
def test_another_order_and_unknown_fields_make_no_other_login(message: str) -> None:
    """The whole message is signed, whatever we make of it."""
    scram = client()
    scram.challenge(message)
    assert (scram.salt, scram.iterations) == (b"salt", 4096)
    final = scram.final(PASSWORD)
    with pytest.raises(ScramError, match="wrong"):
        scram.verify(f"v={verifier(scram.first(), CHALLENGE.replace('i=16', 'i=4096'), final)}")
    scram.verify(f"v={verifier(scram.first(), message, final)}")


@pytest.mark.parametrize(
    "nonce", ["=", "\x1b[2J\u202e \0", "\N{FULLWIDTH COMMA}m=x", "é" * 100_000]
)
def test_odd_characters_in_a_nonce_go_back_as_they_came_and_become_no_field(nonce: str) -> None:
    scram = client()
    scram.challenge(f"r={NONCE}{nonce},s={SALT},i=1")
    names = [part[:2] for part in scram.final(PASSWORD).split(",")]
    assert names == ["c=", "r=", "p="]
    assert f",r={NONCE}{nonce},p=" in scram.final(PASSWORD)


@pytest.mark.parametrize(
    ("least", "iterations", "taken"),
    [
        (1, 0, False),
        (1, 1, True),
        (LEAST_UNTRUSTED_ITERATIONS, LEAST_UNTRUSTED_ITERATIONS - 1, False),
        (LEAST_UNTRUSTED_ITERATIONS, LEAST_UNTRUSTED_ITERATIONS, True),
        (LEAST_UNTRUSTED_ITERATIONS, MAX_ITERATIONS, True),
        (LEAST_UNTRUSTED_ITERATIONS, MAX_ITERATIONS + 1, False),
    ],
)
def test_iterations_are_bounded_at_both_ends(least: int, iterations: int, taken: bool) -> None:
    scram = ScramClient("SCRAM-SHA-256", "user", NONCE, least_iterations=least)
    for told in (str(iterations), f"{iterations:010}"):  # zeros in front make no other number
        message = f"r={NONCE}x,s={SALT},i={told}"
        if taken:
            scram.challenge(message)
            assert scram.iterations == iterations
        else:
            with pytest.raises(ScramError, match=rf"wants {iterations} iterations"):
                scram.challenge(message)


CHALLENGE = f"r={NONCE}x,s={SALT},i=16"


def challenged() -> tuple[ScramClient, str]:
    scram = client()
    scram.challenge(CHALLENGE)
    final = scram.final(PASSWORD)
    return scram, verifier(scram.first(), CHALLENGE, final)


def test_the_right_proof_is_taken_with_an_extension_behind_it_too() -> None:
    scram, proof = challenged()
    scram.verify(f"v={proof}")
    scram.verify(f"v={proof},x=what the standard allows")


FINAL_MESSAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "nothing": (lambda _: "", "fields"),
    "an error beside the wrong proof": (lambda _: "e=other-error,v=AAAA", "wrong"),
    "an empty proof": (lambda _: "v=", "wrong"),
    "the proof cut by a byte": (lambda proof: f"v={cut(proof)}", "wrong"),
    "the proof under another name": (lambda proof: f"p={proof}", "skipped"),
    "the proof with a line break": (lambda proof: f"v={proof}\n", "Base64"),
    "the right one second": (lambda proof: f"v=AAAA,v={proof}", "twice"),
    "the right one first": (lambda proof: f"v={proof},v=AAAA", "twice"),
    "the proof without padding": (lambda proof: f"v={proof.rstrip('=')}", "Base64"),
}


def cut(proof: str) -> str:
    return b64encode(b64decode(proof)[:-1]).decode()


@pytest.mark.parametrize("attack", FINAL_MESSAGES)
def test_a_final_message_that_is_not_the_proof_is_refused(attack: str) -> None:
    scram, proof = challenged()
    message, told = FINAL_MESSAGES[attack]
    with pytest.raises(ScramError, match=told):
        scram.verify(message(proof))


def test_the_proof_for_another_login_password_user_or_binding_is_refused() -> None:
    scram = ScramClient("SCRAM-SHA-256-PLUS", "user", NONCE, BINDING)
    scram.challenge(CHALLENGE)
    final = scram.final(PASSWORD)
    right = scram.first()
    bound = f"p={BINDING.type},,".encode()
    assert right.startswith(bound.decode())
    assert final.startswith(f"c={b64encode(bound + BINDING.data).decode()},r={NONCE}x,p=")
    for first, said, password in (
        (right.replace(NONCE, "another-nonce"), final, PASSWORD),
        (right, final, "another"),
        (right.replace("user", "other"), final, PASSWORD),
        (right, final.replace("c=", "c=eSws"), PASSWORD),
    ):
        with pytest.raises(ScramError, match="wrong"):
            scram.verify(f"v={verifier(first, CHALLENGE, said, password)}")
    scram.verify(f"v={verifier(right, CHALLENGE, final)}")


def test_a_header_that_somebody_changed_on_the_way_is_refused_by_the_other_side() -> None:
    """`y` made `n`, so that the server would not notice that its offer was cut out."""
    scram = ScramClient("SCRAM-SHA-256", "user", NONCE, could_bind=True)
    server = Exchange(scram.first().replace("y,,", "n,,").encode(), {"user": PASSWORD})
    scram.challenge(server.challenge.decode())
    final = scram.final(PASSWORD)
    for message in (final, final.replace("c=eSws", "c=biws")):  # the proof covers it
        with pytest.raises(AuthenticationError, match="not-authorized"):
            server.verify(message.encode())


_names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(_names, _names, st.booleans())
def test_any_name_and_password_prove_themselves_to_the_sandbox_and_it_to_us(
    name: str, password: str, could_bind: bool
) -> None:
    scram = ScramClient("SCRAM-SHA-256", name, NONCE, could_bind=could_bind)
    server = Exchange(scram.first().encode(), {name.lower(): password})
    assert server.username == name.lower()
    # Names do not get out of their field: one `n`, one `r`, whatever is in them.
    assert scram.first().split(",", 2)[2].count(",") == 1
    scram.challenge(server.challenge.decode())
    scram.verify(server.verify(scram.final(password).encode()).decode())


def test_a_proof_is_compared_in_constant_time() -> None:
    """By `hmac.compare_digest`: read off the code, as no test can measure it on a busy machine."""
    for names in (ScramClient.verify.__code__.co_names, Exchange.verify.__code__.co_names):
        assert "compare_digest" in names
