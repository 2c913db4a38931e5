"""One connection to the server. Each stage has a deadline, and its errors become faults.

The stages follow one another: resolve, connect, TLS, SASL, bind. After them, and until it ends, the
connection sends stanzas and requests (IQs), and hands over the stanzas that come. It does not enter
rooms (`membership` does that). It does not connect again (`participant` does that).
"""

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from ssl import TLSVersion
from typing import TypeVar
from xml.etree.ElementTree import Element, SubElement

from bridge.settings.table import Settings
from bridge.text import one_line, quoted
from bridge.wire import names
from bridge.wire.names import BIND, SM, StanzaError
from bridge.wire.scram import ChannelBinding, ScramError
from bridge.wire.xmlstream import DamagedElement, StanzaTooLongError, TlsRecordError, XmlStreamError
from bridge.xmpp.errors import XmppError
from bridge.xmpp.link import certificate, sasl, session, stanzas, tls
from bridge.xmpp.link.certificate import Certificate
from bridge.xmpp.link.endpoint import Endpoint, connect, resolve
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.offer import Offer, offer_in
from bridge.xmpp.link.session import Negotiation, StreamManagement
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.link.stream import Stream
from bridge.xmpp.link.trace import Tracer, untraced
from bridge.xmpp.model import faults
from bridge.xmpp.model.events import UNREADABLE, Connected, Tls
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place, Stage

ANSWER_BYTES = 1_000
"""Most bytes a second of answers to requests from others. ejabberd reads 3 kB a second from us,
Prosody 10 kB. A message of ours waits until the server has read the answers before it."""

ANSWER_SECONDS = 20.0
"""How many seconds' worth of answers may be sent at once. A longer answer is not sent at
all. An answer repeats the id of the request, which may be long, and servers cut off a client
that sends 256 kB."""

LIMIT_SECONDS = 10.0
"""If the stream ends within this time after a stanza over the server's limit, we take the stanza
for the cause."""

MAX_RESUMPTION_SECONDS = 60
"""How long we ask the server to keep a lost session. A killed bridge stays a ghost in the room for
as long."""

DEADLINES = {
    Stage.RESOLVE: 10.0,
    Stage.CONNECT: 10.0,
    Stage.TLS: 10.0,
    Stage.SASL: 15.0,
    Stage.BIND: 10.0,
    Stage.JOIN: 20.0,
}
"""Seconds for each stage. SASL has more, since a million iterations take one second. `JOIN` is for
one room (see `muc.joining`)."""

STARTTLS = f"{{{names.TLS}}}starttls"
PROCEED, REFUSED = (f"{{{names.TLS}}}{name}" for name in ("proceed", "failure"))
"""What a server may answer to `STARTTLS`."""

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class TooManyResultsError(XmppError):
    """An archive sent more results than the caller takes."""


class Connection:
    """One stream, from the first packet to the last.

    `on_stanza` gets every message, every presence and every answer to an IQ, in order.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        resource: str,
        on_stage: Callable[[Stage], None],
        on_stanza: Callable[[Element], None],
        trace: Tracer = untraced,
        on_finding: Callable[[str], None] = lambda finding: None,
        binds: bool = True,
    ) -> None:
        """Without `binds`, log in as a client that knows no channel binding."""
        self._settings = settings
        self._binds = binds
        self.place = Place.of(settings)
        """The server, account and room, as faults name them. `service` is the configured one until
        we reach a server, and then the server that we reached."""
        self._resource = resource
        self._on_stage = on_stage
        self._on_stanza = on_stanza
        self._on_finding = on_finding
        self._stage = Stage.RESOLVE
        self._negotiation = Negotiation(self.send, self.unless_ended)
        self._jid = ""
        """Our full JID, once the stream is bound to it."""
        self._requests: dict[str, tuple[str | None, asyncio.Future[Element]]] = {}
        """The requests that wait for an answer, by their ids, each with the address to which we
        sent it."""
        rooms = {prepared(room) or room for room in settings.rooms}
        self._rooms = rooms | {room.partition("@")[2] for room in rooms}
        """Our rooms and their services. Some remove an occupant who does not answer their
        requests."""
        self._answering_until: dict[str, float] = {}
        """When the server will have read our answers, at `ANSWER_BYTES` a second, on the loop's
        clock. There is a time for each of our rooms, and for each address that we have asked
        something. All other addresses share the time under the empty name."""
        self._collecting: dict[
            tuple[str, str], tuple[Callable[[Element], bool], asyncio.Future[Element]]
        ] = {}
        """The archive queries under way, by the archive's address and the id of the query."""
        self.management: StreamManagement | None = None
        """The stream management in use (XEP-0198); None if the server has none, and before the
        session has begun."""
        self.asked_to_resume = False
        """Whether we asked the server for a former session (XEP-0198, section 5)."""
        self.certificate: Certificate | None = None
        """The server's certificate, verified or not; None before TLS, and if it cannot be read."""
        self.offer = Offer()
        """What the server has offered so far."""
        self.mechanism = ""
        """The mechanism of the login; empty before it has succeeded."""
        self.channel_binding: str | None = None
        """The channel binding that ties the login to the TLS connection (RFC 5929), if any."""
        self._new_stream = partial(Stream, settings.domain, self._receive, self._lost, trace)
        self._stream = self._new_stream()
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        """Done once the stream has ended; its result is the reason."""

    async def open(self, former: StreamManagement | None = None) -> Connected:
        """Connect, log in, and begin a session; raises `ConnectionFailedError`.

        The `former` session is resumed if the server still has it. The connection hands the stanzas
        over once `start_dispatch` is called.
        """
        protection = await self.log_in()
        resumed = await self._run(Stage.BIND, self._begin_session(former))
        self._stream.end_negotiation()
        self._stage = Stage.STANDING
        return Connected(self._jid, self.place.service, protection, self.mechanism, resumed)

    def start_dispatch(self) -> None:
        """Hand over the stanzas that came while the session began, and all that come later."""
        for element in self._negotiation.early:
            self._dispatch(element)  # not counted: it came before `<enabled/>`
        for element in self._negotiation.end():
            self._receive(element)

    async def log_in(self) -> Tls | None:
        """Connect and log in; return the stream's protection; raises `ConnectionFailedError`."""
        protection = await self.reach(to_log_in=True)
        await self._run(Stage.SASL, self._log_in(protection))
        return protection

    async def reach(self, *, to_log_in: bool = False) -> Tls | None:
        """Connect, and secure the stream; return its protection; raises `ConnectionFailedError`.

        With `to_log_in`, the stream is secured in a way that allows a login. A server with an
        unverified certificate has not yet learnt the account.
        """
        endpoints = await self._run(Stage.RESOLVE, resolve(self._settings, self._on_finding))
        endpoint, sock = await self._run(
            Stage.CONNECT, connect(endpoints, DEADLINES[Stage.CONNECT], self._on_finding)
        )
        self.place = self.place._replace(service=str(endpoint.service))
        secure = self._secure_for_login if to_log_in else self._secure
        protection, features = await self._run(Stage.TLS, secure(endpoint, sock))
        self.offer = offer_in(features)
        return protection

    def send(self, element: Element) -> None:
        """Send a stanza; raises `ConnectionFailedError` once the stream has ended."""
        if self.ended.done():
            raise ConnectionFailedError(self.ended.result())
        if not self._stream.write(element):
            # The server has shut its side down. The transport tells us only when the server has
            # read everything, which may be never.
            self.end(faults.of_lost_connection(self._stage, self.place))
            raise ConnectionFailedError(self.ended.result())

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Send an IQ request and return its result; raises `IqError`, `ConnectionFailedError`."""
        return await self._ask(type_, to, payload, asyncio.get_running_loop().create_future())

    async def collect(
        self, query_id: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        """Send an archive query (XEP-0313) and return its final answer.

        `take` is called with each result as it arrives, so that none is buffered. It returns
        whether the result is within the caller's limits. If not, `collect` raises
        `TooManyResultsError` at once.
        """
        answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
        self._collecting[to, query_id] = (take, answer)
        try:
            return await self._ask("set", to, payload, answer)
        finally:
            del self._collecting[to, query_id]

    async def unless_ended(self, answer: "asyncio.Future[Answer]") -> Answer:
        """Wait for `answer`; raises `ConnectionFailedError` if the stream ends first."""

        def give_up(ended: "asyncio.Future[Fault]") -> None:
            if not answer.done():
                answer.set_exception(ConnectionFailedError(ended.result()))

        self.ended.add_done_callback(give_up)
        try:
            return await answer
        finally:
            self.ended.remove_done_callback(give_up)
            answer.cancel()

    @property
    def received(self) -> int:
        """Bytes that the server has sent."""
        return self._stream.received

    def leave(self) -> None:
        """End the stream and close the connection, without waiting for the server."""
        self._hang_up()
        self.end(faults.of_lost_connection(self._stage, self.place))

    def end(self, fault: Fault) -> None:
        """Declare the stream over because of `fault`; the first reason counts."""
        if not self.ended.done():
            if fault.condition in session.RESUMABLE or fault.condition == "policy-violation":
                fault = self._beyond_limits(fault)
            self.ended.set_result(fault)
            if self.management is not None:
                self.management.stop()

    def _beyond_limits(self, fault: Fault) -> Fault:
        """Return `fault`; if we have just exceeded a limit of the stream, the fault says so."""
        now, message = self.ended.get_loop().time(), fault.message
        size, at = self._stream.too_long
        most, idle = self.offer.max_bytes, self.offer.idle_seconds
        if size and now - at <= LIMIT_SECONDS:
            message += f" It takes {most:,} bytes a stanza, and was sent one of {size:,}."
        elif idle and (silence := now - self._stream.sent_at) >= idle:
            message += f" It allows {idle:,} s of silence, and heard nothing for {silence:,.0f} s."
        return fault._replace(message=message)

    def close(self) -> None:
        """Close the socket, whatever state it is in.

        A session that will not be resumed is ended first. Otherwise it would stay in the room until
        the server replaces it by the next session. Its end would then remove the next session from
        the room.
        """
        self.end(faults.of_lost_connection(self._stage, self.place))
        if self.ended.result().condition not in session.RESUMABLE:
            self._hang_up()
        self._stream.abort()

    async def _run(self, stage: Stage, work: Awaitable[Answer]) -> Answer:
        """Await one stage within its deadline; raises its errors as `ConnectionFailedError`."""
        self._stage = stage
        self._on_stage(stage)
        limit = DEADLINES[stage]
        try:
            async with asyncio.timeout(limit) as deadline:
                return await work
        # The resolver, sockets and OpenSSL raise `OSError`; `TimeoutError` is one, too.
        except (OSError, ScramError, IqError, session.UnexpectedElementError) as error:
            silent = isinstance(error, TimeoutError) and deadline.expired()
            fault = faults.of_silence(stage, limit, self.place) if silent else self._fault_of(error)
            raise ConnectionFailedError(fault) from error

    def _fault_of(self, error: BaseException) -> Fault:
        if isinstance(error, OSError) and self.ended.done():  # the end of the stream caused it
            return self.ended.result()
        return fault_of(error, self._stage, self.place)

    # The stages.

    async def _secure_for_login(
        self, endpoint: Endpoint, sock: socket.socket
    ) -> tuple[Tls | None, Element]:
        """Begin the stream as `_secure` does; over TLS 1.2 if TLS 1.3 allows no login.

        Prosody 13 binds logins over TLS 1.3 by `tls-exporter` alone, which Python's `ssl` lacks.
        """
        protection, features = await self._secure(endpoint, sock)
        if protection is None or protection.version != "TLSv1.3":
            return protection, features
        offer, bindings = offer_in(features), self._channel_bindings()
        if not sasl.lacks_binding(offer, bindings, genuine=protection.verified):
            return protection, features
        self._on_finding("no channel binding in common over TLS 1.3: once more over TLS 1.2")
        self._stream.abandon()
        self._stream = self._new_stream()
        try:
            _, sock = await connect([[endpoint]], DEADLINES[Stage.CONNECT], self._on_finding)
            return await self._secure(endpoint, sock, TLSVersion.TLSv1_2)
        except (OSError, ConnectionFailedError) as error:
            fault = sasl.without_binding(offer, self.place)
            raise ConnectionFailedError(fault) from error

    async def _secure(
        self, endpoint: Endpoint, sock: socket.socket, newest: TLSVersion | None = None
    ) -> tuple[Tls | None, Element]:
        """Begin the stream on `sock`, with TLS from the first byte (XEP-0368) or by STARTTLS.

        Return its protection, and the features offered under it.
        """
        loop, stream = asyncio.get_running_loop(), self._stream
        try:  # in a thread, since reading the trust anchors takes 25 ms
            ready = await asyncio.to_thread(tls.make_context, self._settings, self.place)
            ready.maximum_version = newest or ready.maximum_version
        except BaseException:  # no transport owns the socket yet
            sock.close()
            raise
        domain = self._settings.domain.strip("[]")
        account = (prepared(self._settings.jid) or "") if self._settings.tls_verify else ""
        if endpoint.service.direct_tls:
            stream.account = account
            await loop.create_connection(
                lambda: stream, sock=sock, ssl=ready, server_hostname=domain
            )
        else:
            bare, _ = await loop.create_connection(lambda: stream, sock=sock)
            features = await self._negotiation.features()
            if features.find(STARTTLS) is None:
                if self._settings.allow_plaintext:
                    warning = "no TLS: the server offers none, and XMPP_ALLOW_PLAINTEXT is set"
                    self._on_finding(warning)
                    return None, features
                raise ConnectionFailedError(faults.of("no-starttls", self.place))
            expected = (PROCEED, REFUSED)
            answer = await self._negotiation.exchange(Element(STARTTLS), expected=expected)
            if answer.tag == REFUSED:
                raise ConnectionFailedError(faults.of("starttls-refused", self.place))
            transport = await loop.start_tls(bare, stream, ready, server_hostname=domain)
            # The secured stream does not include data that an attacker injected before the
            # handshake.
            self._negotiation.forget()
            stream.account = account
            if transport is not None:  # None: injected data ended the connection
                stream.connection_made(transport)
        secured = tls.ssl_object(stream)
        if secured is None:
            raise ConnectionResetError
        protection = tls.protection(secured, verified=self._settings.tls_verify)
        checked = "checked" if protection.verified else "not checked"
        stream.note(f"{protection.version}, {protection.cipher}, certificate {checked}")
        self._on_finding(f"{protection.version}, {protection.cipher}")
        try:
            self.certificate = certificate.decode(secured.getpeercert(binary_form=True) or b"")
        except certificate.DerError as error:
            self._on_finding(f"a certificate that cannot be read: {error}")
        else:
            self._on_finding(certificate.describe(self.certificate))
            self._on_finding(certificate.validity(self.certificate, datetime.now(UTC)))
        return protection, await self._negotiation.features()

    def _channel_bindings(self) -> list[ChannelBinding]:
        secured, verified = tls.ssl_object(self._stream), self._settings.tls_verify
        return [] if secured is None else tls.channel_bindings(secured, verified=verified)

    async def _log_in(self, protection: Tls | None) -> None:
        self.mechanism, self.channel_binding = await sasl.log_in(
            self._settings,
            self.place,
            self.offer,
            partial(self._negotiation.exchange, expected=sasl.ANSWERS),
            bindings=self._channel_bindings() if self._binds else None,
            genuine=protection is not None and protection.verified,
            on_finding=self._on_finding,
        )
        self._stream.restart()

    async def _begin_session(self, former: StreamManagement | None) -> bool:
        """Resume the `former` session if possible (XEP-0198, section 5), or begin a new one.

        Return whether the session was resumed; then we are still in our rooms. Raises `IqError` if
        the server gives us no resource.
        """
        negotiation = self._negotiation
        resumed, enabled, failed = (f"{{{SM}}}{name}" for name in ("resumed", "enabled", "failed"))
        features = await negotiation.features()
        self.offer = offer_in(features, self.offer)
        self._stream.max_bytes = self.offer.max_bytes
        managed = features.find(f"{{{SM}}}sm") is not None
        if managed and former is not None and former.id is not None:
            request = {"previd": former.id, "h": str(former.handled)}
            self.asked_to_resume = True
            negotiation.send(Element(f"{{{SM}}}resume", request))
            if (await negotiation.next((resumed, failed), among_stanzas=True)).tag == resumed:
                self._jid = former.jid
                self.management = StreamManagement(
                    self._acknowledge, former.jid, former.id, former.handled
                )
                return True
        self._jid = jid = await self._bind()
        self._on_finding(f"full JID {quoted(jid)}")
        if self.offer.limits:
            self._on_finding(f"limits of the stream: {self.offer.limits}")
        if managed:
            request = {"resume": "true", "max": str(MAX_RESUMPTION_SECONDS)}
            negotiation.send(Element(f"{{{SM}}}enable", request))
            answer = await negotiation.next((enabled, failed), among_stanzas=True)
            if answer.tag == enabled:
                id_ = answer.get("id") if answer.get("resume") in {"true", "1"} else None
                how = "without" if id_ is None else "with"
                self._on_finding(f"stream management {how} resumption")
                self.management = StreamManagement(self._acknowledge, jid, id_)
                return False
        self._on_finding("no stream management")
        return False

    async def _bind(self) -> str:
        """Bind a resource (RFC 6120, section 7) and return our full JID; raises `IqError`."""
        id_, bind = secrets.token_hex(8), Element(f"{{{BIND}}}bind")
        SubElement(bind, f"{{{BIND}}}resource").text = self._resource
        self.send(stanzas.iq_request("set", None, id_, bind))
        while True:
            answer = await self._negotiation.next((names.IQ,), among_stanzas=True)
            if answer.get("id") == id_ and self._may_answer(answer.get("from"), None):
                break
            self._negotiation.early.append(answer)
        jid = prepared(answer.findtext(f"{{{BIND}}}bind/{{{BIND}}}jid") or "")
        if answer.get("type") != "result" or not jid:
            raise IqError(names.error_of(answer))
        return jid

    # The stream.

    def _acknowledge(self, handled: int) -> None:
        self._stream.write(Element(names.ACK, {"h": str(handled)}))

    def _hang_up(self) -> None:
        if self.management is not None:
            self.management.answer()
        self._stream.hang_up()

    def _receive(self, element: Element) -> None:
        if element.tag == names.STREAM_ERROR:
            condition, text = names.condition_of(element)
            self.end(faults.of_stream_error(condition, text, self.place, self._stage))
        elif not self._negotiation.over:
            self._negotiation.receive(element)
        elif element.tag == names.ACK_REQUEST:
            if self.management is not None and not self.ended.done():
                self.management.answer_soon()
        else:
            self._dispatch(element)
            if self.management is not None and element.tag in names.STANZAS:
                self.management.count()

    def _dispatch(self, element: Element) -> None:
        if element.tag == names.IQ:
            if element.get("type") in {"get", "set"}:
                self._reply_to(element)
                if isinstance(element, DamagedElement):  # it becomes an event of the room
                    self._on_stanza(element)
                return
            self._on_stanza(element)
            self._handle_response(element)
        elif not self._handle_archive_result(element):
            self._on_stanza(element)

    # Our requests, and our answers to requests from others (`stanzas.reply_to` makes them).

    async def _ask(
        self, type_: str, to: str | None, payload: Element, answer: "asyncio.Future[Element]"
    ) -> Element:
        id_ = secrets.token_hex(8)
        self._requests[id_] = (to, answer)
        try:
            self.send(stanzas.iq_request(type_, to, id_, payload))
            return await self.unless_ended(answer)
        finally:
            del self._requests[id_]

    def _reply_to(self, iq: Element) -> None:
        """Answer a request, unless too many bytes of answers were sent shortly before.

        We always answer our server. Each of our rooms has a limit of its own, which a flood of
        requests from others does not use up. Each address that we have sent a request has its own
        limit too: a self-ping comes back to us as a request from our own address in the room.
        """
        reply, sender, now = stanzas.reply_to(iq), iq.get("from"), self.ended.get_loop().time()
        known = sender in self._rooms or any(sender == to for to, _ in self._requests.values())
        asker = sender if sender and known else ""
        under_way = {name: end for name, end in self._answering_until.items() if end > now}
        begin = now if self._may_answer(sender, None) else under_way.get(asker, now)
        until = begin + len(stanzas.xml_of(reply)) / ANSWER_BYTES
        if until - now <= ANSWER_SECONDS:
            self._stream.write(reply)
            under_way[asker] = max(until, under_way.get(asker, now))
        self._answering_until = under_way

    def _handle_response(self, iq: Element) -> None:
        """Complete the request that a response belongs to; ignore a response without a request."""
        to, answer = self._requests.get(iq.get("id", ""), (None, None))
        if answer is None or answer.done() or not self._may_answer(iq.get("from"), to):
            return
        match iq.get("type"):
            case "result" if isinstance(iq, DamagedElement):
                unreadable = StanzaError(UNREADABLE, f"The answer cannot be read: {iq.reason}.")
                answer.set_exception(IqError(unreadable))
            case "error":
                answer.set_exception(IqError(names.error_of(iq)))
            case "result":
                answer.set_result(iq)

    def _handle_archive_result(self, stanza: Element) -> bool:
        """Hand the archive result in `stanza` to its query; return whether a query took it."""
        received = stanzas.archive_result(stanza) if self._collecting else None
        if received is None or received[:2] not in self._collecting:
            return False
        take, answer = self._collecting[received[:2]]
        if not answer.done() and not take(received[2]):
            answer.set_exception(TooManyResultsError())
        return True

    def _may_answer(self, sender: str | None, to: str | None) -> bool:
        """Whether an answer from `sender` counts for a request to `to`: others may guess its id."""
        if to is None or to == names.bare(self._jid):
            return sender in {None, self._settings.domain, self._settings.jid, self._jid}
        return sender == to or (prepared(sender or "") or "") == prepared(to)

    def _lost(self, reason: BaseException | None) -> None:
        lost = faults.of_lost_connection(self._stage, self.place)
        self.end(lost if reason is None else self._fault_of(reason))


def fault_of(error: BaseException, stage: Stage, place: Place) -> Fault:
    """Return what an error in a stage means."""
    match error:
        case ConnectionFailedError(fault=fault):
            return fault
        case TlsRecordError():
            return faults.of("only-direct-tls", place)
        case XmlStreamError():
            is_long = isinstance(error, StanzaTooLongError)
            how = "it goes on without end" if is_long else "its XML is not well-formed"
            return faults.protocol_error(stage, how, place)
        case session.UnexpectedElementError():
            return faults.unexpected_element(stage, str(error), place)
        case ScramError():
            return faults.of("unproven-server", place, reason=str(error))
        case IqError(error=refusal):  # our request for a resource was refused
            return faults.of_stream_error(refusal.condition, refusal.text, place, stage)
        case OSError() | EOFError():
            return faults.of_exception(stage, error, place)
        case _:
            return fault_of_mistake("processing a stanza", error, place, stage)


def fault_of_mistake(
    what: str, error: BaseException, place: Place, stage: Stage = Stage.STANDING
) -> Fault:
    """Log a mistake of ours, which must not end the bridge, and return it as a fault."""
    log.error(
        "%s broke: %s: %s",
        one_line(what),
        type(error).__name__,
        one_line(str(error), 200),
        # The traceback is logged at the level DEBUG only.
        exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
    )
    return faults.of_exception(stage, error, place)
