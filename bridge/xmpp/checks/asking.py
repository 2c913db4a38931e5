"""Asks occupants for what `bridge.xmpp.checks.diagnosis` needs to know."""

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from bridge.newest import Newest
from bridge.wire import names
from bridge.xmpp.checks.conduct import namesakes
from bridge.xmpp.checks.diagnosis import PING_SECONDS
from bridge.xmpp.checks.evidence import Ping
from bridge.xmpp.errors import NotInRoomError
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.room import Occupant
from bridge.xmpp.muc.membership import Membership
from bridge.xmpp.queries import disco, iq_errors, ping

REMEMBERED_SECONDS = 3_600.0
"""How long an occupant's declaration counts: asking again would reset idle timers."""

MAX_REMEMBERED = 1_000
"""Most occupants whose declarations we remember."""


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


class Declarations:
    """What occupants have declared themselves to be, when they were asked in the last hour."""

    def __init__(self) -> None:
        self._known = Newest[tuple[object, ...], tuple[float, disco.Description]](MAX_REMEMBERED)

    async def ask(self, membership: Membership, occupants: Collection[Occupant]) -> None:
        """Ask occupants what they are, unless they have said so in the last hour."""
        asked = [occupant for occupant in occupants if self._of(occupant) is None]
        with suppress(NotInRoomError, ConnectionFailedError):  # the status says so
            connection = membership.connection
            asking = (disco.ask(connection, it.jid, names.DISCO_INFO, PING_SECONDS) for it in asked)
            answers = map(disco.description_in, await asyncio.gather(*asking))
            for occupant, answer in zip(asked, answers, strict=True):
                self._known.add(_session_of(occupant), (time.monotonic(), answer))

    def of(self, occupants: Collection[Occupant]) -> Declared:
        """Return what these occupants have declared."""
        pairs = [(it.nickname, known) for it in occupants if (known := self._of(it)) is not None]
        says = {name: it.is_program for name, it in pairs if it.is_program is not None}
        return Declared(says, frozenset(name for name, it in pairs if it.is_bridge))

    def _of(self, occupant: Occupant) -> disco.Description | None:
        at, description = self._known.get(_session_of(occupant), (0.0, None))
        return description if time.monotonic() - at <= REMEMBERED_SECONDS else None


def _session_of(occupant: Occupant) -> tuple[object, ...]:
    """Return what tells an occupant from a former owner of the nickname."""
    return occupant.jid, occupant.since, occupant.real_jid, occupant.occupant_id
