"""What a room may do with those who come, where no real server does it on command."""

from dataclasses import replace

import pytest

from bridge.xmpp.model.room import Room, RoomStatus
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at
from tests.faults.scripted_server import (
    HONEST,
    NICKNAME,
    Script,
    ScriptedServer,
    Wire,
    present,
    said,
)

STANZA_ERRORS = "urn:ietf:params:xml:ns:xmpp-stanzas"


def refusing(condition: str) -> Script:
    """Refuse the first join for this reason, and let in the second on the same connection."""

    async def step(wire: Wire) -> None:
        presence = await wire.element("presence")
        error = f"<error type='cancel'><{condition} xmlns='{STANZA_ERRORS}'/></error>"
        wire.send(f"<presence type='error' from='{presence.get('to')}'>{error}</presence>")
        while (await wire.element("presence")).get("type") == "unavailable":
            pass
        wire.send(present(NICKNAME, 110) + scripted.subject(""))

    return replace(HONEST, join=step)


@pytest.mark.parametrize(
    ("condition", "told", "hint"),
    [
        ("item-not-found", "locked while its owner sets it up", "MUC_ROOM"),
        ("service-unavailable", "is full", "MUC_ROOM"),
        ("resource-constraint", "cannot take more occupants", "by itself"),
    ],
    ids=["locked", "full", "overloaded"],
)
async def test_a_room_that_cannot_take_us_just_now_is_tried_again(
    condition: str, told: str, hint: str
) -> None:
    async with ScriptedServer(refusing(condition)) as server, participant_at(server) as eyes:
        fault, _, _ = await eyes.fault()
        assert fault.condition == condition
        assert told in fault.message
        assert hint in fault.hint
        await eyes.joined()
        assert len(server.wires) == 1


async def test_a_nickname_that_the_room_gave_us_is_the_one_shown_and_spoken_under() -> None:
    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(scripted.present("Guest 7", 110, 210) + scripted.subject(""))

    async def stand(wire: Wire) -> None:
        while True:
            element = await wire.element()
            id_ = element.get("id", "")
            if scripted.local(element) == "message":
                body = element.findtext("{jabber:client}body") or ""
                wire.send(scripted.said("Guest 7", body, id_))
            elif scripted.local(element) == "iq":
                wire.send(f"<iq type='result' id='{id_}' from='{element.get('to')}'/>")

    async with (
        ScriptedServer(replace(HONEST, join=join, stand=stand)) as server,
        participant_at(server) as eyes,
    ):
        await eyes.joined()
        assert eyes.status().nickname == "Guest 7"
        await eyes.membership.say("hello", 5)
        assert eyes.status().last_incoming is None


async def test_while_joining_who_has_the_nickname_that_we_asked_for_is_not_taken_for_us() -> None:
    left = present(NICKNAME, 307).replace("<presence", "<presence type='unavailable'")

    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(present(NICKNAME) + said(NICKNAME, "I was here first"))
        wire.send(present("Guest 7", 110, 210) + scripted.subject("") + left)
        wire.send(said("Wilma", "the end"))

    async with ScriptedServer(replace(HONEST, join=join)) as server, participant_at(server) as eyes:
        await eyes.joined()
        await eyes.hears("the end")
        assert eyes.status().nickname == "Guest 7"
        assert [one.nickname for one in eyes.status().occupants if one.own] == ["Guest 7"]
        assert not any(one.own for one in eyes.messages())
        assert len(server.wires) == 1


async def test_who_waits_for_the_first_join_has_nobody_listed_for_each_who_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = 0
    status = Room.status

    def counted(room: Room) -> RoomStatus:
        nonlocal listed
        listed += 1
        return status(room)

    async def join(wire: Wire) -> None:
        await wire.element("presence", refusal="item-not-found")
        for number in range(100):
            wire.send("".join(present(f"Guest {number}-{which}") for which in range(50)))
            await wire.sent()
        wire.send(present(NICKNAME, 110) + scripted.subject(""))

    monkeypatch.setattr(Room, "status", counted)
    async with ScriptedServer(replace(HONEST, join=join)) as server, participant_at(server) as eyes:
        await eyes.membership.say("hello", 15)
        assert listed < 10
