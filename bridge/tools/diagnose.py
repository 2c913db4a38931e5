"""The tool that finds out why somebody in the room does not do what is expected of them."""

import time
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, TypeAlias

from bridge.mcp.schema import Bounds, always
from bridge.mcp.toolset import tool
from bridge.store.errors import StoreError
from bridge.text import iso
from bridge.tools.answers import MAX_ANSWERS, Said, answer
from bridge.tools.entries import MARK_BYTES, NOTICE, RESULT_BYTES, Entry, fit, nonempty
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.paging import TimeSlice
from bridge.xmpp.checks import diagnosis, evidence
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.muc import roomservice
from bridge.xmpp.queries import iq_errors, ping

RECORDED_SECONDS = 3_600.0
"""How long before this bridge came recorded events count: who spoke before that has forgotten."""

Diagnosis: TypeAlias = Annotated[
    dict[str, object],
    always(
        verdict=Annotated[str, "the cause, in a sentence"],
        findings=Annotated[
            list[Annotated[dict[str, object], always(name=str, ok=bool | None, detail=str)]],
            "ok null: not known; `hint`: what to do",
        ],
        answers=Annotated[list[dict[str, object]], "what it said after the bridge last spoke"],
        notice=str,
    ),
]
"""What is known of why somebody does not do what is expected of them."""


@tool("xmppDiagnose", title="Why somebody does not answer", read_only=True)
async def xmpp_diagnose(
    link: RoomLink,
    /,
    nickname: Annotated[str, Bounds(min_length=1, max_length=1023), "whom it concerns"],
    room: RoomName = None,
) -> Diagnosis:
    """Use this when somebody else in the room, such as a bot, does not do what is expected of it.

    It says nothing in the room: to see whether the bot answers, call xmppSend with `awaitSeconds`
    first, then this. `verdict` names the cause. `findings`: whether the bridge is in the room; the
    nickname is there (else when and why it left, names like it); it has voice; another occupant
    has the same account; it answers a ping (else whether room and server do); it answers itself;
    how it answered what the bridge said last (not at all, late, in private, encrypted, without a
    body, twice); whether anybody's text has hidden characters; what it said last. Takes 5 s where
    it does not answer pings.
    """
    membership, journal = link.room(room), link.participant.journal
    occupant = evidence.occupant_of(membership.status(), nickname)
    pinged: evidence.Ping | None = None
    rooms: list[str] = []
    with suppress(NotInRoomError, ConnectionFailedError):  # the status below says so
        connection = membership.connection
        if occupant is None:
            service = membership.jid.partition("@")[2]
            rooms = await roomservice.similar_rooms(connection, membership.jid, service)
        elif not occupant.own:
            kind = iq_errors.TargetKind.OCCUPANT
            target = iq_errors.Target(kind, occupant.jid, membership.occupant)
            compared = await ping.ping_compared(connection, target, diagnosis.PING_SECONDS)
            pong, own = compared.pong, compared.own
            alone = own is not None and own.in_room is ping.Verdict.IN
            pinged = evidence.Ping(pong.seconds, pong.error, compared.verdict, alone)
    status = membership.status()
    occupant = evidence.occupant_of(status, nickname)  # they may have come or left meanwhile
    name = nickname if occupant is None else occupant.nickname
    past = evidence.Past(name, there=occupant is not None)
    time_slice = TimeSlice()
    for record in reversed(journal.of(membership.name)):
        await time_slice.run(past.add, record, 0)
        if time_slice.exhausted:
            break
    cursors: dict[int, str] = {}
    if not (past.gone if occupant is None else past.sent):  # what was recorded may tell more
        cursors = await _add_recorded(past, link, membership.name, time_slice)
    answers: list[Entry] = []
    if past.sent is not None and past.outcome is not None:
        said = Said(past.outcome.number, past.outcome.at, past.sent.id, membership.name)
        for reply in reversed(past.replies):
            if len(answers) < MAX_ANSWERS and (entry := answer(reply, journal, said)):
                cursor = cursors.get(reply.number, entry["cursor"])
                answers.append(entry | {"cursor": cursor})
    known = evidence.Evidence(
        nickname=name,
        room=membership.name,
        status=status,
        occupant=occupant,
        past=past,
        now=time.time(),
        answers=answers,
        ping=pinged,
        rooms=rooms,
    )
    verdict, findings = diagnosis.find(known)
    result: dict[str, object] = {
        "verdict": verdict,
        "findings": [
            {"name": cause, "ok": finding.ok, "detail": finding.detail}
            | nonempty({"hint": finding.hint})
            for cause, finding in findings.items()
        ],
        "answers": [],
        "since": iso(past.since or known.now),
        "notice": NOTICE,
    }
    fitting = fit(result, RESULT_BYTES - MARK_BYTES, answers=answers)
    return fitting | nonempty({"truncated": len(fitting["answers"]) < len(answers)})


async def _add_recorded(
    past: evidence.Past, link: RoomLink, room: str, time_slice: TimeSlice
) -> dict[int, str]:
    """Add what was recorded in the room before `past` begins; return the cursors by the numbers.

    Of somebody who is not there, only departures are added. Of what one bridge alone saw or sent,
    only what a bridge of our account did counts. The records have negative numbers, since
    everything in the journal is newer.
    """
    cursors: dict[int, str] = {}
    reader, settings = link.recorded(), link.participant.settings
    if reader is None or settings is None:
        return cursors
    before = past.since or time.time()
    wanted = EventFilter()
    if not past.there:
        wanted = EventFilter(frozenset({"leave", "nick"}), past.nickname)
    start = iso(before - RECORDED_SECONDS) if past.there else None
    with suppress(StoreError):  # then only what the bridge itself remembers is used
        end = iso(before - 0.001)  # `past` has what happened at `before`
        walk = await reader.walk([room], wanted, start=start, end=end, backward=True)
        rows = [row async for row in walk if row.shared or row.observer.account == settings.jid]
        outgoing = (row.event for row in rows if row.event.get("direction") == "out")
        sent = {(event["id"], event["from"]) for event in outgoing}
        for number, row in enumerate(rows, 1):
            record = replace(walk.record(row), number=-number)
            event = record.event
            # Everybody in the room saw our message, so the store does not say whose it is.
            if isinstance(event, MessageReceived) and (event.id, event.from_) in sent:
                record = replace(record, event=replace(event, own=True))
            await time_slice.run(past.add, record, 0)
            cursors[-number] = walk.cursor_of(row.id)
        if not past.there:
            past.since = min(before, walk.oldest_at)
    return cursors
