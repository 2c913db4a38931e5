"""Says something in a room, and recognises it when the room sends it back (XEP-0045, section 7.4).

A message under our nickname is not always ours. A room may let several sessions share a nickname
(section 7.2.9), and another account may have had ours before. The id that we gave the message is
the proof. Some rooms give no ids back. There the text is the proof, under the conditions of
`Reflections.claim`.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.newest import Newest
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model import events, faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place
from bridge.xmpp.model.journal import Record

REMEMBERED = 5_000
"""Most messages that we remember: more than a room sends in the overlap of two stays."""

LATE_SECONDS = 60.0
"""If the room has not sent a message back after this time, we take it for lost. Until then, a
copy with the same text may be this message, and so proves nothing about a later one. xmppSend waits
no longer."""


class Reflection(NamedTuple):
    """The room's own copy of what we said: the proof that it was heard."""

    record: Record
    message: events.MessageReceived
    round_trip_seconds: float


@dataclass
class Outstanding:
    """A message of ours for which a caller waits until the room sends it back."""

    text: int
    """A hash of the text."""
    answer: "asyncio.Future[Record]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    """The room's copy, or the error that returned the message."""
    unproved: bool = False
    """Whether a message came under our nickname that may be another session's."""


class _Said(NamedTuple):
    """A message that we sent in this stay, and that the room has not sent back."""

    text: int
    at: float
    """When, in seconds of the loop's clock."""


class Reflections:
    """The messages that we sent to one room, and which of them the room sent back."""

    def __init__(self, capacity: int = REMEMBERED) -> None:
        self._texts = Newest[str | None, int](capacity)
        """A hash of the text of each message that we sent, by its id."""
        self._unheard = Newest[str | None, _Said](capacity)
        """The messages that the room has not sent back in this stay, by id, the oldest first."""
        self._waiting: dict[str, Outstanding] = {}
        self.gives_ids_back = False
        """Whether the room has given one of our ids back in this stay."""

    def begin(self) -> None:
        """Begin a stay: the room at this address may be another than before."""
        self._unheard.clear()
        self.gives_ids_back = False

    def sent(self, id_: str, body: str) -> None:
        """Remember a message that we send."""
        text = _hash(body)
        self._texts.add(id_, text)
        self._unheard.add(id_, _Said(text, asyncio.get_running_loop().time()))

    async def say(
        self,
        body: str,
        send: Callable[[str], None],
        connection: Connection,
        place: Place,
        deadline: float,
        seconds: float,
    ) -> Reflection:
        """Say `body` in the room at `place`, and return the room's reflection of it.

        `send` sends it under an id, and may raise `ConnectionFailedError`. `deadline` is a time of
        the loop's clock. The error names `seconds` as the time waited. Raises `NotSentError`,
        `NotReflectedError` or `BouncedError`.
        """
        id_, started, waiting = secrets.token_hex(12), 0.0, None
        try:
            async with asyncio.timeout_at(deadline), self.expected(id_, body) as waiting:
                started = time.perf_counter()
                send(id_)
                record = await connection.unless_ended(waiting.answer)
        except ConnectionFailedError as failed:
            was_sent = id_ in self._texts
            error = faults.NotReflectedError if was_sent else faults.NotSentError
            raise error(failed.fault) from failed
        except TimeoutError as error:
            if waiting is None:
                raise faults.NotSentError(faults.of("same-text", place)) from error
            situation = "unproved" if waiting.unproved else "no-reflection"
            fault = faults.of(situation, place, seconds=seconds)
            raise faults.NotReflectedError(fault) from error
        match record.event:
            case events.MessageReceived() as reflected:
                return Reflection(record, reflected, time.perf_counter() - started)
            case events.SendFailed(condition=condition, text=text):
                raise faults.BouncedError(faults.of_bounce(condition, text, place))
            case _:
                raise AssertionError(record)

    def claim(self, message: events.MessageReceived, *, by_text: bool) -> events.MessageReceived:
        """Return `message`, which came under our nickname, with `own` as it is proved to be.

        Our id is proof. While we are away, others can take our nickname and repeat an id of ours,
        so a message of the history must have our text too, unless we sent it in this stay. In other
        cases the text may differ, since the room may change texts.

        With `by_text`, our text is proof as well, in a room that has given none of our ids back:
        `reflects` then has our id. Of several messages with one text, the oldest comes first.
        """
        live, text = message.source is events.Source.LIVE, _hash(message.body)
        if (sent := self._texts.get(message.id)) is not None:
            unheard = self._unheard.pop(message.id, None) is not None
            self.gives_ids_back |= unheard
            if live or unheard or sent == text:
                return message
        elif live and by_text and not self.gives_ids_back:
            since = asyncio.get_running_loop().time() - LATE_SECONDS
            for id_, said in self._unheard.items():
                if said.text == text and said.at > since:
                    del self._unheard[id_]
                    return message._replace(reflects=str(id_))
        if live and message.body:
            for waiting in self._waiting.values():
                waiting.unproved = True
        return message._replace(own=False)

    @asynccontextmanager
    async def expected(self, id_: str, body: str) -> AsyncIterator[Outstanding]:
        """Wait in this block for the answer to our message `id_`: its reflection, or an error.

        If the text may have to be the proof, this first waits for another message with the same
        text: until its answer has come, or is no longer awaited.
        """
        waiting = Outstanding(_hash(body))
        while not self.gives_ids_back:
            same = [it.answer for it in self._waiting.values() if it.text == waiting.text]
            if not (same := [answer for answer in same if not answer.done()]):
                break
            await asyncio.wait(same, return_when=asyncio.FIRST_COMPLETED)
        self._waiting[id_] = waiting
        try:
            yield waiting
        finally:
            del self._waiting[id_]
            waiting.answer.cancel()

    def take(self, record: Record) -> None:
        """End the wait for an answer if `record` is that answer."""
        match record.event:
            case events.MessageReceived(own=True, id=id_, reflects=sent):
                id_ = sent or id_
            case events.SendFailed(id=id_):
                if not id_ and len(self._waiting) == 1:
                    (id_,) = self._waiting
                self._unheard.pop(id_, None)
            case _:
                return
        waiting = self._waiting.get(id_ or "")
        if waiting is not None and not waiting.answer.done():
            waiting.answer.set_result(record)

    def give_up(self, fault: Fault) -> None:
        """End every wait with a `ConnectionFailedError`, since no answer will come."""
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(ConnectionFailedError(fault))


def _hash(text: str) -> int:
    """Return a hash of a text: it is small, however long the text is.

    Blanks around the text do not count, since gateways remove them. Python seeds its hashes anew in
    each process, so an occupant cannot write two texts with the same hash.
    """
    return hash(text.strip())


class OwnNickname:
    """Our nickname in one stay in a room: whether it is ours alone, and who chose it.

    Prosody lists all sessions that share a nickname in our own presence. ejabberd sends us the
    presence of another session as if it were our own, without the code 110. If the other session
    was there before us, ejabberd sends nothing about it.
    """

    def __init__(self) -> None:
        self.is_marked = False
        """Whether our presence is surely our own: it has the code 110, or our account's JID."""
        self.is_shared = False
        """Whether another session of our account was seen under the nickname."""
        self.is_spoken_under = False
        """Whether a message came under the nickname that is not proved to be ours."""
        self.was_changed = False
        """Whether the room gave us this nickname instead of another."""
        self._has_code = False

    def begin(self, me: events.OccupantJoined, account: str) -> None:
        """Begin a stay with our own presence; `account` is our bare JID."""
        address = (me.jid or "").partition("/")[0]
        self._has_code = 110 in me.codes
        self.is_marked = self._has_code or prepared(address) == prepared(account)
        self.is_shared = self.is_spoken_under = self.was_changed = False

    def see(self, event: events.Event, happened: events.Event | None) -> None:
        """Take an event, and as `happened` what it changes in the room; None if nothing."""
        match event:
            case events.NicknameChanged(self_=True):
                self.was_changed = True
            case events.OccupantJoined(self_=True, codes=codes, sessions=sessions):
                self.was_changed |= 210 in codes
                # Some rooms leave the code out when they change our role. Everything else in our
                # presence can be changed only by a session of ours, and this session never does.
                same = happened is None or (
                    isinstance(happened, events.OccupantChanged)
                    and happened.former_role is happened.former_affiliation is None
                )
                unmarked = self._has_code and 110 not in codes
                self.is_shared |= sessions > 1 or (unmarked and same)
