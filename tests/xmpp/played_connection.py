import asyncio
from collections.abc import Mapping
from typing import TypeAlias, cast
from xml.etree.ElementTree import Element

from bridge.wire.names import StanzaError
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.faults import ConnectionFailedError, Fault, Place
from tests.xmpp.place import PLACE

Answer: TypeAlias = Element | Exception | None
"""What is answered; None is silence."""
RESULT = Element("{jabber:client}iq", {"type": "result"})


def refused(condition: str, text: str | None = None) -> IqError:
    return IqError(StanzaError(condition, text))


class PlayedConnection:
    """Has an answer for each namespace that is asked about, or for each address that is asked."""

    def __init__(self, answers: Mapping[str, Answer], place: Place = PLACE) -> None:
        self.answers = answers
        self.place = place
        self.asked: list[tuple[str | None, str]] = []
        self.sent: list[Element] = []
        self.received = 0
        self.seconds = 0.0
        self.ended: asyncio.Future[Fault] = asyncio.get_running_loop().create_future()

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)

    def answer(self, to: str | None, namespace: str) -> Answer:
        return self.answers.get(namespace, self.answers.get(to or ""))

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Answer."""
        namespace = payload.tag[1:].partition("}")[0]
        self.asked.append((to, namespace))
        await asyncio.sleep(self.seconds)
        answer = self.answer(to, namespace)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer

    def send(self, element: Element) -> None:
        self.sent.append(element)

    async def unless_ended(self, answer: "asyncio.Future[object]") -> object:
        await asyncio.wait((answer, self.ended), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ConnectionFailedError(self.ended.result())
        return answer.result()
