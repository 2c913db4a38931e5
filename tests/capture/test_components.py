"""Components (XEP-0114): the secret, the addresses that they speak for, and what ends them."""

import pytest

from tests.capture.logs import ROOM, USER, error, found, stream_error

DOMAIN = "irc.example.org"
XMLNS = "xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams'"
OPEN = [
    f">>> <stream:stream {XMLNS} to='{DOMAIN}'>",
    f"<<< <stream:stream {XMLNS} from='{DOMAIN}' id='1'>",
]
HANDSHAKE = ">>> <handshake xmlns='jabber:component:accept'>c2VjcmV0</handshake>"
ACCEPTED = [*OPEN, HANDSHAKE, "<<< <handshake xmlns='jabber:component:accept'/>"]
MUC = "<x xmlns='http://jabber.org/protocol/muc'/>"


def asks(name: str) -> str:
    return f">>> <presence from='{name}@{DOMAIN}' to='{ROOM}/{name}'>{MUC}</presence>"


def comes(name: str) -> str:
    seat = "<item affiliation='none' role='participant'/><status code='110'/>"
    extension = f"<x xmlns='{USER}'>{seat}</x>"
    return f"<<< <presence from='{ROOM}/{name}' to='{name}@{DOMAIN}'>{extension}</presence>"


def goes(name: str) -> str:
    seat = "<item affiliation='none' role='none'/><status code='307'/><status code='110'/>"
    who = f"from='{ROOM}/{name}' to='{name}@{DOMAIN}' type='unavailable'"
    return f"<<< <presence {who}><x xmlns='{USER}'>{seat}</x></presence>"


def refused(name: str, condition: str = "conflict") -> str:
    who = f"from='{ROOM}/{name}' to='{name}@{DOMAIN}' type='error'"
    return f"<<< <presence {who}>{error(condition)}</presence>"


def says(name: str, body: str = "hi") -> str:
    to = f"from='{name}@{DOMAIN}' to='{ROOM}' type='groupchat'"
    return f">>> <message {to}><body>{body}</body></message>"


NAMED = {
    "the wrong secret": ([*OPEN, HANDSHAKE, stream_error("not-authorized")], "login", "handshake"),
    "the wrong secret, in an excerpt": (
        [HANDSHAKE, stream_error("not-authorized")],
        "login",
        "hand",
    ),
    "the conflict of a puppet": (
        [*ACCEPTED, asks("ann"), refused("ann")],
        "join",
        '"ann" is taken',
    ),
    "the conflict of a puppet beside another": (
        [*ACCEPTED, asks("ann"), asks("ben"), comes("ann"), refused("ben"), says("ann")],
        "join",
        '"ben" is taken',
    ),
    "a puppet that speaks though it was refused": (
        [*ACCEPTED, asks("ann"), comes("ann"), asks("ben"), refused("ben"), says("ben")],
        "join",
        "as if it were inside",
    ),
    "an address of another": (
        [*ACCEPTED, says("a"), stream_error("invalid-from")],
        "ended",
        "from",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_what_is_wrong_with_a_component_is_named(case: str) -> None:
    log, rule, words = NAMED[case]
    findings = found(*log)
    assert any(words in each.message for each in findings if each.name == rule), findings


PUPPETS = [*ACCEPTED, *(asks(name) for name in ("ann", "ben")), comes("ben"), comes("ann")]
FINE = {
    "puppets in one room": [*PUPPETS, says("ann"), says("ben")],
    "a puppet refused, and another goes on": [*PUPPETS, asks("eve"), refused("eve"), says("ann")],
    "a puppet kicked, and another goes on": [*PUPPETS, goes("ann"), says("ben")],
    "more puppets than are followed": [
        *ACCEPTED,
        *(line for n in range(99) for line in (asks(f"p{n}"), comes(f"p{n}"))),
        *(says(f"p{n}") for n in range(99)),
    ],
}


def test_who_speaks_for_another_domain_is_not_said_to_lack_a_join() -> None:
    strange = says("ann").replace(f"ann@{DOMAIN}", f"ann@x.{DOMAIN}")
    assert [each.name for each in found(*ACCEPTED, strange, stream_error("invalid-from"))] == [
        "ended"
    ]


@pytest.mark.parametrize("case", FINE)
def test_what_happens_to_a_puppet_accuses_no_other(case: str) -> None:
    findings = [each.message for each in found(*FINE[case]) if each.severity == "error"]
    assert [each for each in findings if '"eve" is taken' not in each] == []
