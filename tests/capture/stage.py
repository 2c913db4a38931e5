"""Where bots do their deeds: a program with a bot, an occupant who owns the rooms, and a server."""

import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from bridge.sandbox.certificate import self_signed
from bridge.sandbox.server import HOST, SERVICE, Sandbox
from bridge.sandbox.stanza import DOMAIN
from bridge.sandbox.stream import Stream
from tests.capture.deeds import MUC, Deed
from tests.capture.program import BotProgram, Clock, Line
from tests.servers.process import BOT, ROBOT, WITNESS
from tests.servers.server import XmppServer

SLIXMPP = (sys.executable, str(Path(__file__).parent / "bots" / "slixmpp_bot.py"))

UNBOUND = (
    *("no-starttls", "wrong-password", "other-mechanism", "wrong-binding", "downgraded"),
    "gives-up",
)
"""The options with which a bot does not get in."""


Between: TypeAlias = Callable[
    [Mapping[str, str], Clock], AbstractAsyncContextManager[dict[str, str]]
]
"""Takes the variables that lead to the network; yields those that lead to itself."""


@dataclass
class Stage:
    server: XmppServer
    bot: BotProgram
    owner: BotProgram
    line: Line
    clock: Clock
    start: Callable[[], AbstractAsyncContextManager[BotProgram]]
    streams: Sequence[Stream]
    """The streams of the sandbox, in the order in which they last got something."""

    async def do(self, deed: Deed) -> list[str]:
        """Let the bot do a deed on a stream of its own; return its log."""
        begin = len(self.bot.lines)
        room, other = self.server.room(), self.server.room()
        words = {"{room}": room, "{other}": other, "{account}": self.server.bot.jid}
        self.owner.write(f"<presence to='{room}/Ann'><x xmlns='{MUC}'/></presence>")
        await self.owner.sees(f"{room}/Ann")
        await self.owner.sees("code=110")
        self._login(deed.option)
        if deed.option not in UNBOUND:
            await self.bot.sees("</jid>")
        for verb, text in deed.steps:
            for name, value in words.items():
                text = text.replace(name, value)
            await self._step(verb, text, deed.option)
        if not deed.steps or deed.steps[-1][0] not in {"close", "closed"}:
            await self._step("close", "", "")
        return self.bot.lines[begin:]

    def _login(self, option: str, program: BotProgram | None = None) -> None:
        account = self.server.bot
        password = "wrong" if option == "wrong-password" else account.password
        (program or self.bot).write(f"login {account.username} {password} r {option}")

    async def _step(self, verb: str, text: str, option: str) -> None:
        match verb:
            case "bot" | "again":
                self.bot.write(text or verb)
            case "owner":
                self.owner.write(text)
            case "sees":
                await self.bot.sees(text)
            case "hears":
                await self.owner.sees(text)
            case "later":
                self.clock.forward(float(text))
            case "cut":
                self.line.cut()
            case "swallow":
                self.line.swallows = True
            case "server":
                self.streams[-1].send(text)
            case "end":
                self.streams[-1].end()
            case "opens":
                self._login(option)
                await self.bot.sees("</jid>")
            case "twin":
                async with self.start() as twin:
                    self._login(option, twin)
                    await twin.sees("</jid>")
            case "close":
                self.bot.write("close")
                await self.bot.closed()
            case "closed":
                await self.bot.closed()


@asynccontextmanager
async def secured_sandbox() -> AsyncIterator[tuple[XmppServer, list[Stream]]]:
    """The sandbox with TLS, and the streams of the bot, that which last got something last."""
    streams: list[Stream] = []

    def observe(stream: Stream, sent: bool, xml: str) -> None:
        del sent, xml
        if stream.jid.startswith(f"{BOT.jid}/"):
            streams[:] = [*(other for other in streams if other is not stream), stream]

    with self_signed() as identity:
        async with Sandbox(identity=identity, observe=observe) as sandbox:
            for account in (BOT, WITNESS):
                sandbox.add_account(account.username, account.password)
            yield (
                XmppServer(
                    name="sandbox",
                    domain=DOMAIN,
                    host=HOST,
                    starttls_port=sandbox.port,
                    direct_tls_port=None,
                    plaintext_port=None,
                    ca_file=identity.path,
                    muc=SERVICE,
                    bot=BOT,
                    witness=WITNESS,
                    robot=ROBOT,
                ),
                streams,
            )


@asynccontextmanager
async def staged(
    server: XmppServer,
    command: Sequence[str],
    streams: Sequence[Stream] = (),
    between: Between | None = None,
) -> AsyncIterator[Stage]:
    """With `between`, something stands between the bot and its network."""
    port = server.port(server.transports[0])
    clock = Clock()
    trust = str(server.ca_file)
    direct = {
        "XMPP_DOMAIN": server.domain,
        "XMPP_TLS_CA_FILE": trust,
        "NODE_EXTRA_CA_CERTS": trust,
        "XMPP_SERVICE": f"xmpp://{server.host}:{port}",
    }
    async with AsyncExitStack() as stack:
        line = await stack.enter_async_context(Line(server.host, port))
        through = {**direct, "XMPP_SERVICE": f"xmpp://127.0.0.1:{line.port}"}
        if between is not None:
            through = await stack.enter_async_context(between(through, clock))

        def start() -> AbstractAsyncContextManager[BotProgram]:
            return BotProgram.running(SLIXMPP, direct, clock)

        owner = await stack.enter_async_context(start())
        run = BotProgram.running(command, through, clock)
        bot = await stack.enter_async_context(run)
        account = server.witness
        owner.write(f"login {account.username} {account.password} owner ")
        await owner.sees("</jid>")
        yield Stage(server, bot, owner, line, clock, start, streams)
