"""One chat room (XEP-0045): stanzas and the time in, stanzas out.

The rooms are non-anonymous: everybody in one sees everybody's real JID.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from xml.etree.ElementTree import Element

from bridge.sandbox.stanza import (
    CLIENT,
    DELAY,
    MESSAGE,
    MUC,
    MUC_USER,
    PRESENCE,
    STANZA_ID,
    addressed,
    bare,
    bounce,
    build,
    render,
    stamp,
)

Role = Literal["none", "visitor", "participant", "moderator"]
Affiliation = Literal["outcast", "none", "member", "admin", "owner"]

ROLES: tuple[Role, ...] = ("none", "visitor", "participant", "moderator")
AFFILIATIONS: tuple[Affiliation, ...] = ("outcast", "none", "member", "admin", "owner")
"""In ascending order (XEP-0045 section 5.2)."""

HISTORY_LIMIT = 100
"""Messages that a room remembers for those who come later."""

NICKNAME_LIMIT = 1023
"""Bytes of UTF-8 in a nickname, which is a resourcepart (RFC 7622 section 3.4)."""

NON_ANONYMOUS, SELF, CREATED, CONFIGURED = "100", "110", "201", "104"
BANNED, RENAMED, KICKED = "301", "303", "307"
"""Status codes (XEP-0045 section 15.6)."""


@dataclass(frozen=True)
class Occupant:
    """Who is in the room, under which nickname, and what they may do there."""

    nick: str
    jid: str
    role: Role
    payload: tuple[Element, ...] = ()
    """What the last presence carried: show, status, capabilities."""


@dataclass
class Room:
    """The room `jid`; `serial` tells its message ids from those of other runs and rooms."""

    jid: str
    serial: str = ""
    standing: bool = False
    """Whether it stays when the last occupant has left."""
    name: str = ""
    occupants: dict[str, Occupant] = field(default_factory=dict)
    affiliations: dict[str, Affiliation] = field(default_factory=dict)
    _subject: Element | None = None
    _history: deque[tuple[datetime, Element]] = field(
        default_factory=lambda: deque(maxlen=HISTORY_LIMIT)
    )
    _messages: int = 0

    def occupant_of(self, jid: str) -> Occupant | None:
        """Find the occupant that a full JID is here."""
        return next((o for o in self.occupants.values() if o.jid == jid), None)

    def affiliation_of(self, jid: str) -> Affiliation:
        """Look up an account's standing with the room, whether it is here or not."""
        return self.affiliations.get(bare(jid), "none")

    @property
    def subject(self) -> str:
        """What the room says it is about."""
        return "" if self._subject is None else self._subject.findtext(CLIENT + "subject", "")

    def receive_presence(self, presence: Element, nick: str, now: datetime) -> list[Element]:
        """Enter, stay, change the nickname or leave (sections 7.2, 7.6, 7.7, 7.14)."""
        sender = presence.get("from", "")
        occupant, holder = self.occupant_of(sender), self.occupants.get(nick)
        request = presence.find(MUC + "x")
        if presence.get("type") == "unavailable":
            return self.remove(occupant, payload=_payload(presence)) if occupant else []
        if presence.get("type") is not None:
            return []
        if occupant is None and request is None:
            return bounce(presence, "not-acceptable")
        if not nick.strip() or len(nick.encode()) > NICKNAME_LIMIT:
            return bounce(presence, "jid-malformed")
        if self.affiliation_of(sender) == "outcast":
            return bounce(presence, "forbidden")
        if holder is not None and holder.jid != sender:
            return bounce(presence, "conflict")
        if occupant is None:
            return self._enter(Occupant(nick, sender, "none", _payload(presence)), request, now)
        moved = replace(occupant, nick=nick, payload=_payload(presence))
        if holder is None:
            return self._rename(occupant, moved)
        self.occupants[nick] = moved
        if request is not None:
            # Who asks to enter again has lost track of the room, and is shown all of it.
            return self._welcome(moved, request, (), now)
        return self.announce(moved)

    def receive_message(self, message: Element, nick: str, now: datetime) -> list[Element]:
        """Pass on what is said to everybody or to one (sections 7.4, 7.5, 8.1)."""
        speaker = self.occupant_of(message.get("from", ""))
        kind = message.get("type", "normal")
        if kind == "error":
            return []
        if speaker is None:
            return bounce(message, "not-acceptable")
        message = addressed(message, sender=f"{self.jid}/{speaker.nick}")
        for forged in (STANZA_ID + "stanza-id", DELAY + "delay", MUC_USER + "x"):
            # Receivers believe these of the room, so nobody else gets to write them.
            for child in message.findall(forged):
                message.remove(child)
        if nick:
            return self._whisper(message, nick, speaker)
        if kind != "groupchat":
            return bounce(addressed(message, sender=speaker.jid), "feature-not-implemented")
        alone = all(message.find(CLIENT + part) is None for part in ("body", "thread"))
        changes_subject = message.find(CLIENT + "subject") is not None and alone
        if speaker.role == "visitor" or (changes_subject and speaker.role != "moderator"):
            return bounce(addressed(message, sender=speaker.jid), "forbidden")
        return self._reflect(message, changes_subject, now)

    def remove(
        self,
        occupant: Occupant,
        *codes: str,
        details: tuple[Element, ...] = (),
        payload: tuple[Element, ...] = (),
    ) -> list[Element]:
        """Tell everybody, the occupant too, that they are gone, and why."""
        gone = replace(occupant, role="none", payload=payload)
        told = self.announce(gone, *codes, details=details, gone=True)
        self.occupants.pop(occupant.nick, None)
        return told

    def assign(self, occupant: Occupant, role: Role, details: tuple[Element, ...]) -> list[Element]:
        """Give an occupant another role (sections 8.3, 8.4, 9.6, 9.7)."""
        self.occupants[occupant.nick] = changed = replace(occupant, role=role)
        return self.announce(changed, details=details)

    def announce(
        self,
        occupant: Occupant,
        *codes: str,
        details: tuple[Element, ...] = (),
        gone: bool = False,
        new_nick: str = "",
    ) -> list[Element]:
        """Show an occupant to everybody in the room, with 110 to the occupant."""
        return [
            self._presence(
                occupant,
                witness.jid,
                (*codes, SELF) if witness.jid == occupant.jid else codes,
                details=details,
                gone=gone,
                new_nick=new_nick,
            )
            for witness in self.occupants.values()
        ]

    def destroy(self, destruction: Element) -> list[Element]:
        """Put everybody out; each sees only themselves go (section 10.9)."""
        gone = [replace(o, role="none", payload=()) for o in self.occupants.values()]
        self.occupants.clear()
        self.affiliations.clear()
        self.standing = False
        return [self._presence(o, o.jid, (SELF,), extra=(destruction,), gone=True) for o in gone]

    def notify(self, *codes: str) -> list[Element]:
        """Tell everybody that something about the room itself changed (section 10.2.1)."""
        statuses = [build(MUC_USER + "status", {"code": code}) for code in codes]
        head = {"from": self.jid, "type": "groupchat"}
        return [
            build(MESSAGE, {**head, "to": o.jid}, build(MUC_USER + "x", {}, *statuses))
            for o in self.occupants.values()
        ]

    def _enter(self, newcomer: Occupant, request: Element | None, now: datetime) -> list[Element]:
        codes: tuple[str, ...] = ()
        if not self.affiliations and not self.standing:
            self.affiliations[bare(newcomer.jid)] = "owner"
            codes = (CREATED,)
        newcomer = replace(newcomer, role=role_of(self.affiliation_of(newcomer.jid)))
        told = [self._presence(newcomer, o.jid, ()) for o in self.occupants.values()]
        self.occupants[newcomer.nick] = newcomer
        return told + self._welcome(newcomer, request, codes, now)

    def _welcome(
        self, newcomer: Occupant, request: Element | None, codes: tuple[str, ...], now: datetime
    ) -> list[Element]:
        """In the order of section 7.1: occupants, oneself, history, subject."""
        to = newcomer.jid
        shown = [self._presence(o, to, ()) for o in self.occupants.values() if o.jid != to]
        shown.append(self._presence(newcomer, to, (SELF, NON_ANONYMOUS, *codes)))
        asked = None if request is None else request.find(MUC + "history")
        remembered = recalled(self._history, {} if asked is None else asked.attrib, now)
        subject = self._subject
        if subject is None:
            empty = build(CLIENT + "subject")
            subject = build(MESSAGE, {"from": self.jid, "type": "groupchat"}, empty)
        return [*shown, *(addressed(message, to=to) for message in [*remembered, subject])]

    def _rename(self, before: Occupant, after: Occupant) -> list[Element]:
        told = self.announce(replace(before, payload=()), RENAMED, gone=True, new_nick=after.nick)
        del self.occupants[before.nick]
        self.occupants[after.nick] = after
        return told + self.announce(after)

    def _whisper(self, message: Element, nick: str, speaker: Occupant) -> list[Element]:
        listener = self.occupants.get(nick)
        if message.get("type") == "groupchat":
            return bounce(addressed(message, sender=speaker.jid), "bad-request")
        if listener is None:
            return bounce(addressed(message, sender=speaker.jid), "item-not-found")
        passed = addressed(message, to=listener.jid)
        passed.append(build(MUC_USER + "x"))
        return [passed]

    def _reflect(self, message: Element, is_subject: bool, now: datetime) -> list[Element]:
        self._messages += 1
        identity = {"id": f"{self.serial}-{self._messages}", "by": self.jid}
        message.append(build(STANZA_ID + "stanza-id", identity))
        delayed = addressed(message)
        delayed.append(build(DELAY + "delay", {"from": self.jid, "stamp": stamp(now)}))
        if is_subject:
            self._subject = delayed
        elif message.find(CLIENT + "body") is not None:
            self._history.append((now, delayed))
        return [addressed(message, to=o.jid) for o in self.occupants.values()]

    def _presence(
        self,
        occupant: Occupant,
        to: str,
        codes: tuple[str, ...],
        *,
        details: tuple[Element, ...] = (),
        extra: tuple[Element, ...] = (),
        gone: bool = False,
        new_nick: str = "",
    ) -> Element:
        attributes = {"from": f"{self.jid}/{occupant.nick}", "to": to}
        item = {
            "affiliation": self.affiliation_of(occupant.jid),
            "role": occupant.role,
            "jid": occupant.jid,
        }
        if gone:
            attributes["type"] = "unavailable"
        if new_nick:
            item["nick"] = new_nick
        statuses = [build(MUC_USER + "status", {"code": code}) for code in codes]
        user = build(
            MUC_USER + "x", {}, build(MUC_USER + "item", item, *details), *extra, *statuses
        )
        return build(PRESENCE, attributes, *occupant.payload, user)


def role_of(affiliation: Affiliation) -> Role:
    """Give the role that an affiliation brings with it on entering (section 5.1.2)."""
    return "moderator" if affiliation in ("admin", "owner") else "participant"


def recalled(
    history: Iterable[tuple[datetime, Element]], asked: Mapping[str, str], now: datetime
) -> list[Element]:
    """As much of the history as was asked for, by number, size or time (section 7.2.13)."""
    earliest = _since(asked.get("since"))
    if (seconds := _number(asked.get("seconds"))) is not None:
        earliest = max(earliest, now - timedelta(seconds=seconds))
    messages = [message for at, message in history if at >= earliest]
    if (most := _number(asked.get("maxstanzas"))) is not None:
        messages = messages[max(0, len(messages) - most) :]
    if (left := _number(asked.get("maxchars"))) is not None:
        start = len(messages)
        while start and (left := left - len(render(messages[start - 1]))) >= 0:
            start -= 1
        messages = messages[start:]
    return messages


def _number(text: str | None) -> int | None:
    """Read a count; one too long to be meant, or to be read quickly, is no bound."""
    return int(text) if text and text.isdecimal() and len(text) < 10 else None


def _since(text: str | None) -> datetime:
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _payload(presence: Element) -> tuple[Element, ...]:
    return tuple(child for child in presence if child.tag not in (MUC + "x", MUC_USER + "x"))
