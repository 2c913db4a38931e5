"""A stream that ends somewhere within STARTTLS (RFC 6120, section 5.4): what is told of it."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Phase
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import (
    HONEST,
    PROCEED,
    STARTTLS,
    ScriptedServer,
    Step,
    Wire,
    stream_error,
)
from tests.servers.certificates import Authority, Certificate

SECONDS = 30.0
"""Limit for each: below the deadline of the stage, which is no way to notice an end."""


def _fin(wire: Wire) -> None:
    wire.hang_up()


def _reset(wire: Wire) -> None:
    wire.abort()


async def _first_flight(wire: Wire) -> None:
    """Send half of what answers the client's hello in TLS."""
    before = len(wire.heard)
    await wire.hello()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    assert wire.certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(wire.certificate.chain, wire.certificate.key)
    server = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(wire.heard[before:])
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    flight = outgoing.read()
    wire.send(flight[: len(flight) // 2])
    await wire.sent()


def _cut(
    *said: str | Callable[[Wire], Awaitable[None]], end: Callable[[Wire], None] = _fin
) -> Step:
    """A step that takes the `<starttls/>`, says this, and ends the connection."""

    async def step(wire: Wire) -> None:
        await wire.open(STARTTLS)
        await wire.element("starttls")
        for each in said:
            if isinstance(each, str):
                wire.send(each)
            else:
                await each(wire)
        end(wire)
        await wire.gone()

    return step


def _at_once(end: Callable[[Wire], None]) -> Step:
    async def step(wire: Wire) -> None:
        end(wire)
        await wire.gone()

    return step


HUNG_UP = "hung up before the connection was secured"
CUTS: dict[str, tuple[Step, str]] = {
    "end before proceed": (_cut(), HUNG_UP),
    "reset before proceed": (_cut(end=_reset), HUNG_UP),
    "end of stream instead of proceed": (_cut("</stream:stream>"), HUNG_UP),
    "stream error instead of proceed": (_cut(stream_error("system-shutdown")), "shut"),
    "end right after proceed": (_cut(PROCEED), HUNG_UP),
    "reset right after proceed": (_cut(PROCEED, end=_reset), HUNG_UP),
    "end of stream behind proceed": (_cut(f"{PROCEED}</stream:stream>"), HUNG_UP),
    "stream error behind proceed": (_cut(PROCEED + stream_error("system-shutdown")), "shut"),
    "nonsense behind proceed": (_cut(f"{PROCEED}<<<"), "well-formed"),
    "end after the client's hello": (_cut(PROCEED, Wire.hello), HUNG_UP),
    "reset after the client's hello": (_cut(PROCEED, Wire.hello, end=_reset), HUNG_UP),
    "end within the server's flight": (_cut(PROCEED, _first_flight), HUNG_UP),
    "reset within the server's flight": (_cut(PROCEED, _first_flight, end=_reset), HUNG_UP),
    "end right after the handshake": (_cut(PROCEED, Wire.start_tls), HUNG_UP),
    "reset right after the handshake": (_cut(PROCEED, Wire.start_tls, end=_reset), HUNG_UP),
    "end after the handshake of direct TLS": (_at_once(_fin), HUNG_UP),
    "reset after the handshake of direct TLS": (_at_once(_reset), HUNG_UP),
}
"""Where the connection ends, and part of what is told of it."""


@pytest.mark.parametrize("name", CUTS)
async def test_a_stream_that_ends_within_starttls_is_told_and_tried_again(
    name: str, certificate: Certificate, authority: Authority
) -> None:
    step, told = CUTS[name]
    script, direct = replace(HONEST, secure=step), "direct" in name
    async with (
        ScriptedServer(script, certificate=certificate, direct_tls=direct) as server,
        participant_at(server, trusted=authority.ca_file) as eyes,
    ):
        fault, changed, _ = await eyes.fault(SECONDS)
    assert changed.phase is Phase.WAITING
    assert told in fault.message
