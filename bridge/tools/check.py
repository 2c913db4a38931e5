"""The staged check: how far the bridge gets into its rooms with the settings as they are now."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated, TypeAlias

from bridge.mcp.context import Context
from bridge.mcp.errors import ToolError
from bridge.mcp.schema import always
from bridge.mcp.toolset import tool
from bridge.settings.sources import Problem
from bridge.settings.table import TABLE, Configuration, Setting
from bridge.text import one_line
from bridge.tools.entries import NOTICE, RESULT_BYTES, fit, json_size, nonempty
from bridge.tools.link import RoomLink
from bridge.xmpp.checks.probe import probe
from bridge.xmpp.checks.report import (
    MAX_ROOMS_NAMED,
    CheckStage,
    Report,
    expected_stages,
    settings_stage,
    unconfigured,
)

TURN_SECONDS = 5.0
"""How long a check waits for the end of another check. With its own 50 s, this is less than the
minute after which clients give up."""


OUR_WORDS = frozenset({"settings", "resolve", "connect"})
"""The stages whose details quote neither a server nor an occupant."""

log = logging.getLogger(__name__)


class CurrentSettings:
    """The settings as they were last read, and as they were at the start."""

    def __init__(self, configuration: Configuration, read: Callable[[], Configuration]) -> None:
        self.configuration = configuration
        """The settings as they were last read."""
        self.problems: tuple[Problem, ...] = ()
        """What is wrong with the sets of tools that the settings name."""
        self._at_start = configuration
        self._read = read
        self.check_lock = asyncio.Lock()
        """Held by a check from before it reads the settings anew until it has its result."""

    def read_anew(self) -> Configuration:
        """Read all settings again, and log what is newly wrong with them."""
        before, self.configuration = self.configuration, self._read()
        for warning in self.configuration.warnings:
            if warning not in before.warnings:
                log.warning("%s", one_line(warning))
        for problem in self.configuration.problems:
            if problem not in before.problems:
                log.error("%s", one_line(str(problem)))
        return self.configuration

    @property
    def waiting_for_restart(self) -> list[str]:
        """The variables whose new values take effect only at the next start."""
        at_once = {"BRIDGE_SEND_RATE", "BRIDGE_CONFIRM_SEND"}
        if self.configuration.read_only:
            at_once.add("BRIDGE_READ_ONLY")  # switching it off takes a restart
        return [
            row.name
            for row in TABLE
            if not row.participant
            and row.name not in at_once
            and self.configuration.loaded[row.name] != self._at_start.loaded[row.name]
        ]


Check: TypeAlias = Annotated[
    dict[str, object],
    always(
        ok=bool,
        phases=list[dict[str, object]],
        diagnosis=str,
        standing=str,
        settings=list[dict[str, object]],
    ),
]
"""How far a check came, and what that means for the bridge."""


@tool("xmppCheck", title="Check the way into the XMPP room", read_only=True)
async def xmpp_check(link: RoomLink, current: CurrentSettings, context: Context, /) -> Check:
    """Use it when xmppStatus is not connected, and after a change of the settings: it reads them.

    It walks the way into each room on a connection of its own, and says nothing there; at most
    50 s. The first of `phases` that is not ok has the `hint`. `standing`: what the bridge's own
    connection does next. It logs in: correct a wrong password before you call again, since servers
    lock accounts.
    """
    try:
        await asyncio.wait_for(current.check_lock.acquire(), TURN_SECONDS)
    except TimeoutError as error:
        raise ToolError(
            "Another check is under way.",
            condition="resource-constraint",
            hint="Call again once that check has answered: it takes 50 s at most.",
        ) from error
    try:
        return await _check(link, current, context)
    finally:
        current.check_lock.release()


async def _check(link: RoomLink, current: CurrentSettings, context: Context) -> Check:
    participant = link.participant  # first, since it says what is wrong with the installation
    started = time.perf_counter()
    configuration = current.read_anew()
    settings = configuration.settings
    expected = expected_stages(() if settings is None else settings.rooms, send=False)

    def note(stage: CheckStage) -> None:
        number = expected.index((stage.name, stage.room)) + 1
        name = stage.name if stage.room is None else f"{stage.name} {stage.room}"
        context.progress(number, len(expected), name)

    first = settings_stage(configuration, time.perf_counter() - started)
    if later := current.waiting_for_restart:
        until = f"Changed, but in effect only once the bridge is restarted: {', '.join(later)}."
        first = replace(first, hint=f"{first.hint} {until}".lstrip())
    note(first)
    warnings: list[str] = []
    if settings is None:
        report, changed = unconfigured(configuration, first), False
    else:
        changed = settings != participant.settings
        trace = participant.trace.of_connection(time.time, "check")
        if not changed:
            warnings = link.room_warnings()
        report = (await probe(settings, note, trace=trace)).preceded_by(first)
    standing = " ".join([_settle(link, configuration, report, changed), *warnings])
    return result_of(report, configuration.in_effect.values(), standing, changed=changed)


def result_of(
    report: Report, settings: Iterable[Setting], standing: str, *, changed: bool
) -> Check:
    """Return the result of a check, in `RESULT_BYTES` at most.

    If several rooms need more, only the first failures of their phases remain: the failures that
    the diagnosis names. `rooms` still has the outcome of each room.
    """
    phases = [nonempty(vars(phase)) | {"ok": phase.ok} for phase in report.phases]
    rows = [dict(vars(setting)) for setting in settings]
    ours = all(phase.name in OUR_WORDS for phase in report.phases)
    result: Check = {
        **nonempty(report.encode()),
        "ok": report.ok,
        "phases": phases,
        "diagnosis": report.diagnosis,
        **nonempty({"settingsChanged": changed}),
        "standing": standing,
        "settings": rows,
        **nonempty({"notice": "" if ours else NOTICE}),
    }
    failed = [phase for phase in phases if "room" in phase and not phase["ok"]]
    kept = [phase for phase in phases if "room" not in phase or phase in failed[:MAX_ROOMS_NAMED]]
    if json_size(result) > RESULT_BYTES and len(kept) < len(phases):
        result |= {"phases": kept, "leftOut": len(phases) - len(kept)}
    return fit(result, settings=rows)


def _settle(link: RoomLink, configuration: Configuration, report: Report, changed: bool) -> str:
    """Start the connection anew if there is a reason; return a sentence on what happens to it."""
    participant, settings = link.participant, configuration.settings
    memberships = participant.memberships
    out = {one_line(room.name) for room in memberships if not room.status().connected}
    if report.rooms is None:
        free = report.condition is None
    else:  # one of several rooms let the check in, and the bridge is out of that room
        free = any(visit.ok and visit.room in out for visit in report.rooms)
    if settings is None or not (changed or free) or not participant.begin_anew(settings):
        phase = participant.status().phase.value
        if len(memberships) > 1:
            inside = len(memberships) - len(out)
            return f"The bridge was left alone; it is in {inside} of {len(memberships)} rooms."
        if phase == "joined":
            return "The bridge is in the room and was left alone."
        return f"The bridge was left alone; its phase is {phase}."
    why = "the settings changed" if changed else "it was out of a room, and the way in is free"
    where = "the room" if report.rooms is None else "each room"
    return f"The bridge starts anew now, since {why}; xmppStatus says when it is in {where}."
