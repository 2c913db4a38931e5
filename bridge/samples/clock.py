"""The tool that tells the local time."""

import os
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from bridge.toolkit import Interpret, iso, tool

LOCALTIME = Path("/etc/localtime")
"""A link to the description of the system's time zone (tzset(3))."""

PROMPT = (
    "Tell the person the local time in a short sentence, as they would say it, with the name of "
    "the zone; give the date only if they asked for it. It is the time of the computer that this "
    "server runs on, which need not be where the person is: say so if that may matter."
)


@dataclass(frozen=True)
class LocalTime:
    """One moment in several notations."""

    local: Annotated[str, "ISO 8601 with the offset from UTC"]
    zone: Annotated[str, "name of the time zone where it is known, else its abbreviation"]
    abbreviation: Annotated[str, "of the zone, as of now"]
    weekday: str
    utc: Annotated[str, "the same moment, in UTC"]


@tool(title="Current time", read_only=True, open_world=False)
def current_time() -> Interpret[LocalTime]:
    """Tell the current time and time zone of the computer that this server runs on.

    Use it for the current time only; it knows no weather, and no other place's time.
    """
    return Interpret(local_time(time.time(), zone_name()), PROMPT)


def local_time(at: float, zone: str | None) -> LocalTime:
    """Return the moment `at`, in seconds since the epoch, in the local time of this process."""
    local = datetime.fromtimestamp(at).astimezone()
    abbreviation = local.tzname() or ""
    return LocalTime(
        local=local.isoformat(timespec="seconds"),
        zone=zone or abbreviation,
        abbreviation=abbreviation,
        weekday=local.strftime("%A"),
        utc=iso(at),
    )


def zone_name() -> str | None:
    """Return the name of the local time zone in the tz database; None if nothing says it."""
    zone = os.environ.get("TZ")
    if zone is not None:
        return zone.removeprefix(":") if "/" in zone and not zone.startswith(":/") else None
    try:
        _, _, name = str(LOCALTIME.readlink()).partition("zoneinfo/")
    except OSError:
        return None
    return name or None
