"""A server that lies, or wants to break us: what is told of it, and that the bridge lives on."""

from base64 import b64encode
from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Phase
from tests.faults import scripted_server as scripted
from tests.faults.lies import (
    at_features,
    instead_of_bound,
    instead_of_challenge,
    offering,
    once_joined,
)
from tests.faults.reaching import participant_at, settings_for
from tests.faults.scripted_server import HONEST, Scram, Script, ScriptedServer, Wire

LATER_MS = (14 * 60_000, 16 * 60_000)
"""Between these the bridge looks again at what somebody else has to mend."""

Lie = tuple[Script, str, str, str]
"""What the server does; the condition, and parts of the message and the hint that tell it."""


ENTITIES = "".join(f'<!ENTITY l{n} "{"".join([f"&l{n - 1};"] * 10)}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE lolz [<!ENTITY l0 "lol">{ENTITIES}]>'
"""A billion laughs: 3 GB of them, were they to be had."""
ROOT = scripted.HEADER.partition("?>")[2]
NO_RESOURCE = f"<error type='wait'><resource-constraint xmlns='{scripted.STANZA_ERRORS}'/></error>"


def odd(script: Script, told: str = "not well-formed") -> Lie:
    return script, "undefined-condition", told, "XMPP client port, not a web or component port"


def later(script: Script, told: str = "not well-formed") -> Lie:
    """What comes once XMPP was spoken at the port."""
    return script, "undefined-condition", told, "the server, or a proxy in between"


async def refuse_tls(wire: Wire) -> None:
    await wire.open(scripted.STARTTLS)
    await wire.element("starttls")
    wire.send(f"<failure xmlns='{scripted.TLS}'/></stream:stream>")
    await wire.gone()


NO_XMPP: dict[str, Lie] = {
    "a bomb of entities": odd(at_features(f"<?xml version='1.0'?>{BOMB}{ROOT}&l9;")),
    "a bomb in the room": later(once_joined(f"{BOMB}<message><body>&l9;</body></message>")),
    "a web server": odd(at_features("HTTP/1.1 400 Bad Request\r\n\r\n<html></p>")),
    "no well-formed challenge": later(instead_of_challenge("<challenge></success>")),
    "no well-formed answer to bind": later(instead_of_bound("<iq type='result'><a></b></iq>")),
    "something else than features": odd(
        at_features(f"{scripted.HEADER}<message/>"), 'an unexpected element "message"'
    ),
    "a question for a challenge": later(
        instead_of_challenge("<iq/>"), 'an unexpected element "iq"'
    ),
    "features again and again": later(
        instead_of_challenge(*["<stream:features/>" * 1000] * 100),
        'an unexpected element "features"',
    ),
    "no answer to bind but features": later(instead_of_bound("<stream:features/>"), '"features"'),
    "an error for an answer to bind": (
        instead_of_bound(f"<iq type='error' id='{{id}}'>{NO_RESOURCE}</iq>"),
        "resource-constraint",
        "cannot take another connection",
        "tries again by itself",
    ),
    "a refusal of the TLS it offered": (
        replace(HONEST, secure=refuse_tls),
        "tls-handshake-failed",
        "offers TLS and refuses to begin it",
        "the file of its certificate",
    ),
    "a hang-up in the middle of a word": (
        replace(HONEST, authenticate=scripted.cut_off_after(scripted.HEADER[:40])),
        "connection-reset",
        "hung up before the connection was secured",
        "xmpps://",
    ),
}


@pytest.mark.parametrize("lie", NO_XMPP.values(), ids=NO_XMPP)
async def test_what_is_no_xmpp_is_told_and_the_next_honest_attempt_gets_in(lie: Lie) -> None:
    script, condition, message, hint = lie
    async with ScriptedServer(script, HONEST) as server, participant_at(server) as eyes:
        fault, changed, _ = await eyes.fault()
        assert (fault.condition, changed.phase) == (condition, Phase.WAITING)
        assert message in fault.message
        assert hint in fault.hint
        assert "a proxy" not in hint or "XMPP_SERVICE" not in fault.hint
        await eyes.joined()
        assert len(server.wires) == 2


def answering(*answers: str) -> Script:
    """Each `<auth/>` and `<response/>` is met with the next of these."""

    async def step(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-256", "PLAIN"))
        for answer in answers:
            await wire.element("auth", "response")
            wire.send(answer)
        await wire.gone()

    return replace(HONEST, authenticate=step)


def untrusted(script: Script, told: str) -> Lie:
    return script, "bad-server-signature", told, "Something may be listening in between"


def scram(**lies: object) -> Script:
    return replace(HONEST, authenticate=replace(Scram(), **lies))  # type: ignore[arg-type]


LONG_STORY = answering(
    f"<failure xmlns='{scripted.SASL}'><not-authorized/>"
    f"<text>\x9b2J\u202e{'blah ' * 60_000}</text></failure>"
)
UNPROVEN: dict[str, Lie] = {
    # One of each kind of proof; tests/wire/test_scram_attacks.py has all of them.
    "ten million iterations": untrusted(scram(iterations="10000000"), "the most is 1000000"),
    "few iterations": untrusted(scram(iterations="4095"), "the least is 4096"),
    "a signature of zeros": untrusted(scram(signature=lambda _: b"v=AAAA"), "signature is wrong"),
    "a success at once": untrusted(answering(scripted.sasl("success")), "skipped its own proof"),
    "PLAIN without TLS": (
        replace(HONEST, authenticate=offering("PLAIN")),
        "invalid-mechanism",
        '(it offers "PLAIN")',
        "SCRAM-SHA-256",
    ),
    "names without end": (
        replace(HONEST, authenticate=offering(*["X" * 9000] * 50)),
        "invalid-mechanism",
        "XXX",
        "SCRAM-SHA-256",
    ),
    "another host": (
        at_features(scripted.HEADER, scripted.stream_error("see-other-host", "evil.example:5222")),
        "see-other-host",
        'It says: "evil.example:5222".',
        "not followed",
    ),
    "STARTTLS cut out": (
        replace(HONEST, secure=offering("SCRAM-SHA-256", "PLAIN")),
        "encryption-required",
        "no password goes over a bare connection",
        "XMPP_ALLOW_PLAINTEXT",
    ),
    "a refusal": (LONG_STORY, "not-authorized", '"\\u{9B}2J\\u{202E}blah', "XMPP_PASSWORD"),
}


@pytest.mark.parametrize("lie", UNPROVEN.values(), ids=UNPROVEN)
async def test_a_server_that_does_not_prove_itself_gets_no_password_and_no_second_visit(
    lie: Lie,
) -> None:
    script, condition, message, hint = lie
    async with ScriptedServer(script) as server:
        bare = condition != "encryption-required"
        settings = settings_for(server)._replace(allow_plaintext=bare)
        async with participant_at(server, settings=settings) as eyes:
            fault, changed, _ = await eyes.fault()
            assert (fault.condition, changed.phase) == (condition, Phase.FAILED)
            assert message in fault.message
            assert hint in fault.hint
            if condition == "not-authorized":
                assert changed.next_attempt_in_ms is None
            else:
                assert changed.next_attempt_in_ms is not None
                assert LATER_MS[0] < changed.next_attempt_in_ms < LATER_MS[1]
        assert len(server.wires) == 1
        proofs = {"bad-server-signature", "not-authorized"}
        assert (b"<auth" in server.heard) == (condition in proofs)
        assert_no_password(server.heard)


def assert_no_password(heard: bytes) -> None:
    plain = f"\0{scripted.USERNAME}\0{scripted.PASSWORD}".encode()
    for secret in (scripted.PASSWORD.encode(), b64encode(plain), b"PLAIN"):
        assert secret not in heard
