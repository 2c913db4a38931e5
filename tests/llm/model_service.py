"""A model's service on this machine, which answers, or misbehaves, as a test says."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

KEY = "sk-kept-secret-4711-0815"
"""What the tests put into LLM_API_KEY."""


@dataclass
class Asked:
    """One request, as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def system(self) -> str:
        """The instruction part."""
        (content,) = [each["content"] for each in self.body["messages"] if each["role"] == "system"]
        return str(content)

    @property
    def user(self) -> str:
        """All else."""
        (content,) = [each["content"] for each in self.body["messages"] if each["role"] != "system"]
        return str(content)


Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Turn: TypeAlias = Callable[[Asked, Reader, Writer], Awaitable[None]]
"""What is done about one request."""


@dataclass
class ModelService:
    """Takes the turns one after another, the last again and again; knows what was asked."""

    turns: list[Turn]
    asked: list[Asked] = field(default_factory=list)
    base_url: str = ""
    came: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request is there."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a connection was closed by whoever asked."""

    async def serve(self, reader: Reader, writer: Writer) -> None:
        """Answer one connection's first request."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in head[1:] if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            asked = Asked(head[0].split()[1], headers, json.loads(body) if body else None)
            turn = self.turns[min(len(self.asked), len(self.turns) - 1)]
            self.asked.append(asked)
            self.came.set()
            await turn(asked, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.left.set()
        finally:
            writer.close()


@asynccontextmanager
async def model_service(
    *turns: Turn, secured: ssl.SSLContext | None = None
) -> AsyncIterator[ModelService]:
    """A service that takes these turns."""
    service = ModelService(list(turns))
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0, ssl=secured)
    scheme = "http" if secured is None else "https"
    service.base_url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield service
    finally:
        server.close()


def raw(data: bytes) -> Turn:
    """Send these bytes and hang up."""

    async def turn(asked: Asked, reader: Reader, writer: Writer) -> None:
        del asked, reader
        writer.write(data)
        await writer.drain()

    return turn


def replying(status: int, body: bytes | object = b"", **headers: str) -> Turn:
    """Send this status and body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {"content-length": str(len(data))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return raw(f"HTTP/1.1 {status} Whatever\r\n{lines}connection: close\r\n\r\n".encode() + data)


def completion(content: object) -> dict[str, Any]:
    """The JSON of a chat completion with these words."""
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}


def saying(answer: object) -> Turn:
    """Answer with this value as JSON, or with this text."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return replying(200, completion(text))


def thinking(answer: Callable[[Asked], object]) -> Turn:
    """Answer with what becomes of the request."""

    async def turn(asked: Asked, reader: Reader, writer: Writer) -> None:
        await saying(answer(asked))(asked, reader, writer)

    return turn


async def silent(asked: Asked, reader: Reader, writer: Writer) -> None:
    """Say nothing until whoever asked hangs up."""
    del asked, writer
    await reader.readexactly(1)


def assert_keeps_nothing(error: BaseException) -> None:
    """See that neither an error nor the locals of our frames keep the key or the request alive."""
    assert (error.__cause__, error.__context__) == (None, None)
    kept = []
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if "/tests/" not in frame.f_code.co_filename:
            kept += [f"{name} = {value!r}" for name, value in frame.f_locals.items()]
        traceback = traceback.tb_next
    told = "\n".join(kept)
    assert kept
    for part in (KEY, "Authorization", "httpx"):
        assert part not in told
