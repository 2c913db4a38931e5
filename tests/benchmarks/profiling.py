"""The command `tests/benchmarks/profile`: where the time of a measure goes.

The bridge runs under cProfile, which makes each call of a function dearer than it is, so that the
order tells more than the figures. For `first-answer` it is `-X importtime`, in microseconds.
"""

import argparse
import contextlib
import io
import pstats
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.benchmarks.bench import Bench, Environments
from tests.benchmarks.peer import Peer, called

ROOT = Path(__file__).parents[2]
CALLS = 20_000
MESSAGES = 20_000
RUNS = 5
WAITS = 200
JOINED = b"Z joined\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one measure's work under a profiler and print the top."""
    parser = argparse.ArgumentParser(
        prog="tests/benchmarks/profile",
        description="Shows where the time of a measure goes.",
        epilog="Example: tests/benchmarks/profile intake --sort cumulative --top 60",
    )
    parser.add_argument("bridge", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("measure", choices=("first-answer", *WORK, "history"))
    parser.add_argument("--sort", default="tottime", help="as pstats has it (%(default)s)")
    parser.add_argument("--top", type=int, default=30, help="how many lines (%(default)s)")
    chosen = parser.parse_args(arguments)
    with (
        Bench(Environments(chosen.bridge, chosen.bridge), 1, MESSAGES) as bench,
        tempfile.TemporaryDirectory() as folder,
    ):
        if chosen.measure == "first-answer":
            sys.stdout.write(_imports(bench, chosen.top))
            return
        kept = Path(folder) / "profile"
        profiled = [str(chosen.bridge), "-m", "cProfile", "-o", str(kept)]
        if chosen.measure == "history":
            looked = [*profiled, "-m", "tests.benchmarks.lookback", str(RUNS)]
            subprocess.run(looked, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        else:
            WORK[chosen.measure](bench, [*profiled, str(chosen.bridge.parent / "xmpp-bridge")])
        sys.stdout.write(_top(kept, chosen.sort, chosen.top))


def _top(kept: Path, sort: str, top: int) -> str:
    told = io.StringIO()
    pstats.Stats(str(kept), stream=told).sort_stats(sort).print_stats(top)
    return re.sub(r"\S*/(?=site-packages|lib/python)", "", told.getvalue())


def _imports(bench: Bench, top: int) -> str:
    """The modules that take longest until the tools are listed, with and without their own."""
    command = [str(bench.environments.bridge), "-X", "importtime"]
    command.append(str(bench.environments.bridge.parent / "xmpp-bridge"))
    with Peer(command, bench.prosody.environment()) as peer:
        peer.shake_hands()
        peer.list_tools()
        told = peer.said
    found = re.findall(rb"import time: +(\d+) \| +(\d+) \| +(\S+)", told)
    rows = sorted(((int(own), int(all_), name.decode()) for own, all_, name in found), reverse=True)
    lines = [f"{own:8} own {all_:8} with what it imports   {name}" for own, all_, name in rows]
    return "\n".join([f"{len(rows)} modules", *lines[:top], ""])


def _echo(bench: Bench, command: Sequence[str]) -> None:
    with Peer(command) as peer:
        peer.shake_hands()
        for id_ in range(CALLS):
            peer.ask(called(id_, "echo", message="hello"))


def _pipelined(bench: Bench, command: Sequence[str]) -> None:
    calls = b"".join(called(id_, "echo", message="hello") for id_ in range(CALLS))
    with Peer(command) as peer:
        peer.shake_hands()
        peer.pour(calls, CALLS)


def _intake(bench: Bench, command: Sequence[str]) -> None:
    logged = {"BRIDGE_STORE": str(bench.folder / "rooms.db")}
    with Peer(command, {**bench.hall.environment, **logged}) as peer:
        peer.says(JOINED)
        bench.hall.flood(MESSAGES)


def _waits(bench: Bench, command: Sequence[str]) -> None:
    with Peer(command, bench.hall.environment) as peer:
        peer.awaits(JOINED)
        peer.shake_hands()
        peer.says(JOINED)
        for _ in range(RUNS):
            peer.write(b"".join(called(id_, "xmppWait", contains="news") for id_ in range(WAITS)))
            peer.write(called("begun", "echo", message="?"))
            peer.answer_to("begun")
            bench.hall.say("news")
            for _ in range(WAITS):
                peer.line()


def _sending(bench: Bench, command: Sequence[str]) -> None:
    with Peer(command, bench.prosody.environment(BRIDGE_SEND_RATE="6000")) as peer:
        peer.awaits(JOINED)
        peer.shake_hands()
        peer.says(JOINED)
        for number in range(1_000):
            peer.write(called(f"send {number}", "xmppSend", message="hello"))
            peer.answer_to(f"send {number}")


WORK: Mapping[str, Callable[[Bench, Sequence[str]], None]] = {
    "echo": _echo,
    "pipelined": _pipelined,
    "waits": _waits,
    "intake": _intake,
    "sending": _sending,
}

if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
