"""Waits for reflections: the room's own copies of what we said (XEP-0045, section 7.4)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bridge.xmpp.model.events import MessageReceived, SendFailed, Source
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.model.journal import Record


class Reflection(NamedTuple):
    """The room's own copy of what we said: the proof that it was heard."""

    record: Record
    message: MessageReceived
    round_trip_seconds: float


class Reflections:
    """Waits for what one room answers to our messages."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Record]] = {}
        """The answers that have not come yet, by the ids of our messages."""

    @contextmanager
    def expected(self, id_: str) -> Iterator[asyncio.Future[Record]]:
        """Give a future for the answer to our message `id_`: its reflection, or an error."""
        self._waiting[id_] = answer = asyncio.get_running_loop().create_future()
        try:
            yield answer
        finally:
            del self._waiting[id_]

    def take(self, record: Record) -> None:
        """End the wait for an answer if `record` is that answer."""
        if not self._waiting:
            return
        match record.event:
            case MessageReceived(own=True, source=Source.LIVE, id=str(id_)) | SendFailed(id=id_):
                answer = self._waiting.get(id_)
                if answer is not None and not answer.done():
                    answer.set_result(record)

    def give_up(self, fault: Fault) -> None:
        """End every wait with a `ConnectionFailedError`, since no answer will come."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionFailedError(fault))
