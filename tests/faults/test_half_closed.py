"""A server that says that nothing more comes, and leaves what we say unread."""

import asyncio
from dataclasses import replace

from bridge.xmpp.link.stream import MAX_UNSENT_BYTES
from bridge.xmpp.model.faults import NotReflectedError, NotSentError
from tests.faults.reaching import participant_at
from tests.faults.scene import CALM, SECONDS, Eyes
from tests.faults.scripted_server import DOMAIN, HONEST, ScriptedServer, Wire

QUESTIONS = "".join(
    f"<iq type='get' from='{DOMAIN}' id='{number:05d}{'x' * 19_000}'>"
    "<ping xmlns='urn:xmpp:ping'/></iq>"
    for number in range(600)
)
"""Whose answers are more than the system takes from us for a server that does not read."""


async def test_whoever_hangs_up_with_much_unread_is_left_as_soon_as_something_is_to_be_sent() -> (
    None
):
    assert len(QUESTIONS) < MAX_UNSENT_BYTES

    async def stand(wire: Wire) -> None:
        wire.send(QUESTIONS)
        await wire.sent()
        wire.shut_down()
        await asyncio.Event().wait()

    async with (
        ScriptedServer(replace(HONEST, stand=stand), HONEST) as server,
        participant_at(server, timing=CALM) as eyes,
    ):
        await eyes.joined()
        async with asyncio.timeout(SECONDS):
            await cannot_send(eyes)
        await eyes.joined()
        await eyes.membership.say("somebody hears it", 30)


async def cannot_send(eyes: Eyes) -> None:
    """Return once nothing can be sent any more."""
    while True:
        try:
            await eyes.membership.say("nobody hears it", 0.2)
        except NotReflectedError:
            continue
        except NotSentError:
            return
