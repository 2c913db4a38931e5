import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest

from bridge.sandbox.scram import AuthenticationError, Exchange

ACCOUNTS = {"user": "pencil", "a,b=c": "pencil"}


def proven(exchange: Exchange) -> bytes:
    """What a client has to answer, written apart from the server's side."""
    nonce, salt, rounds = (part.split(b"=", 1)[1] for part in exchange.challenge.split(b","))
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", b64decode(salt), int(rounds))
    key = hmac.digest(salted, b"Client Key", "sha256")
    unproven = b"c=%b,r=%b" % (b64encode(b"n,,"), nonce)
    signed = b",".join((b"n=user,r=abc", exchange.challenge, unproven))
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return unproven + b",p=" + b64encode(proof)


@pytest.mark.parametrize(
    ("first", "condition"),
    [
        (b"n,,n=nobody,r=abc", "not-authorized"),
        (b"n,,n=\xff,r=abc", "not-authorized"),
        (b"p=tls-unique,,n=user,r=abc", "malformed-request"),
        (b"n,,m=ext,n=user,r=abc", "malformed-request"),
        (b"n,,n=user,r=", "malformed-request"),
        (b"", "malformed-request"),
    ],
)
def test_a_first_message_that_cannot_lead_anywhere_is_refused(first: bytes, condition: str) -> None:
    with pytest.raises(AuthenticationError) as refusal:
        Exchange(first, ACCOUNTS)
    assert str(refusal.value) == condition


@pytest.mark.parametrize(
    ("pattern", "replacement", "condition"),
    [
        (b",p=", b"x,p=", "not-authorized"),
        (b"c=biws", b"c=eSws", "not-authorized"),
        (b",p=", b",p=AAAA", "not-authorized"),
        (b",p=", b",p=?", "incorrect-encoding"),
        (b",p=", b",q=", "malformed-request"),
        (b"c=", b"d=", "malformed-request"),
    ],
)
def test_a_final_message_that_proves_nothing_is_refused(
    pattern: bytes, replacement: bytes, condition: str
) -> None:
    exchange = Exchange(b"n,,n=user,r=abc", ACCOUNTS)
    with pytest.raises(AuthenticationError) as refusal:
        exchange.verify(proven(exchange).replace(pattern, replacement))
    assert str(refusal.value) == condition


def test_a_sound_proof_of_an_earlier_exchange_is_refused() -> None:
    earlier = Exchange(b"n,,n=user,r=abc", ACCOUNTS)
    with pytest.raises(AuthenticationError):
        Exchange(b"n,,n=user,r=abc", ACCOUNTS).verify(proven(earlier))
