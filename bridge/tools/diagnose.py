"""The tool that finds out why somebody in the room does not do what is expected of them."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, NamedTuple, TypeAlias

from bridge.mcp.schema import Bounds, always
from bridge.mcp.toolset import tool
from bridge.store.database import Recorded
from bridge.store.errors import StoreError
from bridge.text import iso
from bridge.tools.answers import MAX_ANSWERS, answer
from bridge.tools.entries import MARK_BYTES, NOTICE, RESULT_BYTES, Entry, fit, nonempty
from bridge.tools.link import RoomLink, RoomName
from bridge.tools.paging import TimeSlice
from bridge.xmpp.checks import asking, conduct, diagnosis, evidence, exchanges
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.events import Kind, MessageReceived, MessageSent
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.membership import Membership

RECORDED_SECONDS = 3_600.0
"""How far back before this bridge came recorded events count; earlier talk is forgotten."""

MAX_ASKED = 50
"""The most occupants of a room that the bridge asks what they are: the last who spoke."""

MAX_PROGRAMS = 20
"""The most programs in one result."""

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
    nickname: Annotated[
        str | None, Bounds(min_length=1, max_length=1023), "whom it concerns"
    ] = None,
    room: RoomName = None,
) -> Diagnosis:
    """Use this when somebody else in the room, such as a bot, does not do what is expected of it.

    It says nothing in the room: to see whether the bot answers, call xmppSend with `awaitSeconds`
    first, then this. `verdict` names the cause. `findings`: whether the nickname is there (else
    when and why it left, names like it), a ghost holds it, it has voice, its account is there
    twice, it answers pings, loops alone or with another program, comes and goes, answered the
    history, answers others only, how it answered the bridge (not at all, late, in
    private, encrypted, without a body, twice), whether commands are encrypted or have hidden
    characters, what it said last. Without `nickname`: all who look like programs, at most 20.
    Takes up to 10 s.
    """
    memberships = [link.room(room)]
    if nickname is not None:
        return await _look_at(link, memberships[0], nickname)
    return await _look_around(
        link, [*link.participant.memberships] if room is None else memberships
    )


async def _look_at(link: RoomLink, membership: Membership, nickname: str) -> Diagnosis:
    """Return why the occupant of this nickname does not do what is expected."""
    occupant = evidence.occupant_of(membership.status(), nickname)
    pings: dict[str, evidence.Ping] = {}
    rooms: list[str] = []
    if occupant is not None and not occupant.own:
        pings = await asking.ping_alike(membership, occupant)
    elif occupant is None:
        with suppress(NotInRoomError, ConnectionFailedError):  # the status below says so
            service = membership.jid.partition("@")[2]
            await membership.recount()
            rooms = await roomservice.similar_rooms(membership.connection, membership.jid, service)
    # The occupant may have come or left meanwhile.
    occupant = evidence.occupant_of(membership.status(), nickname)
    seen = _Seen(link, membership)
    await seen.read()
    known = await seen.known_of(nickname if occupant is None else occupant.nickname, pings)
    known = known._replace(rooms=rooms)
    if partners := conduct.partners(known):
        known = known._replace(**(await asking.declared_by(membership, partners))._asdict())
    # In a thread: it may take long to compare what a crowd has said.
    verdict, findings = await asyncio.to_thread(diagnosis.find, known)
    entries = [_entry(name, finding) for name, finding in findings.items()]
    return _result(verdict, entries, known.past.since or known.now, [*map(dict, known.answers)])


class _RoomFindings(NamedTuple):
    """What was found in one room."""

    findings: list[tuple[str, evidence.Finding]]
    """Each with its name."""
    others: int
    """How many others are in it."""
    since: float
    """The time at which the known events of the room begin."""


async def _look_around(link: RoomLink, memberships: list[Membership]) -> Diagnosis:
    """Return what is wrong with everybody in these rooms who looks like a program."""
    rooms = await asyncio.gather(*(_look_into(link, membership) for membership in memberships))
    entries = list[Entry]()
    for membership, room in zip(memberships, rooms, strict=True):
        before = f"{membership.name}: " if len(memberships) > 1 else ""
        for name, finding in room.findings[: MAX_PROGRAMS - len(entries)]:
            entries.append(_entry(name, finding._replace(detail=before + finding.detail)))
    people = sum(room.others for room in rooms)
    verdict = f"Nobody of {people} others looks like a program."
    if entries:
        verdict = f"Nothing is found wrong with the programs: {len(entries)} of {people} others."
    wrong = [str(entry["detail"]) for entry in entries if entry["ok"] is False]
    if wrong:
        more = f" {len(wrong) - 1} more are found wrong." if len(wrong) > 1 else ""
        verdict = wrong[0] + more
    if any(room.others > MAX_ASKED for room in rooms) or len(entries) == MAX_PROGRAMS:
        verdict += " Not everybody was looked at: name whom it concerns."
    return _result(verdict, entries, min(room.since for room in rooms), ())


async def _look_into(link: RoomLink, membership: Membership) -> _RoomFindings:
    status, now = membership.status(), time.time()
    if not status.connected:
        fault = status.out_of(membership.name)
        return _RoomFindings(
            [("bridge", evidence.Finding(False, fault.message, fault.hint))], 0, now
        )
    seen = _Seen(link, membership)
    await seen.read()
    everybody = await seen.known_of("", {})
    ours = status.me and status.me.account
    others = [
        occupant
        for occupant in sorted(
            [*status.others, *status.unlisted], key=lambda it: -(it.last_message_at or 0.0)
        )
        if ours is None or occupant.account != ours
    ]
    names = [occupant.nickname for occupant in others[:MAX_ASKED]]
    declared = await asking.declared_by(membership, names)
    says = declared.programs
    even = await asyncio.to_thread(exchanges.regulars, everybody.acts)
    programs = [it for it in others if says.get(it.nickname, it.nickname in even)][:MAX_PROGRAMS]
    pings = await asyncio.gather(
        *(asking.ping_alike(membership, occupant) for occupant in programs)
    )
    room = _RoomFindings([], len(others), everybody.past.since or now)
    for occupant, pinged in zip(programs, pings, strict=True):
        known = await seen.known_of(occupant.nickname, pinged)
        known = known._replace(**declared._asdict(), named=False)
        room.findings.append(await asyncio.to_thread(diagnosis.look_over, known))
    return room


def _order_of(rows: Sequence[Recorded]) -> Callable[[Recorded], tuple[float, bool]]:
    """Return a key that sorts rows by time, each message of ours before the room's copy of it.

    Another bridge writes the copy, perhaps with an earlier time than we noted for the message.
    """
    heard = {
        (row.event.get("id"), row.event.get("from")): row.at
        for row in rows
        if row.event.get("direction") == "in"
    }

    def order(row: Recorded) -> tuple[float, bool]:
        if row.event.get("direction") == "in":
            return row.at, True
        copy = heard.get((row.event.get("id"), row.event.get("from")), row.at)
        return min(row.at, copy), False

    return order


def _entry(name: str, finding: evidence.Finding) -> Entry:
    fields = {"name": name, "ok": finding.ok, "detail": finding.detail}
    return fields | nonempty({"hint": finding.hint})


def _result(
    verdict: str, findings: list[Entry], since: float, answers: Sequence[Entry]
) -> Diagnosis:
    result: Entry = {
        "verdict": verdict,
        "findings": findings,
        "answers": [],
        "since": iso(since),
        "notice": NOTICE,
    }
    fitting = fit(result, RESULT_BYTES - MARK_BYTES, answers=answers)
    return fitting | nonempty({"truncated": len(fitting["answers"]) < len(answers)})


class _Seen:
    """What happened in a room: what the bridge has seen, and what was recorded before."""

    def __init__(self, link: RoomLink, membership: Membership) -> None:
        self._link = link
        self._membership = membership
        self._time_slice = TimeSlice()
        self._records: list[Record] = []
        """The newest first. Recorded ones have negative numbers, since all others are newer."""
        self._cursors: dict[int, str] = {}
        """The cursors of the recorded ones, by their numbers."""

    async def read(self) -> None:
        """Read all that the bridge has seen, and the last hour of what was recorded before."""
        for record in reversed(self._link.participant.journal.of(self._membership.name)):
            await self._time_slice.run(self._records.append, record, 0)
            if self._time_slice.exhausted:
                break
        before = self._records[-1].at if self._records else time.time()
        spoke = any(isinstance(record.event, MessageSent) for record in self._records)
        if not spoke or before > time.time() - RECORDED_SECONDS:
            earlier, _ = await self._recorded(EventFilter(), before, before - RECORDED_SECONDS)
            self._records += earlier

    async def known_of(
        self, nickname: str, pings: Mapping[str, evidence.Ping]
    ) -> evidence.Evidence:
        """Return what is known of the occupant of this nickname; if it is empty, of the room."""
        status = self._membership.status()
        occupant = evidence.occupant_of(status, nickname) if nickname else None
        past = evidence.Past(
            nickname,
            there=occupant is not None or not nickname,
            person=evidence.Person.of(occupant),
        )
        await self._add(past, self._records)
        now = time.time()
        before, kinds = past.since or now, frozenset[Kind]()
        if not past.there:
            kinds = frozenset({"leave", "nick", "join"})
        elif occupant is not None and occupant.role == "visitor" and past.silenced is None:
            kinds = frozenset({"leave", "nick", "role"})
        if kinds:
            rows, oldest = await self._recorded(EventFilter(kinds, nickname), before)
            await self._add(past, rows)
            past.since = before if past.there else min(before, oldest)
        return evidence.Evidence(
            nickname=nickname,
            room=self._membership.name,
            status=status,
            occupant=occupant,
            past=past,
            now=now,
            answers=self._answers_in(past),
            ping=pings.get(nickname),
            namesakes={name: it for name, it in pings.items() if name != nickname},
        )

    async def _add(self, past: evidence.Past, records: Sequence[Record]) -> None:
        for record in records:
            await self._time_slice.run(past.add, record, 0)

    async def _recorded(
        self, wanted: EventFilter, before: float, start: float | None = None
    ) -> tuple[list[Record], float]:
        """Return what was recorded before a time, the newest first, and when the store begins.

        An event that only one bridge saw or sent counts if that bridge has our account.
        """
        reader, settings = self._link.recorded(), self._link.participant.settings
        records: list[Record] = []
        if reader is None or settings is None:
            return records, before
        with suppress(StoreError):  # then only what the bridge itself remembers is used
            begin, end = None if start is None else iso(start), iso(before - 0.001)
            rooms = [self._membership.name]
            walk = await reader.walk(rooms, wanted, start=begin, end=end, backward=True)
            rows = [row async for row in walk if row.shared or row.observer.account == settings.jid]
            rows.sort(key=_order_of(rows), reverse=True)
            outgoing = (row.event for row in rows if row.event.get("direction") == "out")
            sent = {(event["id"], event["from"]) for event in outgoing}
            for number, row in enumerate(rows, len(self._cursors) + 1):
                record = replace(walk.record(row), number=-number)
                event = record.event
                # Everybody in the room saw our message, so the store does not say whose it is.
                if isinstance(event, MessageReceived) and (event.id, event.from_) in sent:
                    record = replace(record, event=replace(event, own=True))
                records.append(record)
                self._cursors[-number] = walk.cursor_of(row.id)
            return records, walk.oldest_at
        return records, before

    def _answers_in(self, past: evidence.Past) -> list[Entry]:
        """Return the answers to what we said last, the oldest first."""
        journal, answers = self._link.participant.journal, list[Entry]()
        if past.outcome is not None:
            for reply in reversed(past.replies):
                if len(answers) < MAX_ANSWERS and (entry := answer(reply, journal, past.outcome)):
                    cursor = self._cursors.get(reply.number, entry["cursor"])
                    answers.append(entry | {"cursor": cursor})
        return answers
