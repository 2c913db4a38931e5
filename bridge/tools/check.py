"""The staged check: how far the way into the room holds, with the settings as they are now."""

import asyncio
import importlib
import time
from dataclasses import dataclass, fields, replace
from typing import Annotated

from bridge.mcp.context import Context
from bridge.mcp.toolset import ToolError, tool
from bridge.settings.table import Configuration, Setting
from bridge.tools.entries import NOTICE, sanitized
from bridge.tools.link import Participating, RoomLink
from bridge.tools.setup import Setup
from bridge.xmpp.report import PHASES, SETTINGS, CheckPhase, Report, settings_phase, unconfigured

TURN_SECONDS = 5.0
"""How long a check waits for another one: with its own 50 s that stays below the minute after
which clients give up."""


@dataclass(frozen=True)
class Check(Report):
    """How far it came, and what that means for the bridge."""

    settings_changed: Annotated[bool, "they differ from those the bridge was running with"]
    standing: Annotated[str, "what becomes of the bridge's own connection to the room"]
    settings: Annotated[list[Setting], "each variable that is set and in effect"]
    notice: str = NOTICE


@tool("xmppCheck", title="Check the way into the XMPP room", read_only=True)
async def xmpp_check(link: RoomLink, setup: Setup, context: Context, /) -> Check:
    """Find out where the way into the XMPP room breaks, with the settings read anew.

    Use it when xmppStatus says it is not connected, or after somebody has changed the settings.
    It walks a connection of its own, under a nickname of its own, through settings, resolve,
    connect, tls, sasl, bind, disco, join, occupants and leave; `phases` has what each found, its
    milliseconds, and for the failed one (the last) a hint naming the setting; `settings` has the
    variables in effect and where each is set, secrets as `***`. It sends no message and leaves the
    bridge's own connection alone, save that this starts anew, by itself, if the settings changed or
    if the check passes while it is out of the room; `standing` tells. Its stanzas are in xmppTrace.
    Mostly under a second, at most 50 s. Each call logs in once: with a wrong password, mend that
    before calling again, since servers lock accounts. Only the settings of the connection and the
    room take effect so; for others, such as BRIDGE_READ_ONLY, restart the bridge.
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
        return sanitized(await _check(link.participant, setup, context))
    finally:
        setup.trial.release()


async def _check(participant: Participating, setup: Setup, context: Context) -> Check:
    # In a thread: loading what speaks XMPP takes longer than the agent's other calls may wait.
    await asyncio.to_thread(importlib.import_module, "bridge.xmpp.probe")
    from bridge.xmpp.probe import Probe

    names = [SETTINGS, *(name for name in PHASES if name != "send")]

    def note(phase: CheckPhase) -> None:
        context.progress(names.index(phase.name) + 1, len(names), phase.name)

    started = time.perf_counter()
    configuration = setup.read_anew()
    first = settings_phase(configuration, time.perf_counter() - started)
    if later := setup.waiting_for_restart:
        until = f"Changed, but in effect only once the bridge is restarted: {', '.join(later)}."
        first = replace(first, hint=f"{first.hint} {until}".lstrip())
    note(first)
    settings = configuration.settings
    if settings is None:
        report, changed = unconfigured(configuration, first), False
    else:
        changed = settings != participant.settings
        trace = participant.trace.of_connection(time.time, "check")
        report = (await Probe(settings, trace=trace).run(note)).preceded_by(first)
    return Check(
        **{one.name: getattr(report, one.name) for one in fields(report)},
        settings_changed=changed,
        standing=_settle(participant, configuration, report, changed),
        settings=[*configuration.in_effect.values()],
    )


def _settle(
    participant: Participating, configuration: Configuration, report: Report, changed: bool
) -> str:
    """Let the standing connection start anew where there is a reason; return what happens to it."""
    settings = configuration.settings
    if settings is None or not (changed or report.ok) or not participant.begin_anew(settings):
        return _left_alone(participant)
    why = "the settings changed" if changed else "it was out of the room, and the way in is free"
    return f"It starts anew now, since {why}; xmppStatus tells when it is in the room."


def _left_alone(participant: Participating) -> str:
    phase = participant.status().phase.value
    if phase == "joined":
        return "It is in the room and was left alone."
    return f"It was left alone; its phase is {phase}."
