"""A room that talks as fast as anybody can listen: a scripted server in a thread of ours.

A real server takes the larger part of a processor for two thousand messages a second, which on a
small machine is taken from the contenders. This one sends what was written down beforehand. It
speaks plaintext, which costs all contenders alike nothing.
"""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from time import perf_counter
from typing import Any, Self, TypeVar

from tests.faults.scripted_server import (
    DOMAIN,
    NICKNAME,
    ROOM,
    Script,
    ScriptedServer,
    Wire,
    local,
    said,
)

BLOCK = 500
"""Messages written in one go: about 200 kB, more than the socket takes."""
SECONDS = 600.0
"""Limit for a flood."""
Answer = TypeVar("Answer")

MESSAGE = (
    "<message xmlns='jabber:client' type='groupchat' to='bot@localhost/scripted' xml:lang='en'"
    f" from='{ROOM}/Wilma' id='flood-{{0}}'><body>number {{0}}: what somebody says in a room is"
    " about as long as this</body>"
    f"<stanza-id xmlns='urn:xmpp:sid:0' by='{ROOM}' id='archived-{{0}}'/>"
    "<occupant-id xmlns='urn:xmpp:occupant-id:0' id='dd72603deec90a38ba552f7c68cbcc61'/></message>"
)
"""A message as Prosody passes it on, with the ids that it adds."""


class Hall:
    """The room. One contender at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server = ScriptedServer(Script(stand=self._stand))
        self._answered: dict[str, asyncio.Future[float]] = {}
        self._floods = 0
        self._said = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._server.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._server.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def environment(self) -> Mapping[str, str]:
        return self._server.environment()

    def flood(self, messages: int) -> float:
        """Say so many things; the seconds from the first byte until all are taken in.

        A ping follows them. Stanzas are worked off in order, so its answer, even a refusal, says
        that all before it were.
        """
        return self._do(self._flood(messages))

    def say(self, body: str) -> float:
        """Say one thing; the moment of it on the clock of `perf_counter`."""

        async def say() -> float:
            now = perf_counter()
            self._server.wires[-1].send(said("Wilma", body))
            return now

        return self._do(say())

    def _do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    async def _flood(self, messages: int) -> float:
        wire = self._server.wires[-1]
        self._floods += 1
        id_ = f"taken-in-{self._floods}"
        answered = self._answered[id_] = self._loop.create_future()
        started = perf_counter()
        for first in range(0, messages, BLOCK):
            block = range(self._said + first, self._said + min(first + BLOCK, messages))
            wire.send("".join(map(MESSAGE.format, block)))
            await wire.sent()
        self._said += messages
        wire.send(f"<iq type='get' id='{id_}' from='{DOMAIN}'><ping xmlns='urn:xmpp:ping'/></iq>")
        ended: float = await answered
        return ended - started

    async def _stand(self, wire: Wire) -> None:
        while True:
            try:
                element = await wire.element()
            except TimeoutError:  # silence is all right while they listen
                continue
            id_, to = element.get("id", ""), element.get("to")
            sender = f" from='{to}'" if to else ""
            match local(element), element.get("type"):
                case "message", "groupchat":
                    body = element.findtext("{jabber:client}body") or ""
                    wire.send(said(NICKNAME, body, id_))
                case "iq", "get" | "set":
                    wire.send(f"<iq type='result' id='{id_}'{sender}/>")
                case "iq", _ if id_ in self._answered:
                    self._answered.pop(id_).set_result(perf_counter())
                case _:
                    pass
