"""Questions that cost more to answer than to ask, on real servers."""

import pytest

from bridge.xmpp.link import stanzas
from tests.faults.scene import NICKNAME, ON_PROSODY, Scene
from tests.faults.test_odd_stanzas import Writer, connections


@ON_PROSODY
@pytest.mark.parametrize(("id_", "direct"), [("x" * 220_000, False), (">" * 100_000, True)])
async def test_a_question_with_a_long_id_does_not_cut_the_stream(
    id_: str, *, direct: bool, stage: Scene
) -> None:
    async with stage.participant() as eyes:
        await eyes.joined()
        to = eyes.status().jid if direct else f"{stage.room}/{NICKNAME}"
        async with Writer(stage, "Eve") as eve:
            eve.write(f'<iq to="{to}" type="get" id="{id_}">{stanzas.xml_of(stanzas.ping())}</iq>')
            eve.write(
                f"<message to='{stage.room}' type='groupchat'><body>behind it</body></message>"
            )
            await eyes.hears("behind it")
            # What the server answers comes behind what it says to the answer to Eve.
            await eyes.membership.say("still there", 10)
            assert connections(eyes) == 1
