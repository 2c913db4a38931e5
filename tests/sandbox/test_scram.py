import pytest

from bridge.sandbox.scram import AuthenticationError, Exchange, plain
from bridge.wire.scram import ScramClient

ACCOUNTS = {"user": "pencil"}


def proven(exchange: Exchange) -> bytes:
    client = ScramClient("SCRAM-SHA-256", "user", "abc")
    client.challenge(exchange.challenge.decode())
    return client.final("pencil").encode()


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


@pytest.mark.parametrize(
    ("message", "condition"),
    [
        (b"\0user\0wrong", "not-authorized"),
        (b"\0nobody\0", "not-authorized"),
        (b"\0user\0pencil\0", "malformed-request"),
    ],
)
def test_plain_lets_in_only_who_knows_the_password(message: bytes, condition: str) -> None:
    assert plain(b"\0USER\0pencil", ACCOUNTS) == "user"
    with pytest.raises(AuthenticationError, match=condition):
        plain(message, ACCOUNTS)
