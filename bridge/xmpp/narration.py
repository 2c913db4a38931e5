"""One event as one line of the log, which nobody in the room can forge. Pure."""

from bridge.escaping import one_line
from bridge.times import iso
from bridge.xmpp.events import (
    AffiliationChanged,
    Connected,
    ConnectionChanged,
    Event,
    Gap,
    Joined,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    RoomConfigured,
    RoomDestroyed,
    RoomError,
    SendFailed,
    Source,
    SubjectChanged,
)
from bridge.xmpp.journal import Record

MAX_BODY_CHARACTERS = 2_000
"""Of one message; the journal and the traffic log have the rest."""


def narrate(record: Record) -> str:
    """Return `record` as a person wants to read it: the time in UTC, then what happened."""
    return f"{iso(record.at)} {described(record.event)}"


def described(event: Event) -> str:
    """Return what happened, in one line."""
    match event:
        case MessageReceived() as said:
            return _message(said)
        case MessageSent(id=id_, body=body):
            return f"sending, id {id_}: {_text(body)}"
        case SendFailed(id=id_, condition=condition, text=text):
            return f"returned, id {_text(id_)}: {_text(condition)}{_because(text)}"
        case OccupantJoined(sender=nickname, role=role, affiliation=affiliation):
            return f"* {_text(nickname)} is here ({_text(role)}, {_text(affiliation)})"
        case OccupantChanged() as changed:
            return _change(changed)
        case AffiliationChanged(jid=jid, affiliation=held, reason=reason, actor=actor):
            by = f" by {_text(actor)}" if actor else ""
            return f"* {_text(jid)}, who is not here, is now {_text(held)}{by}{_because(reason)}"
        case RoomConfigured(codes=codes):
            return f"* the room's configuration changed [{_codes(codes)}]"
        case OccupantLeft() as left:
            put_out = f" [{_codes(left.codes)}]" if left.codes else ""
            by = f" by {_text(left.actor)}" if left.actor else ""
            return f"* {_text(left.sender)} left{by}{put_out}{_because(left.reason or left.status)}"
        case NicknameChanged(sender=nickname, new_nickname=new):
            return f"* {_text(nickname)} is now {_text(new)}"
        case RoomDestroyed(reason=reason, venue=venue):
            new = f"; its owner names {_text(venue)}" if venue else ""
            return f"* the room was destroyed{_because(reason)}{new}"
        case SubjectChanged(subject=subject, sender=who):
            by = f" by {_text(who)}" if who else ""
            return f"* subject{by}: {_text(subject)}"
        case _:
            return _of_connection(event)


def _of_connection(event: Event) -> str:
    match event:
        case RoomError(condition=condition, text=text):
            return f"* the room refused us: {_text(condition)}{_because(text)}"
        case Connected(jid=jid, service=service, tls=tls, sasl=sasl, resumed=resumed):
            secured = "no TLS" if tls is None else f"{tls.version}, {tls.cipher}"
            again = ", the former session resumed" if resumed else ""
            return f"logged in to {service} as {_text(jid)} ({secured}, {sasl}{again})"
        case Joined(from_=occupant, created=created):
            made = "; joining made this room, is MUC_ROOM spelt right?" if created else ""
            return f"in the room as {_text(occupant)}{made}"
        case Gap(since=since, until=until):
            return f"* what was said from {iso(since)} to {iso(until)} may be missing"
        case ConnectionChanged() as changed:
            return _phase(changed)
        case _:
            raise AssertionError(event)


def _message(said: MessageReceived) -> str:
    when = f" (said {_text(said.delayed_from)})" if said.delayed_from else ""
    kind = " (private)" if said.type == "chat" else ""
    own = " (our own)" if said.own and said.source is Source.LIVE else ""
    encrypted = f" (encrypted: {_text(said.encrypted)})" if said.encrypted else ""
    silent = f" (no body: {_text(', '.join(said.payload))})" if said.payload else ""
    body = f" {_text(said.body)}" if said.body else ""
    marks = f"{when}{kind}{own}{_about(said)}{encrypted}{silent}"
    return f"<{_text(said.sender)}>{marks}{body}"


def _about(said: MessageReceived) -> str:
    if said.replaces:
        return f" (instead of {_text(said.replaces)})"
    if said.reacts_to:
        return f" (reacting to {_text(said.reacts_to)}: {_text(' '.join(said.reactions))})"
    if said.retracts:
        return f" (taking back {_text(said.retracts)})"
    return f" (answering {_text(said.reply_to)})" if said.reply_to else ""


def _change(changed: OccupantChanged) -> str:
    by = f" by {_text(changed.actor)}" if changed.actor else ""
    show = f", {_text(changed.show)}" if changed.show else ""
    status = f": {_text(changed.status)}" if changed.status else ""
    held = f"{_text(changed.role)}, {_text(changed.affiliation)}{show}"
    return f"* {_text(changed.sender)} is now ({held}){by}{_because(changed.reason)}{status}"


def _codes(codes: frozenset[int]) -> str:
    return ", ".join(map(str, sorted(codes)))


def _phase(changed: ConnectionChanged) -> str:
    line = changed.phase.value
    if changed.fault is not None:
        fault = changed.fault
        line += f": {_text(fault.message)} [{_text(fault.condition)}] {_text(fault.hint)}"
    if changed.retry_seconds is not None:
        line += f" Next attempt in {changed.retry_seconds:.0f} s."
    return line


def _text(text: str) -> str:
    return one_line(text, MAX_BODY_CHARACTERS)


def _because(text: str | None) -> str:
    return f": {_text(text)}" if text else ""
