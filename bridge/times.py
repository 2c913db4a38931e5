"""Times as users see them: ISO 8601, UTC, milliseconds, `Z`. Pure."""

from datetime import UTC, datetime


def iso(at: float) -> str:
    """Return a time given in seconds since the epoch."""
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
