import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from slixmpp import JID
from slixmpp.exceptions import IqTimeout, PresenceError

from bridge.sandbox.fault import SandboxFault
from bridge.sandbox.server import HOST, Sandbox
from tests.sandbox.seats import Seat, client_of, seated
from tests.sandbox.wire import LIMIT

ROOM, ELSEWHERE = JID("tea@rooms.localhost"), JID("milk@rooms.localhost")


@pytest.fixture
async def server() -> AsyncIterator[Sandbox]:
    async with Sandbox() as running:
        yield running


@pytest.fixture
async def alice(server: Sandbox) -> AsyncIterator[Seat]:
    async with seated(server, "alice", server.add_account("alice")) as seat:
        await seat.join(ROOM, "Alice")
        yield seat


@pytest.fixture
async def robot(server: Sandbox, alice: Seat) -> AsyncIterator[Seat]:
    async with seated(server, "robot", server.add_account("robot")) as seat:
        await seat.join(ROOM, "Robot")
        await alice.sees(lambda s: s["from"].resource == "Robot")
        yield seat


async def gone(seat: Seat) -> None:
    await asyncio.wait_for(seat.client.wait_until("disconnected", LIMIT), LIMIT)


async def answers(seat: Seat) -> bool:
    ping: Any = seat.client.plugin["xep_0199"]
    try:
        await ping.send_ping(JID("localhost"), timeout=1)
    except IqTimeout:
        return False
    return True


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
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    lost = asyncio.create_task(gone(robot))
    await asyncio.sleep(0)  # so that it listens
    server.fault("drop", room="tea@ROOMS.localhost", nickname="Robot")
    await alice.sees_leaving("Robot")
    await lost
    assert await answers(alice)


async def test_a_kick_is_told_everybody_and_with_seconds_comes_again_until_it_is_ended(
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    end = server.fault("kick", room="Tea", nickname="Robot", seconds=0.05)
    for seat in (alice, robot):
        assert 307 in (await seat.sees_leaving("Robot"))["muc"]["status_codes"]
    await robot.join(ROOM, "Robot")
    assert 307 in (await robot.sees_leaving("Robot"))["muc"]["status_codes"]
    end()
    await robot.join(ROOM, "Robot")
    await alice.join(ELSEWHERE, "Alice")  # a round trip
    assert await answers(robot)


async def test_a_kick_leaves_the_resident_of_the_standing_room_where_it_is(
    server: Sandbox, alice: Seat
) -> None:
    await alice.join(JID("lobby@rooms.localhost"), "Alice")
    server.fault("kick")
    await alice.sees_leaving("Alice")
    _, _, occupants, _ = await alice.join(JID("lobby@rooms.localhost"), "Alice")
    assert {p["from"].resource for p in occupants} == {"Alice", "Echo"}


async def test_silence_takes_in_nothing_and_tells_nothing_until_it_is_ended(
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    end = server.fault("silence", nickname="Robot")
    alice.say("are you there?", ROOM)
    robot.say("never said", ROOM)
    await alice.hears("are you there?")
    assert not await answers(robot)
    assert await answers(alice)
    end()
    robot.say("back", ROOM)
    heard = [(await robot.sees(lambda s: s.name == "message" and s["body"]))["body"]]
    assert heard == ["back"]
    assert (await alice.sees(lambda s: s.name == "message" and s["body"]))["body"] == "back"


async def test_silence_of_nobody_in_particular_is_for_all_and_ends_by_itself(
    server: Sandbox, alice: Seat
) -> None:
    async with seated(server) as outside:
        server.fault("silence", seconds=1.5)
        before = [await answers(seat) for seat in (alice, outside)]
        assert before[0] is False
        assert await answers(outside)


async def test_a_nickname_that_is_said_to_be_taken_is_a_conflict_until_it_is_ended(
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    end = server.fault("duplicate-nickname", room=str(ELSEWHERE), nickname="Robot")
    with pytest.raises(PresenceError) as refusal:
        await robot.join(ELSEWHERE, "Robot")
    assert refusal.value.condition == "conflict"
    await alice.join(ELSEWHERE, "Alice")
    await robot.join(ELSEWHERE, "Robot_")
    robot.muc.leave_muc(ELSEWHERE, "Robot_")
    await robot.sees_leaving("Robot_")
    end()
    await robot.join(ELSEWHERE, "Robot")


async def test_a_lost_reflection_reaches_all_but_the_speaker(
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    end = server.fault("lost-reflection", nickname="Robot")
    robot.say("lost", ROOM)
    await alice.hears("lost")
    end()
    robot.say("found", ROOM)
    assert (await robot.sees(lambda s: s.name == "message" and s["body"]))["body"] == "found"


async def test_a_late_reflection_comes_after_what_others_say_meanwhile(
    server: Sandbox, alice: Seat, robot: Seat
) -> None:
    server.fault("late-reflection", nickname="Robot", seconds=0.3)
    robot.say("first", ROOM)
    await alice.hears("first")
    alice.say("second", ROOM)
    heard = [await robot.sees(lambda s: s.name == "message" and s["body"]) for _ in "12"]
    assert [message["body"] for message in heard] == ["second", "first"]


async def test_a_login_is_refused_to_one_account_or_to_all_until_it_is_ended(
    server: Sandbox,
) -> None:
    password = server.add_account("robot")

    async def refused(name: str, password: str) -> str:
        client = client_of(server, name, password)
        failed = asyncio.create_task(client.wait_until("failed_auth", LIMIT))
        over = asyncio.create_task(client.wait_until("disconnected", LIMIT))
        client.connect(HOST, server.port)
        condition: str = (await failed)["condition"]
        await over
        return condition

    end = server.fault("refused-login", nickname="robot")
    assert await refused("robot", password) == "not-authorized"
    async with seated(server):
        pass
    end_all = server.fault("refused-login")
    assert await refused("debug", server.password) == "not-authorized"
    end()
    end_all()
    end_all()  # for a second time it does nothing
    async with seated(server, "robot", password), seated(server):
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
    sandbox = Sandbox({"robot": "x"})
    with pytest.raises(ValueError, match=told):
        sandbox.fault(name, room=room, nickname=nickname, seconds=seconds)
    sandbox.fault("refused-login", nickname="ROBOT")()
