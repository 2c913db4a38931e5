import asyncio
from dataclasses import replace

from bridge.xmpp.events import Connected, ConnectionChanged, Phase
from bridge.xmpp.journal import Record
from bridge.xmpp.participant import Participant
from tests.faults.reaching import participant_at, settings_for
from tests.faults.scripted_server import (
    HONEST,
    MUC_USER,
    NICKNAME,
    ROOM,
    ScriptedServer,
    Wire,
    cut_off_after,
    join,
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


async def test_a_fault_after_a_room_was_tried_at_once_is_told() -> None:
    async def kick(wire: Wire) -> None:
        wire.send(KICKED)
        await join(wire)
        wire.hang_up()

    async with (
        ScriptedServer(replace(HONEST, stand=kick), HONEST) as server,
        participant_at(server) as eyes,
    ):
        fault, _, _ = await eyes.fault()
        assert fault.condition == "not-allowed"
        assert eyes.participant.begin_anew(settings_for(server))
        await eyes.joined()
        fault, changed, _ = await eyes.fault()
        assert (fault.condition, changed.phase) == ("connection-reset", Phase.WAITING)
        await eyes.joined()
        assert len(server.wires) == 2


async def test_settings_that_come_as_a_session_begins_are_taken_at_once() -> None:
    def change(record: Record) -> None:
        if isinstance(record.event, Connected) and len(server.wires) == 1:
            participant.begin_anew(settings_for(server)._replace(nickname="Newcomer"))

    async with ScriptedServer(HONEST) as server, participant_at(server) as eyes:
        participant: Participant = eyes.participant
        participant.listen(change)
        await eyes.joined()
        assert eyes.status().nickname == "Newcomer"
        assert not [
            one
            for one in eyes.records
            if isinstance(one.event, ConnectionChanged) and one.event.fault is not None
        ]
