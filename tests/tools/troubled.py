"""A bot in a room on a real server, and all that may be the matter with it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from xml.etree.ElementTree import Element, SubElement

from slixmpp import JID
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from bridge.settings.values import Secret
from bridge.tools.link import RoomLink
from bridge.tools.send import RateLimiter, xmpp_send
from bridge.wire.names import STANZA_ERRORS
from bridge.wire.speech import ANSWER_SECONDS
from bridge.xmpp.checks.answering import LATE_MS, LEFT_OUT
from bridge.xmpp.checks.conduct import STAYS
from bridge.xmpp.model.events import NicknameChanged, OccupantChanged, OccupantJoined, OccupantLeft
from tests.faults.scene import Eyes, Scene, configure, scene
from tests.mcp.sample_tools import QUIET
from tests.servers.certificates import Authority
from tests.servers.process import ServerProcess
from tests.servers.server import Account, XmppServer
from tests.servers.witness import Witness
from tests.tools.played import arguments

ROBOT = "Robot"
COMMAND, ANSWER = "!ping", "pong"
ENCRYPTED = "{eu.siacs.conversations.axolotl}encrypted"
DISGUISED = "!p\u200bing"
"""The same to a reader."""
LOOPS = 6
"""Times that a bot answers itself."""


class Robot(Witness):
    """A bot that answers `COMMAND` as one of the functions below has it."""

    def __init__(
        self, server: XmppServer, account: Account, room: str, nick: str, answers: "Answers"
    ) -> None:
        super().__init__(server, account, room, nick)
        self._answers = answers
        self.answered = 0
        self.command = ""
        """The id of the last command."""

    def send(
        self,
        *children: Element,
        to: str | None = None,
        body: str | None = None,
        answers: str | None = None,
    ) -> None:
        """Send a message to the room, or in private to somebody in it.

        With `answers` it is an error, of the message with this id.
        """
        message = self.client.make_message(
            mto=JID(f"{self.room}/{to}" if to else self.room),
            mbody=body,
            mtype="error" if answers else "chat" if to else "groupchat",
        )
        if answers:
            message["id"] = answers
        for child in children:
            message.append(child)
        message.send()

    def come(self, *, history: bool = False) -> None:
        """Enter the room again, and with `history` ask for what was said before."""
        if history:
            self.muc.make_join_stanza(self.room, self.nick).send()
        else:
            self._send_join()

    def go(self) -> None:
        """Leave the room, and stay connected."""
        self.client.send_presence(pto=f"{self.room}/{self.nick}", ptype="unavailable")

    def ignore_pings(self) -> None:
        """Leave all questions unanswered from now on."""
        self.client.remove_handler("Ping")
        self.client.register_handler(Callback("Silence", StanzaPath("iq@type=get"), lambda _: None))

    def _on_message(self, message: StanzaBase) -> None:
        super()._on_message(message)
        sender = message["from"].resource
        wanted = message["body"].startswith(COMMAND) and sender != self.nick
        if self._answers is to_itself and self.answered:
            wanted = message["body"].endswith(COMMAND)
        if self._answers is to_programs:
            wanted = sender not in {"", self.nick} and self.answered < LOOPS and message["body"]
        if message["type"] == "groupchat" and wanted:
            self.answered += 1
            self.command = message["id"]
            self._answers(self, sender)


Answers: TypeAlias = Callable[[Robot, str], None]
"""Makes a bot answer the nickname that gave the command."""


def at_once(robot: Robot, sender: str) -> None:
    robot.send(Element("{http://jabber.org/protocol/chatstates}composing"))
    robot.say(ANSWER)


def not_at_all(robot: Robot, sender: str) -> None:
    robot.send(Element("{http://jabber.org/protocol/chatstates}composing"))


def with_an_error(robot: Robot, sender: str) -> None:
    error = Element("{jabber:client}error", {"type": "modify"})
    SubElement(error, f"{{{STANZA_ERRORS}}}not-acceptable")
    SubElement(error, f"{{{STANZA_ERRORS}}}text").text = "which one?"
    robot.send(error, to=sender, answers=robot.command)


def twice(robot: Robot, sender: str) -> None:
    robot.say(ANSWER)
    robot.say(ANSWER)


def soon(robot: Robot, sender: str) -> None:
    asyncio.get_running_loop().call_later(0.3, robot.say, ANSWER)


def late(robot: Robot, sender: str) -> None:
    asyncio.get_running_loop().call_later(LATE_MS / 1000 + 0.05, robot.say, ANSWER)


def to_another_only(robot: Robot, sender: str) -> None:
    if sender == "Wilma":
        robot.say(ANSWER)


def to_programs(robot: Robot, sender: str) -> None:
    robot.say(f"{robot.nick} heard {sender} {robot.answered} times")


def to_itself(robot: Robot, sender: str) -> None:
    if robot.answered <= LOOPS:
        robot.say(f"{'You said: ' * robot.answered}{COMMAND}")


@dataclass
class Stage:
    """A room that Wilma owns, the bot in it, and the bridge."""

    scene: Scene
    wilma: Witness
    stack: AsyncExitStack
    robots: list[Robot] = field(default_factory=list)
    seen_by: Eyes | None = None

    @property
    def robot(self) -> Robot:
        """The bot that came first."""
        return self.robots[0]

    @property
    def eyes(self) -> Eyes:
        """What the bridge sees."""
        assert self.seen_by is not None
        return self.seen_by

    @property
    def link(self) -> RoomLink:
        """The way of its tools."""
        return RoomLink(self.eyes.participant)

    async def enter(self, answers: Answers, nick: str = ROBOT, room: str | None = None) -> Robot:
        """Let a bot into the room."""
        server = self.scene.server
        robot = Robot(server, server.robot, room or self.scene.room, nick, answers)
        self.robots.append(robot)
        return await self.stack.enter_async_context(robot)


Arrange: TypeAlias = Callable[[Stage], Awaitable[None]]


async def nothing(stage: Stage) -> None:
    del stage


async def leaves(stage: Stage) -> None:
    stage.robot.go()
    await stage.eyes.see(lambda event: isinstance(event, OccupantLeft))


async def comes_and_goes(stage: Stage) -> None:
    for _ in range(STAYS):
        await leaves(stage)
        stage.robot.come()
        await stage.eyes.see(lambda event: isinstance(event, OccupantJoined))


async def answers_the_history(stage: Stage) -> None:
    stage.wilma.say(COMMAND)
    await stage.eyes.hears(ANSWER)
    await leaves(stage)
    stage.robot.come(history=True)
    await stage.eyes.see(lambda event: getattr(event, "body", "") == ANSWER)


async def answers_another(stage: Stage) -> None:
    """Let the bridge wait for an answer before another gets one: so the bot has not stopped."""
    given = {"message": COMMAND, "awaitSeconds": ANSWER_SECONDS + 0.1}
    await xmpp_send(stage.link, RateLimiter(60), QUIET, **arguments(xmpp_send, given))
    stage.wilma.say(f"{COMMAND} 2")
    await stage.eyes.hears(ANSWER)


async def meets_another_program(stage: Stage) -> None:
    parrot = await stage.enter(to_programs, "Parrot")
    await stage.eyes.see(lambda it: isinstance(it, OccupantJoined) and it.sender == "Parrot")
    parrot.say("Hello.")
    await stage.eyes.hears(f"Parrot heard {ROBOT} {LOOPS} times")


async def is_given_encrypted_commands(stage: Stage) -> None:
    stage.wilma.say(COMMAND)
    await stage.eyes.hears(ANSWER)
    for _ in range(LEFT_OUT):
        message = stage.wilma.client.make_message(mto=JID(stage.scene.room), mtype="groupchat")
        message.append(Element(ENCRYPTED))
        message.send()
        await stage.eyes.see(lambda event: getattr(event, "encrypted", None))


async def left_a_ghost(stage: Stage) -> None:
    await ignores_pings(stage)
    await runs_twice(stage)


async def is_kicked(stage: Stage) -> None:
    await stage.wilma.kick(ROBOT, "too many messages")
    await stage.eyes.see(lambda event: isinstance(event, OccupantLeft))


async def is_renamed(stage: Stage) -> None:
    stage.robot.client.send_presence(pto=f"{stage.scene.room}/Rob-2")
    await stage.eyes.see(lambda event: isinstance(event, NicknameChanged))


async def is_silenced(stage: Stage) -> None:
    await is_moderated(stage)
    stage.wilma.say(COMMAND)
    await stage.eyes.hears(COMMAND)


async def is_moderated(stage: Stage) -> None:
    await configure(stage.wilma, moderatedroom="1")
    await stage.wilma.muc.set_role(stage.scene.room, ROBOT, "visitor")
    await stage.eyes.see(lambda event: isinstance(event, OccupantChanged))


async def ignores_pings(stage: Stage) -> None:
    stage.robot.ignore_pings()


async def runs_twice(stage: Stage) -> None:
    await stage.enter(at_once, "Robot-2")
    await stage.eyes.see(lambda it: isinstance(it, OccupantJoined) and it.sender == "Robot-2")


async def is_given_a_disguised_command(stage: Stage) -> None:
    stage.wilma.say(DISGUISED)
    await stage.eyes.hears(DISGUISED)


async def goes_to_another_room(stage: Stage) -> None:
    robot = await stage.enter(at_once, room=stage.scene.room.replace("@", "s@"))
    await configure(robot, publicroom="1")


async def is_in_the_room_that_was_meant(stage: Stage) -> None:
    await configure(stage.wilma, publicroom="1")
    stage.scene.set(rooms=(stage.scene.room.replace("@", "s@"),))


async def wrong_password(stage: Stage) -> None:
    stage.scene.set(password=Secret("not-the-password"))


async def banned(stage: Stage) -> None:
    account = stage.scene.server.bot.jid
    await stage.wilma.muc.set_affiliation(stage.scene.room, "outcast", jid=account)


@dataclass(frozen=True)
class Trouble:
    """What is the matter with the bot, and what has to be found."""

    finding: str | None
    """The one that decides: a cause, or what is not as it should be."""
    answers: Answers | None = at_once
    """None: the bot is not in the room."""
    before: Arrange = nothing
    """What is so before the bridge comes."""
    then: Arrange = nothing
    """What happens once the bridge is in the room."""
    hows: str | None = None
    """How `COMMAND`, which the bridge says by xmppSend, is answered; None: it says nothing."""
    seconds: float = 1.0
    """How long it waits for the first answer."""
    asked: str = ROBOT
    """Whom xmppDiagnose is asked about."""
    further: str | None = None
    """A finding that is not so either."""
    around: bool = True
    """Whether a look at all programs finds it, too; of the bridge alone, it finds nothing."""
    outcome: str = "cause"
    """What the look at the bot comes to."""
    on_both: bool = False
    """Whether servers answer differently, so that Prosody alone does not show it."""


TROUBLES: dict[str, Trouble] = {
    "nothing: it is healthy": Trouble(None, hows="public", seconds=5, outcome="well"),
    "the bridge has the wrong password": Trouble("bridge", before=wrong_password),
    "the bridge is banned": Trouble("bridge", before=banned),
    "it was never in the room": Trouble("present", None, around=False, outcome="unknown"),
    "it is in another room": Trouble(
        "present", None, before=goes_to_another_room, around=False, outcome="unknown"
    ),
    "the bridge's MUC_ROOM has a typo": Trouble(
        "present", before=is_in_the_room_that_was_meant, around=False, further="room", on_both=True
    ),
    "its nickname is spelt otherwise": Trouble(
        "present", asked="robot", around=False, outcome="unknown"
    ),
    "it left": Trouble("present", then=leaves, around=False, outcome="unknown"),
    "it was kicked": Trouble("present", then=is_kicked, on_both=True, around=False),
    "it changed its nickname": Trouble("present", then=is_renamed, around=False),
    "it has no voice": Trouble("voice", then=is_silenced, on_both=True, hows="", around=False),
    "it runs twice": Trouble(
        "account",
        before=lambda stage: configure(stage.wilma, whois="anyone"),
        then=runs_twice,
        on_both=True,
    ),
    "it runs twice, in a room that hides accounts": Trouble(
        "alike", soon, then=runs_twice, hows="public public", around=False, outcome="well"
    ),
    "it ignores pings, or hangs": Trouble("ping", not_at_all, then=ignores_pings),
    "it answers itself": Trouble("loop", to_itself, hows=" ".join(["public"] * LOOPS), seconds=5),
    "it answers another, not the bridge": Trouble(
        "senders", to_another_only, then=answers_another, further="answer", hows="", around=False
    ),
    "another program and it answer each other": Trouble(
        "pair", to_programs, then=meets_another_program
    ),
    "it comes and goes": Trouble("stays", then=comes_and_goes),
    "it answers the history": Trouble("history", then=answers_the_history, on_both=True),
    "a ghost of its own has its nickname": Trouble("ghost", then=left_a_ghost, further="ping"),
    "a command is encrypted": Trouble("encrypted", then=is_given_encrypted_commands),
    "it does not answer": Trouble("answer", not_at_all, hows="", around=False, outcome="unknown"),
    "it answers in private": Trouble(
        "answer", lambda bot, to: bot.send(to=to, body=ANSWER), hows="private"
    ),
    "it answers encrypted": Trouble(
        "answer", lambda bot, _: bot.send(Element(ENCRYPTED), body="Use OMEMO."), hows="encrypted"
    ),
    "it answers without a body": Trouble(
        "answer", lambda bot, _: bot.send(Element("{urn:example:answer}pong")), hows="no-body"
    ),
    "it answers with an empty body": Trouble(
        "answer", lambda bot, _: bot.send(Element("{jabber:client}body")), hows="no-body"
    ),
    "it answers with hidden characters alone": Trouble(
        "answer", lambda bot, _: bot.send(body="\u200b\u2060"), hows="no-body"
    ),
    "it answers with an error": Trouble("answer", with_an_error, hows="error", on_both=True),
    "it answers twice": Trouble("answer", twice, hows="public public"),
    "it answers late": Trouble("answer", late, hows="public", seconds=10),
    "a command has hidden characters": Trouble(
        "commands", then=is_given_a_disguised_command, around=False, outcome="unknown"
    ),
}
"""By their names in docs/diagnosis.md, which has the verdict on each."""


@asynccontextmanager
async def staged(
    trouble: Trouble, process: ServerProcess, authority: Authority
) -> AsyncIterator[Stage]:
    """The bridge beside a bot with this trouble."""
    async with scene(process, authority) as setting, AsyncExitStack() as stack:
        wilma = await stack.enter_async_context(setting.witness())
        await wilma.client.plugin["xep_0030"].add_identity(category="client", itype="pc")
        stage = Stage(setting, wilma, stack)
        if trouble.answers is not None:
            await stage.enter(trouble.answers)
        await trouble.before(stage)
        eyes = await stack.enter_async_context(setting.participant())
        stage.seen_by = eyes
        await (eyes.fault() if trouble.finding == "bridge" else eyes.joined())
        await trouble.then(stage)
        yield stage
