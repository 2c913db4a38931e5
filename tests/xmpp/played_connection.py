import asyncio
from collections.abc import Mapping
from typing import TypeAlias, cast
from xml.etree.ElementTree import Element

from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.faults import Place
from tests.xmpp.place import PLACE

Answer: TypeAlias = Element | Exception | None
"""What is answered; None is silence."""


class PlayedConnection:
    """Has an answer for each namespace that is asked about, or for each address that is asked."""

    def __init__(self, answers: Mapping[str, Answer], place: Place = PLACE) -> None:
        self.answers = answers
        self.place = place
        self.asked: list[tuple[str | None, str]] = []
        self.seconds = 0.0

    @property
    def connection(self) -> Connection:
        return cast(Connection, self)

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        """Answer."""
        assert type_ == "get"
        namespace = payload.tag[1:].partition("}")[0]
        self.asked.append((to, namespace))
        await asyncio.sleep(self.seconds)
        answer = self.answers.get(namespace, self.answers.get(to or ""))
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer
