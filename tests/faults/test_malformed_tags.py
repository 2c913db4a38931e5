"""A server that writes what is no tag: it costs a stanza at most, and the room is heard on."""

from dataclasses import replace

import pytest

from bridge.xmpp.model.events import Connected, StanzaDamaged
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import HONEST, ROOM, ScriptedServer, Wire

MALFORMED = "a tag in it is not well-formed"
REFUSED = "its XML is refused by the parser: not well-formed (invalid token)"
EVE = scripted.said("Eve", "lost", content="{}")
ODD = {
    "nothing between": ("<>", "", MALFORMED),
    "a stray slash between": ("<x / >", "", MALFORMED),
    "the end of nothing between": ("</>", "", MALFORMED),
    "a number between": ("<1>", "", MALFORMED),
    "a bracket in an attribute between": ("<x a='<'/>", "", MALFORMED),
    "nothing inside": (EVE.format("<>"), "Eve", MALFORMED),
    "a stray slash inside": (EVE.format("<x / >"), "Eve", MALFORMED),
    "a bracket in an attribute inside": (EVE.format("<x a='<'/>"), "Eve", MALFORMED),
    "a bracket in text": (EVE.format("I <3 you"), "Eve", MALFORMED),
    "no value inside": (EVE.format("<x a/>"), "Eve", REFUSED),
    "a bracket in the sender": (f"<message from='{ROOM}/a<b'><body/></message>", "a<b", MALFORMED),
    "a bracket in another's presence": (f"<presence a='<' from='{ROOM}/Eve'/>", "Eve", MALFORMED),
}
"""What the server writes; who the lost stanza is known to be of, and why it is lost."""


@pytest.mark.parametrize(("odd", "sender", "reason"), ODD.values(), ids=ODD)
async def test_a_malformed_tag_costs_its_stanza_and_is_told(
    odd: str, sender: str, reason: str
) -> None:
    script = replace(HONEST, stand=scripted.saying(odd, scripted.said("Eve", "heard")))
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.hears("heard")
        lost = [each for each in eyes.records if isinstance(each.event, StanzaDamaged)]
        assert [each.event for each in lost] == [
            StanzaDamaged(f"{ROOM}/{sender}" if sender else "", sender, reason)
        ]
        assert [each.room for each in lost] == [ROOM if sender else ""]
        assert all(each.stanza for each in lost)
        assert sum(isinstance(each.event, Connected) for each in eyes.records) == 1


async def test_a_quote_without_end_ends_the_stream_at_once_and_forges_nothing() -> None:
    inside = EVE.format("<x a='") + scripted.said("Boss", "forged")

    async def stand(wire: Wire) -> None:
        wire.send(inside)
        await wire.gone()

    again = replace(HONEST, stand=scripted.saying(scripted.said("Eve", "heard")))
    cut = replace(HONEST, stand=stand)
    async with ScriptedServer(cut, again) as server, participant_at(server) as eyes:
        fault, _, _ = await eyes.fault()
        assert fault.condition == "undefined-condition"
        assert "not well-formed" in fault.message
        await eyes.hears("heard")
        assert "forged" not in {each.body for each in eyes.messages()}
