"""What a participant sees of changes in the room, on real servers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.wire.names import DATA_FORMS
from bridge.xmpp.model.events import OccupantChanged, RoomConfigured
from tests.capture.logs import IN, ROOM, found, says
from tests.faults.scene import Scene, configure, scene
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.servers.witness import Witness


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    async with scene(server_process, authority) as stage:
        yield stage


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
            titles = [
                each for each in record.event.changed if each.startswith('title: "Lab", before')
            ]
            assert len(titles) == 1


COMMANDS = "http://jabber.org/protocol/commands"
HAT = {"jid": "bot@localhost", "hat_title": "Speaker", "hat_uri": "urn:example:speaker"}


async def command(stage: Scene, wilma: Any, **fields: str) -> Any:
    """Answer the form of the room's command that gives a hat, or ask for the form."""
    iq = wilma.client.make_iq_set(ito=stage.room)
    node = {"node": "http://prosody.im/protocol/hats#add"}
    action = {"action": "complete" if fields else "execute"}
    payload = Element(f"{{{COMMANDS}}}command", node | action)
    iq.append(payload)
    if fields:
        payload.set("sessionid", fields.pop("sessionid"))
        form = SubElement(payload, f"{{{DATA_FORMS}}}x", {"type": "submit"})
        for name, value in fields.items():
            field = SubElement(form, f"{{{DATA_FORMS}}}field", {"var": name})
            SubElement(field, f"{{{DATA_FORMS}}}value").text = value
    return (await iq.send()).xml.find(f"{{{COMMANDS}}}command")


@pytest.mark.parametrize("server_process", ["ejabberd"], indirect=True)
async def test_a_hat_that_somebody_is_given_is_named(stage: Scene) -> None:
    async with stage.witness() as wilma, stage.participant() as eyes:
        await eyes.joined()
        form = await wilma.muc.get_room_config(stage.room)
        form.set_values({"enable_hats": "1"})
        await wilma.muc.set_room_config(stage.room, form)
        asked = await command(stage, wilma)
        await command(stage, wilma, sessionid=asked.get("sessionid"), **HAT)
        record = await eyes.see(lambda event: isinstance(event, OccupantChanged))
        assert isinstance(record.event, OccupantChanged)
        assert "hat: Speaker" in record.event.payload
        (ours,) = (each for each in eyes.status().occupants if each.own)
        assert "hat: Speaker" in ours.payload


async def test_a_private_message_against_the_rooms_rule_is_told_as_that(stage: Scene) -> None:
    server = stage.server
    async with (
        stage.witness() as wilma,
        Witness(server, server.robot, stage.room, "Robin") as robin,
    ):
        form = await wilma.muc.get_room_config(stage.room)
        # Prosody 13 and ejabberd 24 have the option of XEP-0045, ejabberd 23 its own.
        rules = {
            "muc#roomconfig_allowpm": "none",
            "allow_private_messages": "0",
        }
        has = [name for name in rules if name in form.get_fields()]
        if server.name == "prosody" and server.version < (13,):
            assert has == []
            return
        form.set_values({has[0]: rules[has[0]]})
        await wilma.muc.set_room_config(stage.room, form)
        back: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        robin.client.add_event_handler("message_error", back.set_result)
        message = robin.client.make_message(f"{stage.room}/Wilma", "psst", mtype="chat")
        message["id"] = "m1"
        message.send()
        bounced = await asyncio.wait_for(back, 10)
        log = [*IN, says("psst", f"{ROOM}/Wilma", "chat"), f"<<< {bounced}"]
        (finding,) = found(*(line.replace(stage.room, ROOM) for line in log))
        assert finding.name == "refused"
        assert "muc#roomconfig_allowpm" in finding.hint
