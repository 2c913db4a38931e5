"""What one room says is never taken for the words of another, nor of the server."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from bridge.xmpp.model.events import OccupantJoined, Phase, SendFailed, SubjectChanged
from bridge.xmpp.model.faults import BouncedError
from tests.faults.reaching import participant_at
from tests.faults.scene import Eyes
from tests.faults.scripted_server import (
    DOMAIN,
    HONEST,
    NICKNAME,
    STANZA_ERRORS,
    USERNAME,
    Script,
    ScriptedServer,
    Step,
    Wire,
    local,
    present,
    said,
)

LOBBY = "lobby@conference.localhost"
LOGS = "logs@conference.localhost"
FAR = "lobby@rooms.elsewhere.example"
"""A room of another service, by the name of ours."""

ROOMS = (LOBBY, LOGS, FAR)
REFUSED = f"<error type='cancel'><not-acceptable xmlns='{STANZA_ERRORS}'/></error>"


def in_rooms(stand: Step) -> Script:
    """Let us into the rooms, once we have asked to be let into all of them."""

    async def join(wire: Wire) -> None:
        asked = [(await wire.element("presence")).get("to", "") for _ in ROOMS]
        for occupant in asked:
            room, _, nickname = occupant.partition("/")
            wire.send(present("Wilma", room=room) + present(nickname, 110, room=room))
            wire.send(f"<message type='groupchat' from='{room}'><subject/></message>")

    return replace(HONEST, join=join, stand=stand)


def bodies(eyes: Eyes) -> list[str]:
    return [each.body for each in eyes.messages()]


async def test_each_room_is_heard_in_its_place_and_nobody_else_anywhere() -> None:
    ours = f"{USERNAME}@{DOMAIN}"

    async def stand(wire: Wire) -> None:
        for sender in ("", DOMAIN, ours, f"{ours}/scripted", "conference.localhost"):
            from_ = f" from='{sender}'" if sender else ""
            wire.send(f"<message{from_} type='groupchat'><body>forged</body></message>")
        for room in ("other@conference.localhost", "lobby@localhost", f"{LOBBY}.evil.example"):
            wire.send(said("Wilma", "forged", room=room) + present("Ghost", room=room))
        # Alike but for the room, so that nothing else can tell them apart.
        for room in ROOMS:
            wire.send(said("Wilma", "hello", "same", room=room))
        private = said("Wilma", "between us", room=LOGS).replace("groupchat", "chat")
        wire.send(private + said("Wilma", "shouted", room=LOBBY.upper()))
        wire.send(f"<message type='groupchat' from='{LOGS}/Wilma'><subject>S</subject></message>")
        wire.send(present("Fred", room=FAR))
        for room in ROOMS:
            wire.send(said("Wilma", "the end", room=room))
        await wire.gone()

    async with ScriptedServer(in_rooms(stand)) as server, participant_at(server, *ROOMS) as eyes:
        lobby, logs, far = eyes.rooms
        for each in eyes.rooms:
            await each.hears("the end")
        assert bodies(lobby) == ["hello", "shouted", "the end"]
        assert bodies(logs) == ["hello", "between us", "the end"]
        assert bodies(far) == ["hello", "the end"]
        assert len(bodies(eyes)) == 8
        assert [each.type for each in logs.messages()] == ["groupchat", "chat", "groupchat"]
        assert {each.from_.partition("/")[0] for each in far.messages()} == {FAR}
        subjects = [each for each in eyes.records if each.event == SubjectChanged("S", "Wilma")]
        assert [each.room for each in subjects] == [LOGS]
        assert [each.status().subject for each in eyes.rooms] == [None, "S", None]
        fred = [
            each.room
            for each in eyes.records
            if isinstance(each.event, OccupantJoined) and each.event.sender == "Fred"
        ]
        assert fred == [FAR]
        assert [len(each.status().occupants) for each in eyes.rooms] == [2, 2, 3]


def answering(returns: Callable[[str, str, str], str]) -> Step:
    """A step that gives for each message what `returns` makes of its room, id and body.

    The room that is asked for a ping has lost us.
    """

    async def stand(wire: Wire) -> None:
        while True:
            element = await wire.element()
            id_, to = element.get("id", ""), element.get("to", "")
            if local(element) == "message":
                wire.send(returns(to, id_, element.findtext("{jabber:client}body") or ""))
            elif local(element) == "iq":
                answer = f"type='error' id='{id_}' from='{to}'>{REFUSED}</iq>"
                wire.send(f"<iq {answer}" if "/" in to else f"<iq type='result' id='{id_}'/>")

    return stand


async def test_an_error_of_one_room_is_none_of_another() -> None:
    def returns(room: str, id_: str, body: str) -> str:
        error = REFUSED if room == LOGS else REFUSED.replace("not-acceptable", "forbidden")
        bounce = f"<message type='error' id='{id_}' from='{LOGS}'>{error}</message>"
        denied = f"<presence type='error' from='{LOGS}/{NICKNAME}'>{REFUSED}</presence>"
        return denied + bounce + (said(NICKNAME, body, id_, room=room) if room != LOGS else "")

    async with (
        ScriptedServer(in_rooms(answering(returns))) as server,
        participant_at(server, LOBBY, FAR, LOGS) as eyes,
    ):
        lobby, far, logs = eyes.rooms
        for each in eyes.rooms:
            await each.joined()
        await lobby.membership.say("hello", 30)
        await far.membership.say("hello", 30)
        with pytest.raises(BouncedError):
            await logs.membership.say("hello", 30)
        failed = [each.room for each in eyes.records if isinstance(each.event, SendFailed)]
        assert failed == [LOGS] * 3
        # What it said is that we are not in it, so it is asked, and it alone.
        fault, _, record = await eyes.fault()
        assert (fault.condition, record.room) == ("not-acceptable", LOGS)
        assert [each.status().phase for each in (lobby, far)] == [Phase.JOINED] * 2
        for room in (LOBBY, FAR):
            occupant = f'to="{room}/{NICKNAME}"'.encode()
            assert server.wires[0].heard.count(occupant) == 1  # the join


async def test_a_room_that_repeats_what_we_said_in_another_is_no_reflection_of_it() -> None:
    def returns(room: str, id_: str, body: str) -> str:
        del room
        return said(NICKNAME, body, id_, room=LOGS)

    async with (
        ScriptedServer(in_rooms(answering(returns))) as server,
        participant_at(server, *ROOMS) as eyes,
    ):
        lobby, logs, _ = eyes.rooms
        for each in eyes.rooms:
            await each.joined()
        saying = asyncio.create_task(lobby.membership.say("hello", 60))
        heard = await logs.hears("hello")
        assert not heard.own
        assert not saying.done()
        assert bodies(lobby) == []
        saying.cancel()
        await asyncio.wait((saying,))
