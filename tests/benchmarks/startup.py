"""How soon the bridge answers, and how soon it is in the room.

    .venv/bin/python -m tests.benchmarks.startup

Alternates a bare `python -c "import asyncio, json"` with the bridge, configured for a Prosody of
its own, and prints medians and their ratio. The aim: the first `initialize` within 1.6 times the
bare process, and joined within 0.6 s.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.servers.certificates import Authority
from tests.servers.prosody import running_prosody

ROUNDS = 15
WARM_UP = 2
COMMAND = Path(sys.executable).parent / "xmpp-bridge"


def bare() -> float:
    """Seconds that the least asyncio program takes, from start to end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import asyncio, json"], check=True)
    return time.perf_counter() - started


def bridge(environment: dict[str, str]) -> tuple[float, float]:
    """Seconds from the start to the answered `initialize`, and to being in the room."""
    started = time.perf_counter()
    with subprocess.Popen(
        [COMMAND],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        answered = time.perf_counter() - started
        while not process.stderr.readline().endswith(b"Z joined\n"):
            assert process.poll() is None, "the bridge ended before it joined"
        joined = time.perf_counter() - started
        process.stdin.close()
    return answered, joined


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with running_prosody(root / "prosody", Authority(root / "ca")) as prosody:
            environment = prosody.server.environment()
            rounds = [(bare(), *bridge(environment)) for _ in range(ROUNDS + WARM_UP)][WARM_UP:]
    floor, answered, joined = (statistics.median(column) for column in zip(*rounds, strict=True))
    sys.stdout.write(
        f"bare asyncio process  {floor * 1000:6.0f} ms\n"
        f"first answer          {answered * 1000:6.0f} ms   {answered / floor:.2f} times\n"
        f"in the room           {joined * 1000:6.0f} ms\n"
    )


if __name__ == "__main__":
    main()
