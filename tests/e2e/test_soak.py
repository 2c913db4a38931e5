import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

import pytest

from bridge.mcp.framing import Frame, Framer, Framing, encode
from tests.e2e.bridge_process import COMMAND
from tests.servers.server import XmppServer

REQUESTS = 50_000
WARM_REQUESTS = 20_000
"""After so many, every cache and every bounded record has what it will ever have."""
REQUESTS_AT_ONCE = 1_000
"""Written in one go; the next go waits for all their replies."""
GROWTH_KIB = 3 * 1024
"""What may be added between the two measurements: 100 bytes a request, where a leak of one call's
own objects would be a kilobyte and more. On idle cores it is less than 1 MiB."""
ROUND_SECONDS = 30.0
"""Limit for the replies to one go; it takes 0.3 s on idle cores."""

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Go:
    """What is written in one go, and the replies that are due."""

    out: bytearray = field(default_factory=bytearray)
    due: Counter[object] = field(default_factory=Counter)
    """Each of these ids is answered exactly once."""
    cancelled: set[object] = field(default_factory=set)
    """These at most once: the reply may have been on its way."""

    def line(self, message: object) -> None:
        """Write a message that is not answered."""
        self.out += json.dumps(message).encode() + b"\n"

    def ask(self, id_: object, method: str, **params: object) -> None:
        """Write a request that is answered."""
        self.due[id_] += 1
        self.line({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})

    def cancel(self, id_: object) -> None:
        """Give up a request that was written."""
        del self.due[id_]
        self.cancelled.add(id_)
        params = {"requestId": id_}
        self.line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def _in_headers(go: Go, id_: int) -> None:
    go.due[id_] += 1
    request = {"jsonrpc": "2.0", "id": id_, "method": "echo", "params": {"message": "headers"}}
    go.out += encode(Frame(json.dumps(request).encode(), Framing.HEADERS))


def _batch(go: Go, id_: int) -> None:
    ids = (f"{id_}a", f"{id_}b")
    go.due.update(ids)
    asked: list[dict[str, object]] = [
        {"jsonrpc": "2.0", "id": one, "method": "ping"} for one in ids
    ]
    go.line([*asked, {"jsonrpc": "2.0", "method": "notifications/initialized"}])


def _listen(go: Go, id_: int) -> None:
    wanted = {"resourceSubscriptions": ["bridge://room/messages"]}
    go.ask(id_, "subscriptions/listen", notifications=wanted, _meta=META)
    go.cancel(id_)


def _given_up(go: Go, id_: int) -> None:
    go.ask(id_, "xmppSend", message=f"never mind {id_}")
    go.cancel(id_)


def _by_position(go: Go, id_: int) -> None:
    go.due[id_] += 1
    go.line({"jsonrpc": "2.0", "id": id_, "method": "echo", "params": ["hello"]})


def _asks(method: str, **params: object) -> Callable[[Go, int], None]:
    return lambda go, id_: go.ask(id_, method, **params)


def _calls(name: str, **arguments: object) -> Callable[[Go, int], None]:
    return _asks("tools/call", name=name, arguments=arguments)


def _writes(message: bytes) -> Callable[[Go, int], None]:
    def write(go: Go, id_: int) -> None:
        del id_
        go.out.extend(message)

    return write


MIX: tuple[Callable[[Go, int], None], ...] = (
    _asks("echo", message="bare"),
    _calls("echo", message="handshake era"),
    _asks("tools/call", name="echo", arguments={"message": "2026"}, _meta=META),
    _in_headers,
    _asks("xmppStatus"),
    _calls("xmppStatus"),
    _asks("tools/list", _meta=META),
    _asks("server/discover", _meta=META),
    _asks("resources/list"),
    _asks("resources/read", uri="bridge://room/occupants"),
    _asks("resources/subscribe", uri="bridge://status"),
    _asks("resources/unsubscribe", uri="bridge://status"),
    _asks("prompts/get", name="diagnose-room", arguments={"problem": "soak"}),
    _asks(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "diagnose-room"},
        argument={"name": "nickname", "value": "M"},
    ),
    _asks("ping"),
    _batch,
    _listen,
    _given_up,
    _by_position,
    _asks("no/such/method"),
    _asks("echo", message=5),
    _calls("xmppSend", massage="hello"),
    _calls("shout"),
    _asks("tools/list", _meta=META | {"io.modelcontextprotocol/protocolVersion": "1999-12-31"}),
    _asks("resources/read", uri="bridge://nowhere"),
    _writes(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\r\n'),
    _writes(b'{"jsonrpc":"2.0","id":1,"result":{}}\n'),
    _writes(b'{"jsonrpc":"2.0","method":"echo","params":{"message":"to nobody"}}\n'),
    _writes(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":\n'),
    _writes(b"Content-Length: nonsense\r\n\r\n"),
)
"""One of each, in all dialects and framings; what is answered has the id it is given."""


class Talk:
    """Both ends of the pipe, with the replies read as they come."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._framer = Framer()
        self.replies: Counter[object] = Counter()

    async def exchange(self, go: Go) -> None:
        """Write one go and read until everything due has come."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        due, writing = set(go.due), self._process.stdin
        writing.write(go.out)
        drained = asyncio.create_task(writing.drain())
        async with asyncio.timeout(ROUND_SECONDS):
            while due:
                data = await self._process.stdout.read(65536)
                assert data, f"the bridge ended; {len(due)} replies are missing"
                due.difference_update(self._take(data))
            await drained

    def resident_kib(self) -> int:
        """How much memory the bridge holds."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    def _take(self, data: bytes) -> list[object]:
        messages: list[dict[str, Any]] = []
        for frame in self._framer.feed(data):
            assert isinstance(frame, Frame), frame
            value = json.loads(frame.body)
            messages += value if isinstance(value, list) else [value]
        answers = [one["id"] for one in messages if "method" not in one]
        ids = [one for one in answers if one is not None]
        self.replies.update(ids)
        return ids


@pytest.mark.soak
async def test_many_mixed_requests_leave_the_memory_as_it_was(
    sandbox: XmppServer, tmp_path: Path
) -> None:
    environment = sandbox.environment(BRIDGE_SEND_RATE="6000") | {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
    }
    nothing = tmp_path / "nothing.env"
    nothing.touch()
    with (tmp_path / "stderr").open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *(COMMAND, "--env-file", str(nothing)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=stderr,
            cwd=tmp_path,
            env=environment,
        )
    try:
        await _soak(Talk(process))
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(ROUND_SECONDS):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert "Traceback" not in (tmp_path / "stderr").read_text(encoding="utf-8")


async def _soak(talk: Talk) -> None:
    ids = count(1000)
    opening = Go()
    opening.ask("open", "initialize", protocolVersion="2025-03-26", capabilities={})
    opening.ask("join", "xmppSend", message="for the long run")
    await talk.exchange(opening)
    due, cancelled = opening.due, opening.cancelled
    kinds, warm_kib = cycle(MIX), 0
    for written in range(REQUESTS_AT_ONCE, REQUESTS + 1, REQUESTS_AT_ONCE):
        go = Go()
        for kind in islice(kinds, REQUESTS_AT_ONCE):
            kind(go, next(ids))
        go.ask(f"heard {written}", "xmppSend", message=f"{written} so far")
        await talk.exchange(go)
        due += go.due
        cancelled |= go.cancelled
        if written == WARM_REQUESTS:
            warm_kib = talk.resident_kib()
    end_kib = talk.resident_kib()
    assert end_kib - warm_kib < GROWTH_KIB, f"{warm_kib} KiB, then {end_kib} KiB"
    once = {id_: times for id_, times in talk.replies.items() if id_ not in cancelled}
    assert once == due
    assert all(talk.replies[id_] <= 1 for id_ in cancelled)
