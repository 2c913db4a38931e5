"""Folds the changes of what presence carries: clients often send several within seconds."""

import asyncio
from collections.abc import Callable

from bridge.xmpp.model.events import OccupantJoined

FOLD_SECONDS = 10.0
"""The time after such a change in which further ones of the same occupant are folded into one.
Clients add their capabilities and their avatar one after the other."""


class Payloads:
    """Hands on one change of an occupant's payload in `FOLD_SECONDS`, and at their end the last."""

    def __init__(self, hand_on: Callable[[OccupantJoined], None]) -> None:
        self._hand_on = hand_on
        self._later: dict[str, OccupantJoined | None] = {}
        """The presence to hand on when the time of an occupant JID is over; None: none."""

    def folds(self, presence: OccupantJoined) -> bool:
        """Take a change of the payload alone; return whether it waits for further ones."""
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
