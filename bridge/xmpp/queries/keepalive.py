"""Decides when to ask whether the server still answers, and whether the room still knows us.

A half-open connection does not report itself, and neither does a room that no longer knows us. So
we ping the server at intervals (XEP-0199). After a silence of a room, we ping ourselves through the
room (XEP-0410).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Stage
from bridge.xmpp.queries.ping import answers


@dataclass(frozen=True)
class Timing:
    """When to ping, and how long a silence may last; all in seconds."""

    ping_interval: float = 30.0
    """The time from one ping to the server until the next."""
    ping_deadline: float = 15.0
    """How long the answer to any ping may take."""
    idle_before_ping: float = 60.0
    """How long a room may be silent before we send a self-ping through it."""
    max_unconfirmed: float = 120.0
    """How long it may be uncertain whether we are in a room; after that we count as out."""
    check_interval: float = 5.0
    """The time from one look at the clock, or from one undecided self-ping, until the next."""


TIMING = Timing()
"""The times that we promise users."""


async def keep_alive(connection: Connection, timing: Timing, wall: Callable[[], float]) -> Fault:
    """Ping the server (XEP-0199) until the connection ends or the server is silent; return why.

    `wall` is a clock that goes on while the machine sleeps, so that we ping the server soon after
    the machine wakes. We also ping it soon if that clock is set. We ping it more often if it allows
    only a short silence (XEP-0478).
    """
    pinged, idle = wall(), connection.offer.idle_seconds
    interval = timing.ping_interval if idle is None else min(timing.ping_interval, idle / 2)
    while not connection.ended.done():
        await asyncio.wait((connection.ended,), timeout=timing.check_interval)
        if abs(wall() - pinged) < interval:
            continue
        pinged = wall()
        with suppress(ConnectionFailedError):  # `ended` has the reason
            if not await answers(connection, timing.ping_deadline):
                return faults.of_silence(Stage.STANDING, timing.ping_deadline, connection.place)
    return connection.ended.result()
