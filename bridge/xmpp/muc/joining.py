"""Enters a room: one attempt, its deadline, and the stanzas that decide it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from xml.etree.ElementTree import Element

from bridge.settings.values import MAX_JID_PART_BYTES, Secret
from bridge.text import named
from bridge.wire import names
from bridge.wire.meaning import REMOVALS
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import DEADLINES, Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model import events, faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place, Stage
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.intake import QUIET_SECONDS
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.ping import MUCH_BYTES, answers

PATIENCE_SECONDS = 5.0
"""How long we wait for a sign that the room's address is no room, before we ask its service whether
it is a room service."""

log = logging.getLogger(__name__)


def suffixed(nickname: str, suffix: str) -> str:
    """Return the nickname with a suffix in ASCII; a nickname that is too long is cut before it."""
    kept = nickname.encode()[: MAX_JID_PART_BYTES - len(suffix)]
    return kept.decode("utf-8", "ignore") + suffix


def malformed(place: Place) -> Fault:
    """Return the fault of a room or a nickname that cannot be part of an occupant JID."""
    local, _, service = place.room.partition("@")
    situation, text, form = "malformed-nickname", place.nickname, f"{place.room}/{{}}"
    if prepared(place.room) is None:
        situation, text, form = "malformed-room", local, f"{{}}@{service}"
    bad = (named(it) for it in text if prepared(form.format(it)) is None)
    return faults.of(situation, place, character=next(bad, "a combination of characters"))


class Join:
    """One attempt to enter a room under one nickname (XEP-0045, section 7.2).

    A room lets us in by our own presence, which has the status code 110. Some rooms never send that
    code. There, presence of the wanted nickname may be ours, or may belong to another occupant who
    has the nickname. We take it for ours once the subject has come or the room has been quiet for a
    while, if neither a refusal nor a presence with the code came before.

    A domain that is no room service often ignores a join, but answers service discovery. So we ask
    the service what it is if the room's address denies being a room, or does not answer.
    """

    def __init__(
        self,
        connection: Connection,
        place: Place,
        occupant: str,
        admit: Callable[[events.OccupantJoined], None],
    ) -> None:
        """`occupant` is the requested occupant JID, prepared; `admit` gets our own presence."""
        self._connection = connection
        self._place = place
        self._occupant = occupant
        self._room = names.bare(occupant)
        self._admit = admit
        self._unmarked: events.OccupantJoined | None = None
        """The wanted nickname's presence that came without the code 110; None before."""
        self._quiet: asyncio.TimerHandle | None = None
        """Takes `_unmarked` for our presence, unless the room sends something before."""
        self._answer: asyncio.Future[events.OccupantJoined] = (
            asyncio.get_running_loop().create_future()
        )
        self._has_heard = False
        """Whether the room has sent anything."""
        self._denied = asyncio.Event()
        """Set if the room's address answers as something that is no room."""
        self._silence = "silent-join"
        """The fault to report if the room never answers; the answer of its service may change
        it."""

    async def run(
        self, password: Secret | None, since: str | None, *, history: bool
    ) -> events.OccupantJoined:
        """Ask to be let in; return our own presence, with which the room lets us in.

        We ask for the room's history since the time `since`, in UTC; without `history`, for none.
        Raises `ConnectionFailedError`.
        """
        connection, seconds = self._connection, DEADLINES[Stage.JOIN]
        secret = password.reveal() if password else None
        # The room answers this before it sends its history. The answer says whether we can trust
        # the stanza ids in the history.
        connection.send(disco.info_request(self._room))
        connection.send(stanzas.join_presence(self._occupant, secret, since, history=history))
        doubting = asyncio.create_task(self._doubt_service())
        hearing = asyncio.create_task(self._hear_out(seconds))
        try:
            me = await connection.unless_ended(self._answer)
        finally:
            hearing.cancel()
            doubting.cancel()
        if 201 in me.codes:
            await self._unlock(seconds)
        return me

    def take(self, event: events.Event) -> list[events.Event]:
        """Take an event of the room; return the events that are to be published for it."""
        if self._answer.done():
            return [event]
        self._has_heard = True
        match event:
            case events.OccupantJoined(self_=True, from_=jid):
                unmarked, self._unmarked = self._unmarked, None
                self._let_in(event)
                # Another occupant has the wanted nickname, and the room gave us a new one.
                return [] if unmarked is None or unmarked.from_ == jid else [unmarked]
            case events.OccupantJoined(from_=jid) if prepared(jid) == self._occupant:
                self._unmarked = event
                self._await_quiet()
                return []
            case events.OccupantLeft(from_=jid) if self._unmarked and jid == self._unmarked.from_:
                self._unmarked = None
            case events.SubjectChanged():
                self._let_in_unmarked()
            case events.OccupantLeft(self_=True, codes=codes, reason=reason, actor=actor) if (
                not codes.isdisjoint(REMOVALS)
            ):
                self._refuse(faults.of_removal(codes, reason, actor, self._place))
            case events.RoomDestroyed(reason=reason, venue=venue):
                self._refuse(faults.of_destruction(reason, venue, self._place))
            case events.RoomError(condition=condition) if (
                self._unmarked and condition == events.CAPTCHA_REQUIRED
            ):
                pass  # inside a room, an occupant may send such a message
            case events.RoomError(condition=condition, text=text, venue=venue):
                self._refuse(faults.of_join_error(condition, text, self._place, venue))
        if self._unmarked is not None:
            self._await_quiet()
        return [event]

    def _await_quiet(self) -> None:
        """Let us in by presence without the code 110 once the room has been quiet for a while."""
        if self._quiet is not None:
            self._quiet.cancel()
        loop = asyncio.get_running_loop()
        self._quiet = loop.call_later(QUIET_SECONDS, self._let_in_unmarked)

    def _let_in_unmarked(self) -> None:
        if self._unmarked is not None and not self._answer.done():
            self._let_in(replace(self._unmarked, self_=True))

    def _let_in(self, me: events.OccupantJoined) -> None:
        self._answer.set_result(me)
        self._admit(me)

    def take_answer(self, iq: Element) -> None:
        """Read an answer to a request; it may show that the room's address is no room."""
        if prepared(iq.get("from", "")) != self._room:
            return  # it comes from an occupant
        if iq.get("type") == "error":
            # This does not deny that the address is a room: joining may make the room.
            denies = names.error_of(iq).condition != "item-not-found"
        else:
            denies = roomservice.denies(disco.description_in(iq))
        if denies:
            self._denied.set()

    async def _hear_out(self, seconds: float) -> None:
        """Give up if the room has not let us in within `seconds`.

        If the server has sent much in the second half of that time, the room's answer may be
        waiting behind a long stanza of another occupant. Then we ping the server. Once it answers,
        everything that the room sent before has arrived.
        """
        await asyncio.sleep(seconds / 2)
        received = self._connection.received
        await asyncio.sleep(seconds / 2)
        with suppress(ConnectionFailedError):
            if self._connection.received - received >= MUCH_BYTES:
                await answers(self._connection, seconds)
            self._let_in_unmarked()
            if not self._answer.done():
                situation = "unfinished-join" if self._has_heard else self._silence
                self._refuse(faults.of(situation, self._place, within=f" within {seconds:g} s"))

    async def _doubt_service(self) -> None:
        """Ask the room service what it is, once there is a reason to doubt it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._denied.wait()
        try:
            description, refusal = await roomservice.ask(self._connection, self._place.room_service)
        except ConnectionFailedError:
            return  # `run`, which waits for the room's answer, raises the same error
        fault = roomservice.denial(self._place, description, refusal)
        if fault is not None and not self._answer.done():
            self._refuse(fault)
        elif refusal is not None and refusal.condition == "service-unavailable":
            self._silence = "silent-join-without-service"
        elif refusal is None:
            self._silence = "silent-join-with-service"

    def _refuse(self, fault: Fault) -> None:
        self._answer.set_exception(ConnectionFailedError(fault))

    async def _unlock(self, seconds: float) -> None:
        """Accept the default configuration of a room that joining made (XEP-0045, 10.1.2)."""
        try:
            async with asyncio.timeout(seconds):
                await self._connection.request("set", self._room, stanzas.default_configuration())
        except IqError as refused:
            why = f"{refused.error.condition}.{faults.quoted_text(refused.error.text)}"
            log.warning("the new room refused its default configuration: %s", why)
        except TimeoutError:
            log.warning("the new room did not confirm its default configuration: no answer came")
