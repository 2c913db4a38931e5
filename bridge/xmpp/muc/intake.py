"""Makes events of what a room sends: drops forgeries and duplicates, and dates its history."""

import asyncio
import time
from collections.abc import Callable, Hashable
from math import inf
from xml.etree.ElementTree import Element

from bridge.newest import Newest
from bridge.text import iso, seconds_of
from bridge.wire import names
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.events import Event, MessageReceived, OccupantJoined, Source, SubjectChanged
from bridge.xmpp.muc import reading
from bridge.xmpp.muc.reflections import REMEMBERED
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.disco import Description

GIVES_IDS = frozenset({names.STANZA_ID, names.MAM})
"""The features of a room that gives its messages stanza ids. With either feature, the room has to
remove ids that others wrote in the room's name (XEP-0359, XEP-0313)."""


QUIET_SECONDS = 2.0
"""A room that was silent for this time has sent all of its history, even if no subject came."""

HISTORY_SECONDS = 10.0
"""The longest time of a room's history. Occupants who go on speaking cannot prolong it."""


BEAT_SECONDS = 0.5
"""How often we look whether we stood still, while a room may send its history."""


class Awake:
    """A clock that stands still while this process does, as in a machine that sleeps.

    It does so only while it is watched. What a room sent meanwhile is read before the next beat.
    """

    def __init__(self) -> None:
        self._lost = 0.0
        self._due = inf
        """When the next beat is so late that we stood still; infinite if none is to come."""

    def time(self, now: float) -> float:
        """Return the time of this clock at a time of the loop's clock."""
        return min(now, self._due) - self._lost

    def watch(self, is_needed: Callable[[float], bool]) -> None:
        """Note at every beat that we run, as long as `is_needed` says so at the time of it."""
        if self._due == inf:
            self._beat(is_needed)

    def _beat(self, is_needed: Callable[[float], bool]) -> None:
        loop = asyncio.get_running_loop()
        time_ = self.time(now := loop.time())
        self._lost, self._due = now - time_, inf
        if is_needed(time_):
            self._due = now + 2 * BEAT_SECONDS
            loop.call_later(BEAT_SECONDS, self._beat, is_needed)


class HistoryWindow:
    """The time in which a room may send its history, after it has let us in.

    A room sends its history after our own presence and before the subject (XEP-0045, sections
    7.2.13 and 7.2.15); some rooms send it before our presence. In that time a message with a delay
    is history, whichever address is in the stamp: some rooms stamp with the sender's address
    instead of their own. After that time a stamp proves nothing, since an occupant may write a
    stamp into a live message.

    All times are seconds of the clock `Awake`. The window closes at the first of these:

    - the subject
    - the first live message of an occupant
    - `QUIET_SECONDS` in which the room sent nothing
    - `HISTORY_SECONDS` after it opened
    """

    def __init__(self) -> None:
        self.until = -inf
        """When the window closes by itself."""
        self._ends = -inf
        """When it closes at the latest."""

    def open(self, now: float) -> None:
        """Open the window: the room is letting us in, or has sent something before."""
        self.until, self._ends = now + QUIET_SECONDS, now + HISTORY_SECONDS

    def hear(self, now: float) -> None:
        """Note that the room sent something; a closed window stays closed."""
        if self.is_open(now):
            self.until = min(self._ends, now + QUIET_SECONDS)

    def close(self) -> None:
        """Close the window: the subject has come, or a live message of an occupant."""
        self.until = -inf

    @property
    def is_over(self) -> bool:
        """Whether the subject, or a live message, has closed the window."""
        return self.until == -inf

    def is_open(self, now: float) -> bool:
        """Whether the room may still be sending its history."""
        return now < self.until


class Intake:
    """Reads what one room sends.

    It remembers the last `capacity` messages that came. `on_description` gets what the room says of
    itself.
    """

    def __init__(
        self,
        room: str,
        capacity: int = REMEMBERED,
        on_description: Callable[[Description], None] = lambda description: None,
    ) -> None:
        self._room = room
        self._seen = Newest[Hashable, str](capacity)
        self._gives_ids = False
        self.ours = frozenset[str | None]()
        """Our account and configured occupant JID, under which a former run of the bridge may have
        sent messages."""
        self._occupant_id: str | None = None
        """The occupant id that the room gives our account (XEP-0421); None until it does."""
        self.description = Description()
        """The newest description that the room gave of itself."""
        self._on_description = on_description
        self._awake = Awake()
        self.history = HistoryWindow()
        """The time in which the room may be sending its history."""

    def hear(self, now: float, *, entering: bool) -> tuple[float, bool]:
        """Note that the room sent something; return when, and whether it may be its history.

        `now` is the time on the loop's clock, and the result is one on the clock `Awake`.
        """
        awake = self._awake.time(now)
        take_note = self.history.open if entering else self.history.hear
        take_note(awake)
        self._awake.watch(self.history.is_open)
        return awake, self.history.is_open(awake)

    def read(self, stanza: Element, *, own: str, now: float = 0.0) -> list[Event]:
        """Return the events in `stanza` from the room, in which we are the occupant `own`.

        `now` is the time on the clock `Awake`.

        An answer to disco#info has no events: it describes the room. It also says whether the
        stanza ids in the room's messages can be trusted.
        """
        if stanza.tag != names.IQ or isinstance(stanza, DamagedElement):
            read = reading.read(
                stanza,
                room=self._room,
                own=own,
                gives_ids=self._gives_ids,
                names_accounts=reading.OCCUPANT_ID in self.description.features,
            )
            return [self._believed(stanza, event, now) for event in read]
        if (
            stanza.get("type") == "result"
            # An occupant may send an answer too, though only the room was asked.
            and prepared(stanza.get("from", "")) == self._room
            and (description := disco.description_in(stanza)).features
        ):
            self._gives_ids = not GIVES_IDS.isdisjoint(description.features)
            self.description = description
            self._on_description(description)
        return []

    def deduplicate(self, message: MessageReceived) -> MessageReceived | None:
        """Return `message`; None if it has come before.

        Live messages are never dropped, since two different ones may be alike. A copy from the
        archive may have a stanza id although the live message had none.
        """
        content = _content(message)
        key = content if message.stanza_id is None else hash(message.stanza_id)
        if key in self._seen or (message.id is not None and content in self._seen):
            return message if message.source is Source.LIVE else None
        self._seen.add(key, message.sender)
        if message.retracts and not message.sender:
            message = message._replace(author=self._seen.get(hash(message.retracts)))
        return message

    def _believed(self, stanza: Element, event: Event, now: float) -> Event:
        """Return `event` without claims that an occupant may have made in the room's name.

        A stamp counts only while the room may be sending its history. A stanza without a stamp is
        live, and so is every stanza after that time. A subject ends the history, with or without a
        stamp: Prosody stamps the current one. What the room says in its own name may come before
        the history.
        """
        is_open = self.history.is_open(now)
        match event:
            case SubjectChanged():
                self.history.close()
            case MessageReceived(type="groupchat", delayed_from=None, body=body, sender=sender):
                if body and sender:
                    self.history.close()
            case MessageReceived(type=type_) if type_ != "groupchat" or not is_open:
                event = event._replace(
                    source=Source.LIVE, delayed_from=None, stamped_at=None, stamped_by=None
                )
            case MessageReceived(from_=sender, own=own, occupant_id=id_):
                known = id_ is not None and id_ == self._occupant_id
                senders = {sender, *reading.original_senders(stanza)}
                ours = own or known or not senders.isdisjoint(self.ours)
                event = _dated(event, time.time())._replace(as_ours=ours)
            case OccupantJoined(self_=True, occupant_id=id_):
                self._occupant_id = id_
        return event


def _dated(message: MessageReceived, now: float) -> MessageReceived:
    """Return a message of the history with a time that is not in the future."""
    stamp = seconds_of(message.delayed_from)
    if stamp is None or stamp <= now:
        return message
    return message._replace(delayed_from=iso(now), stamped_at=message.delayed_from)


def _content(message: MessageReceived) -> int:
    """Return a hash of what a message says: it is small, however long the message is.

    Python seeds its hashes anew in each process, so an occupant cannot write two messages with the
    same hash.
    """
    concerns = (message.reacts_to, message.reactions, message.retracts)
    silent = (message.encrypted, message.payload)
    return hash((message.from_, message.id, message.body, concerns, silent))
