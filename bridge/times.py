"""Times as users see them: ISO 8601, UTC, milliseconds, `Z`. Pure."""

from datetime import UTC, datetime


def iso(at: float) -> str:
    """Return a time given in seconds since the epoch."""
    return _written(datetime.fromtimestamp(at, UTC))


def iso_of(text: str) -> str | None:
    """Return a time as users see it, of one that somebody else wrote; None if it has no zone."""
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else _written(moment.astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def stamp_of(text: str | None) -> str | None:
    """Return a stamp of somebody else's (XEP-0203) as users see times; no time stays as it is."""
    return text and (iso_of(text) or text)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
