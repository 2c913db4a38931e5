"""Asks occupants what `bridge.xmpp.checks.diagnosis` needs to know of them."""

import asyncio
from collections.abc import Collection
from contextlib import suppress

from bridge.xmpp.checks.conduct import namesakes
from bridge.xmpp.checks.diagnosis import PING_SECONDS
from bridge.xmpp.checks.evidence import Ping
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.link import stanzas
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.queries import disco, iq_errors, ping


async def ping_alike(membership: Membership, occupant: Occupant) -> dict[str, Ping]:
    """Ping an occupant, and those who may be the same program; return the results by nickname."""
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


async def programs_among(membership: Membership, nicknames: Collection[str]) -> dict[str, bool]:
    """Ask occupants what they are; return who is a program and who is not, by nickname."""
    status = membership.status()
    asked = [it for it in (*status.occupants, *status.unlisted) if it.nickname in nicknames]
    with suppress(NotInRoomError, ConnectionFailedError):  # the status says so
        connection = membership.connection
        asking = (disco.ask(connection, it.jid, stanzas.DISCO_INFO, PING_SECONDS) for it in asked)
        answers = map(disco.description_in, await asyncio.gather(*asking))
        return {
            occupant.nickname: description.is_program
            for occupant, description in zip(asked, answers, strict=True)
            if description.is_program is not None
        }
    return {}
