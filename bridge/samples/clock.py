"""The tool that tells the local time."""

import os
import re
import time
import zoneinfo
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from bridge.toolkit import Interpret, ToolError, iso, tool

LOCALTIME = Path("/etc/localtime")
"""A link to the description of the system's time zone (tzset(3))."""

RULE = re.compile(
    r"(<[A-Za-z0-9+-]{3,}>|[A-Za-z]{3,})[+-]?([01]?[0-9]|2[0-4])(:[0-5]?[0-9]){0,2}([A-Za-z<,].*)?"
)
"""A zone that is written out as its rule: name, offset and perhaps summer time (tzset(3))."""

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
    check_zone(os.environ.get("TZ", ""))
    return Interpret(local_time(time.time(), zone_name()), PROMPT)


def check_zone(named: str) -> None:
    """Raise `ToolError` for a value of `TZ` that is no zone: the C library would then use UTC."""
    zone = named.removeprefix(":")
    if zone in {"", "UTC"} or RULE.fullmatch(zone):
        return
    if not any((Path(folder) / zone).is_file() for folder in zoneinfo.TZPATH):
        raise ToolError(
            f"The time zone of this server is set to {named!r}, and there is no such zone.",
            condition="item-not-found",
            hint="Whoever runs the bridge corrects TZ in its environment, such as Europe/Rome.",
        )


def local_time(at: float, zone: str | None) -> LocalTime:
    """Return the moment `at`, seconds since the epoch, in the local time of this process."""
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
    """Return the name of the local time zone in the tz database; None if it cannot be found."""
    named = os.environ.get("TZ")
    if named is not None:
        return named.removeprefix(":") if "/" in named and not named.startswith(":/") else None
    try:
        _, _, name = str(LOCALTIME.readlink()).partition("zoneinfo/")
    except OSError:
        return None
    return name or None
