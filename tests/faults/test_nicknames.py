"""Whoever a real server lets into a room is seen and heard, under the nickname they have there."""

from contextlib import AsyncExitStack

from bridge.tools.link import RoomLink
from bridge.tools.query import find
from bridge.xmpp.link.from_slixmpp import prepared
from tests.faults.scene import scene
from tests.faults.test_odd_stanzas import Writer, message
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess

REFUSED = "\u0717\u289b\u06a5"
"""ejabberd lets it in. By slixmpp's tables a Braille pattern may not stand among Syriac letters."""

DISORDERED = "\u0a97\u1ea7\u0323"
"""ejabberd leaves the marks in this order; slixmpp puts them into another."""

ORDERED = "\u0a97\u1ead\u0300"
"""What slixmpp makes of that."""


async def test_a_nickname_that_slixmpp_would_prepare_otherwise_hides_nobody_and_nobody_behind_it(
    ejabberd_process: ServerProcess, authority: Authority
) -> None:
    assert prepared(f"r@s/{REFUSED}") is None
    assert prepared(f"r@s/{DISORDERED}") == f"r@s/{ORDERED}"
    nicknames = [REFUSED, DISORDERED, ORDERED]
    async with (
        scene(ejabberd_process, authority) as stage,
        stage.participant() as eyes,
        AsyncExitStack() as leaving,
    ):
        await eyes.joined()
        for number, nickname in enumerate(nicknames):
            writer = await leaving.enter_async_context(Writer(stage, nickname))
            writer.write(message(stage.room, "").replace(">odd<", f">{number}<"))
            await eyes.hears(str(number))
        assert [each.sender for each in eyes.messages()] == nicknames
        assert {*nicknames} < {each.nickname for each in eyes.status().occupants}
        for nickname in nicknames:
            target = find(RoomLink(eyes.participant, None), nickname)
            assert target.address == f"{stage.room}/{nickname}"
