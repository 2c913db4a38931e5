"""Healthy rooms on real servers: nothing is found wrong, whatever clients say that they are."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from xml.etree.ElementTree import Element

import pytest

from bridge.tools.diagnose import xmpp_diagnose
from bridge.wire.speech import LOOP_ROUNDS, SPREAD_SECONDS
from bridge.xmpp.checks.conduct import STAYS
from bridge.xmpp.link.stanzas import BRIDGE
from bridge.xmpp.model.events import OccupantChanged, OccupantJoined
from tests.faults.scene import configure
from tests.servers.certificates import Authority
from tests.servers.witness import Witness
from tests.tools.played import fitting
from tests.tools.test_bystanders import bystander, come_and_go, staged
from tests.tools.troubled import (
    ANSWER,
    COMMAND,
    ENCRYPTED,
    ROBOT,
    Robot,
    Stage,
    at_once,
    not_at_all,
)

pytestmark = pytest.mark.servers

Life: TypeAlias = Callable[[Stage, Robot, Robot], Awaitable[None]]
"""What happens in a room of Wilma's, in which a bot and Fred are."""


async def heard(stage: Stage, who: Witness, text: str, *, after: float = 0.0) -> None:
    """Let somebody say this, so many seconds later, and the bridge hear it."""
    asyncio.get_running_loop().call_later(after, who.say, text)
    await stage.eyes.hears(text)


async def greeted(stage: Stage, robot: Robot, fred: Robot) -> None:
    for number in range(3):
        await come_and_go(stage, fred, 1)
        fred.come()
        await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))
        await heard(stage, robot, f"Welcome for the time {number}, Fred!")


async def chatting(stage: Stage, robot: Robot, fred: Robot) -> None:
    for number in range(2 * LOOP_ROUNDS + 2):
        speaker = (stage.wilma, fred)[number % 2]
        is_late = number in {LOOP_ROUNDS, LOOP_ROUNDS + 1}  # people are uneven
        await heard(stage, speaker, f"so {number}", after=is_late * (SPREAD_SECONDS + 0.2))


async def on_the_phone(stage: Stage, robot: Robot, fred: Robot) -> None:
    await come_and_go(stage, fred, STAYS + 1)


async def relayed(stage: Stage, robot: Robot, fred: Robot) -> None:
    for number in range(LOOP_ROUNDS - 1):
        await heard(stage, stage.wilma, f"here {number}")
        await heard(stage, robot, f"<Zoe> there {number}")


async def in_secret(stage: Stage, robot: Robot, fred: Robot) -> None:
    for number in range(4):
        speaker = (stage.wilma, fred)[number % 2]
        message = speaker.client.make_message(mto=stage.scene.room, mtype="groupchat")
        message.append(Element(ENCRYPTED))
        message.send()
        await stage.eyes.see(lambda event: getattr(event, "encrypted", None))
    await asked(stage, fred, 1)


async def with_visitors(stage: Stage, robot: Robot, fred: Robot) -> None:
    await third(stage, "Reader")
    await configure(stage.wilma, moderatedroom="1")
    await stage.wilma.muc.set_role(stage.scene.room, "Reader", "visitor")
    await stage.eyes.see(lambda event: isinstance(event, OccupantChanged))
    await asked(stage, stage.wilma, 1)


async def with_an_agent(stage: Stage, robot: Robot, fred: Robot) -> None:
    agent = await third(stage, "Agent")
    await agent.client.plugin["xep_0030"].add_identity(category="client", itype="bot", name=BRIDGE)
    await asked(stage, agent, 2 * LOOP_ROUNDS)


async def third(stage: Stage, nick: str) -> Robot:
    """Let somebody in who is no owner of the room, as Fred is; the account is the bridge's."""
    server = stage.scene.server
    newcomer = Robot(server, server.bot, stage.scene.room, nick, not_at_all)
    return await stage.stack.enter_async_context(newcomer)


async def in_a_hurry(stage: Stage, robot: Robot, fred: Robot) -> None:
    await asked(stage, stage.wilma, 2 * LOOP_ROUNDS)


async def asked(stage: Stage, who: Witness, times: int) -> None:
    for _ in range(times):
        who.say(COMMAND)
        await stage.eyes.see(lambda event: getattr(event, "body", "") == ANSWER)


LIVES: tuple[Life, ...] = (
    *(greeted, chatting, on_the_phone, relayed, in_secret, with_visitors, with_an_agent),
    in_a_hurry,
)
DECLARED = ("pc", "phone", "bot", "")
"""What the clients of people say that they are; the last says nothing."""
ROOMS = [
    pytest.param(
        server,
        shown,
        life,
        DECLARED[(LIVES.index(life) + shown) % len(DECLARED)],
        # Each plays on both servers, and with accounts shown and hidden; together only if asked.
        marks=[pytest.mark.long] if (LIVES.index(life) + shown + (server == "prosody")) % 2 else [],
        id=f"{life.__name__}-{server}-{'accounts' if shown else 'hidden'}",
    )
    for life in LIVES
    for server in ("prosody", "ejabberd")
    for shown in (True, False)
]


async def declare(who: Witness, itype: str) -> None:
    """Let a client say that it is this."""
    disco = who.client.plugin["xep_0030"]
    await disco.del_identities()
    if itype:
        await disco.add_identity(category="client", itype=itype)


@pytest.mark.parametrize(("server", "shown", "life", "itype"), ROOMS)
async def test_nothing_is_found_wrong(
    server: str,
    shown: bool,
    life: Life,
    itype: str,
    authority: Authority,
    request: pytest.FixtureRequest,
) -> None:
    async with staged(server, shown, authority, request) as stage:
        robot = await stage.enter(at_once)
        fred = await bystander(stage, "Fred")
        for person in (stage.wilma, fred):
            await declare(person, itype)
        await life(stage, robot, fred)
        for nickname in (None, ROBOT):
            result = await xmpp_diagnose(stage.link, nickname=nickname, detail="full")
            seen = fitting(xmpp_diagnose, result)
            assert seen["outcome"] != "cause", seen["verdict"]
            assert [it for it in seen["findings"] if it["ok"] is False] == []
