"""Pings: does the server still answer, and does the room still know us.

A half-open connection and a ghost in a room say nothing by themselves, so both are asked: the
server now and then (XEP-0199), a room after a silence, by a ping to ourselves through it
(XEP-0410).
"""

import asyncio
from dataclasses import dataclass
from enum import Enum

from bridge.xmpp import faults
from bridge.xmpp.connection import Connection
from bridge.xmpp.faults import Fault, Stage


@dataclass(frozen=True)
class Timing:
    """When to ping, and how long a silence may last; all in seconds."""

    ping_interval: float = 30.0
    """Between two pings to the server."""
    ping_deadline: float = 15.0
    """For an answer to any ping."""
    idle_before_ping: float = 60.0
    """How long a room may be silent before it is sent a self-ping."""
    max_unconfirmed: float = 120.0
    """How long a room may leave it open whether we are in it; then we count as out."""
    check_interval: float = 5.0
    """Between two self-pings that decide nothing."""


TIMING = Timing()
"""What users are promised."""


class Verdict(Enum):
    """What a self-ping says."""

    IN = "in"
    OUT = "out"
    UNDECIDED = "undecided"


def verdict(condition: str | None) -> Verdict:
    """Read the answer to a self-ping: its error condition, or None for a result (XEP-0410, 3.1).

    An answer that another of our sessions under the same nickname gave means that we are in; a
    room that cannot be reached decides nothing.
    """
    match condition:
        case None | "service-unavailable" | "feature-not-implemented":
            return Verdict.IN
        case "remote-server-not-found" | "remote-server-timeout":
            return Verdict.UNDECIDED
        case _:
            return Verdict.OUT


async def keep_alive(connection: Connection, timing: Timing) -> Fault:
    """Ping the server (XEP-0199) until the connection has ended, or ought to; return the reason."""
    while not connection.ended.done():
        await asyncio.wait((connection.ended,), timeout=timing.ping_interval)
        try:
            async with asyncio.timeout(timing.ping_deadline):
                await connection.ping(None)
        except TimeoutError:
            return faults.of_silence(Stage.STANDING, timing.ping_deadline, connection.place)
    return connection.ended.result()


async def self_ping(connection: Connection, occupant: str, seconds: float) -> Verdict:
    """Ping ourselves through the room and wait `seconds` at most for the answer."""
    try:
        async with asyncio.timeout(seconds):
            return verdict(await connection.ping(occupant))
    except TimeoutError:
        return Verdict.UNDECIDED
