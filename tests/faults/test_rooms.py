"""What becomes of one room is the affair of that room: the others and the connection stay."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bridge.settings.values import MAX_ROOMS, Secret
from bridge.xmpp.model import backoff
from bridge.xmpp.model.events import ConnectionChanged, Phase
from bridge.xmpp.model.room import MAKE_PERSISTENT
from bridge.xmpp.model.room import TEMPORARY as GOES
from tests.faults import deeds
from tests.faults.deeds import Guest, Play
from tests.faults.relay import Way
from tests.faults.scene import NICKNAME, ON_PROSODY, SECONDS, Scene, scene, told
from tests.servers.certificates import Authority
from tests.servers.ejabberd import running_throttled_ejabberd
from tests.servers.process import ServerProcess

TEMPORARY = {f"{GOES}. {MAKE_PERSISTENT}"}
"""What a status warns of in each of these rooms, which are made for one test."""
UNLUCKY = 1
"""The room, of three, that meets its fate."""


@pytest.fixture
async def stage(server_process: ServerProcess, authority: Authority) -> AsyncIterator[Scene]:
    """A scene in three rooms, with a relay that sees stanzas."""
    async with scene(server_process, authority, way="open", rooms=3) as stage:
        yield stage


@ON_PROSODY
async def test_a_nickname_that_is_taken_in_one_room_is_ours_in_the_others(
    stage: Scene, guests: list[Guest]
) -> None:
    async with (
        stage.witness(NICKNAME, room=stage.settings.rooms[UNLUCKY]) as twin,
        stage.participant() as eyes,
    ):
        play = Play(stage, guests, UNLUCKY)
        play.eyes = eyes
        for us in eyes.rooms:
            await us.joined()
        assert play.us.status().nickname == f"{NICKNAME}-2"
        await play.us.membership.say("hello", 30)
        assert (await twin.heard("hello")).nick == f"{NICKNAME}-2"
        warning, *_ = set(play.us.status().warnings) - TEMPORARY
        assert all(it in warning for it in (f'"{NICKNAME}"', f'"{NICKNAME}-2"', "MCP_BOT_NICKNAME"))
        for us, guest in play.others:
            assert us.status().nickname == NICKNAME
            assert {*us.status().warnings} == TEMPORARY
            await us.membership.say("hello", 30)
            assert (await guest.witness.heard("hello")).nick == NICKNAME


@ON_PROSODY
@pytest.mark.parametrize("protected", [0, UNLUCKY], ids=["the default room", "another room"])
async def test_the_room_password_is_sent_to_the_default_room_only(
    protected: int, stage: Scene, guests: list[Guest]
) -> None:
    await deeds.lock(Play(stage, guests, protected))
    stage.set(room_password=Secret(deeds.ROOM_PASSWORD))
    async with stage.participant() as eyes:
        for number, us in enumerate(eyes.rooms):
            if number == protected != 0:
                fault, _, _ = await us.fault()
                assert fault.condition == "not-authorized"
                assert "default room" in fault.message
            else:
                await us.joined()
    sent = bytes(stage.relay.passed[Way.TO_SERVER])
    assert sent.count(b"open-sesame") == 1
    presence = re.search(rb"<presence to=\"([^/]+)/[^>]*>(?:(?!</presence>).)*open-sesame", sent)
    assert presence is not None
    assert presence[1].decode() == stage.room


async def test_a_kick_that_comes_with_the_session_that_goes_on_is_of_one_room(
    stage: Scene, guests: list[Guest]
) -> None:
    stage.first_pause = SECONDS
    async with stage.participant() as eyes:
        play = Play(stage, guests, UNLUCKY)
        play.eyes = eyes
        for us in eyes.rooms:
            await us.joined()
        stage.relay.refuse()
        await play.us.fault()
        await deeds.kick(play)
        await play.wilma.left(NICKNAME)
        await stage.relay.heal()
        eyes.try_again()
        fault, changed, record = await play.us.fault()
        assert (fault.condition, changed.phase) == ("not-allowed", Phase.WAITING)
        assert record.room == play.us.room
        for us, guest in play.others:
            await us.joined()
            assert (guest.joins, guest.leaves) == (1, 0)
    assert eyes.resumed() == [False, True]


THROTTLED_SECONDS = 60.0
"""Limit for one of fifty rooms on a server that reads slowly, on a busy machine."""


@pytest.mark.usefixtures("ejabberd_process")  # skips where there is none
async def test_as_many_rooms_as_there_may_be_are_joined_under_a_servers_default_limits(
    authority: Authority, tmp_path: Path
) -> None:
    """It reads slowly after the first 20 kB, and refuses nothing; Prosody is less strict.

    So joins need no bound on how many are under way: fifty take 5 s, of 20, and when they come back
    what they missed is filled in after another 7.
    """
    with running_throttled_ejabberd(tmp_path, authority) as process:
        async with scene(process, authority, way="open", rooms=MAX_ROOMS) as stage:
            stage.relay.forge(Way.TO_CLIENT, b"urn:xmpp:sm:3", b"urn:example:3")
            # In which the rooms that were emptied end (a join on the way to one that ends is lost),
            # and ejabberd gives us some credit.
            stage.first_pause = 5 * backoff.FIRST_SECONDS
            async with stage.participant() as eyes:
                for us in eyes.rooms:
                    await us.joined(THROTTLED_SECONDS)
                stage.relay.cut()
                for us in eyes.rooms:
                    await us.fault(THROTTLED_SECONDS)
                    await us.joined(THROTTLED_SECONDS)
                await eyes.membership.say("hello", 20)
                assert [
                    each.room
                    for each in eyes.records
                    if isinstance(each.event, ConnectionChanged) and each.event.fault is not None
                ] == [""]
                assert eyes.gaps() == []
                assert stage.relay.accepted == 2


@ON_PROSODY
async def test_rooms_may_be_added_removed_and_put_in_another_order(
    stage: Scene, guests: list[Guest]
) -> None:
    first, second, third = stage.settings.rooms
    added = stage.server.room()
    async with stage.witness(room=added) as newcomer, stage.participant() as eyes:
        for us in eyes.rooms:
            await us.joined()
        assert not eyes.participant.begin_anew(stage.settings)  # nothing is changed
        changed = stage.settings._replace(rooms=(third, added, first))
        assert eyes.participant.begin_anew(changed)
        for guest in guests:
            await guest.witness.left(NICKNAME)
        guests[2].witness.say("meanwhile")
        await newcomer.joined(NICKNAME)
        await guests[0].witness.joined(NICKNAME)
        await guests[2].witness.joined(NICKNAME)
        assert [each.name for each in eyes.participant.memberships] == [third, added, first]
        assert eyes.participant.room_jid == third
        await eyes.rooms[2].hears("meanwhile")
        await eyes.membership.say("to the default room", 30)
        await guests[2].witness.heard("to the default room")
        assert len(told(eyes.rooms[2].messages(), "meanwhile")) == 1
        assert not eyes.gaps()
        assert guests[1].joins == 1
    assert eyes.resumed() == [False, False]
    del second


@ON_PROSODY
async def test_a_session_in_other_rooms_is_not_taken_up_again(
    stage: Scene, guests: list[Guest]
) -> None:
    async with stage.participant() as eyes:
        for us in eyes.rooms:
            await us.joined()
        # The server does not hear of the end, and would go on with the session.
        stage.relay.forge(Way.TO_SERVER, b"</stream:stream>", b" ")
        changed = stage.settings._replace(rooms=stage.settings.rooms[1:])
        assert eyes.participant.begin_anew(changed)
        for us in eyes.rooms[1:]:
            await us.phase(Phase.RESOLVING)
            await us.joined()
    assert eyes.resumed() == [False, False]
    del guests


@ON_PROSODY
async def test_a_room_written_in_capitals_is_the_room(stage: Scene, guests: list[Guest]) -> None:
    rooms = tuple(each.partition("@") for each in stage.settings.rooms)
    stage.set(rooms=tuple(f"{local.upper()}@{domain}" for local, _, domain in rooms))
    async with stage.participant() as eyes:
        for us, guest in zip(eyes.rooms, guests, strict=True):
            await us.joined()
            sent = await us.membership.say("hello", 30)
            await guest.witness.heard("hello")
            assert sent.record.room == us.room
