"""A contender as a child process on three pipes, driven with nothing in between.

Each is asked the same lines by the same few system calls, so what differs is what they are.
"""

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, Self

PATIENCE_SECONDS = 120.0
"""Limit for anything that a contender is waited for."""
END_SECONDS = 10.0
"""Limit for its end, after which it is killed."""
KEPT_BYTES = 64 * 1024
"""Of stderr, for whoever must find out why a contender failed."""

HELLO = (
    b'{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"benchmark","version":"0"}}}\n'
)
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
LIST = b'{"jsonrpc":"2.0","id":"list","method":"tools/list","params":{}}\n'


SETTLE_SECONDS = 0.5
"""After the first calls, before calls are measured: what starting goes on with is done by then."""


class PeerError(Exception):
    """A contender ended, or did not answer; the message ends with its last words."""


def called(id_: int | str, tool: str, **arguments: object) -> bytes:
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
    return json.dumps(call, separators=(",", ":")).encode() + b"\n"


def result_of(line: bytes) -> dict[str, Any]:
    """The result in a reply; fails where it tells of an error."""
    reply = json.loads(line)
    assert "result" in reply, line
    assert not reply["result"].get("isError"), line
    result: dict[str, Any] = reply["result"]
    return result


class Peer:
    """One run of a contender, from `with` to its end. `started` is when it was begun."""

    def __init__(self, command: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._settings = settings or {}
        self._received = b""
        self._said = b""
        self._heard_at: dict[bytes, float] = {}
        self._news = threading.Condition()
        self._ended = False

    def __enter__(self) -> Self:
        self._home = tempfile.TemporaryDirectory(prefix="contender-")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": self._home.name,
            **self._settings,
        }
        self.started = perf_counter()
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=self._home.name,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._home.cleanup()

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._in, rest) :]

    def line(self) -> bytes:
        while b"\n" not in self._received:
            data = os.read(self._out, 1 << 20)
            if not data:
                raise self._failure("closed its stdout")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line

    def ask(self, message: bytes) -> bytes:
        self.write(message)
        return self.line()

    def answer_to(self, id_: str) -> bytes:
        """The next reply with this id; what is no reply to it is passed over."""
        mark = json.dumps(id_).encode()
        while mark not in (line := self.line()) or b'"method"' in line:
            pass
        return line

    def shake_hands(self) -> None:
        """Begin as an MCP client does."""
        self.write(HELLO)
        result_of(self.answer_to("hello"))
        self.write(READY)

    def settle(self) -> None:
        """Let it finish what starting left to do, such as loading what a call may need."""
        sleep(SETTLE_SECONDS)

    def list_tools(self) -> dict[str, Any]:
        self.write(LIST)
        return result_of(self.answer_to("list"))

    def says(self, text: bytes) -> float:
        """When this first stood on stderr, on the clock of `started`."""
        with self._news:
            self._heard_at.setdefault(text, 0.0)
            self._look(perf_counter())
            known = self._news.wait_for(
                lambda: self._heard_at[text] or self._ended, PATIENCE_SECONDS
            )
            if not known or not self._heard_at[text]:
                raise self._failure(f"did not say {text!r}")
            return self._heard_at[text]

    def awaits(self, text: bytes) -> None:
        """Let `says` know the moment of this text even where it asks later."""
        with self._news:
            self._heard_at.setdefault(text, 0.0)

    def cpu_seconds(self) -> float:
        tasks = Path(f"/proc/{self._process.pid}/task")
        return (
            sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9
        )

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024

    def _listen(self) -> None:
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        while data := os.read(descriptor, 65536):
            now = perf_counter()
            with self._news:
                self._said = self._said[-KEPT_BYTES:] + data
                self._look(now)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def _look(self, now: float) -> None:
        for text, at in self._heard_at.items():
            if not at and text in self._said:
                self._heard_at[text] = now

    def _failure(self, what: str) -> PeerError:
        return PeerError(f"{self._command} {what}\n{self._said.decode('utf-8', 'replace')}")
