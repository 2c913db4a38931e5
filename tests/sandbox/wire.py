"""A client that is nothing but a socket, for input that no library would send."""

import asyncio
import base64
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from bridge.sandbox.server import ACCOUNT, HOST, Sandbox
from bridge.wire.scram import ScramClient

LIMIT = 30
"""Seconds after which something that ought to happen counts as not happening."""

HEADER = (
    "<?xml version='1.0'?><stream:stream to='localhost' version='1.0' xmlns='jabber:client'"
    " xmlns:stream='http://etherx.jabber.org/streams'>"
)


class Wire:
    """What was sent and what came back, as text."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._received = ""

    @classmethod
    @asynccontextmanager
    async def to(cls, address: Sandbox, receive_buffer: int = 0) -> AsyncIterator[Self]:
        """Connect; with a small receive buffer, what is not read soon waits at the server."""
        plug = socket.socket()
        if receive_buffer:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plug.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plug, (HOST, address.port))
        reader, writer = await asyncio.open_connection(sock=plug)
        try:
            yield cls(reader, writer)
        finally:
            writer.transport.abort()

    def send(self, xml: str | bytes) -> None:
        self._writer.write(xml.encode() if isinstance(xml, str) else xml)

    async def sent(self) -> None:
        async with asyncio.timeout(LIMIT):
            await self._writer.drain()

    async def until(self, text: str) -> str:
        """Read up to and with `text`."""
        async with asyncio.timeout(LIMIT):
            while text not in self._received:
                data = await self._reader.read(65536)
                assert data, f"{text!r} never came; this did: {self._received[-500:]!r}"
                self._received += data.decode()
        before, text, self._received = self._received.partition(text)
        return before + text

    async def rest(self) -> str:
        async with asyncio.timeout(LIMIT):
            while data := await self._reader.read(65536):
                self._received += data.decode()
        return self._received

    async def open(self) -> None:
        self.send(HEADER)
        await self.until("</stream:features>")

    async def authenticate(self, username: str, password: str) -> None:
        client = await self.prove(username, password)
        client.verify(content(await self.until("</success>")))

    async def prove(self, username: str, password: str) -> ScramClient:
        """Send the proof of the password; the server has to prove that it knows it, too."""
        client = ScramClient("SCRAM-SHA-256", username, "nonce")
        self.send(element("auth", client.first(), " mechanism='SCRAM-SHA-256'"))
        client.challenge(content(await self.until("</challenge>")))
        self.send(element("response", client.final(password)))
        return client

    async def bind(self, resource: str = "") -> str:
        wanted = f"<resource>{resource}</resource>" if resource else ""
        bind = f"<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>{wanted}</bind>"
        self.send(f"<iq type='set' id='bind'>{bind}</iq>")
        match = re.search("<jid>(.*)</jid>", await self.until("</iq>"))
        assert match is not None
        return match[1]

    async def log_in(self, address: Sandbox, resource: str = "", name: str = ACCOUNT) -> str:
        await self.open()
        await self.authenticate(name, address.add_account(name))
        await self.open()
        return await self.bind(resource)

    def enter(self, room: str, nick: str) -> None:
        muc = "<x xmlns='http://jabber.org/protocol/muc'/>"
        self.send(f"<presence to='{room}/{nick}'>{muc}</presence>")

    async def join(self, room: str, nick: str) -> str:
        self.enter(room, nick)
        return await self.until("<status code='110'/>")

    async def leave(self, room: str, nick: str) -> None:
        self.send(f"<presence to='{room}/{nick}' type='unavailable'/>")
        await self.until("<status code='110'/>")

    def say(self, body: str, room: str) -> None:
        self.send(f"<message to='{room}' type='groupchat'><body>{body}</body></message>")

    async def told(self) -> str:
        """What has come by the time that the server answers."""
        self.send("<iq type='get' id='ping'><ping xmlns='urn:xmpp:ping'/></iq>")
        return await self.until("<iq id='ping'")


@asynccontextmanager
async def logged_in(address: Sandbox, name: str = ACCOUNT, room: str = "") -> AsyncIterator[Wire]:
    """A client of this account, which is added, in the room under its name."""
    async with Wire.to(address) as wire:
        await wire.log_in(address, name=name)
        if room:
            await wire.join(room, name)
        yield wire


def element(name: str, text: str, attributes: str = "") -> str:
    encoded = base64.b64encode(text.encode()).decode()
    return f"<{name} xmlns='urn:ietf:params:xml:ns:xmpp-sasl'{attributes}>{encoded}</{name}>"


def content(xml: str) -> str:
    match = re.search("<(?:challenge|success)[^>]*>([^<]*)<", xml)
    assert match is not None
    return base64.b64decode(match[1]).decode()
