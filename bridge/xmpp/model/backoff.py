"""Computes the pause before the next attempt to connect or join. Pure: callers pass the jitter."""

from bridge.xmpp.model.events import ConnectionChanged, Phase
from bridge.xmpp.model.faults import Fault, Retry

FIRST_SECONDS = 1.0
"""The pause after the first failure."""

MOST_SECONDS = 60.0
"""The longest pause, however many failures there were."""

JITTER = 0.25
"""A pause may be shorter or longer by this fraction, so that clients do not all come at the same
time."""

MINUTE_SECONDS = 60.0
"""The pause after a moderator's kick."""

STEADY_SECONDS = 10.0
"""The shortest stay in the room that counts as success; a shorter one counts as another failure."""

LATER_SECONDS = 15 * 60.0
"""The pause if a person has to change something elsewhere first."""


def pause(retry: Retry, attempt: int, jitter: float) -> float | None:
    """Return the seconds until the next attempt; None for never.

    `attempt` counts the failures in a row from 1; `jitter` is between -1 and 1.
    """
    match retry:
        case Retry.NEVER:
            return None
        case Retry.MINUTE:
            return MINUTE_SECONDS
        case Retry.LATER:
            return LATER_SECONDS * (1 + JITTER / 5 * jitter)
        case Retry.AT_ONCE if attempt == 1:
            return 0.0
        case Retry.SOON | Retry.AT_ONCE:
            doubled = FIRST_SECONDS * 2.0 ** min(attempt - 1, 16)
            shaken = min(doubled, MOST_SECONDS) * (1 + JITTER * jitter)
            return float(min(max(shaken, FIRST_SECONDS), MOST_SECONDS))


def resting(fault: Fault, failures: int, seconds: float | None) -> ConnectionChanged:
    """Return the event that says how long we wait after `fault`: `seconds`, or for ever if None."""
    hopeless = fault.retry in {Retry.NEVER, Retry.LATER}
    wait = None if seconds is None else round(seconds * 1000)
    return ConnectionChanged(Phase.FAILED if hopeless else Phase.WAITING, fault, failures, wait)
