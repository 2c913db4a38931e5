"""How much one call may do at a stretch, and in all: one process answers everybody."""

import asyncio

SLICE_COST = 500_000
"""What is done in one turn of the loop, in characters looked at: a few milliseconds."""

PIECE_COST = 500
"""What each event, chapter or stanza costs beside its characters."""

SECONDS = 20.0
"""After which a search ends with what it has found, and says where to go on."""


class Budget:
    """One call's."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + SECONDS
        self._spent = 0

    @property
    def exhausted(self) -> bool:
        """Whether the call has worked as long as it may."""
        return self._loop.time() > self._until

    async def spend(self, characters: int) -> None:
        """Count one piece of so many characters; now and then others get their turn."""
        self._spent += PIECE_COST + characters
        if self._spent > SLICE_COST:
            self._spent = 0
            await asyncio.sleep(0)
