"""The sockets: clients that come, and the server that each is led to.

A side that reads slowly slows the other side: what it has not read is not asked for. How long a
side may be silent is its own matter.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from bridge.sandbox.stream import TlsIdentity
from bridge.settings.table import Settings
from bridge.tap import relay
from bridge.tap.login import ClientLogin
from bridge.tap.relay import Relay, Step
from bridge.tap.witness import Witness
from bridge.text import quoted
from bridge.wire import names
from bridge.wire.scram import ScramError
from bridge.xmpp.link import sasl, tls
from bridge.xmpp.link.connection import fault_of_mistake
from bridge.xmpp.link.endpoint import connect, resolve
from bridge.xmpp.link.from_slixmpp import sasl_prepared
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place, Stage

STAGE_SECONDS = 10.0
"""Limit for connecting upstream, for each TLS handshake, and for tap's own login."""

GRACE_SECONDS = 0.5
"""How long connections have to end by themselves once tap ends."""

UNSENT_BYTES = 256 * 1024
"""If more waits for a side to read it, the other side is not read."""

TLS_BEGINS = b"\x16"
"""The first byte of a TLS handshake (RFC 8446, section 5.1)."""


@dataclass(frozen=True)
class Upstream:
    """Where clients are led to, and how."""

    settings: Settings
    identity: TlsIdentity | None
    """The certificate for clients; None for components, which speak no TLS."""
    logs_in: bool = False
    """Whether clients log in to tap, and tap logs in to the server."""


class Side(asyncio.Protocol):
    """One connection: the client's or the server's."""

    def __init__(self, receive: Callable[[bytes], None], lost: Callable[[bool], None]) -> None:
        self._receive, self._lost = receive, lost
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None
        self.is_muted = False
        """Whether what comes is dropped: it came before TLS, in clear."""
        self._unsent: bytearray | None = None
        """What waits for the end of a TLS handshake; None at other times."""
        self.gone = asyncio.Event()
        """Set once a connection that was made has ended."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=UNSENT_BYTES)

    def data_received(self, data: bytes) -> None:
        """Hand over what came."""
        if not self.is_muted:
            self._receive(data)

    def pause_writing(self) -> None:
        """Read nothing from the other side until this side has read."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read from the other side again."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, reason: BaseException | None) -> None:
        """Report the end, and whether the connection was cut."""
        self.transport = None
        self.gone.set()
        self._lost(reason is not None)

    def write(self, data: bytes) -> None:
        """Send, unless the connection has ended."""
        if self._unsent is not None:
            self._unsent += data
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def end(self, *, was_cut: bool = False) -> None:
        """Close the connection once everything is sent, or cut it."""
        if self.transport is not None and was_cut:
            self.transport.abort()
        elif self.transport is not None and not self.transport.is_closing():
            self.transport.close()

    async def secure(self, context: ssl.SSLContext, domain: str | None) -> None:
        """Begin TLS: as the client of a `domain`, or as the server; raises `OSError`."""
        if self.transport is None:
            raise ConnectionResetError
        self.is_muted, self._unsent = False, bytearray()
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
        unsent, self._unsent = self._unsent, None
        self.write(bytes(unsent))


class Link:
    """One client's connection, and the connection to the server that belongs to it."""

    def __init__(
        self, upstream: Upstream, witness: Witness, changed: Callable[[str], None]
    ) -> None:
        self._settings, self._identity = upstream.settings, upstream.identity
        self._domain = upstream.settings.domain.strip("[]")
        rooms = self._settings.rooms or ("the room",)  # with --to there may be no settings
        self._place = Place.of(self._settings._replace(rooms=rooms))
        self._witness = witness
        self._changed = changed
        self._session = witness.begin()
        self._down = Side(lambda data: self._receive(True, data), lambda cut: self._lost(True, cut))
        self._up = Side(lambda data: self._receive(False, data), lambda cut: self._lost(False, cut))
        self._down.other, self._up.other = self._up, self._down
        self._login: ClientLogin | None = None
        if upstream.logs_in:
            words = self._settings.username, self._settings.password.reveal()
            self._login = ClientLogin(*map(sasl_prepared, words))
        self._relay = Relay(self._login)
        self._answer: asyncio.Future[Element] | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def serve(self, sock: socket.socket) -> None:
        """Serve a client until either side has ended its connection."""
        try:
            if begins := await _first_byte(sock):
                direct = begins == TLS_BEGINS and self._identity is not None
                await self._reach(direct=direct)
                await self._take(sock, direct=direct)
                await self._ended.wait()
        except (OSError, ConnectionFailedError):  # that was said, or the client has gone
            pass
        finally:
            sock.close()
            self.stop()
            self._witness.end(self._session, None)
            with suppress(TimeoutError):  # a side that does not end TLS in good order is cut
                async with asyncio.timeout(GRACE_SECONDS):
                    for side in (self._down, self._up):
                        if side.transport is not None:
                            await side.gone.wait()
            self._down.end(was_cut=True)
            self._up.end(was_cut=True)

    def stop(self) -> None:
        """End both connections."""
        self._ended.set()
        if self._task is not None:
            self._task.cancel()
        self._down.end()
        self._up.end()

    async def _reach(self, *, direct: bool) -> None:
        """Connect to the server, `direct` with TLS at once; raises `OSError`."""
        try:
            self._context = await asyncio.to_thread(tls.make_context, self._settings, self._place)
            async with asyncio.timeout(STAGE_SECONDS):
                hosts = await resolve(self._settings)
                if self._identity is not None:
                    # A client that begins with TLS is led to a server that does so, and the others
                    # to one that does not.
                    hosts = [each for each in hosts if each[0].service.direct_tls == direct]
                if not hosts:
                    self._witness.add(self._session, "mismatch", server=self._place.service)
                    return
                endpoint, sock = await connect(hosts, STAGE_SECONDS)
            self._place = self._place._replace(service=str(endpoint.service))
            await asyncio.get_running_loop().create_connection(
                lambda: self._up,
                sock=sock,
                ssl=self._context if direct else None,
                server_hostname=self._domain if direct else None,
                ssl_handshake_timeout=STAGE_SECONDS if direct else None,
            )
        except (OSError, ConnectionFailedError) as error:
            self._fail(error)
            raise
        if self._up.transport is not None:
            self._up.transport.pause_reading()

    async def _take(self, sock: socket.socket, *, direct: bool) -> None:
        """Take the client, and let the server speak; raises `OSError`."""
        if self._up.transport is None:
            raise ConnectionResetError
        context = self._identity.context if direct and self._identity else None
        seconds = STAGE_SECONDS if context else None
        if self._login is not None:
            self._login.secured = direct
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._down, sock.dup(), ssl=context, ssl_handshake_timeout=seconds
            )
        except OSError as error:
            self._distrust(error)
            raise
        self._up.transport.resume_reading()

    def _receive(self, sent: bool, data: bytes) -> None:
        self._play(self._relay.receive(sent, data))

    def _play(self, steps: Iterable[Step]) -> None:
        # What came together goes on together: a server may take a blank behind `<starttls/>` for
        # the beginning of TLS if it comes by itself.
        out = {self._up: bytearray(), self._down: bytearray()}
        for step in steps:
            match step:
                case relay.PassedBytes(to_server, data):
                    out[self._up if to_server else self._down] += data
                case relay.SeenElement(sent, element, raw):
                    self._witness.take(self._session, sent, element, raw)
                case relay.Remark(name, words):
                    words = {key: quoted(word) for key, word in words.items()}
                    self._witness.add(self._session, name, **words)
                    if name == "unreadable":
                        self.stop()
                case relay.Changed(tag):
                    self._changed(tag)
                case relay.LoginAnswer(element):
                    if self._answer is not None and not self._answer.done():
                        self._answer.set_result(element)
                case relay.BeginTls(proceed):
                    self._up.is_muted = self._down.is_muted = True
                    self._run(self._begin_tls(proceed))
                case relay.LogIn(success):
                    self._run(self._log_in(success))
        for side, written in out.items():
            if written:
                side.write(bytes(written))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(self._check)

    def _check(self, task: "asyncio.Task[None]") -> None:
        """End the connections if a task broke, rather than leave both sides waiting."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._add("unreachable", fault_of_mistake("tap", error, Stage.SASL, self._place))
            self.stop()

    async def _begin_tls(self, proceed: bytes) -> None:
        say: Callable[[OSError], None] = self._fail
        try:
            await self._up.secure(self._context, self._domain)
            self._down.write(proceed)
            say = self._distrust
            assert self._identity is not None
            await self._down.secure(self._identity.context, None)
        except OSError as error:
            say(error)
            self.stop()
        if self._login is not None:
            self._login.secured = True

    async def _log_in(self, success: bytes) -> None:
        """Log in to the server, bound to TLS where it has that; then tell the client."""
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
            fault = faults.of_silence(Stage.SASL, STAGE_SECONDS, self._place)
            if isinstance(error, ConnectionFailedError):
                fault = error.fault
            elif isinstance(error, ScramError):
                fault = faults.of("unproven-server", self._place, reason=str(error))
            self._add("server-login", fault)
            condition = fault.condition if fault.condition in names.CONDITIONS else "not-authorized"
            self._play(self._relay.refuse(condition))
            return
        own = f"{mechanism}{f', bound by {binding}' if binding else ''}"
        flag = f" (flag {login.flag})" if login.flag else ""
        self._witness.add(self._session, "own-login", mechanism=login.mechanism, flag=flag, own=own)
        self._play(self._relay.logged_in(success))

    async def _exchange(self, element: Element) -> Element:
        self._answer = asyncio.get_running_loop().create_future()
        self._up.write(xml_of(element).encode())
        return await self._answer

    def _lost(self, sent: bool, was_cut: bool) -> None:
        """End the other connection too, in the same way, once it has what this side had said."""
        if self._ended.is_set():
            return
        self._play(self._relay.close(sent))
        self._witness.end(self._session, sent)
        (self._up if sent else self._down).end(was_cut=was_cut)
        self._ended.set()

    def _fail(self, error: OSError | ConnectionFailedError) -> None:
        """Say why there is no connection to the server."""
        stage = Stage.TLS if isinstance(error, ssl.SSLError) else Stage.CONNECT
        name, fault = "unreachable", faults.of_exception(stage, error, self._place)
        if isinstance(error, ConnectionFailedError):
            fault = error.fault
        elif isinstance(error, ssl.SSLCertVerificationError):
            name = "certificate"
        self._add(name, fault)

    def _add(self, name: str, fault: Fault) -> None:
        self._witness.add(self._session, name, message=fault.message, hint=fault.hint)

    def _distrust(self, error: OSError) -> None:
        """Say that the client did not begin TLS with tap."""
        reason = quoted(str(getattr(error, "reason", None) or type(error).__name__))
        anchor = str(self._identity.path) if self._identity else ""
        self._witness.add(
            self._session, "distrusted", reason=reason, anchor=anchor, domain=self._domain
        )


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


async def listen(
    sock: socket.socket, upstream: Upstream, witness: Witness, changed: Callable[[str], None]
) -> None:
    """Take clients on a listening socket until cancelled; then end all connections.

    `changed` is called with the key of `relay.CHANGES` of each thing that was taken out.
    """
    loop = asyncio.get_running_loop()
    links = dict[asyncio.Task[None], Link]()
    try:
        while True:
            client, _ = await loop.sock_accept(sock)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(upstream, witness, changed)
            links[task := loop.create_task(link.serve(client))] = link
            task.add_done_callback(links.pop)
    finally:
        sock.close()
        if links:  # what a program has said before its end is still to be read
            await asyncio.wait(links, timeout=GRACE_SECONDS)
        for task, link in [*links.items()]:
            link.stop()
            task.cancel()
        await asyncio.gather(*links, return_exceptions=True)
