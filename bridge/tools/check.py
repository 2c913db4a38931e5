"""The staged check: how far the way into the room holds, with the settings as they are now."""

import asyncio
import importlib
import time
from typing import TYPE_CHECKING, Annotated

from bridge.config import Configuration
from bridge.escaping import one_line
from bridge.frozen import dataclass
from bridge.mcp.context import Context
from bridge.mcp.toolset import ToolError, tool
from bridge.tools.entries import NOTICE, fitted
from bridge.tools.link import InRoom, RoomLink
from bridge.tools.setup import Setup

if TYPE_CHECKING:
    from bridge.xmpp.report import PhaseReport, Report

TURN_SECONDS = 5.0
"""How long a check waits for another one: with its own 50 s that stays below the minute after
which clients give up."""

SETTINGS = "settings"
"""The phase before those of the connection: reading them anew."""


@dataclass(frozen=True)
class CheckPhase:
    """One phase of the way into the room."""

    name: Annotated[
        str, "settings, resolve, connect, tls, sasl, bind, disco, join, occupants or leave"
    ]
    ok: bool
    ms: Annotated[float, "milliseconds it took"]
    detail: Annotated[str, "what was found, and with a failure the cause"]
    hint: Annotated[str, "what to do, naming the setting; empty where there is nothing to do"]


@dataclass(frozen=True)
class Check:
    """How far it came."""

    ok: Annotated[bool, "every phase passed"]
    phases: Annotated[list[CheckPhase], "in order; the failed one is the last"]
    diagnosis: Annotated[str, "the outcome in a sentence or two"]
    condition: Annotated[str | None, "of the failure, in the standard's own words"]
    room_created: Annotated[bool, "joining made the room: often a typo in MUC_ROOM"]
    settings_changed: Annotated[bool, "they differ from those the bridge was running with"]
    standing: Annotated[str, "what becomes of the bridge's own connection to the room"]
    notice: str = NOTICE


@tool("xmppCheck", title="Check the way into the XMPP room", read_only=True)
async def xmpp_check(link: RoomLink, setup: Setup, context: Context, /) -> Check:
    """Find out where the way into the XMPP room breaks, with the settings read anew.

    Use it when xmppStatus says it is not connected, or after somebody has changed the settings.
    It walks a connection of its own, under a nickname of its own, through settings, resolve,
    connect, tls, sasl, bind, disco, join, occupants and leave; `phases` has what each found, its
    milliseconds, and for the failed one (the last) a hint naming the setting. It sends no message
    and leaves the bridge's own connection alone, save that this starts anew, by itself, if the
    settings changed or if the check passes while it is out of the room; `standing` tells. Its
    stanzas are in xmppTrace. Mostly under a second, at most 50 s. Each call logs in once: with a
    wrong password, mend that before calling again, since servers lock accounts. Only the settings
    of the connection and the room take effect so; for others, such as BRIDGE_READ_ONLY, restart
    the bridge.
    """
    try:
        async with asyncio.timeout(TURN_SECONDS):
            await setup.trial.acquire()
    except TimeoutError as error:
        raise ToolError(
            "Another check is under way.",
            condition="resource-constraint",
            hint="Ask again once that one has answered: it takes 50 s at most.",
        ) from error
    try:
        return fitted(await _check(link.participant, setup, context))
    finally:
        setup.trial.release()


async def _check(participant: InRoom, setup: Setup, context: Context) -> Check:
    # In a thread: loading what speaks XMPP takes longer than the agent's other calls may wait.
    await _load()
    from bridge.xmpp.probe import Probe
    from bridge.xmpp.report import PHASES

    names = [SETTINGS, *(name for name in PHASES if name != "send")]
    phases: list[CheckPhase] = []

    def note(phase: "CheckPhase | PhaseReport") -> None:
        phases.append(CheckPhase(phase.name, phase.ok, phase.ms, phase.detail, phase.hint))
        context.progress(len(phases), len(names), phase.name)

    started = time.perf_counter()
    configuration = setup.read_anew()
    note(_of_settings(setup, time.perf_counter() - started))
    settings = configuration.settings
    if settings is None:
        return Check(
            ok=False,
            phases=phases,
            diagnosis=f"The settings do not do: {_problems(configuration)}",
            condition="unconfigured",
            room_created=False,
            settings_changed=False,
            standing=_left_alone(participant),
        )
    changed = settings != participant.settings
    trace = participant.trace.of_connection(time.time, "check")
    report = await Probe(settings, trace=trace).run(note)
    return Check(
        ok=report.ok,
        phases=phases,
        diagnosis=report.diagnosis,
        condition=None if report.fault is None else report.fault.condition,
        room_created=report.created,
        settings_changed=changed,
        standing=_settle(participant, configuration, report, changed),
    )


async def _load() -> None:
    try:
        await asyncio.to_thread(importlib.import_module, "bridge.xmpp.probe")
    except ImportError as error:
        raise ToolError(
            f"The bridge is not whole: {one_line(str(error), 200)}",
            condition="internal-server-error",
            hint="Install xmpp-debug-bridge and what it depends on again.",
        ) from error


def _settle(
    participant: InRoom, configuration: Configuration, report: "Report", changed: bool
) -> str:
    """Let the standing connection start anew where there is a reason; tell what becomes of it."""
    settings = configuration.settings
    if settings is None or not (changed or report.ok) or not participant.begin_anew(settings):
        return _left_alone(participant)
    why = "the settings changed" if changed else "it was out of the room, and the way in is free"
    return f"It starts anew now, since {why}; xmppStatus tells when it is in the room."


def _left_alone(participant: InRoom) -> str:
    phase = participant.status().phase.value
    if phase == "joined":
        return "It is in the room and was left alone."
    return f"It was left alone; its phase is {phase}."


def _of_settings(setup: Setup, seconds: float) -> CheckPhase:
    """Tell where the settings come from, and what is wrong with them."""
    configuration = setup.configuration
    found = [f"{one.path}: {one.reason}" for one in configuration.candidates]
    found += [f"warning: {warning}" for warning in configuration.warnings]
    ok = configuration.settings is not None
    hint = ""
    if configuration.problems:
        found.append(_problems(configuration))
        hint = "Mend what is named there; xmppStatus lists the same problems one by one."
    if later := setup.waiting_for_restart:
        hint = (
            f"{hint} Changed, but in effect only once the bridge is restarted: {', '.join(later)}."
        )
    detail = one_line("; ".join(found) or "from the environment alone")
    return CheckPhase(SETTINGS, ok, round(seconds * 1000, 3), detail, one_line(hint.strip()))


def _problems(configuration: Configuration) -> str:
    return one_line("; ".join(str(problem) for problem in configuration.problems))
