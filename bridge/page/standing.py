"""Finds out what stands out in a stretch of one room, by the causes of `xmppDiagnose`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bridge.page.timeline import Presence
from bridge.text import counted, iso, name_of
from bridge.xmpp.checks.diagnosis import look_over
from bridge.xmpp.checks.evidence import Evidence, Finding, Past, Person, occupant_of, words_of
from bridge.xmpp.checks.questions import Ask
from bridge.xmpp.model import events
from bridge.xmpp.model.faults import Place, of_bounce
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import NO_SESSION, Occupant, Room, RoomStatus

UNPROVEN = frozenset({"unanswered", "silent"})
"""The names of troubles that may have a good reason."""

MAX_PROGRAMS = 20
"""Most programs that are looked at; programs with more unanswered questions come first."""


class Trouble(NamedTuple):
    """Something that stands out."""

    name: str
    message: str
    hint: str
    at: Record
    """The event at which it is shown."""


def troubles(
    room: str,
    here: Mapping[str, Presence],
    records: Sequence[Record],
    asked: Sequence[Ask],
    unanswered: Sequence[Ask],
    end: float,
) -> list[Trouble]:
    """Return what stands out in a room, the most important first.

    `here` are its occupants at the end. `records` are its events, the oldest first, up to the time
    `end`. `asked` are the questions in it, `unanswered` those that certainly got no answer.
    """
    status = _status(room, here, records)
    answering = {it.answer.sender for it in asked if it.answer}
    programs = answering.union(*(it.to for it in asked))
    waits = {name: [it.asked for it in unanswered if name in it.to] for name in programs}
    ranked = list[tuple[int, Trouble]]()
    for name in sorted(programs, key=lambda it: (-len(waits[it]), it))[:MAX_PROGRAMS]:
        if trouble := _of_program(name, room, status, records, waits[name], end):
            ranked.append(trouble)
    ranked.sort(key=lambda it: -it[0])
    refused = [
        _refused(room, record, record.event)
        for record in records
        if isinstance(record.event, events.SendFailed)
    ]
    if not ranked and unanswered:
        first, count = unanswered[0].asked, len(unanswered)
        message = f"{words_of(first.body)} of {name_of(first.sender)} got no answer"
        message += f", and so did {count - 1} more." if count > 1 else "."
        hint = "Is that a command that a program in the room knows? Its own log should say."
        return [*refused[-1:], Trouble("unanswered", message, hint, first)]
    return [*(trouble for _, trouble in ranked), *refused[-1:]]


def _refused(room: str, record: Record, error: events.SendFailed) -> Trouble:
    """Return what a refused message of the bridge means."""
    us = "the bridge"
    place = Place("", f"{us}'s server", us, room, us, default=False, has_password=False, anchors="")
    fault = of_bounce(error.condition, error.text, place)
    return Trouble("refused", fault.message, fault.hint, record)


def _of_program(
    name: str,
    room: str,
    status: RoomStatus,
    records: Sequence[Record],
    waits: Sequence[Record],
    end: float,
) -> tuple[int, Trouble] | None:
    """Return what is wrong with a program, and how many questions it left unanswered since."""
    occupant = occupant_of(status, name)
    past = Past(name, there=occupant is not None, person=Person.of(occupant))
    past.read(reversed(records))
    _, cause, finding = look_over(Evidence(name, room, status, occupant, past, end, named=False))
    if occupant is None and not past.gone and past.spoken:
        back = [it.at for it in records if getattr(it.event, "phase", None) is events.Phase.JOINING]
        detail = f"{name_of(name)} was there, and was gone when the bridge came back"
        detail += f" at {iso(back[-1])}." if back else "."
        cause, finding = "present", Finding(False, detail, "See whether the program is running.")
    if finding.ok is not False or cause == "senders":
        if not waits:
            return None
        cause, detail = "silent", f"{name_of(name)} is there and left questions open."
        hint = "Its own log should say whether it got them; xmpp-bridge explain reads such logs."
        return len(waits), Trouble(cause, _counted(detail, waits), hint, waits[0])
    turning: dict[str, Sequence[Record | None]]
    turning = {"present": past.gone, "voice": [past.silenced], "stays": past.moves}
    moments = [it for it in turning.get(cause, past.spoken) if it is not None]
    at = [*moments, *waits, records[-1]][0]
    since = [it for it in waits if it.at >= at.at]
    return len(since), Trouble(cause, _counted(finding.detail, since), finding.hint, at)


def _counted(detail: str, waits: Sequence[Record]) -> str:
    if not waits:
        return detail
    return f"{detail} {counted(len(waits), 'message')} since then got no answer."


def _status(room: str, here: Mapping[str, Presence], records: Sequence[Record]) -> RoomStatus:
    """Return who is in the room at the end, as if the bridge were still there."""
    first = records[0].at if records else 0.0
    folded = Room(nickname="", service="", phase=events.Phase.JOINING, since=first)
    for record in records:
        # When a bridge ends, the others are still in the room.
        if getattr(record.event, "phase", None) not in NO_SESSION:
            folded.apply(record)
    status = folded.status()
    known = {occupant.nickname for occupant in status.occupants}
    older = [  # who came before the records begin
        Occupant(f"{room}/{name}", name, it.role or events.UNKNOWN, it.affiliation, None)
        for name, it in here.items()
        if name not in known
    ]
    return replace(
        status, phase=events.Phase.JOINED, occupants=(*status.occupants, *older), unlisted=()
    )
