"""Folds the events of one room into its state: its occupants, its last message. Pure."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from bridge.newest import Newest
from bridge.text import iso, quoted, seconds_of, visible
from bridge.wire.meaning import REMOVALS
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Phase
from bridge.xmpp.model.faults import Fault, similar_named
from bridge.xmpp.model.journal import Record

NO_SESSION = frozenset({Phase.WAITING, Phase.FAILED, Phase.CLOSED, Phase.RESOLVING})
"""The phases of the connection in which it has no session."""

UNDER_WAY = frozenset(
    {Phase.RESOLVING, Phase.CONNECTING, Phase.SECURING, Phase.AUTHENTICATING, Phase.JOINING}
)
"""The phases in which an attempt is still under way."""

MAX_OCCUPANTS = 10_000
"""Most occupants of a room that are kept. Rooms have fewer, but a server may send any number."""

MAX_UNHEARD = 1_000
"""How many ids of messages we keep that the room has not sent back. It may never send them."""

MAX_UNLISTED = 100
"""How many speakers we keep whom the room does not list: the last to speak."""

MAX_DEPARTURES = 100
"""How many departures we keep: the newest, and for each nickname only the last."""

TEMPORARY = "The room is temporary: it goes, with its settings, when all have left"
"""What `muc_temporary` means (XEP-0045, section 4.2)."""

MAKE_PERSISTENT = "Its owner can make it persistent (muc#roomconfig_persistentroom)."
"""What to do about a temporary room."""

GONE_MEANWHILE = "went while the bridge was not in the room"
"""The reason that we give for an occupant who was in the room when the bridge left it, and was not
there when the bridge came back."""


Act: TypeAlias = events.MessageReceived | events.OccupantLeft | events.NicknameChanged
"""An act of an occupant, with what the room shows of the occupant's account."""


@dataclass(frozen=True)
class Occupant:
    """A person or program in the room (XEP-0045, section 4.1)."""

    jid: str
    """The occupant JID: `room@service/nickname`."""
    nickname: str
    role: str
    affiliation: str
    since: float | None
    """When we saw the occupant come, in seconds since the epoch; None if the occupant was there
    before us."""
    show: str | None = None
    status: str | None = None
    real_jid: str | None = None
    own: bool = False
    last_message_at: float | None = None
    """When we last saw a live message of the occupant, including private and encrypted ones."""
    payload: tuple[str, ...] = ()
    """The names of the extension elements in the presence."""
    occupant_id: str | None = None
    """The room's id of the account (XEP-0421)."""
    visible_nickname: str = ""
    """The nickname as users see it. It is made once: with many hidden characters that takes a
    millisecond, and a room may have ten thousand such names."""

    def __post_init__(self) -> None:
        if not self.visible_nickname:
            object.__setattr__(self, "visible_nickname", visible(self.nickname))

    @property
    def voice(self) -> bool:
        """Whether the role has voice (XEP-0045, section 5.1). A moderated room asks for it.

        If the room shows no roles, all occupants have voice.
        """
        return self.role not in {"visitor", "none"}

    @property
    def account(self) -> str | None:
        """The bare real JID, where the room shows it."""
        return self.real_jid and self.real_jid.partition("/")[0]


class LastIncoming(NamedTuple):
    """The newest message with a body from another occupant, live or from the room's history.

    A message in the history under our nickname or account does not count: a former run may have
    said it.
    """

    message: events.MessageReceived
    at: float
    """When it came, in seconds since the epoch. For a message of the history, the time that the
    room gives."""


@dataclass(frozen=True)
class LastError:
    """The last fault, and when it was, in seconds since the epoch."""

    fault: Fault
    at: float


class Departure(NamedTuple):
    """An occupant who has gone, with the time and the reason."""

    nickname: str
    at: float
    """When the occupant went, in seconds since the epoch. If that was while we were away: when we
    came back."""
    why: str
    """A clause that quotes the reason or the status text, if the room sent any."""
    by: str | None = None
    """Who put the occupant out, if the room says so."""


@dataclass(frozen=True)
class RoomStatus:
    """The state of one room at a moment."""

    phase: Phase
    since: float
    """When the phase began, in seconds since the epoch."""
    nickname: str
    service: str
    attempt: int = 0
    next_attempt_at: float | None = None
    last_error: LastError | None = None
    occupants: tuple[Occupant, ...] = ()
    subject: str | None = None
    last_incoming: LastIncoming | None = None
    jid: str | None = None
    tls: events.Tls | None = None
    sasl: str | None = None
    self_ping_ms: float | None = None
    room_created: bool = False
    made_anew: bool = False
    """Whether joining made the room, though we had been in a room of this name before."""
    crowded: bool = False
    """Whether there are more occupants than are kept."""
    unlisted: tuple[Occupant, ...] = ()
    """The speakers whom the room does not list (XEP-0045, section 16.5.3, `presencebroadcast`).
    Their role and affiliation are unknown."""
    counts_more: bool = False
    """Whether the room's description of itself counted more occupants than the room listed."""
    departures: tuple[Departure, ...] = ()
    """The last departure of each nickname, oldest first."""
    moderated: bool | None = None
    """Whether only occupants with voice may speak; None if the room does not say."""
    persistent: bool | None = None
    """Whether the room stays when all have left; None if the room does not say."""
    members_only: bool | None = None
    """Whether only members may enter; None if the room does not say."""
    password_protected: bool | None = None
    """Whether only who gives a password may enter; None if the room does not say."""
    similar_rooms: tuple[str, ...] = ()
    """Rooms of the service with similar names, if joining made this room."""
    nickname_lost: str = ""
    """The configured nickname, if we are in the room under another; empty otherwise."""
    nickname_changed: bool = False
    """Whether the room itself gave us our nickname in place of another."""
    nickname_shared: bool = False
    """Whether another session of our account was seen under our nickname."""
    unreached_at: float | None = None
    """When a message of ours came back because a server did not reach the room's service. None once
    the room has reflected a later message."""

    @property
    def warnings(self) -> list[str]:
        """Sentences on what is odd about the room."""
        warnings = []
        if self.crowded:
            warnings.append(f"The room has more occupants than the {MAX_OCCUPANTS} that are kept.")
        if self.nickname_lost and self.nickname_changed:
            warnings.append(
                f"The room changed the nickname {quoted(self.nickname_lost)} to "
                f"{quoted(self.nickname)}: set MCP_BOT_NICKNAME to one that it leaves as it is."
            )
        elif self.nickname_lost:
            warnings.append(
                f"The nickname {quoted(self.nickname_lost)} was taken or refused, so the bridge is "
                f"in the room as {quoted(self.nickname)}: set MCP_BOT_NICKNAME to a free one."
            )
        if self.nickname_shared:
            warnings.append(
                f"Another session of the account uses the nickname {quoted(self.nickname)} too: "
                "what it says looks as if the bridge had said it. Give one of them another "
                "nickname (MCP_BOT_NICKNAME) or another account."
            )
        if not self.shows_all:
            warnings.append("The room does not show everybody: who only listens is not listed.")
        if self.unreached_at is not None:
            warnings.append(
                f"A message came back at {iso(self.unreached_at)}, since the room's service could "
                "not be reached then: others may not have got it."
            )
        if self.voiceless:
            warnings.append(
                "The room is moderated, and the bridge has no voice: nobody gets what it says "
                "until a moderator gives it voice."
            )
        if self.persistent is False:
            warnings.append(f"{TEMPORARY}. {MAKE_PERSISTENT}")
        if self.connected and self.room_created and not self.others:
            why = "MUC_ROOM may have a typo"
            if self.made_anew:
                why = "the former room, in which the bridge was, is gone, and may have moved"
            warnings.append(
                f"Joining made this room, and nobody else is in it: {why}."
                + similar_named(self.similar_rooms)
            )
        return warnings

    @property
    def shows_all(self) -> bool:
        """Whether the room lists all of its occupants, as far as we know."""
        return not (self.unlisted or self.counts_more)

    @property
    def outlook(self) -> str:
        """A sentence on what happens by itself after the last fault, and what restarts it."""
        if self.connected:
            return "Nothing is left to do: the bridge is in the room."
        if self.phase is Phase.CLOSED:
            return "Not tried again: the bridge is ending."
        if self.phase in UNDER_WAY:
            return "Being tried again now."
        if self.next_attempt_at is None:
            return (
                "Never tried again by itself, since servers lock accounts. Do what the hint says "
                "and call xmppCheck, which tries at once."
            )
        at = iso(self.next_attempt_at)
        return f"Tried again at {at} by itself; xmppCheck tries at once if nothing prevents it."

    @property
    def connected(self) -> bool:
        """Whether we are in the room now."""
        return self.phase is Phase.JOINED

    @property
    def me(self) -> Occupant | None:
        """Ourselves in the room. If another presence has our mark too, ours is the last one."""
        return next((occupant for occupant in reversed(self.occupants) if occupant.own), None)

    @property
    def voiceless(self) -> bool:
        """Whether the room passes on nothing that we say."""
        return bool(self.moderated and self.me and not self.me.voice)

    @property
    def others(self) -> list[Occupant]:
        """All other occupants of the room."""
        return [occupant for occupant in self.occupants if not occupant.own]

    @property
    def everybody(self) -> tuple[Occupant, ...]:
        """All occupants whom the room lists, and the speakers whom it does not."""
        return (*self.occupants, *self.unlisted)

    @property
    def accounts(self) -> dict[str, list[str]]:
        """The nicknames of each account whose real JID the room shows, by the bare JID."""
        accounts = defaultdict[str, list[str]](list)
        for occupant in self.occupants:
            if occupant.account:
                accounts[occupant.account].append(occupant.nickname)
        return accounts

    def out_of(self, room: str) -> Fault:
        """Return why we are not in `room`. This is its status; without settings `room` is empty."""
        phase = self.phase.value
        if not room:
            message = "The bridge has no room: its settings are incomplete or wrong."
            hint = "xmppStatus lists every problem with the settings."
            return Fault("unconfigured", message, hint)
        if self.phase is Phase.CLOSED:
            message = f"The bridge is leaving the room {room}: it was told to end."
            return Fault("recipient-unavailable", message, "Start the bridge again.")
        if self.last_error is None:
            message = f"The bridge is not in the room {room} yet (phase {phase})."
            hint = "Ask xmppStatus until it says connected, or allow more timeoutSeconds."
            return Fault("recipient-unavailable", message, hint)
        fault = self.last_error.fault
        message = f"The bridge is not in the room {room} (phase {phase}): {fault.message}"
        return Fault(fault.condition, message, fault.hint, fault.retry, fault.quotes)


class Room:
    """The state of one room, folded from its events."""

    def __init__(self, *, nickname: str, service: str, phase: Phase, since: float) -> None:
        self._occupants: dict[str, Occupant] = {}
        self._status = RoomStatus(phase, since, nickname, service)
        """The status without the occupants and the last message, which change too often."""
        self._last_incoming: LastIncoming | None = None
        self.unheard = Newest[str, None](MAX_UNHEARD)
        """The ids of our messages that the room has not sent back, oldest first."""
        self._former: dict[str, Occupant] = {}
        """The occupants of the room when we left it; kept until the room has listed its occupants
        anew."""
        self._departures = Newest[str, Departure](MAX_DEPARTURES)
        self._spoke: dict[str, float] = {}
        """When each occupant last said something; occupants who said nothing are left out."""
        self.listed = 0
        """How many others the room has listed in this stay, including occupants who left since."""
        self._unlisted = Newest[str, Occupant](MAX_UNLISTED)
        """The speakers whom the room does not list, by occupant JID; the last speaker comes
        last."""
        self._has_entered = False
        """Whether we have ever been in the room."""

    @property
    def phase(self) -> Phase:
        """How far we are on the way into the room."""
        return self._status.phase

    @property
    def last_error(self) -> LastError | None:
        """The last fault, if there was one."""
        return self._status.last_error

    def classify(self, event: events.Event) -> events.Event | None:
        """Return what `event` means, given the occupants now; None if it says nothing new.

        A room sends the same presence when an occupant enters and when an occupant changes. A live
        message gets the real JID of its sender.
        """
        match event:
            case events.OccupantJoined(from_=jid) if known := self._occupants.get(jid):
                if event.role == events.UNKNOWN:  # an unreadable presence hides no account
                    event = replace(event, jid=known.real_jid, occupant_id=known.occupant_id)
                explained = event.reason is not None or event.actor is not None
                if not explained and _occupant(event, known.since) == known:
                    return None
                role, affiliation = known.role, known.affiliation
                return events.OccupantChanged(
                    **vars(event),
                    former_role=None if role == event.role else role,
                    former_affiliation=None if affiliation == event.affiliation else affiliation,
                    former_payload=None if known.payload == event.payload else known.payload,
                )
            case (
                events.MessageReceived(source=events.Source.LIVE, from_=jid)
                | events.OccupantLeft(from_=jid)
                | events.NicknameChanged(from_=jid)
            ) if known := self._occupants.get(jid):
                return _identified(event, known)
        return event

    @property
    def others(self) -> int:
        """How many others are listed now."""
        return sum(not occupant.own for occupant in self._occupants.values())

    def has(self, jid: str) -> bool:
        """Whether an occupant with this occupant JID is known."""
        return jid in self._occupants

    def differs_in_payload_only(self, presence: events.OccupantJoined) -> bool:
        """Whether the presence is an occupant's, and only its payload is new."""
        known = self._occupants[presence.from_]
        explained = presence.reason is not None or presence.actor is not None
        changed = replace(known, payload=presence.payload)
        return not explained and _occupant(presence, known.since) == changed

    def status(self) -> RoomStatus:
        """Return the state now."""
        # We keep the occupants while we are out of the room, in case the session is resumed.
        spoke = self._spoke
        there = self._status.phase in {Phase.JOINING, Phase.JOINED}
        occupants = self._occupants.items() if there else ()
        subject = self._status.subject if there else None
        return replace(
            self._status,
            occupants=tuple(
                replace(occupant, last_message_at=spoke[jid]) if jid in spoke else occupant
                for jid, occupant in occupants
            ),
            unlisted=tuple(self._unlisted.values()) if there else (),
            subject=subject,
            last_incoming=self._last_incoming,
            departures=tuple(self._departures.values()),
        )

    def apply(self, record: Record) -> None:
        """Fold one event into the state."""
        event: events.Event = record.event
        match event:
            case events.MessageReceived():
                self._hear(event, record.at)
            case events.ConnectionChanged():
                self._change_phase(event, record.at, of_connection=not record.room)
            case events.Connected(jid=jid, service=service, tls=tls, sasl=sasl):
                self._status = replace(self._status, jid=jid, service=service, tls=tls, sasl=sasl)
            case events.Joined(sender=nickname, created=created):
                self._status = replace(
                    self._status,
                    nickname=nickname,
                    room_created=created,
                    made_anew=created and self._has_entered,
                )
                self._has_entered = True
            case events.OccupantPresence():
                self._enter(event, record.at, earlier=record.earlier)
            case events.OccupantLeft(from_=jid):
                known = self._occupants.pop(jid, None)
                self._spoke.pop(jid, None)
                self._unlisted.pop(jid, None)
                if known is not None and not event.self_:
                    gone = Departure(event.sender, record.at, _why(event), event.actor)
                    self._departures.add(event.sender, gone)
            case events.NicknameChanged():
                self._rename(event)
            case events.SubjectChanged(subject=subject):
                self._status = replace(self._status, subject=subject or None)
            case events.SendFailed(condition=condition) if condition.startswith("remote-server-"):
                self._status = replace(self._status, unreached_at=record.at)
            case events.MessageSent(id=id_):
                self.unheard.add(id_, None)

    def _hear(self, message: events.MessageReceived, at: float) -> None:
        if message.own:
            self.unheard.pop(message.reflects or message.id or "", None)
            if message.source is events.Source.LIVE and self._status.unreached_at is not None:
                self._status = replace(self._status, unreached_at=None)
        live = message.source is events.Source.LIVE and (message.body or message.encrypted)
        if live and message.from_ in self._occupants:
            self._spoke[message.from_] = at
        elif live and message.sender and not self._status.crowded:  # the room does not list it
            unknown = (message.sender, events.UNKNOWN, events.UNKNOWN, None)
            self._unlisted.add(message.from_, Occupant(message.from_, *unknown, last_message_at=at))
        ours = message.own or message.as_ours
        undated = message.source is not events.Source.LIVE and message.delayed_from is None
        if message.body and not (ours or undated) and message.source is not events.Source.ARCHIVE:
            stamp = seconds_of(message.delayed_from)
            said = at if stamp is None else min(at, stamp)  # a room's clock may be ahead of ours
            last = self._last_incoming
            # The history comes in order, but some servers let occupants forge its stamps.
            # The difference is right even if our clock was set since.
            is_live = last is not None and last.message.source is events.Source.LIVE
            if last is None or not is_live or said >= at - (at - last.at):
                self._last_incoming = LastIncoming(message, said)

    def _change_phase(
        self, event: events.ConnectionChanged, at: float, *, of_connection: bool
    ) -> None:
        moved = event.phase is not self._status.phase
        wait = event.next_attempt_in_ms
        self._status = replace(
            self._status,
            phase=event.phase,
            since=at if moved else self._status.since,
            attempt=event.attempt,
            next_attempt_at=None if wait is None else at + wait / 1000,
        )
        if event.fault is not None:
            self._status = replace(self._status, last_error=LastError(event.fault, at))
        if event.phase is Phase.JOINING:
            self._former = self._former or self._occupants
            self._occupants = {}
            self._spoke.clear()
            self._unlisted.clear()
            self.listed = 0
            self._status = replace(self._status, subject=None, crowded=False)
        elif of_connection and event.phase in NO_SESSION:
            self._status = replace(self._status, jid=None, tls=None, sasl=None)

    def _enter(self, event: events.OccupantPresence, at: float, *, earlier: bool) -> None:
        known = self._occupants.get(event.from_)
        # We keep a presence beyond the limit if it is marked as our own. The mark may be false, so
        # we keep no second one.
        most = MAX_OCCUPANTS + 1 if event.self_ else MAX_OCCUPANTS
        self.listed += known is None and not event.self_
        if known is None and len(self._occupants) >= most:
            self._status = replace(self._status, crowded=True)
            return
        since = None if earlier else at
        if known is not None:
            since = known.since
        self._occupants[event.from_] = _occupant(event, since)
        self._unlisted.pop(event.from_, None)
        if event.self_:
            for jid, former in self._former.items():
                if jid not in self._occupants and not former.own:
                    gone = Departure(former.nickname, at, GONE_MEANWHILE)
                    self._departures.add(former.nickname, gone)
            self._former = {}

    def _rename(self, event: events.NicknameChanged) -> None:
        known = self._occupants.pop(event.from_, None)
        if known is not None:
            jid = event.from_.removesuffix(event.sender) + event.new_nickname
            self._occupants[jid] = replace(
                known, jid=jid, nickname=event.new_nickname, visible_nickname=""
            )
            if (spoke := self._spoke.pop(event.from_, None)) is not None:
                self._spoke[jid] = spoke
        if event.self_:
            self._status = replace(self._status, nickname=event.new_nickname)


def _identified(event: Act, known: Occupant) -> Act:
    """Return an act of an occupant, with what the room shows of the occupant's account."""
    jid, id_ = event.jid or known.real_jid, event.occupant_id or known.occupant_id
    if (jid, id_) == (event.jid, event.occupant_id):
        return event
    if isinstance(event, events.MessageReceived):
        return event._replace(jid=jid, occupant_id=id_)
    return replace(event, jid=jid, occupant_id=id_)


def _occupant(presence: events.OccupantPresence, since: float | None) -> Occupant:
    return Occupant(
        jid=presence.from_,
        nickname=presence.sender,
        role=presence.role,
        affiliation=presence.affiliation,
        since=since,
        show=presence.show,
        status=presence.status,
        real_jid=presence.jid,
        own=presence.self_,
        payload=presence.payload,
        occupant_id=presence.occupant_id,
    )


def put_out(codes: Collection[int]) -> str:
    """Return in words why the room removed an occupant; empty if the occupant left."""
    return next((events.STATUS_CODES[code] for code in REMOVALS if code in codes), "")


def _why(left: events.OccupantLeft) -> str:
    removed = put_out(left.codes)
    text = left.reason or (None if removed else left.status)
    words = removed or "left"
    return f"{words}: {quoted(text)}" if text else words
