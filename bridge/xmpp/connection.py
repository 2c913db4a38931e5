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
from functools import partial
from typing import TypeVar
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.wire.xmlstream import NotWellFormedError, StanzaTooLongError
from bridge.xmpp import disco, faults, login, mam, refusals, session, stanzas
from bridge.xmpp.acknowledgement import Acknowledgements
from bridge.xmpp.binding import bindings_of
from bridge.xmpp.endpoint import Endpoint, connect, resolve
from bridge.xmpp.events import (
    Connected,
    Event,
    Joined,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    RoomError,
    Source,
    SubjectChanged,
    Tls,
)
from bridge.xmpp.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.inquiries import Inquiries, StanzaRefusedError
from bridge.xmpp.management import RESUMABLE, ConnectionFeatures, Former, Management
from bridge.xmpp.negotiation import Negotiation, UnexpectedElementError
from bridge.xmpp.scram import ScramError
from bridge.xmpp.session import BindRefusedError
from bridge.xmpp.stream import Stream
from bridge.xmpp.tls import secure, ssl_of
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

GIVES_IDS = frozenset({stanzas.STANZA_ID, mam.MAM})
"""The features of a room whose stanza ids are its own: with the first it has to take out those that
others gave in its name (XEP-0359), and with an archive it has to do as much (XEP-0313)."""

REASONS = (
    OSError,  # those of the resolver, sockets and OpenSSL; and TimeoutError
    ScramError,
    login.NoMechanismError,
    login.LoginRefusedError,
    BindRefusedError,
    UnexpectedElementError,
)
"""Why a stage fails, in the words of whoever found out."""

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class Connection:
    """One stream, from the first packet to the last."""

    def __init__(
        self,
        settings: Settings,
        place: Place,
        *,
        context: Awaitable[ssl.SSLContext],
        resource: str,
        publish: Callable[[Event], None],
        on_stage: Callable[[Stage], None],
        trace: Tracing = untraced,
        on_finding: Callable[[Stage, str], None] = lambda stage, finding: None,
        deadlines: Mapping[Stage, float] = DEADLINES,
    ) -> None:
        self._settings = settings
        self.place = place
        """Where this goes, with the address once one was reached."""
        self.endpoint: Endpoint | None = None
        """The address that was reached."""
        self._context = context
        self._resource = resource
        self._publish = publish
        self._on_stage = on_stage
        self._on_finding = on_finding
        self._deadlines = deadlines
        self._room = stanzas.prepared(settings.room) or settings.room
        self._stage = Stage.RESOLVE
        self._negotiation = Negotiation(self._send, self.unless_ended)
        self._inquiries = Inquiries(settings, self._send, self.unless_ended)
        self._acknowledgements: Acknowledgements | None = None
        self._channel_binding: str | None = None
        self._entered: asyncio.Future[OccupantJoined] | None = None
        self._tells_history = False
        self._gives_ids = False
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
        self._stream.settle()
        work = session.begin(
            self._negotiation, self._resource, former, self._inquiries.may_answer, self._found
        )
        begun = await self._run(Stage.BIND, work)
        self._inquiries.jid = begun.jid
        if begun.management is not None:
            self._acknowledgements = Acknowledgements(begun.management, self._acknowledge)
        self._publish(Connected(begun.jid, self.place.service, tls, mechanism, begun.resumed))
        if former is not None and begun.resumed:
            self.occupant = former.occupant
            self._gives_ids = former.gives_ids
            self._stage = Stage.STANDING
            self.inside = True
        for element in self._negotiation.early:
            self._deal_with(element)  # counted are those that come after `<enabled/>`
        for element in self._negotiation.end():
            self._receive(element)
        return begun.resumed

    async def reach(self) -> tuple[Tls | None, Element]:
        """Go from nothing to a secured stream; raises `ConnectionFailedError`.

        Return what protects the stream, and what the server offers under it. Nobody has been told
        who we are.
        """
        endpoints = await self._run(Stage.RESOLVE, resolve(self._settings, self._found))
        endpoint, sock = await self._run(
            Stage.CONNECT, connect(endpoints, self._deadlines[Stage.CONNECT], self._found)
        )
        self.endpoint = endpoint
        self.place = replace(self.place, service=str(endpoint))
        work = secure(
            self._settings,
            self.place,
            endpoint,
            sock,
            self._stream,
            self._negotiation,
            self._context,
            self._found,
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
        self._publish(Joined(me.from_, me.sender, created))

    def say(self, body: str, id_: str) -> None:
        """Hand a message to the room; it has been said once its reflection comes back."""
        self._send(stanzas.said(self._room, body, id_))
        self._publish(MessageSent(self.occupant, self.occupant.partition("/")[2], body, id_))

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Send an IQ and return its result; raises `StanzaRefusedError` where it is an error."""
        return await self._inquiries.request(type_, to, payload)

    async def collect(
        self, id_: str, to: str, payload: Element, take: Callable[[Element], bool]
    ) -> Element:
        """Send the archive query `id_` and return its final answer.

        `take` gets each result in the moment it comes, so that none lies about as it was sent, and
        says whether that was still within bounds; raises `TooMuchError` at once where not.
        """
        return await self._inquiries.collect(id_, to, payload, take)

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

    async def unless_ended(self, answer: "asyncio.Future[Answer]") -> Answer:
        """Wait for what the stream will bring; raises `ConnectionFailedError` if it ends first."""

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
        management = self._management
        if management is None or management.id is None or not self.occupant:
            return None
        jid = self._inquiries.jid
        return Former(management.id, management.handled, jid, self.occupant, self._gives_ids)

    def depart(self) -> None:
        """Ask the room to let us go; its confirmation is our own presence, unavailable."""
        self._send(stanzas.leaving(self.occupant))

    def leave(self) -> None:
        """Say goodbye to the room and the server and hang up, without waiting for anybody."""
        if self.occupant and not self.ended.done():
            self._stream.write(stanzas.leaving(self.occupant))
        self._hang_up()
        self.end(faults.of_lost_connection(self._stage, self.place))

    def end(self, fault: Fault) -> None:
        """Declare the stream over because of `fault`; the first reason stands."""
        if not self.ended.done():
            self.ended.set_result(fault)
            if self._acknowledgements is not None:
                self._acknowledgements.stop()

    def close(self) -> None:
        """Let go of the socket, whatever state it is in.

        A session that nobody will take up again is ended: left standing, it would haunt the room
        until the server replaces it by the next one, and then put that one out.
        """
        self.end(faults.of_lost_connection(self._stage, self.place))
        if self.ended.result().condition not in RESUMABLE:
            self._hang_up()
        self._stream.abort()

    async def _run(self, stage: Stage, work: Awaitable[Answer]) -> Answer:
        """Await one stage within its deadline and translate what goes wrong."""
        self._stage = stage
        self._on_stage(stage)
        limit = self._deadlines[stage]
        try:
            async with asyncio.timeout(limit) as deadline:
                return await work
        except REASONS as error:
            silent = isinstance(error, TimeoutError) and deadline.expired()
            fault = faults.of_silence(stage, limit, self.place) if silent else self._fault_of(error)
            raise ConnectionFailedError(fault) from error

    def _fault_of(self, error: BaseException) -> Fault:
        match error:
            case OSError() if self.ended.done():  # it follows from that
                return self.ended.result()
            case UnexpectedElementError():
                return faults.unexpected_element(self._stage, str(error), self.place)
            case ScramError():
                return refusals.untrusted_server(str(error), self.place)
            case login.NoMechanismError(offered=offered):
                return refusals.no_mechanism(offered, self.place)
            case login.LoginRefusedError(condition=condition, text=text):
                return refusals.of_sasl(condition, text, self.place)
            case BindRefusedError(error=refusal):
                return refusals.of_stream_error(refusal.condition, refusal.text, self.place)
            case _:
                return faults.of_exception(self._stage, error, self.place)

    @property
    def _management(self) -> Management | None:
        return None if self._acknowledgements is None else self._acknowledgements.management

    def _found(self, finding: str) -> None:
        self._on_finding(self._stage, finding)

    # The stages.

    async def _log_in(self, features: Element, tls: Tls | None) -> str:
        secured = ssl_of(self._stream)
        genuine = tls is not None and tls.verified
        mechanism, self._channel_binding = await login.log_in(
            self._settings,
            features,
            partial(self._negotiation.exchange, expected=login.ANSWERS),
            bindings=[] if secured is None else bindings_of(secured, verified=genuine),
            genuine=genuine,
            on_finding=self._found,
        )
        self._stream.restart()
        return mechanism

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
            # Answered first, so that it is known what to believe of the history.
            self._send(stanzas.query("get", self._room, secrets.token_hex(8), disco.info_query()))
            self._send(stanzas.entering(occupant, secret, since, history=history))
            return await self.unless_ended(self._entered)
        finally:
            self._entered = None

    async def _unlock(self) -> None:
        try:
            async with asyncio.timeout(self._deadlines[Stage.JOIN]):
                await self.request("set", self._room, stanzas.default_configuration())
        except StanzaRefusedError as refused:
            why = f"{refused.error.condition}.{refusals.said(refused.error.text)}"
            log.warning("the new room keeps its lock or its defaults: %s", why)
        except TimeoutError:
            log.warning("the new room keeps its lock or its defaults: no answer came")

    # The stream.

    def _send(self, element: Element) -> None:
        if self.ended.done():
            raise ConnectionFailedError(self.ended.result())
        if not self._stream.write(element):
            raise ConnectionFailedError(faults.of_lost_connection(self._stage, self.place))

    def _acknowledge(self, handled: int) -> None:
        self._stream.write(stanzas.acknowledging(handled))

    def _hang_up(self) -> None:
        if self._acknowledgements is not None:
            self._acknowledgements.settle()
        self._stream.hang_up()

    def _receive(self, element: Element) -> None:
        self.heard = asyncio.get_running_loop().time()
        if element.tag == f"{{{stanzas.STREAMS}}}error":
            condition, text = stanzas.condition_of(element, stanzas.STREAM_ERRORS)
            self.end(refusals.of_stream_error(condition, text, self.place))
        elif not self._negotiation.over:
            self._negotiation.receive(element)
        elif element.tag == f"{{{stanzas.SM}}}r":
            if self._acknowledgements is not None and not self.ended.done():
                self._acknowledgements.owe()
        else:
            self._deal_with(element)
            if self._acknowledgements is not None and element.tag in stanzas.STANZAS:
                self._acknowledgements.count()

    def _deal_with(self, element: Element) -> None:
        if element.tag == f"{{{stanzas.CLIENT}}}iq":
            self._receive_iq(element)
        else:
            self._receive_from_room(element)

    def _receive_from_room(self, element: Element) -> None:
        archived = mam.archived(element, self._room)
        if archived is not None:
            self._inquiries.archived(*archived)
            return
        # While we are on the way in, somebody else may have the nickname that we asked for.
        own = self.occupant if self.inside else ""
        for event in stanzas.read(element, room=self._room, own=own):
            self.room_heard = self.heard
            self._meet(event)
            self._publish(self._believed(event))

    def _receive_iq(self, iq: Element) -> None:
        if iq.get("type") in {"get", "set"}:
            self._stream.write(stanzas.answer_to(iq))
            return
        features = disco.features_in(iq) if iq.get("type") == "result" else None
        if features and stanzas.prepared(iq.get("from", "")) == self._room:
            self._gives_ids = not features.isdisjoint(GIVES_IDS)
        self._inquiries.answered(iq)

    def _believed(self, event: Event) -> Event:
        """Return `event` without what an occupant may have claimed in the room's name.

        The room stamps its history, which it tells between our own presence and the subject
        (XEP-0045, section 7.1); of what comes later none is delayed.
        """
        match event:
            case SubjectChanged() | MessageReceived(type="groupchat", delayed_from=None):
                self._tells_history = False
            case MessageReceived(type=type_) if type_ != "groupchat" or not self._tells_history:
                event = replace(event, source=Source.LIVE, delayed_from=None)
        if isinstance(event, MessageReceived) and event.stanza_id and not self._gives_ids:
            event = replace(event, stanza_id=None)
        return event

    def _meet(self, event: Event) -> None:
        """Let the join under way know of what decides it."""
        if self._entered is None or self._entered.done():
            return
        match event:
            case OccupantJoined(self_=True):
                # The room decides the nickname (XEP-0045, section 7.2.3), and what follows
                # this presence is already reflected under it.
                self.occupant = event.from_
                self.inside = self._tells_history = True
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
