"""What a room may do with those who come, where no real server does it on command."""

from dataclasses import replace

import pytest

from bridge.mcp.errors import ToolError
from bridge.tools.link import RoomLink
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.xmpp.checks.probe import probe
from bridge.xmpp.model.room import Room, RoomStatus
from tests.faults import scripted_server as scripted
from tests.faults.reaching import participant_at, settings_for
from tests.faults.scripted_server import (
    HONEST,
    NICKNAME,
    STANZA_ERRORS,
    ScriptedServer,
    Wire,
    present,
    said,
)
from tests.mcp.sample_tools import QUIET


async def test_a_room_that_is_locked_just_now_is_tried_again() -> None:
    async def join(wire: Wire) -> None:
        presence = await wire.element("presence")
        error = f"<error type='cancel'><item-not-found xmlns='{STANZA_ERRORS}'/></error>"
        wire.send(f"<presence type='error' from='{presence.get('to')}'>{error}</presence>")
        while (await wire.element("presence")).get("type") == "unavailable":
            pass
        wire.send(present(NICKNAME, 110) + scripted.subject(""))

    async with ScriptedServer(replace(HONEST, join=join)) as server, participant_at(server) as eyes:
        fault, _, _ = await eyes.fault()
        assert fault.condition == "item-not-found"
        assert "locked while its owner sets it up" in fault.message
        await eyes.joined()
        assert len(server.wires) == 1


async def test_under_another_nickname_we_are_not_who_has_the_one_that_we_asked_for() -> None:
    left = present(NICKNAME, 307).replace("<presence", "<presence type='unavailable'")

    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(present(NICKNAME) + said(NICKNAME, "I was here first"))
        wire.send(present("Guest 7", 110, 210) + scripted.subject("") + left)
        wire.send(said("Wilma", "the end"))

    async def stand(wire: Wire) -> None:
        while (element := await wire.element()).get("type") != "groupchat":
            pass
        wire.send(said("Guest 7", "hello", element.get("id", "")))
        await wire.gone()

    async with (
        ScriptedServer(replace(HONEST, join=join, stand=stand)) as server,
        participant_at(server) as eyes,
    ):
        await eyes.joined()
        await eyes.hears("the end")
        assert eyes.status().nickname == "Guest 7"
        assert [each.nickname for each in eyes.status().occupants if each.own] == ["Guest 7"]
        assert not any(each.own for each in eyes.messages())
        assert (await eyes.membership.say("hello", 30)).message.sender == "Guest 7"
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
        for number in range(20):
            wire.send("".join(present(f"Guest {number}-{which}") for which in range(50)))
            await wire.sent()
        wire.send(present(NICKNAME, 110) + scripted.subject(""))

    monkeypatch.setattr(Room, "status", counted)
    async with ScriptedServer(replace(HONEST, join=join)) as server, participant_at(server) as eyes:
        await eyes.membership.say("hello", 15)
        assert listed < 10


async def test_who_sends_during_a_first_attempt_that_gets_no_answer_is_told_to_wait() -> None:
    script = replace(HONEST, authenticate=Wire.gone)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        await server.connections(1)
        link = RoomLink(eyes.participant)
        with pytest.raises(ToolError) as refused:
            await xmpp_send(link, RateLimiter(60), QUIET, message="hello", timeout_seconds=0.2)
        assert refused.value.condition == "recipient-unavailable"
        assert "timeoutSeconds" in refused.value.hint


SERVICE = scripted.ROOM.partition("@")[2]
LATER = "later@conference.localhost"


def challenge(sender: str, asked: str = "") -> str:
    field = f"<field var='from' type='hidden'><value>{asked}</value></field>" if asked else ""
    form = f"<x xmlns='jabber:x:data' type='form'>{field}</x>"
    return (
        f"<message from='{sender}'><body>Visit https://captcha.example/1</body>"
        f"<captcha xmlns='urn:xmpp:captcha'>{form}</captcha></message>"
    )


@pytest.mark.parametrize("sender", [scripted.ROOM, f"{scripted.ROOM}/{NICKNAME}", SERVICE])
@pytest.mark.parametrize("asked", ["", f"{scripted.ROOM}/{NICKNAME}"])
async def test_a_captcha_is_named_at_once_whichever_address_of_the_room_sends_it(
    sender: str, asked: str
) -> None:
    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(challenge(sender, asked))
        await wire.gone()

    script = replace(HONEST, join=join)
    async with ScriptedServer(script) as server, participant_at(server) as eyes:
        fault, _, _ = await eyes.fault()
        assert fault.condition == "captcha-required"
        assert "https://captcha.example/1" in fault.message


async def test_a_check_names_a_captcha_that_the_service_of_the_room_sends() -> None:
    async def join(wire: Wire) -> None:
        await wire.element("presence")
        wire.send(challenge(SERVICE))
        await wire.gone()

    async with ScriptedServer(replace(HONEST, join=join)) as server:
        report = await probe(settings_for(server))
        assert report.condition == "captcha-required"


async def test_a_captcha_for_one_room_of_the_service_keeps_us_out_of_no_other() -> None:
    async def join(wire: Wire) -> None:
        for _ in range(2):
            await wire.element("presence")
        wire.send(challenge(SERVICE, f"{LATER}/{NICKNAME}"))
        wire.send(present(NICKNAME, 110) + scripted.subject(""))

    script = replace(HONEST, join=join)
    async with (
        ScriptedServer(script) as server,
        participant_at(server, scripted.ROOM, LATER) as eyes,
    ):
        fault, _, _ = await eyes.rooms[1].fault()
        assert fault.condition == "captcha-required"
        await eyes.rooms[0].joined()


async def test_inside_no_occupant_can_tell_of_a_captcha() -> None:
    stand = scripted.saying(
        challenge(f"{scripted.ROOM}/Wilma"), challenge(SERVICE), said("Wilma", "the end")
    )
    async with (
        ScriptedServer(replace(HONEST, stand=stand)) as server,
        participant_at(server) as eyes,
    ):
        await eyes.joined()
        await eyes.hears("the end")
        bodies = [message.body for message in eyes.messages()]
        assert bodies == ["Visit https://captcha.example/1", "the end"]
        assert eyes.status().connected
