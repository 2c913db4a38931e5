"""A stanza that a server makes longer than it was costs itself alone."""

import pytest

from bridge.xmpp.link import stanzas
from tests.faults.scene import ON_PROSODY, Scene
from tests.faults.test_odd_stanzas import Writer, connections, damaged, message

SECONDS = 60.0
"""Limit for a stanza to be relayed: Prosody takes seconds for 5 MB on a busy machine."""

NAMESPACE = "u" * 1_000
"""The servers write it again with each of the elements in it, each of which was six bytes long, and
Prosody with each attribute too."""

LONG = "a namespace in it has more than 256 bytes"
CUT = "a tag in it has more than 1,048,576 bytes"
ATTRIBUTES = " ".join(f"p:a{number}=''" for number in range(5_000))

GROWN = {
    "5 MB of elements": (f"<x xmlns:p='{NAMESPACE}'>{'<p:a/>' * 5_000}</x>", LONG, LONG),
    "a tag of 1 MB, by quotes": ('<x a="%s"/>' % ("'" * 200_000), CUT, CUT),
    "a tag of 5 MB, by attributes": (f"<x xmlns:p='{NAMESPACE}' {ATTRIBUTES}/>", CUT, LONG),
}
"""What servers make longer, and what of it Prosody and ejabberd make too long to be read. ejabberd
writes attributes as they came."""


@pytest.mark.parametrize(("grown", "by_prosody", "by_ejabberd"), GROWN.values(), ids=GROWN)
async def test_a_stanza_that_the_server_makes_longer_does_not_cut_the_stream(
    grown: str, by_prosody: str, by_ejabberd: str, stage: Scene
) -> None:
    reason = by_prosody if stage.server.name == "prosody" else by_ejabberd
    async with stage.participant() as eyes:
        await eyes.joined()
        async with Writer(stage, "Eve") as eve:
            eve.write(message(stage.room, grown))
            eve.write(message(stage.room, "").replace(">odd<", ">still there<"))
            await eyes.hears("still there", SECONDS)
            assert connections(eyes) == 1
            assert {(each.sender, each.reason) for each in damaged(eyes)} == {("Eve", reason)}


@ON_PROSODY
async def test_nobody_hides_by_presence_that_the_server_makes_longer(stage: Scene) -> None:
    def here() -> bool:
        return "Eve" in {each.nickname for each in eyes.status().occupants}

    async def looked() -> None:
        plain = f"plain {len(eyes.messages())}"
        betty.write(message(stage.room, "").replace(">odd<", f">{plain}<"))
        await eyes.hears(plain, SECONDS)

    grown, *_ = GROWN["5 MB of elements"]
    muc = "<x xmlns='http://jabber.org/protocol/muc'/>"
    async with stage.participant() as eyes:
        await eyes.joined()
        async with Writer(stage, "Betty") as betty, Writer(stage, "Eve", enters=False) as eve:
            eve.write(f"<presence to='{stage.room}/Eve'>{muc}{grown}</presence>")
            await eve.request("get", f"{stage.room}/Eve", stanzas.ping())
            await looked()
            assert here()
            eve.write(f"<presence to='{stage.room}/Eve' type='unavailable'>{grown}</presence>")
            await eve.request("get", stage.server.domain, stanzas.ping())
            await looked()
            assert not here()
