"""One attempt at being in the room, stage by stage, each with a deadline and a classified fault.

The negotiation is a straight line of awaits: resolve, connect, TLS, SASL, bind, join. Nothing
here tries again; that is `participant`'s.
"""

import asyncio
import logging
import secrets
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TypeVar
from xml.etree.ElementTree import Element

from bridge.config import Settings
from bridge.frozen import dataclass
from bridge.xmpp import disco, faults, login, mam, refusals, stanzas
from bridge.xmpp.binding import bindings_of
from bridge.xmpp.endpoint import Endpoint, connect, resolve
from bridge.xmpp.events import Connected, Event, Joined, MessageSent, OccupantJoined, RoomError, Tls
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.findings import TellOf, unheard_of
from bridge.xmpp.management import MAX_RESUMPTION_SECONDS, RESUMABLE, Former, Management
from bridge.xmpp.scram import ScramError
from bridge.xmpp.stream import NotWellFormedError, StanzaTooLongError, Stream
from bridge.xmpp.tls import context_for, secure, ssl_of
from bridge.xmpp.trace import Tracing, untraced

DEADLINES = {
    Stage.RESOLVE: 10.0,
    Stage.CONNECT: 10.0,
    Stage.TLS: 10.0,
    Stage.SASL: 15.0,
    Stage.BIND: 10.0,
    Stage.JOIN: 20.0,
}
"""Seconds for each stage. SASL has longer: a million iterations take one of them."""

STANZAS = frozenset(f"{{{stanzas.CLIENT}}}{name}" for name in ("message", "presence", "iq"))
"""What stream management counts (XEP-0198, section 4)."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class StanzaRefusedError(Exception):
    """The other side answered a request with an error."""

    def __init__(self, error: stanzas.StanzaError) -> None:
        self.error = error
        super().__init__(error.text or error.condition)


@dataclass(frozen=True)
class ConnectionFeatures:
    """What the server and we use on one stream, beyond the plain protocol."""

    stream_management: bool
    """Stanzas are counted and acknowledged (XEP-0198)."""
    resumable: bool
    """A session whose connection was cut can be taken up again."""
    channel_binding: str | None
    """The type that ties the login to the TLS connection (RFC 5929); None if nothing does."""


class TooMuchError(Exception):
    """What came for a request was more than whoever asked would take in."""


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
        trace: Tracing = untraced,
        on_finding: TellOf = unheard_of,
        deadlines: Mapping[Stage, float] = DEADLINES,
    ) -> None:
        self._settings = settings
        self.place = place
        """Where this goes, with the address once one was reached."""
        self.endpoint: Endpoint | None = None
        """The address that was reached."""
        self._resource = resource
        self._publish = publish
        self._on_stage = on_stage
        self._on_finding = on_finding
        self._deadlines = deadlines
        self._room = stanzas.prepared(settings.room) or settings.room
        self._stage = Stage.RESOLVE
        self._inbox: asyncio.Queue[Element] | None = asyncio.Queue()
        """Where elements go while the stream is negotiated; None afterwards."""
        self._management: Management | None = None
        self._channel_binding: str | None = None
        self._jid = ""
        self._requests: dict[str, tuple[str | None, asyncio.Future[Element]]] = {}
        self._collecting: dict[str, tuple[Callable[[Element], bool], asyncio.Future[Element]]] = {}
        """Who takes what archives send, and the answer to come, by the id of the query."""
        self._entered: asyncio.Future[OccupantJoined] | None = None
        self._stream = Stream(settings.domain, self._receive, self._lost, trace)
        self.occupant = ""
        """Our occupant JID while in the room, or on the way in."""
        self.inside = False
        """Whether the room has let us in; what puts us out from then on is the end."""
        self.heard = self.room_heard = asyncio.get_running_loop().time()
        """When the server, and when the room, last sent anything, on the loop's clock."""
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()
        """Done once the stream is no more, with the reason."""

    async def open(self, former: Former | None = None) -> bool:
        """Go from nothing to a bound stream; raises `ConnectionFailedError`.

        Return whether the `former` session was resumed, in which case we are still in the room.
        """
        tls, features = await self.reach()
        mechanism = await self._run(Stage.SASL, self._log_in(features, tls))
        jid, resumed = await self._run(Stage.BIND, self._bind(former))
        self._jid = jid
        self._publish(Connected(jid, self.place.service, tls, mechanism, resumed))
        if resumed:
            self._stage = Stage.STANDING
            self.inside = True
        self._open_inbox()
        return resumed

    async def reach(self) -> tuple[Tls | None, Element]:
        """Go from nothing to a secured stream; raises `ConnectionFailedError`.

        Return what protects the stream, and what the server offers under it. Nobody has been told
        who we are.
        """
        # It is read while the server is sought: both take a while.
        context = asyncio.ensure_future(asyncio.to_thread(context_for, self._settings, self.place))
        context.add_done_callback(_heed)
        endpoints = await self._run(Stage.RESOLVE, resolve(self._settings, self._tell))
        endpoint, sock = await self._run(
            Stage.CONNECT, connect(endpoints, self._deadlines[Stage.CONNECT], self._tell)
        )
        self.endpoint = endpoint
        self.place = replace(self.place, service=str(endpoint))
        work = secure(
            self._settings, self.place, endpoint, sock, self._stream, self, context, self._tell
        )
        return await self._run(Stage.TLS, work)

    async def join(self, nickname: str, since: str | None = None, *, history: bool = True) -> None:
        """Enter the room under `nickname`; raises `ConnectionFailedError`, the stream standing.

        `since` is the time from which on the room's history is wanted, in UTC; without `history`
        none is.
        """
        self.place = replace(self.place, nickname=nickname)
        me = await self._run(Stage.JOIN, self._enter(nickname, since, history=history))
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
        return await self._ask(type_, to, payload, asyncio.get_running_loop().create_future())

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        """Send the archive query `id_` and return its final answer.

        `take` gets each result in the moment it comes, so that none lies about as it was sent, and
        says whether that was still within bounds; raises `TooMuchError` at once where not.
        """
        answer: asyncio.Future[Element] = asyncio.get_running_loop().create_future()
        self._collecting[id_] = (take, answer)
        try:
            return await self._ask("set", to, payload, answer)
        finally:
            del self._collecting[id_]

    async def features_of(self, target: str) -> frozenset[str]:
        """Ask an address what it can do (XEP-0030); raises `StanzaRefusedError`."""
        answer = await self.request("get", target, disco.info_query())
        return disco.features_in(answer)

    async def ping(self, target: str | None) -> str | None:
        """Ping the server (None) or an address (XEP-0199); return the error condition, if any."""
        try:
            await self.request("get", target, stanzas.ping())
        except StanzaRefusedError as refused:
            return refused.error.condition
        except ConnectionFailedError:
            return None  # `ended` tells
        return None

    @property
    def in_use(self) -> ConnectionFeatures:
        """What is in use on this stream, once it is bound."""
        management = self._management
        return ConnectionFeatures(
            stream_management=management is not None,
            resumable=management is not None and management.id is not None,
            channel_binding=self._channel_binding,
        )

    def former(self) -> Former | None:
        """What a next connection may take up of this one; None if it cannot."""
        if self._management is None or self._management.id is None or not self.occupant:
            return None
        return Former(self._management.id, self._management.handled, self._jid, self.occupant)

    def depart(self) -> None:
        """Ask the room to let us go; its confirmation is our own presence, unavailable."""
        self._send(stanzas.leaving(self.occupant))

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
        """Let go of the socket, whatever state it is in.

        A session that nobody will take up again is ended: left standing, it would haunt the room
        until the server replaces it by the next one, and then put that one out.
        """
        self.end(faults.of_lost_connection(self._stage, self.place))
        if self.ended.result().condition not in RESUMABLE:
            self._stream.hang_up()
        self._stream.abort()

    async def _run(self, stage: Stage, work: Awaitable[Answer]) -> Answer:
        """Await one stage within its deadline and translate what goes wrong."""
        self._stage = stage
        self._on_stage(stage)
        limit = self._deadlines[stage]
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
            fault = refusals.untrusted_server(str(error), self.place)
            raise ConnectionFailedError(fault) from error
        except login.NoMechanismError as error:
            fault = refusals.no_mechanism(error.offered, self.place)
            raise ConnectionFailedError(fault) from error
        except login.LoginRefusedError as error:
            fault = refusals.of_sasl(error.condition, error.text, self.place)
            raise ConnectionFailedError(fault) from error

    async def _ask(
        self, type_: str, to: str | None, payload: Element, answer: "asyncio.Future[Element]"
    ) -> Element:
        id_ = secrets.token_hex(8)
        self._requests[id_] = (to, answer)
        try:
            self._send(stanzas.query(type_, to, id_, payload))
            return await self._unless_ended(answer)
        finally:
            del self._requests[id_]

    def _tell(self, finding: str) -> None:
        self._on_finding(self._stage, finding)

    async def _unless_ended(self, answer: "asyncio.Future[Answer]") -> Answer:
        try:
            await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise ConnectionFailedError(self.ended.result())
        finally:
            answer.cancel()

    # The stages.

    async def _log_in(self, features: Element, tls: Tls | None) -> str:
        async def exchange(element: Element) -> Element:
            return await self.exchange(
                element, expected=(login.CHALLENGE, login.SUCCESS, login.FAILURE)
            )

        secured = ssl_of(self._stream)
        mechanism, self._channel_binding = await login.log_in(
            self._settings,
            features,
            exchange,
            bindings=[] if secured is None else bindings_of(secured),
            genuine=tls is not None and tls.verified,
            tell=self._tell,
        )
        self._stream.restart()
        return mechanism

    async def _bind(self, former: Former | None) -> tuple[str, bool]:
        """Return our full JID, and whether the former session goes on."""
        managed = (await self.features()).find(f"{{{stanzas.SM}}}sm") is not None
        if former is not None and managed and await self._resume(former):
            return former.jid, True
        id_ = secrets.token_hex(8)
        self._send(stanzas.query("set", None, id_, stanzas.bind(self._resource)))
        answer = await self._next((f"{{{stanzas.CLIENT}}}iq",))
        while answer.get("id") != id_ or not self._may_answer(answer.get("from"), None):
            answer = await self._next((f"{{{stanzas.CLIENT}}}iq",))
        given = answer.findtext(f"{{{stanzas.BIND}}}bind/{{{stanzas.BIND}}}jid")
        jid = stanzas.prepared(given or "")
        if answer.get("type") != "result" or not jid:
            error = stanzas.error_of(answer)
            fault = refusals.of_stream_error(error.condition, error.text, self.place)
            raise ConnectionFailedError(fault)
        if managed:
            await self._manage()
        self._tell(f"full JID {jid}")
        self._tell(_managed(self._management))
        return jid, False

    async def _resume(self, former: Former) -> bool:
        resumed, failed = f"{{{stanzas.SM}}}resumed", f"{{{stanzas.SM}}}failed"
        request = stanzas.resuming(former.id, former.handled)
        answer = await self.exchange(request, expected=(resumed, failed))
        if answer.tag == failed:
            return False
        self._management = Management(former.id, former.handled)
        self.occupant = former.occupant
        return True

    async def _manage(self) -> None:
        enabled, failed = f"{{{stanzas.SM}}}enabled", f"{{{stanzas.SM}}}failed"
        request = stanzas.enabling(MAX_RESUMPTION_SECONDS)
        answer = await self.exchange(request, expected=(enabled, failed))
        if answer.tag == enabled:
            resumable = answer.get("resume") in {"true", "1"}
            self._management = Management(answer.get("id") if resumable else None)

    async def _enter(self, nickname: str, since: str | None, *, history: bool) -> OccupantJoined:
        occupant = stanzas.occupant_jid(self._room, nickname)
        if occupant is None:
            fault = refusals.of_join_error("jid-malformed", None, self.place, None)
            raise ConnectionFailedError(fault)
        self.occupant = occupant
        password = self._settings.room_password
        self._entered = asyncio.get_running_loop().create_future()
        try:
            secret = password.reveal() if password else None
            self._send(stanzas.entering(occupant, secret, since, history=history))
            return await self._unless_ended(self._entered)
        finally:
            self._entered = None

    async def _unlock(self) -> None:
        try:
            async with asyncio.timeout(self._deadlines[Stage.JOIN]):
                await self.request("set", self._room, stanzas.default_configuration())
        except (StanzaRefusedError, TimeoutError) as error:
            log.warning("the new room keeps its lock or its defaults: %s", error)

    # The stream.

    async def features(self) -> Element:
        """Return the features that the server offers next."""
        return await self._next((f"{{{stanzas.STREAMS}}}features",))

    async def exchange(self, element: Element, *, expected: tuple[str, ...]) -> Element:
        """Send an element of the negotiation and return the answer: one of those `expected`."""
        self._send(element)
        return await self._next(expected)

    def forget(self) -> None:
        """Drop whatever came and was not asked for."""
        self._inbox = asyncio.Queue()

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

    def _open_inbox(self) -> None:
        """End the negotiation: what is still there of it, and all that follows, is for the room."""
        inbox, self._inbox = self._inbox, None
        self._stream.settle()
        while inbox is not None and not inbox.empty():
            self._receive(inbox.get_nowait())

    def _receive(self, element: Element) -> None:
        self.heard = asyncio.get_running_loop().time()
        if element.tag == f"{{{stanzas.STREAMS}}}error":
            condition, text = stanzas.condition_of(element, stanzas.STREAM_ERRORS)
            self.end(refusals.of_stream_error(condition, text, self.place))
        elif self._inbox is not None:
            self._inbox.put_nowait(element)
        elif element.tag == f"{{{stanzas.SM}}}r":
            if self._management is not None:
                self._stream.write(stanzas.acknowledging(self._management.handled))
        else:
            if element.tag == f"{{{stanzas.CLIENT}}}iq":
                self._receive_iq(element)
            else:
                self._receive_from_room(element)
            if self._management is not None and element.tag in STANZAS:
                self._management.count()

    def _receive_from_room(self, element: Element) -> None:
        archived = mam.archived(element, self._room)
        if archived is not None:
            id_, result = archived
            if id_ in self._collecting:
                take, answer = self._collecting[id_]
                if not answer.done() and not take(result):
                    answer.set_exception(TooMuchError())
            return
        for event in stanzas.read(element, room=self._room, own=self.occupant):
            self.room_heard = self.heard
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
        if asked is None or asked == self._jid.partition("/")[0]:
            return sender in {None, self._settings.domain, self._settings.jid, self._jid}
        return stanzas.prepared(sender or "") == stanzas.prepared(asked)

    def _meet(self, event: Event) -> None:
        """Let the join under way know of what decides it."""
        if self._entered is None or self._entered.done():
            return
        match event:
            case OccupantJoined(own=True):
                # The room decides the nickname (XEP-0045, section 7.2.3), and what follows
                # this presence is already reflected under it.
                self.occupant = event.occupant
                self.inside = True
                self._entered.set_result(event)
            case RoomError(condition=condition, text=text, venue=venue):
                fault = refusals.of_join_error(condition, text, self.place, venue)
                self._entered.set_exception(ConnectionFailedError(fault))

    def _lost(self, reason: BaseException | None) -> None:
        match reason:
            case None:
                fault = faults.of_lost_connection(self._stage, self.place)
            case StanzaTooLongError():
                fault = faults.protocol_error(self._stage, "it goes on without end", self.place)
            case NotWellFormedError():
                fault = faults.protocol_error(self._stage, "its XML is not well-formed", self.place)
            case _:
                fault = faults.of_exception(self._stage, reason, self.place)
        self.end(fault)


def _managed(management: Management | None) -> str:
    if management is None:
        return "no stream management"
    return f"stream management {'without' if management.id is None else 'with'} resumption"


def _heed(context: "asyncio.Future[ssl.SSLContext]") -> None:
    """Take note of how it ended, even where nobody comes to need it."""
    if not context.cancelled():
        context.exception()
