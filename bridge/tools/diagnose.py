"""The tool that finds out why an occupant does not do what is expected of it."""

import asyncio
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

from bridge.mcp.schema import always
from bridge.mcp.toolset import tool
from bridge.store.clock import Instant
from bridge.store.database import Recorded
from bridge.store.decision import ROUNDED
from bridge.store.errors import StoreError
from bridge.text import counted, iso, name_of, visible
from bridge.tools.answers import MAX_ANSWERS, answer, call, option
from bridge.tools.entries import MARK_BYTES, NOTICE, RESULT_BYTES, Entry, fit, nonempty
from bridge.tools.link import MAX_NAMED, Nickname, RoomLink, RoomName
from bridge.wire.names import BODY, lower_bare
from bridge.wire.speech import ANSWER_SECONDS, THREAD_SECONDS, is_command
from bridge.xmpp.checks import answering, asking, conduct, diagnosis, evidence, exchanges, questions
from bridge.xmpp.checks.doubts import tells_failure
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.events import Kind, MessageReceived, MessageSent
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import Record
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.membership import Membership

RECORDED_SECONDS = 3_600.0
"""How far before this bridge came recorded events count; earlier talk is forgotten."""

MAX_ASKED = 50
"""The most occupants of a room that the bridge asks what they are: the last who spoke."""

MAX_PROGRAMS = 20
"""The most programs in one result."""

MAX_OTHERS = 5
"""The most answers to others in one result, and the most questions left without an answer."""

BRIEF_BYTES = 2_500
"""The most bytes of a result in brief: a model reads the result of each look."""

ASKED = "It was asked now, which may hide an idle timeout for a round."
"""Follows a verdict if the bridge asked an occupant who comes and goes."""

GIVE_LOG = (
    "Its own debug log says more: name it in BRIDGE_BOT_LOGS, or run xmpp-bridge diagnose NICKNAME "
    "--log FILE."
)

NO_CAPTURES = (
    " What tap kept is not read, since the settings were found in the current directory: name the "
    "file with --env-file."
)

Diagnosis: TypeAlias = Annotated[
    dict[str, object],
    always(
        outcome=evidence.Outcome,
        verdict=str,
        findings=Annotated[
            list[Annotated[dict[str, object], always(name=str, ok=bool | None, detail=str)]],
            "ok null: not known; `hint`: what to do",
        ],
        answers=list[dict[str, object]],
        notice=str,
    ),
]
"""Why an occupant does not do what is expected of it, as far as that is known."""


@tool("xmppDiagnose", title="Why a bot does not answer", read_only=True)
async def xmpp_diagnose(
    link: RoomLink,
    /,
    nickname: Nickname = None,
    room: RoomName = None,
    detail: Annotated[Literal["brief", "full"], "full has all findings"] = "brief",
) -> Diagnosis:
    """Use this when a bot, or another occupant of the room, does not do what is expected of it.

    Begin with it: it says nothing in the room. `outcome` decides: for `cause` the `verdict` names
    it; for `unknown`, `nextStep` is the call to make, often xmppSend, and then ask here again.
    `findings` say what was looked at. Without `nickname`: all who look like programs. Up to 15 s.
    """
    examination = _Examination(link, full=detail == "full")
    if nickname is not None:
        return await examination.at(*link.occupant(nickname, room))
    asked = link.room(room)
    return await examination.around([*link.participant.memberships] if room is None else [asked])


class _Program(NamedTuple):
    """What was found of one program, or of the bridge itself."""

    room: str
    """The room for the next call; empty if there is only one."""
    nickname: str
    outcome: evidence.Outcome
    name: str
    """The name of the finding."""
    finding: evidence.Finding


class _RoomFindings(NamedTuple):
    """What was found in one room."""

    programs: list[_Program]
    others: int
    """How many others are in it."""
    since: float
    """When the known events of the room begin, in seconds since the epoch."""
    hides: bool = False
    """Whether the bridge asked an occupant who comes and goes."""
    asked: str = ""
    """What the bridge said last, if the room passed it on."""
    answers: Sequence[Entry] = ()
    """The answers to that, from any occupant."""
    unheard: str = ""
    """What the bridge said last, if the room neither passed it on nor refused it."""


class _Examination:
    """One look at the rooms, and its result."""

    def __init__(self, link: RoomLink, *, full: bool) -> None:
        self._link = link
        self._full = full

    async def at(self, membership: Membership, nickname: str) -> Diagnosis:
        """Return why the occupant of this nickname does not do what is expected."""
        rooms: list[str] = []
        if evidence.occupant_of(membership.status(), nickname) is None:
            with suppress(NotInRoomError, ConnectionFailedError):  # the status below says so
                await membership.recount()
                rooms = await roomservice.similar_rooms(membership.connection, membership.jid)
        seen = _Seen(self._link, membership)
        await seen.read()
        known = (await seen.known_of(nickname))._replace(rooms=rooms)
        placed, there = self._link.elsewhere(nickname, [membership])
        known = known._replace(placed=placed and f" {placed}")
        log, stream = await asyncio.to_thread(_stream_of, self._link, known)
        known = known._replace(stream=stream)
        # In a thread: it may take long to compare what a crowd has said.
        conclusion = await asyncio.to_thread(diagnosis.find, known)
        note = ""
        may_hang = conclusion.finding == "stream" and known.is_silent
        is_open = conclusion.outcome == "unknown" or may_hang
        if conclusion.finding in {"pair", "account"} or is_open:
            known = known._replace(**(await self._partners(membership, known))._asdict())
            occupant = known.occupant
            if conclusion.finding != "pair" and occupant is not None and not occupant.own:
                known = known.pinged(await asking.ping_alike(membership, occupant))
                note = f" {ASKED}" if known.came_back else ""
            conclusion = await asyncio.to_thread(diagnosis.find, known)
        entries = [
            _entry(name, finding)
            for name, finding in conclusion.findings.items()
            if self._full
            or name == conclusion.finding
            or finding.ok is False
            or finding.remark
            # What the caller gave as the log is not the occupant's, or cannot be read.
            or (name == "stream" and log is not None and finding.hint)
        ]
        step, room = conclusion.step, self._link.among_several(membership.name)
        next_call = step and call(step.tool, step.arguments, room)
        if there and (conclusion.finding, conclusion.outcome) == ("present", "unknown"):
            next_call = call("xmppDiagnose", there)
        return self._result(
            conclusion.outcome,
            conclusion.verdict + note,
            entries,
            known.past.since or known.now,
            ([*map(dict, known.answers)] or _of_others(known)) * (conclusion.finding != "bridge"),
            step=next_call,
            log=log,
            stream=stream,
            nickname=known.nickname,
            room=room,
        )

    async def _partners(self, membership: Membership, known: evidence.Evidence) -> asking.Declared:
        """Return what this occupant, and who may be in a loop with it, declare themselves to be."""
        names = conduct.partners(known) | ({known.nickname} if not known.came_back else set())
        partners = [it for it in known.status.everybody if it.nickname in names]
        await self._link.declarations.ask(membership, partners)
        return self._link.declarations.of(partners)

    async def around(self, memberships: list[Membership]) -> Diagnosis:
        """Return what is wrong with each occupant of these rooms that looks like a program."""
        rooms = await asyncio.gather(*(self._into(membership) for membership in memberships))
        programs = list[_Program]()
        for membership, room in zip(memberships, rooms, strict=True):
            before = f"{membership.name}: " if len(memberships) > 1 else ""
            for program in room.programs[: MAX_PROGRAMS - len(programs)]:
                finding = program.finding._replace(detail=before + program.finding.detail)
                programs.append(program._replace(finding=finding))
        only = len(memberships) == 1
        place = self._link.among_several(memberships[0].name) if only else ""
        outcome, verdict, step = _overall(rooms, programs, place)
        if any(room.others > MAX_ASKED for room in rooms) or len(programs) == MAX_PROGRAMS:
            verdict += " Not every occupant was looked at: give the nickname of the bot."
        verdict += "".join({f" {ASKED}" for room in rooms if room.hides})
        # All programs in a loop have the same finding.
        findings = {program.finding: program.name for program in programs}
        entries = [_entry(name, finding) for finding, name in findings.items()]
        answers = [answer for room in rooms for answer in room.answers]
        since = min(room.since for room in rooms)
        return self._result(outcome, verdict, entries, since, answers, step=step)

    async def _into(self, membership: Membership) -> _RoomFindings:
        status, now = membership.status(), Instant.now()
        if not status.connected:
            fault = status.out_of(membership.name)
            finding = evidence.Finding(False, fault.message, fault.hint)
            return _RoomFindings([_Program("", "", "cause", "bridge", finding)], 0, now)
        seen = _Seen(self._link, membership)
        await seen.read()
        everybody = await seen.known_of("")
        ours = status.me and status.me.account
        foreign = [*status.others, *status.unlisted]
        others = [it for it in foreign if ours is None or it.account != ours]
        others.sort(key=lambda it: it.last_message_at or 0.0, reverse=True)
        even = await asyncio.to_thread(exchanges.regulars, everybody.acts)
        heard, sent = everybody.past.heard, everybody.past.sent
        answers = seen.answers_to(heard, seen.records)
        said = sent.body if heard and sent else ""
        if is_command(said):
            # Only a program answers so fast. A person's client may send an error, or encrypt.
            prompt = answering.in_time(answers, ANSWER_SECONDS)
            worded = [it for it in prompt if not is_command(str(it.get("body")))]
            even |= {str(it["sender"]) for it in worded if it["how"] not in {"encrypted", "error"}}
        # An occupant who comes and goes may be cut off for its silence: a question would hide that.
        gone = {departure.nickname for departure in status.departures}
        back = [it for it in others[:MAX_ASKED] if it.nickname in gone]
        declarations, programs = self._link.declarations, list[Occupant]()
        for asked in ([it for it in others[:MAX_ASKED] if it not in back], back):
            if not programs:
                await declarations.ask(membership, asked)
                declared = declarations.of(others)
                says = declared.programs
                programs = [it for it in others if says.get(it.nickname, it.nickname in even)]
                hides = bool(asked) and asked is back
        looks = (self._over(membership, seen, it, declared) for it in programs[:MAX_PROGRAMS])
        looked, since = await asyncio.gather(*looks), everybody.past.since or now
        unheard = sent.body if sent and everybody.past.outcome is None else ""
        return _RoomFindings(looked, len(others), since, hides, said, answers, unheard)

    async def _over(
        self, membership: Membership, seen: "_Seen", occupant: Occupant, declared: asking.Declared
    ) -> _Program:
        """Return what is found of one program; ping it if that may decide."""
        known = await seen.known_of(occupant.nickname)
        known = known._replace(**declared._asdict(), named=False)
        if known.nickname in self._link.bot_logs:
            _, stream = await asyncio.to_thread(_stream_of, self._link, known)
            known = known._replace(stream=stream)
        result = await asyncio.to_thread(diagnosis.look_over, known)
        if result[0] == "unknown" and not known.came_back:
            known = known.pinged(await asking.ping_alike(membership, occupant))
            result = await asyncio.to_thread(diagnosis.look_over, known)
        room = self._link.among_several(membership.name)
        return _Program(room, occupant.nickname, *result)

    def _result(
        self,
        outcome: evidence.Outcome,
        verdict: str,
        findings: list[Entry],
        since: float,
        answers: Sequence[Entry],
        *,
        step: Entry | None = None,
        log: Path | None = None,
        stream: evidence.Finding | None = None,
        nickname: str = "",
        room: str = "",
    ) -> Diagnosis:
        is_told = stream is not None and (stream.ok is False or stream.remark)
        if outcome != "well" and step is None and log is not None and not is_told:
            words = "xmpp-bridge", "explain", *option("--nickname", nickname), str(log)
            step = {"command": shlex.join(words)}
        if step and self._link.read_only and step.get("tool") == "xmppSend":
            step = call("xmppWait", {"from": nickname} if nickname else {})
        hint = GIVE_LOG if outcome == "unknown" and step is None and log is None else ""
        hint += NO_CAPTURES if hint and self._link.captures is None else ""
        result: Entry = {
            "outcome": outcome,
            "verdict": verdict,
            "findings": [],
            "answers": [],
            **nonempty({"room": room}),
            "since": iso(since),
            **nonempty({"lookedAt": len(diagnosis.FINDINGS) if nickname else 0}),
            **nonempty({"hint": hint, "nextStep": step if outcome != "well" else None}),
            "notice": NOTICE,
        }
        lists, most = {"findings": findings, "answers": [*answers]}, BRIEF_BYTES
        if self._full:  # all findings stay, each as long as it can be
            result["findings"], most = lists.pop("findings"), RESULT_BYTES
        fitting = fit(result, most - MARK_BYTES, **lists)
        whole = [len(fitting[name]) for name in ("findings", "answers")]
        return fitting | nonempty({"truncated": whole != [len(findings), len(answers)]})


def _overall(
    rooms: Sequence[_RoomFindings], programs: Sequence[_Program], place: str
) -> tuple[evidence.Outcome, str, Entry | None]:
    """Return the outcome for all programs, the verdict, and the next step, in the room `place`."""
    causes = [program for program in programs if program.outcome == "cause"]
    if causes:
        count = len({program.finding for program in causes}) - 1
        more = f" {count} more {'is' if count == 1 else 'are'} found wrong." if count else ""
        step = call("xmppCheck", {}) if causes[0].name == "bridge" else None
        return "cause", causes[0].finding.detail + more, step
    asked = [room.asked for room in rooms if room.asked]
    answered = {str(it["sender"]): it for room in rooms for it in room.answers[::-1]}
    # An answer that people cannot read, that comes late, or tells a failure, clears no program.
    # Nor does a command.
    prompt = answering.in_time(answered.values())
    public = [it for it in prompt if it["how"] == "public" and not is_command(str(it.get("body")))]
    clears = any(not tells_failure(it, " ".join(asked)) for it in public)
    everybody = counted(sum(room.others for room in rooms), "other occupant")
    looked_at = f"({len(programs)} of {everybody})"
    said = f" Nobody answered {evidence.words_of(asked[-1])}." if asked else ""
    for unheard in (room.unheard for room in rooms if room.unheard):
        said += f" The room did not pass on {evidence.words_of(unheard)}."
    if answered:
        times = ", ".join(
            f"{name_of(name)} after {it['answerMs']:,.0f} ms"
            + ("" if it["how"] == "public" else f" ({it['how']})")
            for name, it in answered.items()
        )
        silent = [it.nickname for it in programs if it.nickname not in answered][:MAX_NAMED]
        silence = f"; {evidence.list_of(silent)} did not" if silent else ""
        said = f" Answered what the bridge said last: {times}{silence}."
    unclear = [program for program in programs if program.outcome == "unknown"]
    if programs and not unclear and (clears or not asked):
        return "well", f"Nothing is wrong with the programs {looked_at}.{said}", None
    if programs:
        next_ = [*unclear, programs[0]][0]
        step = call("xmppDiagnose", {"nickname": next_.nickname}, next_.room)
        words = "It is not known whether anything is wrong with the programs"
        return "unknown", f"{words} {looked_at}.{said}", step
    verdict = f"No program is seen among the {everybody}.{said}"
    if clears:
        return "well", verdict, None
    if any(room.unheard for room in rooms):
        return "unknown", verdict, call("xmppCheck", {})
    if not asked:
        return "unknown", verdict, call("xmppSend", {"message": "!ping", "awaitSeconds": 10}, place)
    nickname = next(iter(answered), "")
    step = call("xmppOccupants", {}, place)
    if nickname:
        place = str(answered[nickname].get("room", place))
        step = call("xmppDiagnose", {"nickname": nickname}, place)
    return "unknown", verdict, step


def _stream_of(
    link: RoomLink, known: evidence.Evidence
) -> tuple[Path | None, evidence.Finding | None]:
    """Return the bot's log, or else what `tap` kept of it, and what that says of its stream.

    It may take seconds, so it runs in a thread.
    """
    # Imported here: the reader of logs is loaded once a log is read.
    from bridge.tools import botlog

    log = link.bot_logs.get(known.nickname) or link.bot_logs.get(visible(known.nickname))
    if log is not None:
        return log, botlog.stream(log, known)
    kept = None if link.captures is None else botlog.tapped(link.captures, known)
    return kept or (None, None)


def _of_others(known: evidence.Evidence) -> list[Entry]:
    """Return the newest answers to others, and questions left without an answer, oldest first.

    There are none if the bridge spoke itself.
    """
    if known.past.sent is not None:
        return []
    asks = questions.asks_of(known)
    entries = [
        _exchange(ask.asked)
        | {"answerMs": round(ask.seconds * 1000, 3)}
        | nonempty({"body": ask.answer.body})
        for ask in asks
        if ask.answer is not None
    ]
    return entries[-MAX_OTHERS:] + [
        _exchange(group.last) | {"how": "not at all", "times": len(group.asks)}
        for group in questions.left_out(known, asks)[-MAX_OTHERS:]
    ]


def _exchange(asked: Record) -> Entry:
    body, at = asked.body, iso(asked.at)
    return nonempty({"to": asked.sender, "asked": body, "at": at})


def _order_of(
    rows: Sequence[tuple[Recorded, Record]],
) -> Callable[[tuple[Recorded, Record]], tuple[float, bool]]:
    """Return a key that sorts rows by time, each message of ours before the room's copy of it.

    Another bridge writes the copy, perhaps with an earlier time than we noted for the message.
    """
    copies = (it for it in rows if it[0].event.get("direction") == "in")
    heard = {_message_of(row): record.at for row, record in copies}

    def order(it: tuple[Recorded, Record]) -> tuple[float, bool]:
        (row, record), is_in = it, it[0].event.get("direction") == "in"
        return record.at if is_in else min(record.at, heard.get(_message_of(row), record.at)), is_in

    return order


def _message_of(row: Recorded) -> tuple[object, object]:
    """Return what a message of ours has in common with the room's copy of it."""
    return row.event.get("id"), row.event.get("from")


def _entry(name: str, finding: evidence.Finding) -> Entry:
    fields = {"name": name, "ok": finding.ok, "detail": finding.detail}
    return fields | nonempty({"hint": finding.hint})


class _Seen:
    """What happened in a room: what the bridge has seen, and what was recorded before."""

    def __init__(self, link: RoomLink, membership: Membership) -> None:
        self._link = link
        self._membership = membership
        self.records: list[Record] = []
        """The events, the newest first. Recorded ones have negative numbers: others are newer."""
        self._cursors: dict[int, str] = {}
        """The cursors of the recorded events, by their numbers."""

    async def read(self) -> None:
        """Read all that the bridge has seen, and the last hour of what was recorded before."""
        self.records = [*reversed(self._link.participant.journal.of(self._membership.name))]
        before = self.records[-1].at if self.records else Instant.now()
        spoke = any(isinstance(record.event, MessageSent) for record in self.records)
        if not spoke or Instant.now() - before < RECORDED_SECONDS:
            earlier, _ = await self._recorded(EventFilter(), before, before - RECORDED_SECONDS)
            self.records += earlier

    async def known_of(self, nickname: str) -> evidence.Evidence:
        """Return what is known of the occupant of this nickname; if it is empty, of the room.

        The nickname may be written as `visible` escapes it.
        """
        status = self._membership.status()
        occupant = evidence.occupant_of(status, nickname) if nickname else None
        nickname = nickname if occupant is None else occupant.nickname
        there = occupant is not None or not nickname
        past = evidence.Past(nickname, there=there, person=evidence.Person.of(occupant))
        await asyncio.to_thread(past.read, self.records)
        now = Instant.now()
        before, kinds = past.since or now, frozenset[Kind]()
        if not past.there:
            kinds = frozenset({"leave", "nick", "join"})
        elif occupant is not None and occupant.role == "visitor" and past.silenced is None:
            kinds = frozenset({"leave", "nick", "role"})
        elif occupant is not None and occupant.affiliation == "owner" and not status.persistent:
            kinds = frozenset({"join", "role"})
        if kinds:
            rows, oldest = await self._recorded(EventFilter(kinds, nickname), before)
            await asyncio.to_thread(past.read, rows)
            past.since = before if past.there else min(before, oldest)
        return evidence.Evidence(
            nickname=nickname,
            room=self._membership.name,
            status=status,
            occupant=occupant,
            past=past,
            now=now,
            answers=self.answers_to(past.outcome, past.replies),
            recorded=bool(self._cursors),
            elsewhere=past.heard and self._elsewhere(nickname, past.heard),
            aside_ms=self._aside(occupant.account if occupant else None, past.heard),
        )

    def _aside(self, account: str | None, heard: Record | None) -> float | None:
        """Return when the account wrote to our own address, as `Evidence.aside_ms` has it."""
        trace = self._link.participant.trace
        for stanza in trace.after(heard.number) if heard else ():
            xml = None if isinstance(stanza.xml, str) else stanza.xml
            if xml is None or stanza.direction != "in" or xml.get("type") == "error":
                continue
            if heard and lower_bare(xml.get("from", "")) == account and xml.findtext(BODY):
                seconds = stanza.at - heard.at
                return seconds * 1000 if seconds <= THREAD_SECONDS else None
        return None

    def _elsewhere(self, nickname: str, heard: Record) -> Record | None:
        """Return what the occupant said in another room of ours, if our message led to that."""
        participant = self._link.participant
        others = [it.name for it in participant.memberships if it is not self._membership]
        for name in others:
            said = filter(exchanges.speaks, participant.journal.of(name))
            first = next((it for it in said if heard.at - it.at <= ANSWER_SECONDS), None)
            if first and first.at - heard.at <= ANSWER_SECONDS and first.number > heard.number:
                return first if first.sender == nickname else None
        return None

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
            begin, end = None if start is None else iso(start), iso(before - ROUNDED)
            rooms = [self._membership.name]
            walk = await reader.walk(rooms, wanted, start=begin, end=end, backward=True)
            ours = (it async for it in walk if it.shared or it.observer.account == settings.jid)
            read = [(row, walk.record(row)) async for row in ours]
            # If our clock was set back, the times of later events come before, too.
            rows = [it for it in read if before - it[1].at > ROUNDED]
            rows.sort(key=_order_of(rows), reverse=True)
            sent = {_message_of(row) for row, _ in rows if row.event.get("direction") == "out"}
            for number, (row, known) in enumerate(rows, len(self._cursors) + 1):
                record, event = known._replace(number=-number), known.event
                # All in the room saw our message, so the store does not say whose it is.
                if isinstance(event, MessageReceived) and (event.id, event.from_) in sent:
                    record = record._replace(event=event._replace(own=True))
                records.append(record)
                self._cursors[-number] = walk.cursor_of(row.id)
            return records, walk.oldest_at
        return records, before

    def answers_to(self, said: Record | None, records: Sequence[Record]) -> list[Entry]:
        """Return the answers to what we `said`, oldest first; `records` begin with the newest."""
        journal, answers = self._link.participant.journal, list[Entry]()
        if said is None:
            return answers
        later = [*takewhile(lambda record: record.number > said.number, records)]
        for reply in reversed(later):
            if len(answers) < MAX_ANSWERS and (entry := answer(reply, journal, said)):
                cursor = self._cursors.get(reply.number, entry["cursor"])
                answers.append(entry | {"cursor": cursor})
        return answers
