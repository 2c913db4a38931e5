"""Asks occupants for what `bridge.xmpp.checks.diagnosis` needs to know."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from bridge.wire import names
from bridge.xmpp.checks.conduct import namesakes
from bridge.xmpp.checks.diagnosis import PING_SECONDS
from bridge.xmpp.checks.evidence import Ping
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.queries import disco, iq_errors, ping


async def ping_alike(membership: Membership, occupant: Occupant) -> dict[str, Ping]:
    """Ping an occupant, and any who may be the same program; return the results by nickname."""
    everybody = [occupant, *namesakes(membership.status(), occupant)]
    pings: dict[str, Ping] = {}
    with suppress(NotInRoomError, ConnectionFailedError):  # the status says so
        connection, kind = membership.connection, iq_errors.TargetKind.OCCUPANT
        targets = (iq_errors.Target(kind, who.jid, membership.occupant) for who in everybody)
        asking = (ping.ping_compared(connection, it, PING_SECONDS) for it in targets)
        for who, compared in zip(everybody, await asyncio.gather(*asking), strict=True):
            pong, own = compared.pong, compared.own
            alone = own is not None and own.in_room is ping.Verdict.IN
            result = Ping(pong.seconds, pong.error, compared.verdict, alone)
            pings[who.nickname] = result
    return pings


class Declared(NamedTuple):
    """What occupants declare themselves to be."""

    programs: dict[str, bool]
    """Whether an occupant is a program, by nickname; occupants who do not say are left out."""
    bridges: frozenset[str]
    """The nicknames of other debug bridges."""


async def declared_by(membership: Membership, nicknames: Collection[str]) -> Declared:
    """Ask occupants what they are."""
    status = membership.status()
    asked = [it for it in (*status.occupants, *status.unlisted) if it.nickname in nicknames]
    with suppress(NotInRoomError, ConnectionFailedError):  # the status says so
        connection = membership.connection
        asking = (disco.ask(connection, it.jid, names.DISCO_INFO, PING_SECONDS) for it in asked)
        answers = map(disco.description_in, await asyncio.gather(*asking))
        pairs = [*zip((occupant.nickname for occupant in asked), answers, strict=True)]
        says = {name: it.is_program for name, it in pairs if it.is_program is not None}
        return Declared(says, frozenset(name for name, it in pairs if it.is_bridge))
    return Declared({}, frozenset())
