"""The report of a check in the names that users see: its phases and the outcome. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from bridge.escaping import one_line

if TYPE_CHECKING:
    from bridge.settings.table import Configuration
    from bridge.xmpp.faults import Fault, Place

SETTINGS = "settings"
"""The phase before those of the connection: reading the settings."""

PHASES = (
    *("resolve", "connect", "tls", "sasl", "bind"),
    *("disco", "join", "occupants", "send", "leave"),
)
"""The phases of the connection, in order; `send` only when it is asked for."""

CREATED = "MUC_ROOM may have a typo."
"""The hint about a room that joining made."""


@dataclass(frozen=True)
class CheckPhase:
    """One phase of the way into the room. Its texts fit into one line, whoever wrote them."""

    name: Annotated[
        str, "settings, resolve, connect, tls, sasl, bind, disco, join, occupants or leave"
    ]
    ok: bool
    ms: Annotated[float, "milliseconds it took"]
    detail: Annotated[str, "what was found, and with a failure the cause"]
    hint: Annotated[str, "what to do, naming the setting; empty where there is nothing to do"]


@dataclass(frozen=True)
class Report:
    """How far a check came. Its texts fit into one line, whoever wrote them."""

    ok: Annotated[bool, "every phase passed"]
    phases: Annotated[list[CheckPhase], "in order; the failed one is the last"]
    diagnosis: Annotated[str, "the outcome in a sentence or two"]
    condition: Annotated[str | None, "of the failure, in the standard's own words"]
    room_created: Annotated[bool, "joining made the room: often a typo in MUC_ROOM"]
    ms: Annotated[float, "milliseconds that the connection took in all"]

    def preceded_by(self, phase: CheckPhase) -> "Report":
        """Return the report with `phase` before its own."""
        return replace(self, phases=[phase, *self.phases])


def report_of(
    place: "Place",
    phases: Sequence[CheckPhase],
    seconds: float,
    fault: "Fault | None",
    *,
    created: bool,
    others: int,
) -> Report:
    """Return the report of a check that went to `place`, and that `fault`, if any, ended early.

    `created` says whether joining made the room; `others` counts the other occupants.
    """
    if fault is not None:
        diagnosis = one_line(fault.message)
    else:
        company = f"{others} other occupant{'s' * (others > 1)}" if others else "nobody else"
        room = one_line(place.room)
        diagnosis = f"Everything works: in the room {room} with {company}, {seconds:.2f} s in all."
        if created:
            diagnosis += f" The room did not exist before and was made by joining it: {CREATED}"
    return Report(
        ok=fault is None,
        phases=list(phases),
        diagnosis=diagnosis,
        condition=None if fault is None else one_line(fault.condition),
        room_created=created,
        ms=round(seconds * 1000, 3),
    )


def settings_phase(configuration: "Configuration", seconds: float) -> CheckPhase:
    """Return where the settings come from, and what is wrong with them."""
    found = [f"{one.path}: {one.reason}" for one in configuration.candidates]
    found += [f"warning: {warning}" for warning in configuration.warnings]
    found += map(str, configuration.problems)
    return CheckPhase(
        SETTINGS,
        configuration.settings is not None,
        round(seconds * 1000, 3),
        one_line("; ".join(found) or "from the environment alone"),
        "Mend what is named there." if configuration.problems else "",
    )


def unconfigured(configuration: "Configuration", phase: CheckPhase) -> Report:
    """Return the report of a check that ended with `phase`, the reading of the settings."""
    problems = one_line("; ".join(map(str, configuration.problems)))
    diagnosis = f"The settings do not do: {problems}"
    return Report(False, [phase], diagnosis, "unconfigured", room_created=False, ms=0.0)
