import asyncio
from collections.abc import AsyncIterator

import pytest

from bridge.sandbox.fault import SandboxFault
from bridge.sandbox.server import LOBBY, Sandbox
from tests.sandbox.wire import Wire, element, logged_in

ROOM, ELSEWHERE = "tea@rooms.localhost", "milk@rooms.localhost"
KICKED = "<status code='307'/>"
KICKED_MYSELF = f"{KICKED}<status code='110'/>"


@pytest.fixture
async def alice(server: Sandbox) -> AsyncIterator[Wire]:
    async with logged_in(server, "alice", ROOM) as wire:
        yield wire


@pytest.fixture
async def robot(server: Sandbox, alice: Wire) -> AsyncIterator[Wire]:
    async with logged_in(server, "robot", ROOM) as wire:
        await alice.until(f"{ROOM}/robot")
        yield wire


@pytest.mark.parametrize(
    ("room", "nickname", "hit"),
    [
        ("", "", True),
        ("tea@rooms.localhost", "", True),
        ("TEA@rooms.localhost", "robot", True),
        ("", "Robot", True),
        ("", "Rob", False),
        ("milk@rooms.localhost", "Robot", False),
    ],
)
def test_what_a_fault_does_not_name_it_hits_all_of(room: str, nickname: str, hit: bool) -> None:
    assert SandboxFault("kick", room, nickname).hits("tea@rooms.localhost", "Robot") is hit


async def test_a_drop_cuts_one_connection_and_leaves_the_others(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    server.fault("drop", room="tea@ROOMS.localhost", nickname="Robot")
    assert f"{ROOM}/robot" in await alice.until("type='unavailable'")
    assert "</stream:stream>" not in await robot.rest()
    await alice.told()


async def test_a_kick_is_told_everybody_and_with_seconds_comes_again_until_it_is_ended(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    end = server.fault("kick", room="Tea", nickname="Robot", seconds=0.05)
    for wire, kicked in ((alice, KICKED), (robot, KICKED_MYSELF)):
        assert f"{ROOM}/robot" in await wire.until(kicked)
    await robot.join(ROOM, "robot")
    await robot.until(KICKED_MYSELF)
    end()
    await robot.join(ROOM, "robot")
    assert KICKED not in await robot.told()


async def test_a_kick_leaves_the_resident_of_the_standing_room_where_it_is(
    server: Sandbox, alice: Wire
) -> None:
    await alice.join(LOBBY, "alice")
    server.fault("kick", room=LOBBY)
    await alice.until(KICKED_MYSELF)
    assert f"{LOBBY}/Echo" in await alice.join(LOBBY, "alice")


async def test_silence_takes_in_nothing_and_tells_nothing_until_it_is_ended(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    end = server.fault("silence", nickname="Robot")
    robot.say("never said", ROOM)
    alice.say("never heard", ROOM)
    heard = await alice.told()
    assert "never heard" in heard
    assert "never said" not in heard
    end()
    robot.say("back", ROOM)
    for wire in (alice, robot):
        assert "never" not in await wire.until("back")


async def test_silence_of_nobody_in_particular_is_for_all_and_ends_by_itself(
    server: Sandbox, alice: Wire
) -> None:
    async with logged_in(server) as outside:
        server.fault("silence", seconds=0.2)
        for wire in (alice, outside):
            wire.send("<message to='nobody@localhost' id='lost'/>")
        await asyncio.sleep(0.25)
        for wire in (alice, outside):
            assert "lost" not in await wire.told()


async def test_a_nickname_that_is_said_to_be_taken_is_a_conflict_until_it_is_ended(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    end = server.fault("duplicate-nickname", room=ELSEWHERE, nickname="Robot")
    robot.enter(ELSEWHERE, "robot")
    await robot.until("<conflict ")
    await alice.join(ELSEWHERE, "alice")
    await robot.join(ELSEWHERE, "robot_")
    await robot.leave(ELSEWHERE, "robot_")
    end()
    await robot.join(ELSEWHERE, "robot")


async def test_a_lost_reflection_reaches_all_but_the_speaker(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    end = server.fault("lost-reflection", nickname="Robot")
    robot.say("lost", ROOM)
    await alice.until("lost")
    end()
    robot.say("found", ROOM)
    assert "lost" not in await robot.until("found")


async def test_a_late_reflection_comes_after_what_others_say_meanwhile(
    server: Sandbox, alice: Wire, robot: Wire
) -> None:
    server.fault("late-reflection", nickname="Robot", seconds=0.3)
    robot.say("first", ROOM)
    await alice.until("first")
    alice.say("second", ROOM)
    assert "second" in await robot.until("first")


async def test_a_login_is_refused_to_one_account_or_to_all_until_it_is_ended(
    server: Sandbox,
) -> None:
    server.add_account("robot")

    async def refused(name: str) -> bool:
        async with Wire.to(server) as wire:
            await wire.open()
            wire.send(element("auth", f"n,,n={name},r=x", " mechanism='SCRAM-SHA-256'"))
            return "<not-authorized/>" in await wire.until("</failure>")

    end = server.fault("refused-login", nickname="robot")
    assert await refused("robot")
    async with logged_in(server):
        pass
    end_all = server.fault("refused-login")
    assert await refused("debug")
    end()
    end_all()
    end_all()  # for a second time it does nothing
    async with logged_in(server, "robot"), logged_in(server):
        pass


@pytest.mark.parametrize(
    ("name", "room", "nickname", "seconds", "told"),
    [
        ("flood", "", "", None, "there are drop, kick, silence"),
        ("late-reflection", "", "", None, "late-reflection needs seconds"),
        ("drop", "", "", 0.0, "above 0"),
        ("kick", "", "", float("inf"), "above 0"),
        ("late-reflection", "", "", float("nan"), "above 0"),
        ("silence", "lobby@elsewhere", "", None, r"rooms at rooms\.localhost only"),
        ("refused-login", "", "Robbie", None, r"no account 'Robbie'.* .* debug, .*robot"),
        ("refused-login", "lobby", "robot", None, "takes no room"),
    ],
)
def test_a_fault_that_can_never_hit_is_refused(
    name: str, room: str, nickname: str, seconds: float | None, told: str
) -> None:
    sandbox = Sandbox()
    sandbox.add_account("robot")
    with pytest.raises(ValueError, match=told):
        sandbox.fault(name, room=room, nickname=nickname, seconds=seconds)
    sandbox.fault("refused-login", nickname="ROBOT")()
