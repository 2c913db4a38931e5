"""The conversation before a stream stands: what is said, and the one answer that may come to it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from xml.etree.ElementTree import Element

from bridge.xmpp import stanzas
from bridge.xmpp.inquiries import UnlessEnded


class UnexpectedElementError(Exception):
    """The server said something else than an answer; the message is its name."""


class Negotiation:
    """What comes on one stream, kept until it is asked for."""

    def __init__(self, send: Callable[[Element], None], unless_ended: UnlessEnded) -> None:
        self.send = send
        self._unless_ended = unless_ended
        self.over = False
        """Whether the stream stands: what comes from then on is for others."""
        self._inbox: deque[Element] = deque()
        self._awaited: asyncio.Future[Element] | None = None

    def receive(self, element: Element) -> None:
        """Take in what the server says next."""
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(element)
        else:
            self._inbox.append(element)

    async def features(self) -> Element:
        """Return the features that the server offers next."""
        return await self.next((f"{{{stanzas.STREAMS}}}features",))

    async def exchange(self, element: Element, *, expected: tuple[str, ...]) -> Element:
        """Send an element and return the answer: one of those `expected`."""
        self.send(element)
        return await self.next(expected)

    async def next(self, expected: tuple[str, ...]) -> Element:
        """Return what comes next; raises `UnexpectedElementError` for what is not `expected`."""
        if self._inbox:
            element = self._inbox.popleft()
        else:
            self._awaited = asyncio.get_running_loop().create_future()
            element = await self._unless_ended(self._awaited)
        if element.tag not in expected:
            raise UnexpectedElementError(element.tag.rpartition("}")[2])
        return element

    def forget(self) -> None:
        """Drop whatever came and was not asked for."""
        self._inbox.clear()

    def end(self) -> Iterable[Element]:
        """Let others take over; return whatever came and was not asked for."""
        self.over = True
        return self._inbox
