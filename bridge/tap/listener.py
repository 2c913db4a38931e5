"""The sockets: clients that come, and the server that each is led to.

A side that reads slowly slows the other: tap reads no more from one than the other takes. tap sets
no limit to how long a side may be silent.
"""

import asyncio
import select
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from xml.etree.ElementTree import Element

from bridge.sandbox.scram import SaslLogin
from bridge.sandbox.stream import TlsIdentity
from bridge.settings.table import Settings
from bridge.tap import relay
from bridge.tap.relay import Relay, Step
from bridge.tap.witness import Witness
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.scram import ScramError
from bridge.xmpp.link import sasl, tls
from bridge.xmpp.link.connection import fault_of, fault_of_mistake
from bridge.xmpp.link.endpoint import connect, resolve
from bridge.xmpp.link.from_slixmpp import sasl_prepared
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Place, Stage

STAGE_SECONDS = 10.0
"""Limit for connecting upstream, for each TLS handshake, and for tap's own login."""

GRACE_SECONDS = 0.5
"""How long connections have to end by themselves once tap ends."""

UNSENT_BYTES = 256 * 1024
"""If more waits for a side to read it, the other side is not read."""

TLS_BEGINS = b"\x16"
"""The first byte of a TLS handshake (RFC 8446, section 5.1)."""


class Side(asyncio.Protocol):
    """One connection: the client's or the server's."""

    other: "Side"
    """The connection to which everything goes that comes here."""

    def __init__(self, receive: Callable[[bytes], None], lost: Callable[[bool], None]) -> None:
        self._receive, self._lost = receive, lost
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.Event()
        """Set while there is no connection."""
        self.gone.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.gone.clear()
        transport.set_write_buffer_limits(high=UNSENT_BYTES)

    def data_received(self, data: bytes) -> None:
        """Hand over what came."""
        self._receive(data)

    def pause_writing(self) -> None:
        """Read nothing from the other side until this side has read."""
        self.other.pause()

    def resume_writing(self) -> None:
        """Read from the other side again."""
        self.other.resume()

    def connection_lost(self, reason: BaseException | None) -> None:
        """Report the end, and whether the connection was cut."""
        self.transport = None
        self.gone.set()
        self._lost(reason is not None)

    @property
    def is_read(self) -> bool:
        """Whether what comes here is read: not so while the other side is slow, or if it ended."""
        return self.transport is not None and self.transport.is_reading()

    def pause(self) -> None:
        """Read nothing until `resume`."""
        if self.transport is not None:
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self.transport is not None:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send, unless the connection has ended.

        If this side has reset it, that would fail, and asyncio would lose the last words of this
        side that are not read yet, such as why a server ends the stream in the midst of a stanza.
        """
        if self.transport is not None and not _is_reset(self.transport):
            self.transport.write(data)

    def end(self, *, was_cut: bool = False) -> None:
        """Close the connection once everything is sent, or cut it."""
        if self.transport is not None:
            (self.transport.abort if was_cut else self.transport.close)()

    async def close(self) -> None:
        """Close the connection, and cut it if it does not end TLS in good order."""
        self.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self.gone.wait()
        self.end(was_cut=True)

    async def secure(self, context: ssl.SSLContext, domain: str | None) -> None:
        """Begin TLS: as the client of a `domain`, or as the server; raises `OSError`."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError
        secured = await asyncio.get_running_loop().start_tls(
            self.transport,
            self,
            context,
            server_side=domain is None,
            server_hostname=domain,
            ssl_handshake_timeout=STAGE_SECONDS,
        )
        if secured is None:  # it has ended meanwhile
            raise ConnectionResetError
        self.connection_made(secured)


class Link:
    """One client's connection, and the connection to the server that belongs to it."""

    def __init__(
        self,
        settings: Settings,
        identity: TlsIdentity | None,
        witness: Witness,
        *,
        logs_in: bool = False,
    ) -> None:
        """`identity` is the certificate for clients; None for components, which speak no TLS.

        If it `logs_in`, the client logs in to tap, and tap logs in to the server.
        """
        self._settings, self._identity = settings, identity
        self._domain = settings.domain.strip("[]")
        # With --to there may be no settings.
        self._place = Place.of(settings._replace(rooms=settings.rooms or ("the room",)))
        self._login: SaslLogin | None = None
        if logs_in:
            words = settings.username, settings.password.reveal()
            username, password = map(sasl_prepared, words)
            self._login = SaslLogin(lambda: {username.lower(): password})
        self._relay = Relay(self._login)
        self._witness = witness
        self._session = witness.begin()
        self._down = Side(lambda data: self._receive(True, data), lambda cut: self._lost(True, cut))
        self._up = Side(lambda data: self._receive(False, data), lambda cut: self._lost(False, cut))
        self._down.other, self._up.other = self._up, self._down
        self._opening: Side | None = None
        """The side to which a connection, or TLS, is just being made."""
        self._answers = asyncio.Queue[Element | None]()
        """The server's answers to tap's own login; None at the end of either connection."""
        self._work = asyncio.Queue[Callable[[], Awaitable[None]] | None]()
        """What is to be done while both connections stand; None at their end."""

    async def serve(self, sock: socket.socket) -> None:
        """Serve a client until either side has ended its connection."""
        try:
            begins = await _first_byte(sock)
            direct = begins == TLS_BEGINS and self._identity is not None
            if begins and await self._reach(direct=direct):
                await self._take(sock, direct=direct)
                while (work := await self._work.get()) is not None:
                    await work()
        except (OSError, ConnectionFailedError) as error:
            self._explain(error)
        finally:
            self._witness.end(self._session, None)
            await asyncio.gather(self._down.close(), self._up.close())
            sock.close()

    def check(self, task: asyncio.Task[None]) -> None:
        """Log the mistake in tap that ended the connections, if one did."""
        if not task.cancelled() and (error := task.exception()) is not None:
            fault_of_mistake("tap", error, self._place)

    async def _reach(self, *, direct: bool) -> bool:
        """Connect to the server, `direct` with TLS at once; raises `OSError`.

        Return False if it does not begin as the client does.
        """
        self._opening = self._up
        self._context = await asyncio.to_thread(tls.make_context, self._settings, self._place)
        async with asyncio.timeout(STAGE_SECONDS):
            hosts = await resolve(self._settings)
            if self._identity is not None:
                # A client that begins with TLS is led to a server that does so, and the others
                # to one that does not.
                hosts = [each for each in hosts if each[0].service.direct_tls == direct]
            if not hosts:
                self._add("mismatch", server=self._place.service)
                return False
            endpoint, sock = await connect(hosts, STAGE_SECONDS)
        self._place = self._place._replace(service=str(endpoint.service))
        await asyncio.get_running_loop().create_connection(lambda: self._up, sock=sock)
        self._up.pause()
        return True

    async def _take(self, sock: socket.socket, *, direct: bool) -> None:
        """Take the client, and let both sides speak; raises `OSError`."""
        await asyncio.get_running_loop().connect_accepted_socket(lambda: self._down, sock)
        # asyncio has not read from it yet: this task was scheduled before the reader.
        self._down.pause()
        self._relay.is_secured = direct
        if direct:
            await self._begin_tls(b"")
        else:
            self._let_speak()

    def _let_speak(self) -> None:
        self._opening = None
        self._up.resume()
        self._down.resume()

    def _receive(self, sent: bool, data: bytes) -> None:
        self._play(self._relay.receive(sent, data))
        # While the server reads slowly, tap reads no more of the client's stanza.
        self._witness.hold(self._session, self._relay.held if self._down.is_read else 0)

    def _play(self, steps: Iterable[Step]) -> None:
        # What came together goes on together: a server may take a blank behind `<starttls/>` for
        # the beginning of TLS if it comes by itself.
        out = {self._up: bytearray(), self._down: bytearray()}
        for step in steps:
            match step:
                case relay.Passage(sent, data, element):
                    out[self._up if sent else self._down] += data
                    if element is not None:
                        self._witness.take(self._session, sent, element, data)
                case relay.Remark(name, words):
                    self._add(name, **words)
                    if name == "unreadable":
                        self._work.put_nowait(None)
                case relay.LoginAnswer(element):
                    self._answers.put_nowait(element)
                case relay.BeginTls(proceed):
                    self._up.pause()
                    self._down.pause()
                    self._work.put_nowait(partial(self._begin_tls, proceed))
                case relay.LogIn(success):
                    self._work.put_nowait(partial(self._log_in, success))
        for side, written in out.items():
            side.write(bytes(written))
        self._witness.flush()

    async def _begin_tls(self, proceed: bytes) -> None:
        """Begin TLS with the server, then with the client; raises `OSError`."""
        assert self._identity is not None
        self._opening = self._up
        await self._up.secure(self._context, self._domain)
        self._up.pause()
        self._down.write(proceed)
        self._opening = self._down
        await self._down.secure(self._identity.context, None)
        self._let_speak()

    async def _log_in(self, success: str) -> None:
        """Log in to the server, bound to TLS if the server offers that; then tell the client."""
        assert self._login is not None
        secured = self._up.transport and self._up.transport.get_extra_info("ssl_object")
        login = self._login
        try:
            if not secured and not self._settings.allow_plaintext:
                raise ConnectionFailedError(faults.of("no-starttls", self._place))
            async with asyncio.timeout(STAGE_SECONDS):
                mechanism, binding = await sasl.log_in(
                    self._settings,
                    self._place,
                    self._relay.offer,
                    self._exchange,
                    bindings=tls.channel_bindings(secured, verified=True) if secured else [],
                    genuine=bool(secured),
                )
        except (ConnectionFailedError, ScramError, TimeoutError) as error:
            fault = fault_of(error, Stage.SASL, self._place)
            self._add("server-login", message=fault.message, hint=fault.hint)
            condition = fault.condition if fault.condition in names.CONDITIONS else "not-authorized"
            self._play([self._relay.refuse(condition)])
            return
        own = f"{mechanism}{f', bound by {binding}' if binding else ''}"
        flag = f" (flag {login.flag})" if login.flag else ""
        self._add("own-login", mechanism=login.mechanism, flag=flag, own=own)
        self._play(self._relay.logged_in(success))

    async def _exchange(self, element: Element) -> Element:
        """Send this to the server, and wait for its answer, as long as both connections stand."""
        self._up.write(xml_of(element).encode())
        answer = await self._answers.get()
        if answer is None:
            raise ConnectionResetError
        return answer

    def _lost(self, sent: bool, was_cut: bool) -> None:
        """End the other connection too, in the same way, once it has what this side had said."""
        self._play([self._relay.close(sent)])
        self._witness.end(self._session, sent)
        (self._up if sent else self._down).end(was_cut=was_cut)
        self._opening = None  # the end of this side explains what fails from now on
        self._answers.put_nowait(None)
        self._work.put_nowait(None)

    def _explain(self, error: OSError | ConnectionFailedError) -> None:
        """Say why a connection, or TLS, could not be made."""
        if self._opening is self._up:
            stage = Stage.TLS if isinstance(error, ssl.SSLError) else Stage.CONNECT
            is_certificate = isinstance(error, ssl.SSLCertVerificationError)
            fault = fault_of(error, stage, self._place)
            name = "certificate" if is_certificate else "unreachable"
            self._add(name, message=fault.message, hint=fault.hint)
        elif self._opening is self._down:
            reason = quoted(str(getattr(error, "reason", None) or type(error).__name__))
            anchor = str(self._identity.path) if self._identity else ""
            self._add("distrusted", reason=reason, anchor=anchor, domain=self._domain)

    def _add(self, name: str, **words: str) -> None:
        self._witness.add(self._session, name, **words)


def _is_reset(transport: asyncio.Transport) -> bool:
    """Whether the other end of a connection has cut it, which reading shows only at the end."""
    sock, poll = transport.get_extra_info("socket"), select.poll()
    if sock.fileno() < 0:
        return True
    poll.register(sock, 0)  # POLLHUP and POLLERR always count
    return bool(poll.poll(0))


async def _first_byte(sock: socket.socket) -> bytes:
    """Wait for the client to begin; return the first byte, and leave it to be read."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sock, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sock)
    return sock.recv(1, socket.MSG_PEEK)


async def listen(sock: socket.socket, new_link: Callable[[], Link]) -> None:
    """Take clients on a listening socket until cancelled; then end all connections."""
    loop = asyncio.get_running_loop()
    links = set[asyncio.Task[None]]()
    try:
        while True:
            client, _ = await loop.sock_accept(sock)
            link = new_link()
            links.add(task := loop.create_task(link.serve(client)))
            task.add_done_callback(links.discard)
            task.add_done_callback(link.check)
    finally:
        sock.close()
        if links:  # what a program said before its end may still have to be read
            await asyncio.wait(links, timeout=GRACE_SECONDS)
        for task in links:
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
