"""A server that lies, or wants to break us: what the status says, and that the bridge lives on."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.bridge_process import COMMAND, BridgeProcess
from tests.faults import scripted_server as scripted
from tests.faults.lies import (
    at_features,
    instead_of_bound,
    instead_of_challenge,
    offering,
    once_joined,
)
from tests.faults.scripted_server import HONEST, Scram, Script, ScriptedServer, Step, Wire

ADDRESS_SPACE_KB = 2_000_000
"""What a bridge under attack may map at most: this machine is to outlive a failing test."""

LATER_SECONDS = (14 * 60.0, 16 * 60.0)
"""Between these the bridge looks again at what somebody else has to mend."""


def bounded_bridge(home: Path, server: ScriptedServer, **overrides: str | None) -> BridgeProcess:
    """The real command, with a bound on what it may map."""
    limited = ("/bin/sh", "-c", f'ulimit -v {ADDRESS_SPACE_KB}; exec "$@"', "sh", COMMAND)
    return BridgeProcess(home, server.environment(**overrides), command=limited)


async def echoes(bridge: BridgeProcess) -> None:
    assert (await bridge.bare("echo", message="there?"))["content"][0]["text"] == "Echo: there?"


def seconds_until_next(status: dict[str, Any]) -> float:
    at = datetime.fromisoformat(status["lastError"]["at"])
    return (datetime.fromisoformat(status["nextAttemptAt"]) - at).total_seconds()


@dataclass(frozen=True)
class Lie:
    """What the server does, and what the status says of it."""

    name: str
    script: Script
    condition: str
    message: str
    """Part of what happened, as told."""
    hint: str
    """Part of what to do about it."""
    phase: str = "waiting"
    """`waiting`: the next attempt follows at once; `failed`: not for a quarter of an hour."""


def odd(name: str, script: Script, told: str = "not well-formed") -> Lie:
    return Lie(
        name, script, "undefined-condition", told, "XMPP client port, not a web or component port"
    )


ENTITIES = "".join(f'<!ENTITY l{n} "{"".join([f"&l{n - 1};"] * 10)}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE lolz [<!ENTITY l0 "lol">{ENTITIES}]>'
"""A billion laughs: 3 GB of them, were they to be had."""
ROOT = scripted.HEADER.partition("?>")[2]

BROKEN_XML = [
    odd("a web server", at_features("HTTP/1.1 400 Bad Request\r\n\r\n<html></p>")),
    odd("the challenge", instead_of_challenge("<challenge></success>")),
    odd("the answer to bind", instead_of_bound("<iq type='result'><a></b></iq>")),
]

DECLARATIONS = [
    odd("a bomb", at_features(f"<?xml version='1.0'?>{BOMB}{ROOT}&l9;")),
    odd("a bomb later on", once_joined(f"{BOMB}<message><body>&l9;</body></message>")),
]

NO_RESOURCE = f"<error type='wait'><resource-constraint xmlns='{scripted.STANZA_ERRORS}'/></error>"

WRONG_ANSWERS = [
    odd(
        "something else than features",
        at_features(f"{scripted.HEADER}<message/>"),
        'an unexpected element "message"',
    ),
    odd("a question for a challenge", instead_of_challenge("<iq/>"), 'an unexpected element "iq"'),
    odd(
        "features again and again",
        instead_of_challenge(*["<stream:features/>" * 1000] * 100),
        'an unexpected element "features"',
    ),
    odd("no answer to bind but features", instead_of_bound("<stream:features/>"), '"features"'),
    Lie(
        "an error for an answer to bind",
        instead_of_bound(f"<iq type='error' id='{{id}}'>{NO_RESOURCE}</iq>"),
        "resource-constraint",
        "cannot take another connection",
        "tries again by itself",
    ),
    Lie(
        "a refusal of the TLS it offered",
        replace(HONEST, secure=lambda wire: refuse_tls(wire)),
        "tls-handshake-failed",
        "offers TLS and refuses to begin it",
        "the file of its certificate",
    ),
    Lie(
        "a hang-up in the middle of a word",
        replace(HONEST, authenticate=scripted.cut_off_after(scripted.HEADER[:40])),
        "connection-reset",
        "hung up before the connection was secured",
        "xmpps://",
    ),
]


async def refuse_tls(wire: Wire) -> None:
    await wire.open(scripted.STARTTLS)
    await wire.element("starttls")
    wire.send(f"<failure xmlns='{scripted.TLS}'/></stream:stream>")
    await wire.gone()


@pytest.mark.parametrize(
    "lies",
    [BROKEN_XML, DECLARATIONS, WRONG_ANSWERS],
    ids=["broken XML", "declarations", "wrong answers"],
)
async def test_what_is_no_xmpp_is_told_and_the_next_honest_attempt_gets_in(
    lies: Sequence[Lie], tmp_path: Path
) -> None:
    await each(lies, tmp_path, recovers)


async def each(
    lies: Sequence[Lie], home: Path, meet: Callable[[Lie, Path], Coroutine[None, None, None]]
) -> None:
    """Meet all lies at once, since each waits for its next attempt."""

    async def one(lie: Lie, home: Path) -> None:
        try:
            await meet(lie, home)
        except BaseException as error:  # however it fails, one wants to know at which lie
            error.add_note(f"the lie was: {lie.name}")
            raise

    async with asyncio.TaskGroup() as group:
        for number, lie in enumerate(lies):
            group.create_task(one(lie, home / str(number)), name=lie.name)


async def recovers(lie: Lie, home: Path) -> None:
    async with (
        ScriptedServer(lie.script, HONEST) as server,
        bounded_bridge(home, server) as bridge,
    ):
        # The error stands while the phases of the next attempt pass by.
        status = await bridge.until(lambda it: it.get("lastError"))
        tell_tale(lie, status)
        await echoes(bridge)
        status = await bridge.joined()
        assert len(server.wires) == 2
        assert "attempt" not in status


def tell_tale(lie: Lie, status: dict[str, Any]) -> None:
    error = status["lastError"]
    assert error["condition"] == lie.condition
    assert lie.message in error["message"]
    assert lie.hint in error["hint"]


def untrusted(name: str, scram: Scram, told: str) -> Lie:
    return Lie(
        name,
        replace(HONEST, authenticate=scram),
        "bad-server-signature",
        told,
        "Something may be listening in between",
        phase="failed",
    )


def unsafe(name: str, authenticate: Step, told: str) -> Lie:
    return Lie(
        name,
        replace(HONEST, authenticate=authenticate),
        "invalid-mechanism",
        told,
        "SCRAM-SHA-256",
        phase="failed",
    )


def answering(*answers: str) -> Script:
    """Each `<auth/>` and `<response/>` is met with the next of these."""

    async def step(wire: Wire) -> None:
        await wire.open(scripted.mechanisms("SCRAM-SHA-256", "PLAIN"))
        for answer in answers:
            await wire.element("auth", "response")
            wire.send(answer)
        await wire.gone()

    return replace(HONEST, authenticate=step)


def unproven(name: str, script: Script, told: str) -> Lie:
    return replace(untrusted(name, Scram(), told), script=script)


SCRAM_LIES = [
    untrusted("ten million iterations", Scram(iterations="10000000"), "the most is 1000000"),
    untrusted("few iterations", Scram(iterations="4095"), "the least is 4096"),
    untrusted("a signature of zeros", Scram(signature=lambda _: b"v=AAAA"), "signature is wrong"),
    unproven("a success at once", answering(scripted.sasl("success")), "skipped its own proof"),
]
"""One of each kind; `tests/wire/test_scram_attacks.py` has all of them."""

UNSAFE_OFFERS = [
    unsafe("PLAIN without TLS", offering("PLAIN"), '(it offers "PLAIN")'),
    unsafe("names without end", offering(*["X" * 9000] * 50), "XXX"),
    Lie(
        "another host",
        at_features(scripted.HEADER, scripted.stream_error("see-other-host", "evil.example:5222")),
        "see-other-host",
        'It says: "evil.example:5222".',
        "not followed",
        phase="failed",
    ),
    Lie(
        "STARTTLS cut out",
        replace(HONEST, secure=offering("SCRAM-SHA-256", "PLAIN")),
        "encryption-required",
        "no password goes over a bare connection",
        "XMPP_ALLOW_PLAINTEXT",
        phase="failed",
    ),
    Lie(
        "a refusal with a long story",
        answering(
            f"<failure xmlns='{scripted.SASL}'><not-authorized/>"
            f"<text>\x9b2J\u202e{'blah ' * 60_000}</text></failure>"
        ),
        "not-authorized",
        '"\\u{9B}2J\\u{202E}blah',
        "XMPP_PASSWORD",
        phase="failed",
    ),
]


@pytest.mark.parametrize("lies", [SCRAM_LIES, UNSAFE_OFFERS], ids=["proofs", "offers"])
async def test_a_server_that_does_not_prove_itself_gets_no_password_and_no_second_visit(
    lies: Sequence[Lie], tmp_path: Path
) -> None:
    await each(lies, tmp_path, stays_away)


async def stays_away(lie: Lie, home: Path) -> None:
    async with ScriptedServer(lie.script) as server:
        secured = None if lie.condition == "encryption-required" else "1"
        async with bounded_bridge(home, server, XMPP_ALLOW_PLAINTEXT=secured) as bridge:
            status = await bridge.until(lambda it: it["phase"] == lie.phase)
            tell_tale(lie, status)
            if lie.condition == "not-authorized":
                assert "nextAttemptAt" not in status
            else:
                assert LATER_SECONDS[0] < seconds_until_next(status) < LATER_SECONDS[1]
            await echoes(bridge)
            assert len(server.wires) == 1
        assert (b"<auth" in server.heard) == (lie not in UNSAFE_OFFERS[:-1])
        assert_no_password(server.heard)
        assert len(bridge.stderr) < 10_000


def assert_no_password(heard: bytes) -> None:
    plain = f"\0{scripted.USERNAME}\0{scripted.PASSWORD}".encode()
    for secret in (scripted.PASSWORD.encode(), b64encode(plain), b"PLAIN"):
        assert secret not in heard


async def test_as_many_iterations_as_are_allowed_let_us_in(tmp_path: Path) -> None:
    script = replace(HONEST, authenticate=Scram(iterations="1000000"))
    async with ScriptedServer(script) as server, bounded_bridge(tmp_path, server) as bridge:
        await bridge.joined()
        await echoes(bridge)
        assert len(server.wires) == 1
