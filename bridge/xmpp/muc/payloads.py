"""Folds the changes of a presence's payload: clients often send several within seconds."""

import asyncio
from collections.abc import Callable

from bridge.xmpp.model.events import OccupantJoined

FOLD_SECONDS = 10.0
"""Further changes of an occupant's payload within this time are folded into one. Clients add
their capabilities and their avatar one after the other."""


class Payloads:
    """Hands on an occupant's first change of the payload, and after `FOLD_SECONDS` the last one."""

    def __init__(self, hand_on: Callable[[OccupantJoined], None]) -> None:
        self._hand_on = hand_on
        self._later: dict[str, OccupantJoined | None] = {}
        """The presence to hand on when an occupant JID's `FOLD_SECONDS` are over; None if there was
        no further change."""

    def folds(self, presence: OccupantJoined) -> bool:
        """Take a change of the payload alone; return whether it is held back for now."""
        jid = presence.from_
        if jid in self._later:
            self._later[jid] = presence
            return True
        self._later[jid] = None
        asyncio.get_running_loop().call_later(FOLD_SECONDS, self._end, jid)
        return False

    def drop(self, jid: str) -> None:
        """Forget the change that waits: a later presence of the occupant has replaced it."""
        if self._later.get(jid) is not None:
            self._later[jid] = None

    def _end(self, jid: str) -> None:
        if (presence := self._later.pop(jid, None)) is not None:
            self._hand_on(presence)
