"""Waiting for reflections: the room's own copies of what we said (XEP-0045, section 7.4)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bridge.xmpp.model.events import MessageReceived, SendFailed, Source
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.model.journal import Record


@dataclass(frozen=True)
class Reflection:
    """The room's own copy of what we said: the proof that it was heard."""

    record: Record
    message: MessageReceived
    round_trip_seconds: float


class Reflections:
    """What we said in one room and the room has not answered yet, by the ids of our messages."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[Record]] = {}

    @contextmanager
    def expected(self, id_: str) -> Iterator[asyncio.Future[Record]]:
        """Wait for the message of this id: its reflection, or the error that returns it."""
        self._waiting[id_] = answer = asyncio.get_running_loop().create_future()
        try:
            yield answer
        finally:
            del self._waiting[id_]

    def take(self, record: Record) -> None:
        """End the wait for which this record is the answer, if there is one."""
        if not self._waiting:
            return
        match record.event:
            case MessageReceived(own=True, source=Source.LIVE, id=str(id_)) | SendFailed(id=id_):
                answer = self._waiting.get(id_)
                if answer is not None and not answer.done():
                    answer.set_result(record)

    def give_up(self, fault: Fault) -> None:
        """Let all who wait know that nothing will come."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionFailedError(fault))
