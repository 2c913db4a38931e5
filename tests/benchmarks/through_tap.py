"""A client at a scripted server, directly and through `xmpp-bridge tap`, in turns."""

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.benchmarks.bench import BRIDGE
from tests.benchmarks.figures import percentile
from tests.benchmarks.logs import MEGABYTE, explained, room_talk, write_log
from tests.capture.logs import JOIN
from tests.faults import scripted_server as scripted
from tests.faults.scripted_server import BIND, SASL, STREAMS, Script, ScriptedServer, Wire

DIRECT = "direct connection"
EXPLAIN = "`explain`, of a log"
PINGS = 500
TALK = "".join(passed.xml for passed in islice(room_talk(), 100, 1_100))
"""What a room says: some 600 kB in stanzas of 580 bytes."""
FLOOD = TALK * 8
STREAM = (
    f"<stream:stream to='localhost' version='1.0' xmlns='jabber:client' xmlns:stream='{STREAMS}'>"
)
GO, COME = (line[4:] for line in JOIN)
"""How a client asks to be let into the room, and how the room answers."""
ASKED = "<iq type='get' id='{id}'><ping xmlns='urn:xmpp:ping'/></iq>"


async def _let_in(wire: Wire) -> None:
    await wire.open(scripted.mechanisms("PLAIN"))
    await wire.element("auth")
    wire.send(scripted.sasl("success"))


async def _answer(wire: Wire) -> None:
    while True:
        asked = await wire.element("iq", "presence")
        id_ = asked.get("id")
        if id_ == "flood":
            wire.send(FLOOD)
        wire.send(f"<iq type='result' id='{id_}'/>" if id_ else COME)
        await wire.sent()


async def _nothing(wire: Wire) -> None:
    del wire


class _Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, xml: str, end: str) -> float:
        """Send something; return the seconds until this text has come."""
        began = perf_counter()
        self._writer.write(xml.encode())
        await self._reader.readuntil(end.encode())
        return perf_counter() - began

    async def log_in(self) -> None:
        await self.ask(STREAM, "</stream:features>")
        await self.ask(f"<auth xmlns='{SASL}' mechanism='PLAIN'>AGEAYg==</auth>", "</success>")
        await self.ask(STREAM, "</stream:features>")
        await self.ask(f"<iq type='set' id='b'><bind xmlns='{BIND}'/></iq>", "</iq>")
        await self.ask(GO, "</presence>")

    def close(self) -> None:
        self._writer.close()


async def _measured(port: int, tap: Process | None = None) -> tuple[float, float]:
    """Return the p99 of a ping in milliseconds, and the processor seconds of tap for a flood."""
    limit = 2 * len(FLOOD)
    client = _Client(*await asyncio.open_connection("127.0.0.1", port, limit=limit))
    await client.log_in()
    waits = [
        await client.ask(ASKED.format(id=number), f"id='{number}'/>") for number in range(PINGS)
    ]
    began = _processor_seconds(tap)
    await client.ask(ASKED.format(id="flood"), "id='flood'/>")
    seconds = _processor_seconds(tap) - began
    client.close()
    return percentile(waits, 0.99) * 1000, seconds


@asynccontextmanager
async def _tap(server: ScriptedServer, folder: Path) -> AsyncIterator[tuple[Process, int]]:
    """Start a tap before the server; yield its process and its port."""
    settings = folder / "bot.env"
    settings.write_text("".join(f"{key}={it}\n" for key, it in server.environment().items()))
    settings.chmod(0o600)
    words = ("--env-file", str(settings), "tap", "--listen", "127.0.0.1:0")
    command = str(Path(sys.executable).parent / "xmpp-bridge")
    environment = os.environ | {"XDG_STATE_HOME": str(folder)}
    tap = await asyncio.create_subprocess_exec(command, *words, env=environment, stderr=PIPE)
    assert tap.stderr is not None
    port = re.search(rb"127\.0\.0\.1:([0-9]+)", await tap.stderr.readline())
    assert port is not None
    try:
        yield tap, int(port[1])
    finally:
        tap.terminate()
        await tap.communicate()


def _processor_seconds(process: Process | None) -> float:
    if process is None:
        return 0.0
    return int(Path(f"/proc/{process.pid}/schedstat").read_text("ascii").split()[0]) / 1e9


async def main(pairs: int) -> None:
    """Print as JSON what was measured: contender, quantity, unit, and the value of each run."""
    measured: dict[tuple[str, str, str], list[float]] = {
        (DIRECT, "ping p99", "ms"): [],
        (BRIDGE, "ping p99", "ms"): [],
        (BRIDGE, "throughput", "MB/s"): [],
        (EXPLAIN, "throughput", "MB/s"): [],
    }
    script = Script(authenticate=_let_in, join=_nothing, stand=_answer)
    with TemporaryDirectory(prefix="benchmark-") as folder:
        async with ScriptedServer(script) as server, _tap(server, Path(folder)) as (tap, port):
            log = Path(folder) / "bot.log"
            write_log(log, "slixmpp", MEGABYTE)
            for turn in range(pairs + 1):
                direct, _ = await _measured(server.port)
                through, seconds = await _measured(port, tap)
                rate = len(FLOOD) / MEGABYTE / seconds
                if turn:
                    figures = direct, through, rate, explained(log)
                    for values, value in zip(measured.values(), figures, strict=True):
                        values.append(value)
    sys.stdout.write(json.dumps([[*key, values] for key, values in measured.items()]))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
