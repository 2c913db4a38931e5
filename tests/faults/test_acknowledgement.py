"""A server that manages the stream (XEP-0198), and asks after each stanza whether it has come."""

import asyncio
import re
from dataclasses import replace

from tests.faults.reaching import participant_at
from tests.faults.scene import CALM
from tests.faults.scripted_server import (
    BIND,
    HONEST,
    Script,
    ScriptedServer,
    Step,
    Wire,
    bound,
    said,
    then,
)

SM = "urn:xmpp:sm:3"
ASKING = f"<r xmlns='{SM}'/>"
JOINING = 4
"""Stanzas that come with joining: what the room can do, and the three that it greets with."""
PATIENCE_SECONDS = 5.0
"""Far less than any server has."""


async def _managed(wire: Wire) -> None:
    await wire.open(f"<bind xmlns='{BIND}'/><sm xmlns='{SM}'/>")
    request = await wire.element("iq")
    wire.send(bound(request.get("id", ""), wire.jid))
    await wire.element("enable")
    wire.send(f"<enabled xmlns='{SM}' id='session' resume='true'/>")


def _script(*stand: Step) -> Script:
    return replace(HONEST, bind=_managed, stand=then(*stand))


async def _settle(wire: Wire) -> None:
    """Let all that was sent so far be acknowledged."""
    wire.send(ASKING)
    answer = await wire.element("a")
    assert answer.get("h") == str(JOINING)


async def test_whoever_leaves_first_tells_what_came() -> None:
    gone = asyncio.Event()

    async def ask(wire: Wire) -> None:
        wire.send(said("Wilma", "last words", "m") + ASKING)
        try:
            await wire.gone()
        finally:
            gone.set()

    async with ScriptedServer(_script(_settle, ask)) as server:
        async with participant_at(server, timing=CALM) as eyes:
            await eyes.hears("last words")
            eyes.participant.leave()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await gone.wait()
        (wire,) = server.wires
        last = wire.heard[wire.heard.index(b"unavailable") :]
        assert re.findall(rb'<a [^>]*h="(\d+)"', last) == [str(JOINING + 1).encode()]
        assert last.index(b"<a ") < last.index(b"</stream:stream>")
