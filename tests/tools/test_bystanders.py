"""Whatever a bystander does on a real server, the verdict on the bot stays what it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.wire.speech import LOOP_ROUNDS
from bridge.xmpp.checks.conduct import STAYS
from bridge.xmpp.model.events import OccupantJoined, OccupantLeft
from tests.faults.scene import configure, scene
from tests.mcp.sample_tools import QUIET
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.tools.played import arguments, fitting
from tests.tools.troubled import (
    ANSWER,
    COMMAND,
    ENCRYPTED,
    ROBOT,
    Answers,
    Robot,
    Stage,
    at_once,
    not_at_all,
)

pytestmark = pytest.mark.servers

SERVERS = ("prosody", "ejabberd")
SHOWN = pytest.mark.parametrize("shown", [True, False], ids=["accounts", "hidden"])
MISTAKABLE = "others may have had the nickname"


@asynccontextmanager
async def staged(
    server: str, shown: bool, authority: Authority, request: pytest.FixtureRequest
) -> AsyncIterator[Stage]:
    """The bridge in a room of Wilma's, without the bot."""
    process: ServerProcess = request.getfixturevalue(f"{server}_process")
    async with scene(process, authority) as setting, AsyncExitStack() as stack:
        wilma = await stack.enter_async_context(setting.witness())
        if shown:
            await configure(wilma, whois="anyone")
        stage = Stage(setting, wilma, stack)
        stage.seen_by = await stack.enter_async_context(setting.participant())
        await stage.eyes.joined()
        yield stage


async def bystander(stage: Stage, nick: str = ROBOT) -> Robot:
    """Somebody with an account that is not the bot's."""
    server = stage.scene.server
    robot = Robot(server, server.witness, stage.scene.room, nick, not_at_all)
    stage.robots.append(robot)
    return await stage.stack.enter_async_context(robot)


async def come_and_go(stage: Stage, robot: Robot, times: int) -> None:
    for number in range(times):
        robot.go()
        await stage.eyes.see(lambda event: isinstance(event, OccupantLeft))
        if number < times - 1:
            robot.come()
            await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))


async def diagnosed(stage: Stage) -> dict[str, Any]:
    told = await xmpp_diagnose(stage.link, nickname=ROBOT, detail="full")
    result: dict[str, Any] = fitting(xmpp_diagnose, told)
    return result


async def asked(stage: Stage) -> None:
    told = {"message": COMMAND, "awaitSeconds": 5}
    await xmpp_send(stage.link, RateLimiter(60), QUIET, **arguments(xmpp_send, told))


@pytest.mark.parametrize("server", SERVERS)
@SHOWN
async def test_who_had_the_nickname_before_and_came_and_went_is_somebody_else(
    server: str, shown: bool, authority: Authority, request: pytest.FixtureRequest
) -> None:
    async with staged(server, shown, authority, request) as stage:
        eve = await bystander(stage)
        await come_and_go(stage, eve, STAYS + 1)
        await stage.enter(at_once)
        await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))
        await asked(stage)
        result = await diagnosed(stage)
        stays = next(it for it in result["findings"] if it["name"] == "stays")
        if shown or server == "prosody":
            assert stays["ok"] is True
            assert result["verdict"].startswith("Nothing is wrong")
        else:  # ejabberd 23.01 gives no occupant ids
            assert MISTAKABLE in stays["detail"]


@pytest.mark.parametrize("server", SERVERS)
@SHOWN
@pytest.mark.parametrize("times", [0, 1, 4])
async def test_who_takes_the_nickname_of_a_bot_that_left_does_not_hide_why_it_left(
    server: str, shown: bool, times: int, authority: Authority, request: pytest.FixtureRequest
) -> None:
    async with staged(server, shown, authority, request) as stage:
        await stage.enter(at_once)
        await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))
        await stage.wilma.kick(ROBOT, "too many messages")
        await stage.eyes.see(lambda event: isinstance(event, OccupantLeft))
        eve = await bystander(stage)
        await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))
        await come_and_go(stage, eve, times)
        verdict = (await diagnosed(stage))["verdict"]
        known = shown or server == "prosody"
        assert "too many messages" in verdict or (times > 1 and not known)
        assert (
            "another occupant of this nickname" if known else "neither accounts nor ids"
        ) in verdict


def by_name(robot: Robot, sender: str) -> None:
    robot.say(f"{sender}: {ANSWER}")


def in_the_clear(robot: Robot, sender: str) -> None:
    robot.say(f"{robot.answered} {ANSWER}")


@pytest.mark.parametrize("server", SERVERS)
@SHOWN
@pytest.mark.parametrize(
    ("answers", "more"),
    [(at_once, []), (by_name, []), (in_the_clear, [Element(ENCRYPTED)])],
    ids=["plain", "by name", "encrypted"],
)
async def test_commands_of_a_bystander_that_says_it_is_a_bot_make_no_loop(
    server: str,
    shown: bool,
    answers: Answers,
    more: list[Element],
    authority: Authority,
    request: pytest.FixtureRequest,
) -> None:
    async with staged(server, shown, authority, request) as stage:
        await stage.enter(answers)
        eve = await bystander(stage, "Eve")  # slixmpp says client/bot of itself
        for _ in range(2 * LOOP_ROUNDS):
            eve.send(*more, body=COMMAND)
            await stage.eyes.see(lambda event: ANSWER in getattr(event, "body", ""))
        await asked(stage)
        assert (await diagnosed(stage))["verdict"].startswith("Nothing is wrong")


@pytest.mark.parametrize("server", SERVERS)
@SHOWN
async def test_who_asks_meanwhile_does_not_hide_that_the_bridge_was_not_answered(
    server: str, shown: bool, authority: Authority, request: pytest.FixtureRequest
) -> None:
    def to_eve(robot: Robot, sender: str) -> None:
        if sender == "Eve":
            robot.say(ANSWER)

    async def ask_too(eve: Robot) -> None:
        await stage.eyes.hears(COMMAND)
        eve.say(f"{COMMAND} Eve")

    async with staged(server, shown, authority, request) as stage:
        await stage.enter(to_eve)
        eve = await bystander(stage, "Eve")
        await asyncio.gather(asked(stage), ask_too(eve))
        assert 'unless that was to "Eve"' in (await diagnosed(stage))["verdict"]


@pytest.mark.parametrize("server", SERVERS)
@SHOWN
async def test_a_dead_namesake_of_another_account_is_no_verdict_on_a_living_bot(
    server: str, shown: bool, authority: Authority, request: pytest.FixtureRequest
) -> None:
    async with staged(server, shown, authority, request) as stage:
        await stage.enter(at_once)
        (await bystander(stage, f"{ROBOT}-2")).ignore_pings()
        await stage.eyes.see(lambda it: isinstance(it, OccupantJoined) and it.sender != ROBOT)
        await asked(stage)
        result = await diagnosed(stage)
        assert result["verdict"].startswith("Nothing is wrong")
        assert [it["name"] for it in result["findings"] if it["ok"] is False] == []
