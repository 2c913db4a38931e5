"""Reads the times that loggers, containers and servers put before their lines. Pure.

Rules use only differences of times. So we read a time without a zone as UTC, and a time without a
date as a time on the first of January 1970. Users see the time as the log has it.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_TIME = re.compile(
    r"""(?<![\w.:])(?:
      (?P<year>\d{4}) [-/.] (?P<month>\d\d) [-/.] (?P<day>\d\d) [T ,]\ ? (?=\d\d:)
    | (?P<day2>\d{1,2}) [-/.] (?P<month2>\d\d | [A-Z][a-z]{2}) [-/.] (?P<year2>\d{4}) [T :,]\ ?
      (?=\d\d:)
    | (?P<name>[A-Z][a-z]{2}) \ {1,2} (?P<day3>\d{1,2}) (?:,?\ (?P<year3>\d{4})\ ?,?)? \ (?=\d?\d:)
    )?
    (?P<hour>\d?\d) : (?P<minute>\d\d) : (?P<second>\d\d) (?:[.,](?P<fraction>\d{1,9}))?
    (?:\ ?(?P<half>[AP]M)\b)?
    (?:\ ?(?P<zone>Z\b|[+-]\d\d:?\d\d))?
    | (?<![\w.:-])(?P<epoch>1\d{9}) (?:[.,](?P<parts>\d{1,9}) | (?P<millis>\d{3}))? (?![\w.])
    """,
    re.VERBOSE,
)
"""A time of day, with the date before it and the zone behind it, if the log gives them; or the
seconds, or milliseconds, since the epoch."""


def time_in(prefix: str) -> tuple[float | None, str]:
    """Return the first time in the text before a stanza: its seconds, and the time as written.

    The seconds are None, and the text is empty, if there is no time.
    """
    match = _TIME.search(prefix)
    if match is None:
        return None, ""
    fraction, text = match["fraction"], match[0]
    if fraction:
        begin, end = match.span("fraction")
        text = prefix[match.start() : begin - len(".")] + prefix[end : match.end()]
    else:
        fraction = match["parts"] or match["millis"]
    try:
        seconds = int(match["epoch"]) if match["epoch"] else _second(text)
    except ValueError:  # such as the 31st of February
        return None, ""
    return seconds + (float(f"0.{fraction}") if fraction else 0), match[0].strip(" ,")


@lru_cache(maxsize=16)
def _second(text: str) -> float:
    """Return the time in a text, without the fraction of its second. Most lines share this time."""
    match = _TIME.search(text)
    if match is None:
        raise ValueError
    part = match.groupdict()
    month = part["month"] or part["month2"] or part["name"] or "1"
    hour = int(part["hour"] or 0)
    if part["half"]:
        hour = hour % 12 + (12 if part["half"] == "PM" else 0)
    moment = datetime(
        int(part["year"] or part["year2"] or part["year3"] or 1970),
        int(month) if month.isdigit() else _MONTHS.index(month.lower()) + 1,
        int(part["day"] or part["day2"] or part["day3"] or 1),
        hour,
        int(part["minute"] or 0),
        int(part["second"] or 0),
        tzinfo=_zone(part["zone"] or ""),
    )
    return moment.timestamp()


def _zone(text: str) -> timezone:
    if text in {"", "Z"}:
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
