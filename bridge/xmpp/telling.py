"""One event as plain values under the names that users see: for agents, and for the log on disk.

What does not apply is left out. The texts are exact: whoever shows them escapes them. Pure.
"""

from collections.abc import Collection
from typing import TypeAlias

from bridge.times import iso, iso_of
from bridge.xmpp import events
from bridge.xmpp.events import Event, Source
from bridge.xmpp.journal import Journal, Record

Told: TypeAlias = dict[str, object]

KINDS: dict[type, str] = {
    events.MessageReceived: "message",
    events.MessageSent: "message",
    events.OccupantJoined: "join",
    events.OccupantLeft: "leave",
    events.RoomDestroyed: "leave",
    events.NicknameChanged: "nick",
    events.OccupantChanged: "role",
    events.AffiliationChanged: "role",
    events.SubjectChanged: "subject",
    events.RoomConfigured: "config",
    events.SendFailed: "error",
    events.RoomError: "error",
    events.ConnectionChanged: "connection",
    events.Connected: "connection",
    events.Joined: "connection",
    events.Gap: "gap",
}
"""What users call each event."""

STATUS_CODES = {
    100: "everybody in the room can see full JIDs",
    101: "the affiliation changed while away from the room",
    102: "the room shows unavailable members now",
    103: "the room does not show unavailable members any more",
    104: "a setting of the room changed",
    110: "this is about the bridge itself",
    170: "the room logs what is said",
    171: "the room does not log any more",
    172: "the room shows real JIDs to everybody now",
    173: "the room shows real JIDs to moderators only now",
    174: "the room hides real JIDs from everybody now",
    201: "the room was made by joining it",
    210: "the room changed the nickname",
    301: "banned",
    303: "the nickname changed",
    307: "kicked",
    321: "put out: the affiliation changed",
    322: "put out: the room is for members only now",
    332: "put out: the room service shuts down",
    333: "put out for a technical reason, often a lost connection",
}
"""XEP-0045, section 15.6, in plain words."""


def kind_of(event: Event) -> str:
    """Return what users call such an event."""
    return KINDS[type(event)]


def told(event: Event) -> Told:
    """Return what is to be told of `event`, in a reader's order."""
    values = {"kind": kind_of(event)} | _values(event)
    return {name: one for name, one in values.items() if one is not None and one is not False}


def line_of(record: Record, journal: Journal) -> Told:
    """Return all of one event, as a line of JSON has it."""
    place = {"cursor": journal.cursor_of(record.number), "at": iso(record.at)}
    return place | told(record.event)


def _values(event: Event) -> Told:
    match event:
        case events.MessageReceived():
            return _message(event)
        case events.MessageSent(from_=occupant, body=body, id=id_):
            return {
                "direction": "out",
                "sender": occupant.partition("/")[2],
                "from": occupant,
                "body": body,
                "type": "groupchat",
                "source": "live",
                "id": id_,
            }
        case events.SendFailed(id=id_, condition=condition, text=text):
            return {"direction": "in", "condition": condition, "text": text, "id": id_}
        case events.OccupantJoined():
            return _occupant(event)
        case events.OccupantChanged():
            return _occupant(event) | _former(event)
        case events.OccupantLeft():
            return _whom(event.from_, event.sender) | {
                "status": event.status,
                "jid": event.jid,
                "self": event.self_,
                **_circumstances(event.codes, event.reason, event.actor),
            }
        case events.RoomDestroyed(reason=reason, venue=venue):
            return {"direction": "in", "destroyed": True, "reason": reason, "venue": venue}
        case events.NicknameChanged(from_=occupant, sender=nickname, new_nickname=new):
            return _whom(occupant, nickname) | {"newNickname": new, "self": event.self_}
        case events.AffiliationChanged(jid=jid, affiliation=affiliation):
            return {
                "direction": "in",
                "jid": jid,
                "affiliation": affiliation,
                "reason": event.reason,
                "actor": event.actor,
            }
        case events.SubjectChanged(subject=subject, sender=nickname):
            return {"direction": "in", "sender": nickname, "subject": subject}
        case events.RoomConfigured(codes=codes):
            return {"direction": "in"} | _circumstances(codes, None, None)
        case events.RoomError(condition=condition, text=text, venue=venue):
            return {"direction": "in", "condition": condition, "text": text, "venue": venue}
        case _:
            return _of_connection(event)


def _of_connection(event: Event) -> Told:
    match event:
        case events.ConnectionChanged(phase=phase, fault=fault, attempt=attempt):
            why = (
                {}
                if fault is None
                else {"condition": fault.condition, "text": fault.message, "hint": fault.hint}
            )
            wait = event.retry_seconds
            retry = {} if wait is None else {"nextAttemptInMs": round(wait * 1000)}
            return {"phase": phase.value, **why, "attempt": attempt or None, **retry}
        case events.Connected(jid=jid, service=service, tls=tls, sasl=sasl, resumed=resumed):
            secured = "none" if tls is None else f"{tls.version}, {tls.cipher}"
            unverified = "" if tls is None or tls.verified else ", certificate not checked"
            return {
                "text": "the former session goes on" if resumed else "logged in",
                "jid": jid,
                "service": service,
                "tls": secured + unverified,
                "sasl": sasl,
            }
        case events.Joined(from_=occupant, sender=nickname, created=created):
            made = ", which joining made: is MUC_ROOM spelt right?" if created else ""
            return {"text": f"in the room{made}", "sender": nickname, "from": occupant}
        case events.Gap(since=since, until=until):
            return {"from": iso(since), "to": iso(until)}
        case _:
            raise AssertionError(event)


def _message(said: events.MessageReceived) -> Told:
    return {
        "direction": "in",
        "sender": said.sender,
        "from": said.from_,
        "jid": said.jid,
        "body": said.body or None,
        "encrypted": said.encrypted,
        "payload": list(said.payload) or None,
        "type": said.type,
        "source": said.source.value,
        "reflection": said.own and said.source is Source.LIVE,
        "id": said.id,
        "stanzaId": said.stanza_id,
        "delayedFrom": _moment(said.delayed_from),
        "replaces": said.replaces,
        "replyTo": said.reply_to,
        "reactsTo": said.reacts_to,
        "reactions": None if said.reacts_to is None else list(said.reactions),
        "retracts": said.retracts,
    }


def _moment(stamp: str | None) -> str | None:
    """Return a stamp as all our times are written; one that is no time stays what it was."""
    return stamp and (iso_of(stamp) or stamp)


def _whom(occupant: str, nickname: str) -> Told:
    return {"direction": "in", "sender": nickname, "from": occupant}


def _occupant(event: events.OccupantJoined | events.OccupantChanged) -> Told:
    return _whom(event.from_, event.sender) | {
        "role": event.role,
        "affiliation": event.affiliation,
        "show": event.show,
        "status": event.status,
        "jid": event.jid,
        "self": event.self_,
        **_circumstances(event.codes, event.reason, event.actor),
    }


def _former(event: events.OccupantChanged) -> Told:
    role, affiliation = event.former_role, event.former_affiliation
    return {
        "formerRole": role if role != event.role else None,
        "formerAffiliation": affiliation if affiliation != event.affiliation else None,
    }


def _circumstances(codes: Collection[int], reason: str | None, actor: str | None) -> Told:
    ordered = sorted(codes)
    meaning = [STATUS_CODES[code] for code in ordered if code in STATUS_CODES]
    return {
        "codes": ordered or None,
        "meaning": meaning or None,
        "reason": reason,
        "actor": actor,
    }
