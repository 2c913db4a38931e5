"""A small XMPP server on the loopback interface.

It is for trying the bridge out and for its tests: no TLS, no other servers, nothing on disk,
and a password that is new each time. For anything else run Prosody or ejabberd.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from xml.etree.ElementTree import Element

from bridge.sandbox.domain import Domain
from bridge.sandbox.scram import Credentials
from bridge.sandbox.stream import CLOSING_TIME, Stream

HOST = "127.0.0.1"
"""The only address that is listened on: there is no TLS to protect any other."""

DOMAIN = "localhost"
"""The XMPP domain; rooms are on its subdomain `rooms`."""

ACCOUNT = "debug"
"""The account that there always is."""


@dataclass(frozen=True)
class SandboxAddress:
    """Where a running sandbox is and how to get in."""

    host: str
    port: int
    domain: str
    username: str
    password: str = field(repr=False)
    room: str

    def environment(self) -> dict[str, str]:
        """Give the settings that lead the bridge here."""
        return {
            "XMPP_SERVICE": f"xmpp://{self.host}:{self.port}",
            "XMPP_DOMAIN": self.domain,
            "XMPP_USERNAME": self.username,
            "XMPP_PASSWORD": self.password,
            "MUC_ROOM": self.room,
            "XMPP_ALLOW_PLAINTEXT": "1",
        }


class Switchboard:
    """Carries stanzas between the connections and the domain."""

    def __init__(self, domain: Domain, credentials: Mapping[str, Credentials]) -> None:
        self.credentials = credentials
        self._domain = domain
        self._streams: set[Stream] = set()
        self._sessions: dict[str, Stream] = {}
        self._closed = False
        self._vacant = asyncio.Event()
        self._vacant.set()

    @property
    def domain(self) -> str:
        """The name that a stream header has to be addressed to."""
        return self._domain.name

    def opened(self, stream: Stream) -> None:
        """Count a connection in."""
        self._streams.add(stream)
        self._vacant.clear()
        if self._closed:
            # Accepted in the very turn of the loop in which listening ended.
            stream.abort()

    def bound(self, stream: Stream) -> None:
        """Make a stream its JID's session, in place of one that was (RFC 6120 7.7.2.2)."""
        replaced = self._sessions.get(stream.jid)
        if replaced is not None:
            replaced.fail("conflict")
        self._sessions[stream.jid] = stream
        self._domain.bind(stream.jid)

    def received(self, stream: Stream, stanza: Element) -> None:
        """Deliver all that comes of a stanza."""
        self._deliver(self._domain.receive(stream.jid, stanza, datetime.now(UTC)))

    def ended(self, stream: Stream) -> None:
        """Take the session out of its rooms, which in a shutdown need not be told."""
        if self._sessions.get(stream.jid) is stream:
            del self._sessions[stream.jid]
            stanzas = self._domain.unbind(stream.jid, datetime.now(UTC))
            if not self._closed:
                self._deliver(stanzas)

    def lost(self, stream: Stream) -> None:
        """Count a connection out, and its session too if that ended with it."""
        self.ended(stream)
        self._streams.discard(stream)
        if not self._streams:
            self._vacant.set()

    async def shut_down(self) -> None:
        """Tell every client, give each a moment to go, then cut those that stay."""
        self._closed = True
        for stream in list(self._streams):
            stream.fail("system-shutdown")
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSING_TIME):
                    await self._vacant.wait()
        finally:
            for stream in list(self._streams):
                stream.abort()
        await self._vacant.wait()

    def _deliver(self, stanzas: list[Element]) -> None:
        for stanza in stanzas:
            recipient = self._sessions.get(stanza.get("to", ""))
            if recipient is not None:
                recipient.send(stanza)


class Sandbox:
    """The server, for as long as the block lasts: `async with Sandbox() as address:`."""

    def __init__(
        self,
        *,
        port: int = 0,
        accounts: Mapping[str, str] | None = None,
        resident: bool = True,
    ) -> None:
        self._port = port
        self._passwords = {ACCOUNT: secrets.token_urlsafe(18), **(accounts or {})}
        self._resident = resident

    async def __aenter__(self) -> SandboxAddress:
        """Listen; port 0 means any that is free."""
        now = datetime.now(UTC)
        domain = Domain(DOMAIN, secrets.token_hex(4), resident=self._resident, now=now)
        credentials = {
            username.lower(): Credentials.derive(password, secrets.token_bytes(16))
            for username, password in self._passwords.items()
        }
        self._switchboard = switchboard = Switchboard(domain, credentials)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Stream(switchboard), HOST, self._port)
        port: int = self._server.sockets[0].getsockname()[1]
        return SandboxAddress(HOST, port, DOMAIN, ACCOUNT, self._passwords[ACCOUNT], domain.lobby)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and end every stream, within a second."""
        self._server.close()
        await self._switchboard.shut_down()
        await self._server.wait_closed()
