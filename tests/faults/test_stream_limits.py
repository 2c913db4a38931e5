"""The edges of what one stream takes in, on a real socket."""

import asyncio
import socket
from xml.etree.ElementTree import Element

from bridge.wire.xmlstream import StanzaTooLongError
from bridge.xmpp.link.stream import (
    MAX_NEGOTIATION_BYTES,
    MAX_UNSENT_BYTES,
    Stream,
)
from tests.faults.scripted_server import HEADER

LIMIT_SECONDS = 10.0


class Peer:
    """A stream, and the socket at its other end."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        self.reasons: list[BaseException | None] = []
        self.ended = asyncio.Event()
        self.stream = Stream("localhost", self.elements.append, self._lost, self._trace)

    def _trace(self, direction: str, xml: Element | str, raw: bytes) -> None:
        """What is traced is another test's."""

    def _lost(self, reason: BaseException | None) -> None:
        self.reasons.append(reason)
        self.ended.set()

    async def take(self, data: bytes) -> None:
        """Let the stream have `data` and then the end, and wait for that."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        with theirs:
            theirs.setblocking(False)
            await loop.create_connection(lambda: self.stream, sock=ours)
            async with asyncio.timeout(LIMIT_SECONDS):
                sending = asyncio.create_task(loop.sock_sendall(theirs, data))
                await asyncio.wait(
                    (sending, asyncio.create_task(self.ended.wait())),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not self.ended.is_set():
                    await sending
                    theirs.shutdown(socket.SHUT_WR)
                    await self.ended.wait()
            await asyncio.gather(sending, return_exceptions=True)


def message_of(size: int) -> bytes:
    """A header and a message that have `size` bytes together."""
    start, end = f"{HEADER}<message><body>", "</body></message>"
    return (start + "x" * (size - len(start) - len(end)) + end).encode()


async def test_a_login_that_goes_on_and_on_ends_the_stream() -> None:
    peer = Peer()
    await peer.take(message_of(MAX_NEGOTIATION_BYTES) + b" ")
    assert isinstance(peer.reasons[0], StanzaTooLongError)
    assert len(peer.elements) == 1


async def test_what_a_server_does_not_read_is_kept_up_to_a_bound() -> None:
    peer = Peer()
    ours, theirs = socket.socketpair()
    with theirs:
        await asyncio.get_running_loop().create_connection(lambda: peer.stream, sock=ours)
        transport = peer.stream.transport
        assert transport is not None
        body = Element("{jabber:client}body")
        body.text = "x" * 1_000_000
        while transport.get_write_buffer_size() + 1_000_100 < MAX_UNSENT_BYTES:
            assert peer.stream.write(body)
            assert peer.reasons == []
        peer.stream.write(body)
        peer.stream.write(body)
        assert isinstance(peer.reasons[0], TimeoutError)
        async with asyncio.timeout(LIMIT_SECONDS):
            while peer.stream.transport is not None:
                peer.ended.clear()
                await peer.ended.wait()
