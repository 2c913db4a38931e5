"""A tap in the loop of the test, and a client that says what the test has it say."""

import asyncio
import ssl
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from ssl import TLSVersion
from typing import Self

from bridge.capture.finding import Finding, Severity
from bridge.commands.tap import TICK_SECONDS, _listening
from bridge.sandbox.certificate import self_signed
from bridge.settings.table import Settings
from bridge.tap.listener import Link, listen
from bridge.tap.record import CaptureFile
from bridge.tap.witness import Witness
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, Scram, Script, ScriptedServer, Wire
from tests.servers.certificates import Authority, Certificate
from tests.xmpp.probing import settings as settings_of

SECONDS = 60.0
"""How long anything may take."""
LEAVING_SECONDS = 5.0
"""How long the end of a connection may take to come."""
STREAM = "<stream:stream to='localhost' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"


@dataclass
class Tap:
    port: int
    anchor: Path | None
    witness: Witness
    record: CaptureFile
    shown: list[Finding]

    def names(self) -> list[str]:
        """The rule and the row or cause of each error and warning, in their order."""
        notes = Severity.NOTE
        return [f"{each.name} {each.cause}" for each in self.shown if each.severity is not notes]

    def links(self) -> int:
        """How many clients are connected."""
        return sum("Link.serve" in repr(task.get_coro()) for task in asyncio.all_tasks())

    async def is_left(self) -> None:
        """Wait until it knows that the client has gone: that says so before its last bytes come.

        A client that connects anew by itself is waited for in vain.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                while self.links():  # noqa: ASYNC110 - tasks tell nobody that they end
                    await asyncio.sleep(0.01)

    async def shows(self, name: str) -> Finding:
        """Wait for a finding of this rule."""
        async with asyncio.timeout(SECONDS):
            while not (told := [each for each in self.shown if each.name == name]):
                await asyncio.sleep(0)
                self.witness.pause()
                await asyncio.sleep(0.01)
        return told[0]


@asynccontextmanager
async def tapped(
    settings: Settings | Mapping[str, str],
    folder: Path,
    *,
    login: bool = False,
    component: bool = False,
    clock: Callable[[], float] = time.time,
    command: str = "",
) -> AsyncIterator[Tap]:
    settings = settings if isinstance(settings, Settings) else settings_of(settings)
    record = CaptureFile(folder, settings.domain if component else settings.jid)
    shown: list[Finding] = []
    witness = Witness(record, settings.rooms, shown.append, clock=clock, command=command)
    sock = _listening("127.0.0.1:0")
    with self_signed(settings.domain, "tap") as identity:
        tap = Tap(sock.getsockname()[1], identity.path, witness, record, shown)
        certificate = None if component else identity
        link = partial(Link, settings, certificate, witness, logs_in=login)
        task = asyncio.create_task(listen(sock, link))
        ticks = asyncio.create_task(_tick(witness))
        try:
            yield tap
        finally:
            for each in (task, ticks):
                each.cancel()
            await asyncio.gather(task, ticks, return_exceptions=True)
            witness.close(settings.domain)


async def _tick(witness: Witness) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        witness.pause()


class Client:
    """A client by hand: `got` is all that came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.got = b""
        self._seen = 0
        self.reader, self.writer = reader, writer

    @classmethod
    async def at(cls, port: int, context: ssl.SSLContext | None = None) -> Self:
        name = "localhost" if context else None
        return cls(
            *await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
        )

    def send(self, xml: str | bytes) -> None:
        self.writer.write(xml.encode() if isinstance(xml, str) else xml)

    async def sees(self, text: str) -> bytes:
        """Wait for a text behind the one before; return all between."""
        async with asyncio.timeout(SECONDS):
            while (end := self.got.find(text.encode(), self._seen)) < 0:
                data = await self.reader.read(65_536)
                if not data:
                    raise EOFError(self.got[self._seen :][-2000:])
                self.got += data
        begin, self._seen = self._seen, end + len(text)
        return self.got[begin : self._seen]

    async def gone(self) -> bytes:
        """Read until the other side ends the connection; return all that came."""
        async with asyncio.timeout(SECONDS):
            try:
                while data := await self.reader.read(65_536):
                    self.got += data
            except ConnectionError:
                pass
        self.writer.close()
        return self.got

    @property
    def tls(self) -> ssl.SSLObject | None:
        secured: ssl.SSLObject | None = self.writer.get_extra_info("ssl_object")
        return secured

    async def log_in(self, *account: str) -> None:
        """Get in; the scripted server takes every login."""
        self.send(STREAM)
        await self.sees("</stream:features>")
        proof = b64encode("\0".join(("", *(account or "ab"))).encode()).decode()
        self.send(
            f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{proof}</auth>"
        )
        await self.sees("<success")
        self.send(STREAM)
        await self.sees("</stream:features>")
        bind = "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
        self.send(f"<iq type='set' id='b'>{bind}</iq>")
        await self.sees("</iq>")

    async def secure(self, anchor: Path | None, newest: TLSVersion = TLSVersion.TLSv1_3) -> None:
        """Begin TLS after `<starttls/>`, with this version at most."""
        context = ssl.create_default_context(cafile=anchor)
        context.maximum_version = newest
        self.send(STREAM)
        await self.sees("</stream:features>")
        self.send(STARTTLS)
        await self.sees("proceed")
        await self.writer.start_tls(context, server_hostname="localhost")


# A server that says what a test has it say.


def plain(*, login: scripted.Step = Scram(), stand: scripted.Step = scripted.stand) -> Script:  # noqa: B008
    return replace(HONEST, authenticate=login, stand=stand, join=nothing)


async def nothing(wire: Wire) -> None:
    del wire


async def logged_in(port: int) -> Client:
    """A client by hand that is in, at a server that takes every login."""
    client = await Client.at(port)
    await client.log_in()
    return client


async def trusting(wire: Wire) -> None:
    await wire.open(scripted.mechanisms("PLAIN"))
    await wire.element("auth")
    wire.send(scripted.sasl("success"))


def easy(stand: scripted.Step) -> Script:
    return plain(login=trusting, stand=stand)


def wrong_certificate(wrong: str, authority: Authority, folder: Path) -> Certificate:
    """A certificate for the domain of `ScriptedServer` that is wrong in one of three ways."""
    match wrong:
        case "expired":
            return authority.issue_expired("localhost")
        case "of another name":
            return authority.issue("example.org")
    return Authority(folder / "other").issue("localhost")


async def forgotten(server: ScriptedServer) -> None:
    await asyncio.wait(server._conversations)  # noqa: SLF001 - it ends when its client has gone
