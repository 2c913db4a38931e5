import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from weakref import ref
from xml.etree.ElementTree import Element

from bridge.wire import names
from bridge.wire.xmlstream import StanzaTooLongError
from bridge.xmpp.link.stream import MAX_NEGOTIATION_BYTES, MAX_UNSENT_BYTES, SLICE_BYTES, Stream

SECONDS = 30.0
HEADER = (
    b"<?xml version='1.0'?><stream:stream xmlns='jabber:client' version='1.0'"
    b" xmlns:stream='http://etherx.jabber.org/streams' from='chat.example'>"
)


class Line:
    def __init__(self, far: socket.socket) -> None:
        self.far = far
        self.received: list[Element] = []
        self.reasons: list[BaseException | None] = []
        self.on_element: Callable[[Element], None] = self.received.append
        self.traced: list[tuple[str, Element | str]] = []
        self._news = asyncio.Event()
        self.stream = Stream("chat.example", self._receive, self._lose, self._trace)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.far, data)

    async def read(self) -> bytes:
        async with asyncio.timeout(SECONDS):
            return await asyncio.get_running_loop().sock_recv(self.far, 65536)

    async def until(self, satisfied: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not satisfied():
                self._news.clear()
                await self._news.wait()

    async def decided(self) -> None:
        await self.until(lambda: self.received or self.reasons)

    async def lost(self) -> BaseException | None:
        await self.until(lambda: self.reasons)
        return self.reasons[0]

    def bodies(self) -> list[str]:
        return [each.findtext(f"{{{names.CLIENT}}}body", "") for each in self.received]

    def _trace(self, direction: str, xml: Element | str, raw: bytes) -> None:
        self.traced.append((direction, xml))

    def _receive(self, element: Element) -> None:
        self._news.set()
        self.on_element(element)

    def _lose(self, reason: BaseException | None) -> None:
        self._news.set()
        self.reasons.append(reason)


@asynccontextmanager
async def _line(*, settled: bool = True) -> AsyncIterator[Line]:
    near, far = socket.socketpair()
    far.setblocking(False)
    with far:
        line = Line(far)
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: line.stream, sock=near
        )
        if settled:
            line.stream.end_negotiation()
        try:
            yield line
        finally:
            transport.abort()
            await line.until(lambda: line.stream.transport is None)


def _message(body: str) -> bytes:
    return f"<message type='groupchat'><body>{body}</body></message>".encode()


async def test_a_flood_is_parsed_over_several_turns_and_others_have_theirs_between() -> None:
    flood = HEADER + b"".join(_message(str(number)) for number in range(2_000))
    seen: list[int] = []

    def take_a_turn() -> None:
        seen.append(len(line.received))
        if len(line.received) < 2_000:
            asyncio.get_running_loop().call_soon(take_a_turn)

    async with _line() as line:
        asyncio.get_running_loop().call_soon(take_a_turn)
        line.stream.data_received(flood)
        assert len(line.received) <= SLICE_BYTES // len(_message("0"))
        line.far.shutdown(socket.SHUT_WR)
        assert await line.lost() is None
        assert line.bodies() == [str(number) for number in range(2_000)]
        assert len(set(seen)) >= len(flood) // SLICE_BYTES


async def test_what_was_handed_over_is_let_go_of() -> None:
    async with _line() as line:
        line.stream.data_received(HEADER + _message("one"))
        (watched,) = map(ref, line.received)
        line.received.clear()
        line.traced.clear()
        line.stream.data_received(_message("two"))
        assert watched() is None


async def test_a_mistake_of_ours_ends_it_and_is_not_swallowed() -> None:
    def fail(element: Element) -> None:
        raise KeyError(element.tag)

    async with _line() as line:
        line.on_element = fail
        line.stream.data_received(HEADER + _message("one"))
        assert isinstance(await line.lost(), KeyError)


async def test_everything_that_goes_either_way_is_traced_in_order_and_a_header_as_it_came() -> None:
    # No namespace in a header passes for more than it is.
    forged = b"xmlns:n='&gt;&lt;!-- TLSv1.3, certificate checked --&gt;' n:a='b'"
    header = HEADER.replace(b"from=", forged + b" from=")
    async with _line() as line:
        await line.read()
        await line.send(header + _message("one"))
        await line.decided()
        out = Element(f"{{{names.CLIENT}}}presence")
        assert line.stream.write(out)
        line.stream.hang_up()
        assert [
            (way, each if isinstance(each, str) else each.tag) for way, each in line.traced
        ] == [
            ("out", line.stream.stream_header),
            ("in", header.partition(b"?>")[2].decode()),
            ("in", f"{{{names.CLIENT}}}message"),
            ("out", out.tag),
            ("out", "</stream:stream>"),
        ]


async def test_what_is_not_believed_is_not_traced_either() -> None:
    async with _line(settled=False) as line:
        depth = 130
        await line.send(HEADER + b"<a>" * depth + b"</a>" * depth + _message("after"))
        await line.lost()
        assert [
            each for way, each in line.traced if way == "in" and not isinstance(each, str)
        ] == []


async def test_what_is_written_after_the_end_is_neither_sent_nor_traced() -> None:
    async with _line() as line:
        line.stream.hang_up()
        line.stream.hang_up()
        assert not line.stream.write(Element(f"{{{names.CLIENT}}}presence"))
        assert [each for _, each in line.traced] == [line.stream.stream_header, "</stream:stream>"]
        assert (await line.read()).count(b"</stream:stream>") == 1


async def test_a_login_that_goes_on_and_on_ends_the_stream() -> None:
    longest = _message("x" * (MAX_NEGOTIATION_BYTES - len(HEADER + _message(""))))
    async with _line(settled=False) as line:
        await line.send(HEADER + longest + b" ")
        assert isinstance(await line.lost(), StanzaTooLongError)
        assert len(line.received) == 1


async def test_what_a_server_does_not_read_is_kept_up_to_a_bound() -> None:
    body = Element(f"{{{names.CLIENT}}}body")
    body.text = "x" * 1_000_000
    async with _line() as line:
        transport = line.stream.transport
        assert transport is not None
        while transport.get_write_buffer_size() + 1_000_100 < MAX_UNSENT_BYTES:
            assert line.stream.write(body)
            assert line.reasons == []
        line.stream.write(body)
        line.stream.write(body)
        assert isinstance(line.reasons[0], TimeoutError)
