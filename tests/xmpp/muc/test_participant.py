import asyncio
from dataclasses import replace

import pytest

from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link.stanzas import groupchat_message
from bridge.xmpp.model.events import Connected
from bridge.xmpp.model.journal import Record
from tests.faults.reaching import participant_at, settings_for
from tests.faults.scripted_server import (
    HONEST,
    MUC_USER,
    NICKNAME,
    ROOM,
    ScriptedServer,
    Wire,
    cut_off_after,
    mechanisms,
)

KICKED = (
    f"<presence from='{ROOM}/{NICKNAME}' type='unavailable'><x xmlns='{MUC_USER}'>"
    "<item affiliation='none' role='none'/><status code='110'/><status code='307'/>"
    "</x></presence>"
)


async def test_a_goodbye_is_said_only_to_a_server_that_we_are_logged_in_to() -> None:
    """Else a goodbye of the session that was cut would go out before TLS."""
    gone = asyncio.Event()

    async def be_silent(wire: Wire) -> None:
        await wire.open(mechanisms("SCRAM-SHA-256"))
        await wire.element("auth")
        eyes.participant.leave()
        try:
            await wire.gone()
        finally:
            gone.set()

    scripts = replace(HONEST, stand=cut_off_after()), replace(HONEST, authenticate=be_silent)
    async with ScriptedServer(*scripts) as server, participant_at(server) as eyes:
        await gone.wait()
    assert b"<auth" in server.wires[1].heard
    assert b"<presence" not in server.wires[1].heard


async def test_settings_that_come_as_a_session_begins_are_taken_at_once() -> None:
    def change(record: Record) -> None:
        if isinstance(record.event, Connected) and len(server.wires) == 1:
            eyes.participant.begin_anew(settings_for(server)._replace(nickname="Newcomer"))

    async with ScriptedServer(HONEST) as server, participant_at(server) as eyes:
        eyes.participant.listen(change)
        await eyes.joined()
        assert eyes.status().nickname == "Newcomer"
        assert eyes.status().last_error is None


async def test_there_is_a_connection_to_ask_on_while_a_session_stands_in_the_room_or_not() -> None:
    async def log_in(wire: Wire) -> None:
        with pytest.raises(NotInRoomError):
            _ = eyes.participant.connection
        await HONEST.authenticate(wire)

    async def kick(wire: Wire) -> None:
        wire.send(KICKED)
        await wire.element("message")
        wire.abort()

    script = replace(HONEST, authenticate=log_in, stand=kick)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await eyes.fault()
        participant = eyes.participant
        assert not participant.status().connected
        assert not participant.connection.ended.done()
        with pytest.raises(NotInRoomError):
            _ = participant.memberships[0].connection
        participant.connection.send(groupchat_message(ROOM, "the end", "1"))
        await eyes.fault()
        with pytest.raises(NotInRoomError):
            _ = participant.connection
