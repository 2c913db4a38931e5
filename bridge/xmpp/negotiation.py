"""The conversation before a stream stands: what is said, and the one answer that may come to it."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from xml.etree.ElementTree import Element

from bridge.xmpp import stanzas
from bridge.xmpp.inquiries import UnlessEnded

MAX_EARLY_STANZAS = 100
"""Kept of those that come before a session has begun: whoever knows our full JID may send them,
and nobody of the room does, since we are not in it."""

MAX_EARLY_CHARACTERS = 256 * 1024
"""Of all of these together, as XML."""


class UnexpectedElementError(Exception):
    """The server said something else than an answer; the message is its name."""


class Negotiation:
    """What comes on one stream, kept until it is asked for."""

    def __init__(self, send: Callable[[Element], None], unless_ended: UnlessEnded) -> None:
        self.send = send
        self._unless_ended = unless_ended
        self.over = False
        """Whether the stream stands: what comes from then on is for others."""
        self.early: list[Element] = []
        """Stanzas that came before the session had begun, to be dealt with once it has."""
        self._early_characters = 0
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

    async def next_beside_stanzas(self, expected: tuple[str, ...]) -> Element:
        """Return the first element that is `expected`, and keep the stanzas that come before it.

        Raises `UnexpectedElementError` for anything else.
        """
        while (element := await self.next((*expected, *stanzas.STANZAS))).tag not in expected:
            self.keep(element)
        return element

    def keep(self, stanza: Element) -> None:
        """Keep a stanza that came early; one beyond the bounds is dropped."""
        if len(self.early) < MAX_EARLY_STANZAS:
            self._early_characters += len(stanzas.xml_of(stanza))
            if self._early_characters <= MAX_EARLY_CHARACTERS:
                self.early.append(stanza)

    def forget(self) -> None:
        """Drop whatever came and was not asked for."""
        self._inbox.clear()

    def end(self) -> Iterable[Element]:
        """Let others take over; return whatever came and was not asked for."""
        self.over = True
        return self._inbox
