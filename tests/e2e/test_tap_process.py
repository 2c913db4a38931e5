"""The process of tap between a scripted server and a client by hand: stopped, killed, refused."""

import asyncio
import json
import os
import re
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.e2e.bridge_process import COMMAND
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import HONEST, ScriptedServer, Wire
from tests.servers.certificates import Authority
from tests.servers.server import write_settings
from tests.tap.tapping import SECONDS, STREAM, easy, forgotten, logged_in, wrong_certificate

MESSAGES = "".join(scripted.said("Ann", "x" * 3_000, f"m{number}") for number in range(10))
LAST = "<iq type='get' id='last'><ping xmlns='urn:xmpp:ping'/></iq>"
MAX_GROWTH_KB = 32 * 1024
MOST_SENT = 64_000_000 // len(MESSAGES)
"""The network takes less while a side does not read."""


@dataclass
class Listening:
    process: Process
    port: int
    state: Path

    @property
    def most_kb(self) -> int:
        """The most memory that its process ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        return int(status.partition("VmHWM:")[2].split()[0])

    @property
    def captures(self) -> list[str]:
        return sorted(path.name for path in self.state.rglob("*.jsonl*"))

    @property
    def kept(self) -> bytes:
        """What stands in its files by now."""
        return b"".join(path.read_bytes() for path in self.state.rglob("*.jsonl*"))


async def started(
    server: ScriptedServer,
    folder: Path,
    *options: str,
    anchor: Path | None = None,
    given: Mapping[str, str] | None = None,
) -> Process:
    """A tap before this server, with further words of its command line, or with given settings."""
    settings = folder / "bot.env"
    ca_file = {"XMPP_TLS_CA_FILE": str(anchor)} if anchor else {}
    write_settings(settings, given or server.environment() | ca_file)
    keep = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    environment = keep | {"XDG_STATE_HOME": str(folder / "state")}
    words = [COMMAND, "--env-file", str(settings), "tap", *options]
    return await asyncio.create_subprocess_exec(*words, env=environment, stderr=PIPE)


@asynccontextmanager
async def listening(server: ScriptedServer, folder: Path) -> AsyncIterator[Listening]:
    """A tap that listens until the end."""
    process = await started(server, folder, "--listen", "127.0.0.1:0")
    assert process.stderr is not None
    try:
        async with asyncio.timeout(SECONDS):
            line = await process.stderr.readline()
        port = re.search(rb"127\.0\.0\.1:([0-9]+)", line)
        assert port, line
        yield Listening(process, int(port[1]), folder / "state")
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def narrow(writer: asyncio.StreamWriter) -> None:
    """Let the system hold little of what this side sends and gets."""
    sock = writer.get_extra_info("socket")
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, 65_536)


@pytest.mark.parametrize("seconds", [0.5, pytest.param(60.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("side", ["bot", "server"])
async def test_a_side_that_does_not_read_slows_the_other_and_memory_is_bounded(
    side: str, seconds: float, tmp_path: Path
) -> None:
    reads = asyncio.Event()
    sent = 0

    async def flood(wire: Wire) -> None:
        nonlocal sent
        narrow(wire._writer)  # noqa: SLF001 - that the system holds little
        while not reads.is_set():
            wire.send(MESSAGES)
            sent += 1
            await wire.sent()
        wire.send(LAST)
        await wire.gone()

    async def stop(wire: Wire) -> None:
        narrow(wire._writer)  # noqa: SLF001 - that the system holds little
        await reads.wait()
        while not wire.heard.endswith(LAST.encode()):
            await wire.hello()
        wire.send(LAST)
        await wire.gone()

    async with (
        ScriptedServer(easy(flood if side == "bot" else stop)) as server,
        listening(server, tmp_path) as tap,
    ):
        client = await logged_in(tap.port)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        narrow(client.writer)
        before = tap.most_kb

        async def flood_server() -> None:
            nonlocal sent
            while not reads.is_set():
                client.send(MESSAGES)
                sent += 1
                await client.writer.drain()
            client.send(LAST)

        flooding = asyncio.create_task(flood_server()) if side == "server" else None
        former = -1
        while former < sent < MOST_SENT:  # until nothing more is taken
            former = sent
            await asyncio.sleep(seconds)
        reads.set()
        assert 0 < sent < MOST_SENT
        assert tap.most_kb - before < MAX_GROWTH_KB
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        heard = bytearray(client.got)
        async with asyncio.timeout(seconds + SECONDS):
            while not heard.endswith(LAST.encode()):
                heard += await client.reader.read(65_536)
        if flooding is not None:
            await flooding
            heard[:] = server.heard
        assert heard.count(MESSAGES.encode()) == sent
        assert tap.most_kb - before < MAX_GROWTH_KB
        client.writer.close()


async def test_a_killed_tap_is_an_end_for_both_sides_and_the_next_begins_its_file_anew(
    tmp_path: Path,
) -> None:
    async with ScriptedServer(easy(scripted.stand)) as server:
        async with listening(server, tmp_path) as tap:
            client = await logged_in(tap.port)
            async with asyncio.timeout(SECONDS):
                while b"<jid>" not in tap.kept:  # noqa: ASYNC110 - a file tells of nothing
                    await asyncio.sleep(0.01)
            tap.process.kill()
            await client.gone()
            async with asyncio.timeout(SECONDS):
                await forgotten(server)
            assert tap.captures == ["bot@localhost.jsonl"]
            explain = [COMMAND, "explain", *map(str, tap.state.rglob("*.jsonl"))]
            explained = await asyncio.create_subprocess_exec(*explain, stdout=PIPE)
            out, _ = await explained.communicate()
            assert (explained.returncode, b"bot@localhost" in out) == (0, True), out
        async with listening(server, tmp_path) as tap:
            client = await logged_in(tap.port)
            client.send("</stream:stream>")
            await client.gone()
            assert tap.captures == ["bot@localhost.jsonl", "bot@localhost.jsonl.1"]


CONNECT = """
import os, signal, socket, sys
host, port = os.environ["XMPP_SERVICE"].partition("://")[2].split(":")
with socket.create_connection((host, int(port))) as tap:
    tap.sendall(sys.argv[1].encode())
    tap.recv(1000)
    if "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
"""


async def ended(process: Process) -> tuple[int | None, str]:
    """The exit code of a process, and the last line of its stderr."""
    async with asyncio.timeout(SECONDS):
        _, error = await process.communicate()
    return process.returncode, error.decode().splitlines()[-1]


async def test_a_killed_bot_is_an_end_for_its_server_and_for_tap(tmp_path: Path) -> None:
    async def listen(wire: Wire) -> None:
        await wire.header()
        wire.send(scripted.HEADER)
        await wire.gone()

    async with ScriptedServer(replace(HONEST, authenticate=listen)) as server:
        bot = (sys.executable, "-c", CONNECT, STREAM, "killed")
        process = await started(server, tmp_path, "--", *bot)
        code, verdict = await ended(process)
        assert (code, verdict.startswith("No error was found.")) == (0, True), verdict
        async with asyncio.timeout(SECONDS):
            await forgotten(server)


async def test_a_component_is_named_by_its_domain_and_needs_no_tls(tmp_path: Path) -> None:
    header = "<stream:stream xmlns='jabber:component:accept' xmlns:stream='{}' to='gate.localhost'>"

    async def refuse(wire: Wire) -> None:
        await wire.header()
        wire.send(header.format(scripted.STREAMS).replace("to=", "from="))
        wire.send(scripted.stream_error("not-authorized"))
        await wire.gone()

    async with ScriptedServer(replace(HONEST, authenticate=refuse)) as server:
        bot = (
            sys.executable,
            "-c",
            CONNECT,
            header.format(scripted.STREAMS) + "<handshake>x</handshake>",
        )
        words = ("--component", "--", *bot)
        gate = {
            "XMPP_SERVICE": f"xmpp://{server.host}:{server.port}",
            "XMPP_DOMAIN": "gate.localhost",
            "MUC_ROOM": "room@muc.localhost",
        }
        process = await started(server, tmp_path, *words, given=gate)
        code, verdict = await ended(process)
    assert (code, "secret" in verdict) == (1, True), verdict
    path = tmp_path / "state" / "xmpp-bridge" / "tap" / "gate.localhost.jsonl"
    assert json.loads(path.read_text("utf-8").splitlines()[0])["rooms"] == ["room@muc.localhost"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("expired", "expired"),
        ("of another name", "for 'localhost'"),
        ("of a stranger", "XMPP_TLS_CA_FILE"),
    ],
)
async def test_a_wrong_certificate_of_the_server_is_named_and_fails(
    wrong: str, words: str, authority: Authority, tmp_path: Path
) -> None:
    certificate = wrong_certificate(wrong, authority, tmp_path)
    async with ScriptedServer(HONEST, certificate=certificate, direct_tls=True) as server:
        bot = (sys.executable, "-c", CONNECT, "\x16")
        process = await started(server, tmp_path, "--", *bot, anchor=authority.ca_file)
        code, verdict = await ended(process)
    assert (code, "did not trust its server" in verdict) == (1, True), verdict
    assert words in verdict
    assert server.heard == b""
