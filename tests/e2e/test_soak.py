import asyncio
import json
from asyncio.subprocess import Process
from itertools import cycle, islice
from pathlib import Path

import pytest

from bridge.mcp.framing import Frame, Framer, Framing, encode
from tests.e2e.bridge_process import reading, unread
from tests.servers.server import XmppServer

REQUESTS = 22_000
MORE_REQUESTS = 1_000_000
WARM_REQUESTS = 6_000
"""After so many, every cache and every bounded record has what it will ever have."""
REQUESTS_AT_ONCE = 1_000
"""Written in one go; the next go waits for all their replies."""
GROWTH_KIB = 2 * 1024
"""What may be added between the two measurements: 130 bytes a request, where a leak of one call's
own objects would be a kilobyte and more. On idle cores it is less than 1 MiB."""
ROUND_SECONDS = 30.0
"""Limit for the replies to one go; it takes 0.3 s on idle cores."""

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
CANCELLED = "notifications/cancelled"


def asks(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": "ID", "method": method, "params": params}


def calls(name: str, **arguments: object) -> dict[str, object]:
    return asks("tools/call", name=name, arguments=arguments)


MIX: tuple[object, ...] = (
    asks("echo", message="bare"),
    calls("echo", message="handshake era"),
    asks("tools/call", name="echo", arguments={"message": "2026"}, _meta=META),
    asks("xmppStatus"),
    calls("xmppStatus"),
    asks("tools/list", _meta=META),
    asks("server/discover", _meta=META),
    asks("resources/list"),
    asks("resources/read", uri="bridge://room/occupants"),
    asks("resources/subscribe", uri="bridge://status"),
    asks("resources/unsubscribe", uri="bridge://status"),
    asks("prompts/get", name="diagnose-room", arguments={"problem": "soak"}),
    asks(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "diagnose-room"},
        argument={"name": "nickname", "value": "M"},
    ),
    [asks("ping"), {"jsonrpc": "2.0", "method": "notifications/initialized"}],
    [
        asks("subscriptions/listen", notifications={"resourceSubscriptions": []}, _meta=META),
        {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "ID"}},
    ],
    [
        asks("xmppSend", message="never mind"),
        {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "ID"}},
    ],
    asks("no/such/method"),
    asks("echo", message=5),
    calls("xmppSend", massage="hello"),
    calls("shout"),
    asks("tools/list", _meta=META | {"io.modelcontextprotocol/protocolVersion": "1999-12-31"}),
    asks("resources/read", uri="bridge://nowhere"),
    {"jsonrpc": "2.0", "id": 1, "result": {}},
    {"jsonrpc": "2.0", "method": "echo", "params": {"message": "to nobody"}},
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":\n',
    b"Content-Length: nonsense\r\n\r\n",
)
"""One of each, in all dialects; what is answered has the id `ID`."""


class Talk:
    """Both ends of the pipe; each request must be answered, once, unless it was cancelled."""

    def __init__(self, process: Process, replies: asyncio.StreamReader) -> None:
        self._process = process
        self._replies = replies
        self._framer = Framer()
        self._ids = 0

    async def exchange(self, *messages: object) -> None:
        """Write one go and read until everything due has come."""
        assert self._process.stdin is not None
        out, due, cancelled = bytearray(), set[int](), set[int]()
        for message in messages:
            if isinstance(message, bytes):
                out += message
                continue
            self._ids += 1
            text = json.dumps(message).replace('"ID"', str(self._ids))
            framing = Framing.HEADERS if self._ids % 10 == 0 else Framing.LINES
            out += encode(Frame(text.encode(), framing))
            if CANCELLED in text:
                cancelled.add(self._ids)
            elif str(self._ids) in text:
                due.add(self._ids)
        self._process.stdin.write(out)
        drained = asyncio.create_task(self._process.stdin.drain())
        async with asyncio.timeout(ROUND_SECONDS):
            while due:
                data = await self._replies.read(65536)
                assert data, f"the bridge ended; {len(due)} replies are missing"
                for id_ in self._answered(data):
                    assert id_ in due | cancelled
                    due.discard(id_)
                    cancelled.discard(id_)
            await drained

    def resident_kib(self) -> int:
        """How much memory the bridge holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    def _answered(self, data: bytes) -> list[int]:
        messages: list[dict[str, int]] = []
        for frame in self._framer.feed(data):
            assert isinstance(frame, Frame), frame
            value = json.loads(frame.body)
            messages += value if isinstance(value, list) else [value]
        return [each["id"] for each in messages if "method" not in each and each["id"] is not None]


@pytest.mark.soak
@pytest.mark.parametrize("count", [REQUESTS, pytest.param(MORE_REQUESTS, marks=pytest.mark.long)])
async def test_many_mixed_requests_leave_the_memory_as_it_was(
    sandbox: XmppServer, tmp_path: Path, count: int
) -> None:
    environment = sandbox.environment(BRIDGE_SEND_RATE="6000")
    async with unread(tmp_path, environment) as (bridge, client), reading(client) as replies:
        await _soak(Talk(bridge.process, replies), count)


async def _soak(talk: Talk, count: int) -> None:
    opening = asks("initialize", protocolVersion="2025-03-26", capabilities={})
    await talk.exchange(opening, asks("xmppSend", message="for the long run"))
    kinds, warm_kib = cycle(MIX), 0
    for written in range(REQUESTS_AT_ONCE, count + 1, REQUESTS_AT_ONCE):
        last = asks("xmppSend", message=f"{written} so far")
        await talk.exchange(*islice(kinds, REQUESTS_AT_ONCE), last)
        if written == WARM_REQUESTS:
            warm_kib = talk.resident_kib()
    end_kib = talk.resident_kib()
    assert end_kib - warm_kib < GROWTH_KIB, f"{warm_kib} KiB, then {end_kib} KiB"
