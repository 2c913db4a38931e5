"""Pings an address (XEP-0199), and finds out who is silent if no answer comes."""

import asyncio
import math
import time
from enum import Enum
from typing import NamedTuple

from bridge.wire import names
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.iq_errors import (
    IN_ROOM,
    DecodedError,
    Target,
    TargetKind,
    of_error,
    of_silence,
)

ALONE_SECONDS = 1.0
"""Silence after which we ping our server too, in seconds. Most answers come sooner, so most pings
need only one stanza."""

MUCH_BYTES = 8 * 1024
"""If a server has sent this many bytes during a ping, the connection lives, and the answer may
still come. Even the slowest network carries more in that time."""


class Verdict(Enum):
    """Whether we are in the room, as far as a self-ping proves it."""

    IN = "in"
    OUT = "out"
    GONE = "gone"
    """The service of the room is gone, and the room with it."""
    UNDECIDED = "undecided"


_OF_SELF = {
    Verdict.IN: "The room counts us among its occupants.",
    Verdict.OUT: "The room does not count us among its occupants, as the answer shows.",
    Verdict.GONE: "The service of the room cannot be reached: a server answers in its place.",
    Verdict.UNDECIDED: "Our server answers, and cannot reach the room's server.",
}


class Pong(NamedTuple):
    """The result of one ping."""

    target: Target
    seconds: float | None
    """The time until the answer or an error came; None if nothing came in time."""
    error: DecodedError | None

    @property
    def reachable(self) -> bool:
        """Whether the answer proves that the target is there."""
        return self.error is None or self.error.reachable

    @property
    def in_room(self) -> Verdict | None:
        """What a self-ping proves; None for another target."""
        if self.target.kind is not TargetKind.SELF:
            return None
        return Verdict.IN if self.error is None else Verdict(self.error.outcome)


class Comparison(NamedTuple):
    """The results of a ping, and of the further pings that show who is silent."""

    pong: Pong
    server: Pong | None = None
    """The result of a ping to our own server, if the address was silent."""
    own: Pong | None = None
    """The result of a ping to ourselves through the room, if an occupant was silent."""

    @property
    def verdict(self) -> str:
        """What the results mean, in a sentence; if no answer came, who is silent."""
        pong, own, server = self.pong, self.own, self.server
        if pong.seconds is not None:
            if pong.in_room is not None:
                return _OF_SELF[pong.in_room]
            if pong.error is None:
                return "It answers."
            if pong.reachable:
                return "It is there: it answers with an error."
            return "An error came back, which does not prove that it is there."
        if own is not None and own.seconds is not None and own.in_room is not None:
            alone = "The occupant alone is silent: the room and our server answer."
            return alone if own.in_room is Verdict.IN else _OF_SELF[own.in_room]
        if server is None or server.seconds is None:
            return "Our own server is silent, or the connection to it is dead."
        if pong.target.own:
            return "The room, or the service it is on, is silent: our server answers."
        return "The address is silent, or its own server is: our server answers."


async def ping(connection: Connection, target: Target, seconds: float) -> Pong:
    """Ping `target` and wait `seconds` at most; raises `ConnectionFailedError`.

    If a room seems not to know pings, its service may be gone. Then we ask the service in the time
    that is left.
    """
    started = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            await connection.request("get", target.address, stanzas.ping())
    except IqError as refused:
        took, error = time.perf_counter() - started, refused.error
        kind, service = target.kind, names.domain_of(target.address)
        if kind in IN_ROOM and error.condition == "service-unavailable":
            left = min(seconds - took, disco.GONE_SECONDS)
            if await disco.is_gone(connection, service, error, left):
                kind = TargetKind.GONE
        decoded = of_error(error.condition, error.text, kind, target.address, "pings")
        return Pong(target, took, decoded)
    except TimeoutError:
        return Pong(target, None, of_silence(target.kind, target.address, seconds))
    return Pong(target, time.perf_counter() - started, None)


async def answers(connection: Connection, seconds: float) -> bool:
    """Whether our server answers a ping; if not, it has sent hardly anything for `seconds`.

    The answer comes after everything else that the server has to send, such as a stanza of 100 MB.
    Raises `ConnectionFailedError`.
    """
    server = Target(TargetKind.SERVER, connection.place.domain)
    received = -MUCH_BYTES
    while connection.received - received >= MUCH_BYTES:
        received = connection.received
        if (await ping(connection, server, seconds)).seconds is not None:
            return True
    return False


async def ping_patiently(connection: Connection, target: Target, seconds: float) -> Pong:
    """Ping `target` and wait `seconds`, or longer if our server sends much meanwhile.

    The answer may come after all of that. Raises `ConnectionFailedError`.
    """
    received = connection.received
    asked = asyncio.create_task(ping(connection, target, math.inf))
    waiting: set[asyncio.Task[Pong] | asyncio.Task[bool]] = {asked}
    try:
        await asyncio.wait(waiting, timeout=seconds)
        if not asked.done() and connection.received - received >= MUCH_BYTES:
            waiting.add(asyncio.create_task(answers(connection, seconds)))
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            return await asked
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    return Pong(target, None, of_silence(target.kind, target.address, seconds))


async def ping_compared(connection: Connection, target: Target, seconds: float) -> Comparison:
    """Ping `target`; if it is silent, ping further addresses to find out who is silent.

    These are our own server and, if the target is another occupant, ourselves in the room. This
    takes `seconds` at most. Raises `ConnectionFailedError`.
    """
    alone = min(ALONE_SECONDS, seconds / 2)
    asked = asyncio.ensure_future(ping(connection, target, seconds))
    try:
        await asyncio.wait({asked}, timeout=alone)
        if asked.done() or target.kind is TargetKind.SERVER:
            return Comparison(await asked)
        domain = connection.place.domain
        others = [Target(TargetKind.SERVER, prepared(domain) or domain)]
        if target.kind is TargetKind.OCCUPANT:
            others.append(Target(TargetKind.SELF, target.own, target.own))
        pings = (ping(connection, other, seconds - alone) for other in others)
        return Comparison(*await asyncio.gather(asked, *pings))
    finally:
        asked.cancel()
