"""The report of a check in the names that users see: its stages and the outcome. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from bridge.settings.table import Configuration
from bridge.text import counted, listed, one_line, quoted
from bridge.xmpp.model.faults import Fault, Retry, similar_named

SETTINGS = "settings"
"""The stage before the stages of the connection: reading the settings."""

CONNECTION_STAGES = ("resolve", "connect", "tls", "sasl", "bind")
"""The stages of the connection, in order."""

ROOM_STAGES = ("disco", "join", "occupants", "send", "leave")
"""The stages of each room, in order; `send` only if the caller asks for it."""

CREATED_HINT = "MUC_ROOM may have a typo, or the former room is gone."
"""The hint about a room that joining made."""

MAX_ROOMS_NAMED = 3
"""Most rooms that the diagnosis names as failed, as created, or as not visited; it counts the rest.
There may be 50."""

MAX_ROOM_CHARACTERS = 100
"""Most characters of a room's name in the diagnosis; a JID may have 2,000."""

MAX_CAUSE_CHARACTERS = 500
"""Most characters of the reason in the diagnosis, if a room failed among several. The room's phases
have it in full."""


@dataclass(frozen=True)
class CheckStage:
    """One stage of a check. Its texts fit into one line, even if strangers wrote them."""

    name: str
    """One of `SETTINGS`, `CONNECTION_STAGES` and `ROOM_STAGES`."""
    ok: bool
    ms: float
    """The milliseconds that the stage took."""
    detail: str
    """What the stage found out; if it failed, also the cause."""
    hint: str
    """What to do, and which setting to change; empty if there is nothing to do."""
    room: str | None = None
    """The room that is visited; None in a stage of the connection, or if there is only one room."""


@dataclass(frozen=True)
class CheckedRoom:
    """The result for one of several rooms. Its texts fit into one line."""

    room: str
    """Bare JID as configured."""
    ok: bool
    """Whether every stage passed."""
    condition: str | None
    """The condition of the room's failure, or of the failure that ended the check before this room;
    None if every stage passed."""


@dataclass(frozen=True)
class Report:
    """The result of a check. Its texts fit into one line, even if strangers wrote them."""

    ok: bool
    """Whether every stage passed."""
    phases: list[CheckStage]
    """The stages in order; a failed one is the last, or the last of its room."""
    diagnosis: str
    """The outcome in a sentence or two."""
    condition: str | None
    """The condition of the first failure, in the standard's own words."""
    created: tuple[str, ...]
    """The rooms that joining made, which often means a typo in MUC_ROOM."""
    ms: float
    """Milliseconds that the connection took in all."""
    rooms: list[CheckedRoom] | None
    """The results for several rooms, in order; None if there is only one room."""
    candidates: tuple[str, ...] = ()
    """Rooms of the service that the user may have meant, if MUC_ROOM seems wrong."""
    certificate_expires: datetime | None = None
    """When the server's certificate expires, even if it was refused; None if none can be read."""
    may_repeat: bool = True
    """Whether another check is harmless. After a refused password it is not: servers lock
    accounts."""
    remarks: str = ""
    """The diagnosis's sentences on rooms that joining made and on similar rooms, after a blank."""

    def preceded_by(self, stage: CheckStage) -> "Report":
        """Return the report with `stage` before its own.

        The way can be walked although a setting beside it is wrong. The check has failed then, too.
        """
        but = "" if stage.ok else " But a setting beside the connection is wrong."
        phases = [stage, *self.phases]
        return replace(self, ok=self.ok and stage.ok, phases=phases, diagnosis=self.diagnosis + but)

    def encode(self) -> dict[str, object]:
        """Return the report under the names that users see."""
        encoded: dict[str, object] = {
            "ok": self.ok,
            "phases": [
                {name: value for name, value in vars(stage).items() if value is not None}
                for stage in self.phases
            ],
            "diagnosis": self.diagnosis,
            "condition": self.condition,
            "roomCreated": bool(self.created),
            "ms": self.ms,
        }
        if self.rooms is not None:
            encoded["rooms"] = [dict(vars(room)) for room in self.rooms]
        if self.candidates:
            encoded["candidates"] = list(self.candidates)
        return encoded


@dataclass(eq=False, repr=False)
class Visit:
    """The result of the visit to one room, so far."""

    room: str
    """The bare JID of the room, as configured."""
    fault: Fault | None = None
    """Why the visit ended early, if it did."""
    created: bool = False
    """Whether joining made the room."""
    voiceless: bool = False
    """Whether the room passes on nothing that we say."""
    others: int = 0
    """The number of other occupants."""
    candidates: Sequence[str] = ()
    """JIDs of rooms that the user may have meant, if this room seems to be a typo."""
    taken: str = ""
    """The configured nickname, if an occupant of another account has it."""


def expected_stages(rooms: Sequence[str], *, send: bool) -> list[tuple[str, str | None]]:
    """Return the name and the room of each stage of a successful check, in order."""
    of_a_room = [name for name in ROOM_STAGES if send or name != "send"]
    return [
        *((name, None) for name in (SETTINGS, *CONNECTION_STAGES)),
        *((name, named(room, rooms)) for room in rooms for name in of_a_room),
    ]


def by_stage(reports: Sequence[Report]) -> dict[tuple[str, str | None], list[CheckStage]]:
    """Return the results of each stage in order: a result for each run that reached the stage.

    A key has the stage's name, and its room if there are several.
    """
    rooms = [checked.room for report in reports[:1] for checked in report.rooms or ()]
    reached = [stage for report in reports for stage in report.phases]
    expected = expected_stages(rooms or [""], send=True)
    runs = {key: [it for it in reached if (it.name, it.room) == key] for key in expected}
    return {key: stages for key, stages in runs.items() if stages}


def named(room: str, rooms: Sequence[str]) -> str | None:
    """Return the name of `room` in a stage, fit for one line; None if it is the only room."""
    return one_line(room) if len(rooms) > 1 else None


def report_of(
    rooms: Sequence[str],
    stages: Sequence[CheckStage],
    seconds: float,
    visits: Sequence[Visit],
    fault: Fault | None,
) -> Report:
    """Return the report of a check that took `seconds`.

    `visits[i]` is the visit to `rooms[i]`; there may be fewer visits than rooms. `fault`, if any,
    ended the check early.
    """
    # The reason that ended the check is also why rooms that were not visited failed.
    causes = [visit.fault for visit in visits] + [fault] * (len(rooms) - len(visits))
    faults = [cause for cause in causes if cause is not None]
    checked = [
        CheckedRoom(one_line(room), cause is None, cause and one_line(cause.condition))
        for room, cause in zip(rooms, causes, strict=True)
    ]
    created = [one_line(visit.room) for visit in visits if visit.created]
    candidates = [one_line(room) for visit in visits for room in visit.candidates]
    if fault is not None and not visits:
        diagnosis = one_line(fault.message)
    elif faults:
        diagnosis = _failure(rooms, visits)
    else:
        diagnosis = _success(rooms, seconds, visits)
    remarks = ""
    if created:
        made = "The room did not exist before and was made by joining it"
        if len(rooms) > 1:
            made = f"Joining created rooms that did not exist, {_listed(created)}"
        remarks = f" {made}: {CREATED_HINT}"
    if mute := [visit.room for visit in visits if visit.voiceless and not visit.fault]:
        remarks += f" Without voice in {_listed(mute)}: nobody gets what the bridge says there "
        remarks += "until a moderator gives it voice."
    if not faults:  # a fault's message already names similar rooms
        remarks += similar_named(candidates)
    for nickname in dict.fromkeys(visit.taken for visit in visits if visit.taken):
        taken = f"The nickname {quoted(nickname)} is taken: the bridge enters as"
        remarks += f" {taken} {quoted(f'{nickname}-2')}. Set another MCP_BOT_NICKNAME."
    return Report(
        ok=not faults,
        phases=list(stages),
        diagnosis=diagnosis + remarks,
        condition=one_line(faults[0].condition) if faults else None,
        created=tuple(created),
        ms=round(seconds * 1000, 3),
        rooms=checked if len(rooms) > 1 else None,
        candidates=tuple(candidates),
        may_repeat=fault is None or fault.retry is not Retry.NEVER,
        remarks=remarks,
    )


def _success(rooms: Sequence[str], seconds: float, visits: Sequence[Visit]) -> str:
    """Return the diagnosis of a check without failures."""
    others = sum(visit.others for visit in visits)
    company = counted(others, "other occupant") if others else "nobody else"
    where = f"{len(rooms)} rooms" if len(rooms) > 1 else f"the room {one_line(rooms[0])}"
    head = "All stages passed" if any(it.voiceless for it in visits) else "Everything works"
    return f"{head}: in {where} with {company}, {seconds:.2f} s in all."


def _failure(rooms: Sequence[str], visits: Sequence[Visit]) -> str:
    """Return the diagnosis of a check with failures: which rooms failed and why, in short."""
    failed = [(visit.room, visit.fault.message) for visit in visits if visit.fault is not None]
    if len(rooms) == 1:
        return one_line(failed[0][1])
    sentences = [f"{len(failed)} of {len(rooms)} rooms failed."]
    for room, message in failed[:MAX_ROOMS_NAMED]:
        cause = one_line(message, MAX_CAUSE_CHARACTERS)
        sentences.append(f"{one_line(room, MAX_ROOM_CHARACTERS)}: {cause}")
    if len(failed) > MAX_ROOMS_NAMED:
        sentences.append(f"{len(failed) - MAX_ROOMS_NAMED} more failed, see the phases.")
    if unvisited := rooms[len(visits) :]:
        sentences.append(f"Not visited: {_listed(unvisited)}.")
    return " ".join(sentences)


def _listed(rooms: Sequence[str]) -> str:
    return listed(rooms, MAX_ROOMS_NAMED, partial(one_line, limit=MAX_ROOM_CHARACTERS))


def settings_stage(configuration: Configuration, seconds: float) -> CheckStage:
    """Return the stage of the settings: their source, and what is wrong with them."""
    details = [f"{candidate.path}: {candidate.reason}" for candidate in configuration.candidates]
    details += [f"warning: {warning}" for warning in configuration.warnings]
    details += map(str, configuration.problems)
    return CheckStage(
        SETTINGS,
        not configuration.problems,
        round(seconds * 1000, 3),
        one_line("; ".join(details) or "from the environment alone"),
        "Correct the settings that the stage `settings` names." if configuration.problems else "",
    )


def unconfigured(configuration: Configuration, stage: CheckStage) -> Report:
    """Return the report of a check that ended with `stage`, the reading of the settings."""
    problems = one_line("; ".join(map(str, configuration.problems)))
    diagnosis = f"The settings are incomplete or wrong: {problems}"
    return Report(False, [stage], diagnosis, "unconfigured", (), 0.0, None)
