"""Serves one client's connection: stream, TLS, SASL, resource binding (RFC 6120, 4 to 7)."""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias
from xml.etree.ElementTree import Element

from bridge.sandbox.scram import LOGIN, MECHANISMS, SaslLogin
from bridge.sandbox.stanza import DOMAIN, PART_LIMIT, SandboxError, tag
from bridge.wire.names import BIND, CLIENT, HEADER, IQ, STREAM_ERRORS, STREAMS, TLS
from bridge.wire.xmlstream import DamagedElement, XmlStream, XmlStreamError
from bridge.wire.xmlwriter import escaped

STANZA_LIMIT = 262_144
"""Bytes of one stanza; Prosody's and ejabberd's limit too."""

DEPTH_LIMIT = 64
"""Most levels of nested elements; `xmlwriter.written` recurses for each level."""

UNREAD_LIMIT = 4 * 1024 * 1024
"""Most bytes that wait for a client that does not read; with more, it is cut off."""

CLOSING_SECONDS = 0.5
"""How long the connection stays open after the end of the stream, for the client to read it."""


class TlsIdentity(NamedTuple):
    """The certificate of a server."""

    context: ssl.SSLContext
    """What the server needs to begin TLS."""
    path: Path
    """The file in PEM with which clients check the certificate."""


Observer: TypeAlias = Callable[["Stream", bool, str], None]
"""A function that gets each piece of XML: its stream, whether the client sent it, and the XML."""


def unobserved(stream: "Stream", sent: bool, xml: str) -> None:
    """Do nothing with a piece of XML. The default observer."""
    del stream, sent, xml


class StreamEndedError(SandboxError):
    """The stream is over; the text is a condition of RFC 6120 section 4.9.3, or empty."""


class Stream:
    """One connection, from which elements are read one by one; `jid` is empty until it is bound."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tls: ssl.SSLContext | None = None,
        observe: Observer = unobserved,
    ) -> None:
        self.jid = ""
        self._reader = reader
        self._writer = writer
        self._tls = tls
        self._observe = observe
        self._elements: Iterator[Element] = iter(())
        self._handshake: asyncio.Future[None] = asyncio.Future()

    async def secure(self) -> None:
        """Have the client begin TLS, if there is a certificate (RFC 6120, section 5)."""
        if self._tls is None:
            return
        await self._open(tag("starttls", tag("required"), xmlns=TLS))
        if (await self.next()).tag != f"{{{TLS}}}starttls":
            raise StreamEndedError("policy-violation")
        self.send(tag("proceed", xmlns=TLS))
        # What the client sent in clear after `starttls` must not pass for secured.
        self._elements = iter(())
        self._handshake = asyncio.ensure_future(self._writer.start_tls(self._tls))
        await asyncio.wait({self._handshake})
        if self._handshake.cancelled():  # we have ended the stream meanwhile
            raise StreamEndedError
        self._handshake.result()

    async def authenticate(self, accounts: Callable[[], Mapping[str, str]]) -> str:
        """Let the client log in, and return the name of its account (RFC 6120 section 6.4).

        `accounts` is called at each attempt, and returns names and passwords.
        """
        # Without TLS, no password is to come in clear.
        login = SaslLogin(accounts, MECHANISMS if self._tls else MECHANISMS[:-1])
        await self._open(login.feature)
        while True:
            element = await self.next()
            if element.tag not in LOGIN:
                raise StreamEndedError("not-authorized")
            answer, username = login.receive(element)
            self.send(answer)
            if username:
                return username

    async def bind(self, username: str) -> None:
        """Bind a full JID on a new stream (RFC 6120 sections 6.4.6 and 7)."""
        await self._open(tag("bind", xmlns=BIND))
        iq = await self.next()
        request = iq.find(f"{{{BIND}}}bind")
        if iq.tag != IQ or request is None:
            raise StreamEndedError("not-authorized")
        resource = request.findtext(f"{{{BIND}}}resource") or secrets.token_hex(8)
        self.jid = f"{username}@{DOMAIN}/{resource[:PART_LIMIT]}"
        bound = tag("bind", tag("jid", escaped(self.jid)), xmlns=BIND)
        self.send(tag("iq", bound, type="result", id=iq.get("id")))

    async def next(self) -> Element:
        """Return the stream's header, or the next complete element in it."""
        try:
            while (element := next(self._elements, None)) is None:
                if self._xml.ended or not (data := await self._reader.read(65_536)):
                    # A client that hangs up has ended its stream, too.
                    self._observe(self, True, "</stream:stream>")
                    raise StreamEndedError
                self._elements = self._xml.feed(data)
        except XmlStreamError as error:
            raise StreamEndedError(error.condition) from None
        if isinstance(element, DamagedElement):
            raise StreamEndedError(element.condition)
        self._observe(self, True, self._xml.raw.decode(errors="replace"))
        return element

    @property
    def _out(self) -> asyncio.WriteTransport:
        return self._writer.transport  # TLS has replaced the first one

    def send(self, xml: str) -> None:
        """Send to the client, or cut it off if it has left too much unread."""
        if not self._out.is_closing():
            self._observe(self, False, xml)
            self._out.write(xml.encode())
            if self._out.get_write_buffer_size() > UNREAD_LIMIT:
                self._out.abort()

    def end(self, condition: str = "") -> None:
        """End the stream, with an error if there is a condition (RFC 6120 section 4.9)."""
        if condition:
            cause = tag(condition, xmlns=STREAM_ERRORS)
            self.send(tag("stream:error", cause))
        self.send("</stream:stream>")
        self._handshake.cancel()  # asyncio does not end it when we close the connection
        self._out.close()
        asyncio.get_running_loop().call_later(CLOSING_SECONDS, self._out.abort)

    def cut(self) -> None:
        """Break the connection off, as a network that fails does."""
        self._handshake.cancel()
        self._out.abort()

    async def _open(self, feature: str) -> None:
        """Begin a stream, the first or a new one (RFC 6120 sections 4.2 and 4.3)."""
        self._xml = XmlStream(max_bytes=STANZA_LIMIT, max_depth=DEPTH_LIMIT)
        self._elements = iter(())
        try:
            header = await self.next()
        finally:  # the header is sent before a stream error, too
            head = f"from='{DOMAIN}' id='{secrets.token_hex(8)}' version='1.0'"
            head += f" xmlns='{CLIENT}' xmlns:stream='{STREAMS}'"
            self.send(f"<?xml version='1.0'?><stream:stream {head}>")
        if header.tag != HEADER:
            raise StreamEndedError("invalid-namespace")
        if header.get("to") != DOMAIN:
            raise StreamEndedError("host-unknown")
        self.send(f"<stream:features>{feature}</stream:features>")
