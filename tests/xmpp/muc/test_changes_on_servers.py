"""What a participant sees of changes in the room, on real servers."""

from collections.abc import AsyncIterator
from xml.etree.ElementTree import Element

import pytest

from bridge.xmpp.model.events import OccupantChanged, RoomConfigured
from bridge.xmpp.muc import payloads
from tests.faults.scene import Eyes, Scene, configure, scene
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.servers.witness import Witness


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    async with scene(server_process, authority) as stage:
        yield stage


CAPS = "c (http://jabber.org/protocol/caps)"


def present(wilma: Witness, *extensions: str, show: str | None = None) -> None:
    """Let Wilma's presence have these elements, each in a namespace of its name."""
    presence = wilma.client.make_presence(pto=f"{wilma.room}/{wilma.nick}", pshow=show)
    for name in extensions:
        presence.xml.append(Element(f"{{urn:{name}}}{name}"))
    presence.send()


async def test_a_change_of_the_configuration_says_what_changed_from_what(stage: Scene) -> None:
    async with stage.witness() as wilma:
        await configure(wilma, moderatedroom="0")
        async with stage.participant() as eyes:
            await eyes.joined()
            await configure(wilma, moderatedroom="1", roomname="Lab")
            record = await eyes.see(lambda event: isinstance(event, RoomConfigured))
            assert isinstance(record.event, RoomConfigured)
            assert 104 in record.event.codes
            assert "moderated: true, before false" in record.event.changed
            titles = [one for one in record.event.changed if one.startswith('title: "Lab", before')]
            assert len(titles) == 1


async def test_a_change_of_what_presence_carries_is_told_and_further_ones_are_folded(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert payloads.FOLD_SECONDS == 10
    monkeypatch.setattr(payloads, "FOLD_SECONDS", 0.5)
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        for extensions in (["a"], ["a", "b"], ["a"], ["c", "b"]):
            present(wilma, *extensions)
        first, last = (CAPS, "a (urn:a)"), (CAPS, "b (urn:b)", "c (urn:c)")
        assert await changed(eyes) == (first, (CAPS,), None)
        assert await changed(eyes) == (last, first, None)
        (here,) = (one for one in eyes.status().occupants if one.nickname == "Wilma")
        assert here.payload == last
        # With a change of anything else it is told at once, and nothing of it later.
        present(wilma, "d")
        present(wilma, "e", show="away")
        away = (CAPS, "e (urn:e)")
        assert await changed(eyes) == (away, last, "away")
        present(wilma, "f", show="away")
        assert await changed(eyes) == ((CAPS, "f (urn:f)"), away, "away")


async def changed(eyes: Eyes) -> tuple[tuple[str, ...], tuple[str, ...] | None, str | None]:
    event = (await eyes.see(lambda event: isinstance(event, OccupantChanged))).event
    assert isinstance(event, OccupantChanged)
    return event.payload, event.former_payload, event.show
