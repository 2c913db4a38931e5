"""Answering a server that asks what has come (XEP-0198, section 4): once for all of a moment.

A server may ask after each stanza, and the answer is a packet and a turn for both sides, in the
middle of whatever comes next. Prosody and ejabberd do not ask again while an answer is owed.
"""

import asyncio
from collections.abc import Callable

from bridge.xmpp.management import Management

DELAY_SECONDS = 0.05
"""From the server's question to the answer. Servers are patient: ejabberd closes after 60 s
(`ack_timeout`), Prosody takes note after 30 s (`smacks_max_ack_delay`)."""

MAX_UNANSWERED = 25
"""Stanzas after which an answer that is owed is given at once. Of those not acknowledged,
MongooseIM keeps 100 (`buffer_max`), Prosody 500 (`smacks_max_queue_size`); with more, the session
cannot be taken up again, or is ended."""


class Acknowledgements:
    """Counts what came on one stream, and lets the server know by `tell` when it has asked."""

    def __init__(self, management: Management, tell: Callable[[int], object]) -> None:
        self.management = management
        self._tell = tell
        self._untold = 0
        self._owed: asyncio.TimerHandle | None = None

    def count(self) -> None:
        """Note one more stanza, when it has been dealt with."""
        self.management.count()
        self._untold += 1
        if self._owed is not None and self._untold >= MAX_UNANSWERED:
            self._answer()

    def owe(self) -> None:
        """The server has asked: answer soon."""
        if self._owed is None:
            loop = asyncio.get_running_loop()
            self._owed = loop.call_later(DELAY_SECONDS, self._answer)

    def settle(self) -> None:
        """Tell now what has come since the last answer.

        At the end of a stream a server lets the senders know of what it believes unheard.
        """
        if self._untold:
            self._answer()

    def stop(self) -> None:
        """Answer no more by itself."""
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _answer(self) -> None:
        self.stop()
        self._untold = 0
        self._tell(self.management.handled)
