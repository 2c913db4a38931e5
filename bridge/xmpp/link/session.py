"""The session on a stream: its negotiation and its stream management.

Until the session is established, each element from the server goes through a `Negotiation`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias
from xml.etree.ElementTree import Element

from bridge.wire import names
from bridge.xmpp.errors import XmppError

RESUMABLE = frozenset({"connection-reset", "connection-timeout"})
"""The conditions after which a session is resumed. After any other, the session itself may be the
cause."""

DELAY_SECONDS = 0.05
"""The time from the server's request to our acknowledgement, so that one acknowledgement answers
all requests that come close together. If no acknowledgement comes, ejabberd closes the stream after
60 s (`ack_timeout`), and Prosody takes note after 30 s (`smacks_max_ack_delay`). Neither sends a
second request before the first is answered."""

MAX_UNANSWERED = 25
"""After this many stanzas, we send a due acknowledgement at once. MongooseIM keeps 100
unacknowledged stanzas (`buffer_max`), Prosody 500 (`smacks_max_queue_size`). With more, the server
ends the session, or cannot resume it."""

_WRAP = 2**32
"""At this number the count of stanzas starts over (XEP-0198, section 4)."""

UnlessEnded: TypeAlias = Callable[["asyncio.Future[Element]"], Awaitable[Element]]
"""Awaits a future that the stream completes; raises `ConnectionFailedError` if the stream ends
first."""


class UnexpectedElementError(XmppError):
    """The server sent an element where another was due; the message is the name of the element."""


class StreamManagement:
    """Counts the stanzas from the server and acknowledges them on request (XEP-0198, section 4).

    We do not ask the server to acknowledge our stanzas: the room's reflection confirms our
    messages, and we send nothing twice. `acknowledge` sends a count to the server.
    """

    def __init__(
        self, acknowledge: Callable[[int], object], jid: str, id_: str | None, handled: int = 0
    ) -> None:
        self.jid = jid
        """Our full JID in the session."""
        self.id = id_
        """The id with which we resume the session; None if the server does not allow that."""
        self.handled = handled
        """The number of stanzas that came and were processed, modulo 2^32."""
        self._acknowledge = acknowledge
        self._unacknowledged = 0
        self._due: asyncio.TimerHandle | None = None

    def count(self) -> None:
        """Count one more stanza; call this once it has been processed."""
        self.handled = (self.handled + 1) % _WRAP
        self._unacknowledged += 1
        if self._due is not None and self._unacknowledged >= MAX_UNANSWERED:
            self.answer()

    def answer_soon(self) -> None:
        """Acknowledge within `DELAY_SECONDS`: the server has requested it."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(DELAY_SECONDS, self.answer)

    def stop(self) -> None:
        """Cancel the acknowledgement that is due, if there is one."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def answer(self) -> None:
        """Acknowledge the stanzas that were processed.

        This is done at the end of a stream too: the server sends an error to the sender of each
        stanza that was not acknowledged.
        """
        self.stop()
        self._unacknowledged = 0
        self._acknowledge(self.handled)


class Negotiation:
    """Until the session is established, keeps each element from the server until a caller asks."""

    def __init__(self, send: Callable[[Element], None], unless_ended: UnlessEnded) -> None:
        self.send = send
        self._unless_ended = unless_ended
        self.over = False
        """Whether the session is established; from then on no elements come here."""
        self.early: list[Element] = []
        """Stanzas that came before the session had begun; we process them once it has. Others who
        know our full JID may send them. `stream.MAX_NEGOTIATION_BYTES` limits their size."""
        self._inbox: deque[Element] = deque()
        self._awaited: asyncio.Future[Element] | None = None

    def receive(self, element: Element) -> None:
        """Take in the next element from the server."""
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(element)
        else:
            self._inbox.append(element)

    async def features(self) -> Element:
        """Return the stream features that come next."""
        return await self.next((names.FEATURES,))

    async def exchange(self, element: Element, *, expected: tuple[str, ...]) -> Element:
        """Send an element and return the answer, which has one of the tags `expected`."""
        self.send(element)
        return await self.next(expected)

    async def next(self, expected: tuple[str, ...], *, among_stanzas: bool = False) -> Element:
        """Return the next element; raises `UnexpectedElementError` for other tags.

        With `among_stanzas`, stanzas that come before it are kept in `early`.
        """
        while True:
            if self._inbox:
                element = self._inbox.popleft()
            else:
                self._awaited = asyncio.get_running_loop().create_future()
                element = await self._unless_ended(self._awaited)
            if element.tag in expected:
                return element
            if not (among_stanzas and element.tag in names.STANZAS):
                raise UnexpectedElementError(names.local(element.tag))
            self.early.append(element)

    def forget(self) -> None:
        """Drop the elements for which no caller has asked."""
        self._inbox.clear()

    def end(self) -> Iterable[Element]:
        """Declare the session established; return the elements for which no caller has asked."""
        self.over = True
        return self._inbox
