"""The tool that tells the local time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from bridge.toolkit import Interpret, tool

PROMPT = (
    "Tell the person the local time in a short sentence, with the zone. It is the time of the "
    "computer that this server runs on. The person may be elsewhere: say so if that may matter."
)


@dataclass(frozen=True)
class LocalTime:
    """The present moment where this server runs."""

    local: Annotated[str, "ISO 8601 with the offset from UTC"]
    zone: Annotated[str, "abbreviation of the time zone, as of now"]


@tool(title="Current time", read_only=True, open_world=False)
def current_time() -> Interpret[LocalTime]:
    """Tell the current time and time zone of the computer that this server runs on.

    Use it for the current time only; it knows no weather, and no other place's time.
    """
    now = datetime.now().astimezone()
    return Interpret(LocalTime(now.isoformat(timespec="seconds"), now.tzname() or ""), PROMPT)
