"""A newcomer asks why their bot does not see messages; the tools alone have to know."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from slixmpp import JID

from tests.e2e.bridge_process import BridgeProcess, RpcFailedError
from tests.faults.scene import configure
from tests.servers.ports import free_ports
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

OWNER, ROBOT = "Wilma", "Robot"


@dataclass
class Scene:
    """A room that Wilma owns, the settings of the bridge, and perhaps the newcomer's bot."""

    server: XmppServer
    wilma: Witness
    settings: dict[str, str]
    stack: AsyncExitStack
    robot: Witness | None = None
    seen: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What happens only once the bridge is there to see it."""

    @property
    def room(self) -> str:
        return self.wilma.room

    async def enter_robot(self) -> Witness:
        """Let the bot in, with the rights of anybody."""
        self.robot = await self.stack.enter_async_context(
            Witness(self.server, self.server.bot, self.room, ROBOT)
        )
        return self.robot


async def investigate(bridge: BridgeProcess) -> str:
    """Do as the tools' own descriptions say, and return what they name as the cause."""
    status = await bridge.until(lambda it: it["connected"] or it.get("lastError"))
    if not status["connected"]:
        check = await bridge.call("xmppCheck")
        assert check["ok"] is False
        error = status["lastError"]
        assert error["message"] in check["diagnosis"], check
        return f"{error['condition']}: {error['message']} {error['hint']}"
    if "roomCreated" in status:
        everybody = await bridge.call("xmppOccupants")
        assert [one["self"] for one in everybody["occupants"]] == [True]
        entries = (await bridge.call("xmppHistory", kinds=["connection"]))["entries"]
        return f"roomCreated: {[one.get('text') for one in entries]}"
    try:
        found = await bridge.bare("xmppOccupants", nickname=ROBOT)
    except RpcFailedError as error:
        return await _gone(bridge, error)
    if not found["occupants"]:
        return f"left: {found['left'][0]['why']}"
    (robot,) = found["occupants"]
    if not robot["voice"]:
        room = (await bridge.call("xmppInfo", target="room"))["room"]
        return f"no voice: role {robot['role']}, moderated {room['moderated']}"
    said = (await bridge.call("xmppHistory", **{"from": OWNER}, kinds=["message"]))["entries"]
    if not said:
        return "nothing was said"
    if all(one.get("type") == "chat" for one in said):
        return f"private: {said[-1]['body']}"
    if all("source" in one for one in said):
        return f"before it came: {said[-1]['delayedFrom']}"
    wire = (await bridge.call("xmppTrace", contains=said[-1]["body"], direction="in"))["entries"]
    return f"it was told: {wire[-1]['xml']}"


async def _gone(bridge: BridgeProcess, error: RpcFailedError) -> str:
    assert error.data["condition"] == "item-not-found"
    entries = (await bridge.call("xmppHistory", **{"from": ROBOT}, kinds=["nick"], limit=5))[
        "entries"
    ]
    if not entries:
        return f"never here: {error.message}"
    return f"is called {entries[-1]['newNickname']} now"


# The causes.


async def _wrong_password(scene: Scene) -> None:
    scene.settings["XMPP_PASSWORD"] = "not-the-password"


async def _untrusted_certificate(scene: Scene) -> None:
    del scene.settings["XMPP_TLS_CA_FILE"]


async def _nothing_listens(scene: Scene) -> None:
    (port,) = free_ports(1)
    scene.settings["XMPP_SERVICE"] = f"xmpp://127.0.0.1:{port}"


async def _wrong_domain(scene: Scene) -> None:
    scene.settings["XMPP_DOMAIN"] = "elsewhere.example"


async def _direct_tls_on_the_wrong_port(scene: Scene) -> None:
    service = scene.settings["XMPP_SERVICE"]
    scene.settings["XMPP_SERVICE"] = service.replace("xmpp://", "xmpps://")


async def _typo_in_the_room(scene: Scene) -> None:
    scene.settings["MUC_ROOM"] = f"typo-{scene.room}"


async def _members_only(scene: Scene) -> None:
    await configure(scene.wilma, membersonly="1")


async def _banned(scene: Scene) -> None:
    await scene.wilma.muc.set_affiliation(scene.room, "outcast", jid=scene.server.bot.jid)


async def _room_password(scene: Scene) -> None:
    await configure(scene.wilma, passwordprotectedroom="1", roomsecret="open-sesame")


async def _never_came(scene: Scene) -> None:
    del scene


async def _kicked(scene: Scene) -> None:
    await scene.enter_robot()

    async def kick() -> None:
        await scene.wilma.kick(ROBOT, "too many messages")

    scene.seen.append(kick)


async def _renamed(scene: Scene) -> None:
    robot = await scene.enter_robot()

    async def rename() -> None:
        robot.client.send_presence(pto=f"{scene.room}/Rob-2")
        await scene.wilma.joined("Rob-2")

    scene.seen.append(rename)


async def _no_voice(scene: Scene) -> None:
    await scene.enter_robot()
    await configure(scene.wilma, moderatedroom="1")
    await scene.wilma.muc.set_role(scene.room, ROBOT, "visitor")


async def _private(scene: Scene) -> None:
    await scene.enter_robot()

    async def whisper() -> None:
        to = JID(f"{scene.room}/McpDebug")
        scene.wilma.client.send_message(mto=to, mbody="are you there?", mtype="chat")

    scene.seen.append(whisper)


async def _before_it_came(scene: Scene) -> None:
    scene.wilma.say("hello, is anybody here?")
    await scene.wilma.heard("hello, is anybody here?")
    await scene.enter_robot()


async def _silence(scene: Scene) -> None:
    await scene.enter_robot()


CAUSES: dict[str, tuple[Callable[[Scene], Awaitable[None]], tuple[str, ...]]] = {
    "the password is wrong": (_wrong_password, ("not-authorized", "XMPP_PASSWORD")),
    "the certificate is not trusted": (
        _untrusted_certificate,
        ("certificate-verify-failed", "XMPP_TLS_CA_FILE"),
    ),
    "nothing listens there": (_nothing_listens, ("connection-refused", "XMPP_SERVICE")),
    "the domain is another one": (_wrong_domain, ("host-unknown", "XMPP_DOMAIN")),
    "the port is for STARTTLS": (
        _direct_tls_on_the_wrong_port,
        ("wrong-version-number", "xmpp:// instead of xmpps://"),
    ),
    "the room's name is misspelt": (_typo_in_the_room, ("roomCreated", "MUC_ROOM")),
    "the room is for members only": (_members_only, ("registration-required", "member")),
    "the account is banned": (_banned, ("forbidden", "ban")),
    "the room has a password": (_room_password, ("not-authorized", "MUC_PASSWORD")),
    "the bot never came": (_never_came, ("never here", OWNER)),
    "the bot was kicked": (_kicked, ("left", "kicked", "too many messages")),
    "the bot changed its name": (_renamed, ("is called Rob-2 now",)),
    "the bot has no voice": (_no_voice, ("no voice", "moderated True")),
    "the message was for the bridge alone": (_private, ("private", "are you there?")),
    "the message came before the bot": (_before_it_came, ("before it came", "T")),
    "nobody said anything": (_silence, ("nothing was said",)),
}


@asynccontextmanager
async def _scene(server: XmppServer) -> AsyncIterator[Scene]:
    settings = server.environment("starttls")
    async with (
        AsyncExitStack() as stack,
        Witness(server, server.witness, settings["MUC_ROOM"], OWNER) as wilma,
    ):
        yield Scene(server, wilma, settings, stack)


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("name", ["prosody", "ejabberd"])
async def test_the_tools_name_the_cause(
    name: str, cause: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: XmppServer = request.getfixturevalue(name)
    arrange, words = CAUSES[cause]
    async with _scene(server) as scene:
        await arrange(scene)
        async with BridgeProcess(tmp_path, scene.settings) as bridge:
            await bridge.initialize()
            if scene.seen:
                since = (await bridge.joined())["cursor"]
                for happening in scene.seen:
                    await happening()
                seen = await bridge.call(
                    "xmppWait", since=since, kinds=["message", "leave", "nick"], timeoutSeconds=10
                )
                assert seen["matched"], seen
            finding = await investigate(bridge)
    assert [word for word in words if word not in finding] == [], finding
