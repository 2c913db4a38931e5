"""One attempt at being in the room, stage by stage, each with a deadline and a classified fault.

The negotiation is a straight line of awaits: resolve, connect, TLS, SASL, bind, join. Nothing
here tries again; that is `participant`'s.
"""

import asyncio
import logging
import secrets
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TypeVar
from xml.etree.ElementTree import Element

from bridge.config import Settings
from bridge.xmpp import faults, login, stanzas
from bridge.xmpp.endpoint import Endpoint, connect, resolve
from bridge.xmpp.events import Connected, Event, Joined, MessageSent, OccupantJoined, RoomError, Tls
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.scram import ScramError
from bridge.xmpp.stream import NotWellFormedError, Stream

DEADLINES = {
    Stage.RESOLVE: 10.0,
    Stage.CONNECT: 10.0,
    Stage.TLS: 10.0,
    Stage.SASL: 15.0,
    Stage.BIND: 10.0,
    Stage.JOIN: 20.0,
}
"""Seconds for each stage. SASL has longer: a million iterations take one of them."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class StanzaRefusedError(Exception):
    """The other side answered a request with an error."""

    def __init__(self, error: stanzas.StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


class Connection:
    """One stream, from the first packet to the last."""

    def __init__(
        self,
        settings: Settings,
        place: Place,
        *,
        resource: str,
        publish: Callable[[Event], None],
        on_stage: Callable[[Stage], None],
    ) -> None:
        self._settings = settings
        self.place = place
        """Where this goes, with the address once one was reached."""
        self._resource = resource
        self._publish = publish
        self._on_stage = on_stage
        self._room = stanzas.prepared(settings.room) or settings.room
        self._stage = Stage.RESOLVE
        self._inbox: asyncio.Queue[Element] | None = asyncio.Queue()
        """Where elements go while the stream is negotiated; None afterwards."""
        self._requests: dict[str, tuple[str | None, asyncio.Future[Element]]] = {}
        self._entered: asyncio.Future[OccupantJoined] | None = None
        self._stream = Stream(settings.domain, self._receive, self._lost)
        self.occupant = ""
        """Our occupant JID while in the room, or on the way in."""
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        """Done once the stream is no more, with the reason."""

    async def open(self) -> None:
        """Go from nothing to a bound stream; raises `ConnectionFailedError`."""
        endpoints = await self._run(Stage.RESOLVE, resolve(self._settings))
        endpoint, sock = await self._run(
            Stage.CONNECT, connect(endpoints, DEADLINES[Stage.CONNECT])
        )
        self.place = replace(self.place, service=str(endpoint))
        tls, features = await self._run(Stage.TLS, self._secure(endpoint, sock))
        mechanism = await self._run(Stage.SASL, self._log_in(features, tls))
        jid = await self._run(Stage.BIND, self._bind())
        self._publish(Connected(jid, str(endpoint), tls, mechanism))

    async def join(self, nickname: str) -> None:
        """Enter the room under `nickname`; raises `ConnectionFailedError`, the stream standing."""
        self._inbox = None
        self.place = replace(self.place, nickname=nickname)
        me = await self._run(Stage.JOIN, self._enter(nickname))
        self._stage = Stage.STANDING
        created = 201 in me.codes
        if created:
            await self._unlock()
        self._publish(Joined(me.occupant, me.nickname, created))

    def say(self, body: str, id_: str) -> None:
        """Hand a message to the room; it has been said once its reflection comes back."""
        self._send(stanzas.said(self._room, body, id_))
        self._publish(MessageSent(self.occupant, body, id_))

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Send an IQ and return its result; raises `StanzaRefusedError` where it is an error."""
        id_ = secrets.token_hex(8)
        answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
        self._requests[id_] = (to, answer)
        try:
            self._send(stanzas.query(type_, to, id_, payload))
            return await self._unless_ended(answer)
        finally:
            del self._requests[id_]

    async def ping(self) -> None:
        """Ping the server (XEP-0199); an error is an answer too."""
        with suppress(StanzaRefusedError, ConnectionFailedError):
            await self.request("get", None, stanzas.ping())

    def leave(self) -> None:
        """Say goodbye to the room and the server and hang up, without waiting for anybody."""
        if self.occupant and not self.ended.done():
            self._stream.write(stanzas.leaving(self.occupant))
        self._stream.hang_up()
        self.end(faults.of_lost_connection(self._stage, self.place))

    def end(self, fault: Fault) -> None:
        """Declare the stream over because of `fault`; the first reason stands."""
        if not self.ended.done():
            self.ended.set_result(fault)

    def close(self) -> None:
        """Let go of the socket, whatever state it is in."""
        self.end(faults.of_lost_connection(self._stage, self.place))
        self._stream.abort()

    async def _run(self, stage: Stage, work: Awaitable[Answer]) -> Answer:
        """Await one stage within its deadline and translate what goes wrong."""
        self._stage = stage
        self._on_stage(stage)
        limit = DEADLINES[stage]
        try:
            async with asyncio.timeout(limit) as deadline:
                return await work
        except OSError as error:  # those of the resolver, sockets and OpenSSL; and TimeoutError
            if isinstance(error, TimeoutError) and deadline.expired():
                fault = faults.of_silence(stage, limit, self.place)
            else:
                fault = faults.of_exception(stage, error, self.place)
            raise ConnectionFailedError(fault) from error
        except ScramError as error:
            fault = faults.untrusted_server(str(error), self.place)
            raise ConnectionFailedError(fault) from error
        except login.NoMechanismError as error:
            fault = faults.no_mechanism(error.offered, self.place)
            raise ConnectionFailedError(fault) from error
        except login.LoginRefusedError as error:
            fault = faults.of_sasl(error.condition, error.text, self.place)
            raise ConnectionFailedError(fault) from error

    async def _unless_ended(self, answer: "asyncio.Future[Answer]") -> Answer:
        try:
            await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise ConnectionFailedError(self.ended.result())
        finally:
            answer.cancel()

    # The stages.

    async def _secure(self, endpoint: Endpoint, sock: socket.socket) -> tuple[Tls | None, Element]:
        """Return what protects the stream, and the features offered under it."""
        loop = asyncio.get_running_loop()
        with ExitStack() as until_a_transport_owns_it:
            until_a_transport_owns_it.callback(sock.close)
            context = await asyncio.to_thread(self._tls_context)
            until_a_transport_owns_it.pop_all()
        domain = self._settings.domain.strip("[]")
        if endpoint.direct_tls:
            await loop.create_connection(
                lambda: self._stream, sock=sock, ssl=context, server_hostname=domain
            )
            return self._tls(), await self._features()
        bare, _ = await loop.create_connection(lambda: self._stream, sock=sock)
        features = await self._features()
        if features.find(f"{{{stanzas.TLS}}}starttls") is None:
            if self._settings.allow_plaintext:
                return None, features
            raise ConnectionFailedError(faults.no_starttls(self.place))
        await self._exchange(
            Element(f"{{{stanzas.TLS}}}starttls"), expected=(f"{{{stanzas.TLS}}}proceed",)
        )
        secured = await loop.start_tls(bare, self._stream, context, server_hostname=domain)
        assert secured is not None
        # Whatever was slipped in before the handshake is not part of the secured stream.
        self._inbox = asyncio.Queue()
        self._stream.connection_made(secured)
        return self._tls(), await self._features()

    def _tls_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._settings.tls_ca_file is not None:
            context.load_verify_locations(self._settings.tls_ca_file)
        if not self._settings.tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _tls(self) -> Tls:
        assert self._stream.transport is not None
        secured = self._stream.transport.get_extra_info("ssl_object")
        return Tls(secured.version(), secured.cipher()[0], self._settings.tls_verify)

    async def _log_in(self, features: Element, tls: Tls | None) -> str:
        async def exchange(element: Element) -> Element:
            return await self._exchange(
                element, expected=(login.CHALLENGE, login.SUCCESS, login.FAILURE)
            )

        mechanism = await login.log_in(
            self._settings,
            features,
            exchange,
            plain_allowed=tls is not None and tls.verified,
        )
        self._stream.restart()
        return mechanism

    async def _bind(self) -> str:
        await self._features()
        request = stanzas.query("set", None, secrets.token_hex(8), stanzas.bind(self._resource))
        answer = await self._exchange(request, expected=(f"{{{stanzas.CLIENT}}}iq",))
        jid = answer.findtext(f"{{{stanzas.BIND}}}bind/{{{stanzas.BIND}}}jid")
        if answer.get("type") != "result" or not jid:
            error = stanzas.error_of(answer)
            fault = faults.of_stream_error(error.condition, error.text, self.place)
            raise ConnectionFailedError(fault)
        return jid

    async def _enter(self, nickname: str) -> OccupantJoined:
        occupant = stanzas.occupant_jid(self._room, nickname)
        if occupant is None:
            fault = faults.of_join_error("jid-malformed", None, self.place, None)
            raise ConnectionFailedError(fault)
        self.occupant = occupant
        password = self._settings.room_password
        self._entered = asyncio.get_running_loop().create_future()
        try:
            self._send(stanzas.entering(occupant, password.reveal() if password else None))
            return await self._unless_ended(self._entered)
        finally:
            self._entered = None

    async def _unlock(self) -> None:
        try:
            async with asyncio.timeout(DEADLINES[Stage.JOIN]):
                await self.request("set", self._room, stanzas.default_configuration())
        except (StanzaRefusedError, TimeoutError) as error:
            log.warning("the new room keeps its lock or its defaults: %s", error)

    # The stream.

    async def _features(self) -> Element:
        return await self._next((f"{{{stanzas.STREAMS}}}features",))

    async def _exchange(self, element: Element, *, expected: tuple[str, ...]) -> Element:
        self._send(element)
        return await self._next(expected)

    async def _next(self, expected: tuple[str, ...]) -> Element:
        """Return the next element of the negotiation, which must be one of `expected`."""
        assert self._inbox is not None
        element = await self._unless_ended(asyncio.ensure_future(self._inbox.get()))
        if element.tag not in expected:
            name = element.tag.rpartition("}")[2]
            fault = faults.protocol_error(self._stage, f"an unexpected <{name}/>", self.place)
            raise ConnectionFailedError(fault)
        return element

    def _send(self, element: Element) -> None:
        if self.ended.done():
            raise ConnectionFailedError(self.ended.result())
        if not self._stream.write(element):
            raise ConnectionFailedError(faults.of_lost_connection(self._stage, self.place))

    def _receive(self, element: Element) -> None:
        if element.tag == f"{{{stanzas.STREAMS}}}error":
            condition, text = stanzas.condition_of(element, stanzas.STREAM_ERRORS)
            self.end(faults.of_stream_error(condition, text, self.place))
        elif self._inbox is not None:
            self._inbox.put_nowait(element)
        elif element.tag == f"{{{stanzas.CLIENT}}}iq":
            self._receive_iq(element)
        else:
            for event in stanzas.read(element, room=self._room, own=self.occupant):
                self._meet(event)
                self._publish(event)

    def _receive_iq(self, iq: Element) -> None:
        if iq.get("type") in {"get", "set"}:
            self._stream.write(stanzas.answer_to(iq))
            return
        to, answer = self._requests.get(iq.get("id", ""), (None, None))
        if answer is None or answer.done() or not self._may_answer(iq.get("from"), to):
            return
        if iq.get("type") == "error":
            answer.set_exception(StanzaRefusedError(stanzas.error_of(iq)))
        else:
            answer.set_result(iq)

    def _may_answer(self, sender: str | None, asked: str | None) -> bool:
        """Whether a reply from `sender` can be to what `asked` was asked: ids can be guessed."""
        if asked is None:
            return sender in {None, self._settings.domain, self._settings.jid}
        return stanzas.prepared(sender or "") == asked

    def _meet(self, event: Event) -> None:
        """Let the join under way know of what decides it."""
        if self._entered is None or self._entered.done():
            return
        match event:
            case OccupantJoined(own=True):
                # The room decides the nickname (XEP-0045, section 7.2.3), and what follows
                # this presence is already reflected under it.
                self.occupant = event.occupant
                self._entered.set_result(event)
            case RoomError(condition=condition, text=text, venue=venue):
                fault = faults.of_join_error(condition, text, self.place, venue)
                self._entered.set_exception(ConnectionFailedError(fault))

    def _lost(self, reason: BaseException | None) -> None:
        match reason:
            case None:
                fault = faults.of_lost_connection(self._stage, self.place)
            case NotWellFormedError():
                fault = faults.protocol_error(self._stage, "its XML is not well-formed", self.place)
            case _:
                fault = faults.of_exception(self._stage, reason, self.place)
        self.end(fault)
