"""What recording costs, beside a bridge that records nothing and a bare insert."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time

from bridge.xmpp.model.events import MessageReceived, encode
from bridge.xmpp.model.filter import text_of
from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated, percentile
from tests.benchmarks.peer import Peer, called

NAME = "store"
MESSAGES = 20_000
WARM_MESSAGES = 2_000
RECORDING = f"{BRIDGE}, with a store"
BARE = "bare sqlite3 insert"
TIMES, LIMIT_MS, LIMIT_BYTES, FLAT = 2.0, 50.0, 450.0, 1.1


def measure(bench: Bench) -> Outcome:
    """Flood each: what a message costs, how long an echo takes meanwhile, what is kept of it."""
    settings = dict(bench.hall.environment)

    def recording() -> Sequence[float]:
        for path in bench.folder.glob("rooms.db*"):
            path.unlink()
        path = bench.folder / "rooms.db"
        with bench.bridge({**settings, "BRIDGE_STORE": str(path)}) as peer:
            found = _flooded(bench, peer)
        return (*found, _bytes_each(path))

    def alone() -> Sequence[float]:
        with bench.bridge(settings) as peer:
            return _flooded(bench, peer)

    runs = alternated(
        bench.pairs, {BRIDGE: alone, RECORDING: recording, BARE: lambda: (_inserted(bench.folder),)}
    )

    def series(contender: str, what: str, unit: str, place: int) -> Series:
        return Series(contender, what, unit, tuple(run[place] for run in runs[contender]))

    plain, with_store, bare = (
        series(name, "CPU", "µs/message", 0) for name in (BRIDGE, RECORDING, BARE)
    )
    rate = series(RECORDING, "rate", "messages/s", 1)
    echo, growth = series(RECORDING, "echo p99", "ms", 2), series(RECORDING, "growth", "times", 3)
    size = series(RECORDING, "size", "bytes/event", 4)
    return Outcome(
        NAME,
        "Room messages recorded, and an `echo` at a time meanwhile",
        (plain, with_store, bare, rate, echo, growth, size),
        (
            Aim("times the CPU without a store", with_store.over(plain), "at most", TIMES),
            Aim("echo p99 in the flood", echo.median, "at most", LIMIT_MS, "ms"),
            Aim("bytes an event", size.median, "at most", LIMIT_BYTES, "bytes/event"),
            Aim("memory, second flood over first", growth.median, "at most", FLAT),
        ),
        "the room is the scripted server; CPU is of all threads; the floor is one transaction a "
        "thousand rows",
    )


def _flooded(bench: Bench, peer: Peer) -> Sequence[float]:
    peer.awaits(b"Z joined\n")
    peer.shake_hands()
    peer.says(b"Z joined\n")
    bench.hall.flood(WARM_MESSAGES)
    before = peer.cpu_seconds()
    seconds = bench.hall.flood(MESSAGES)
    peer.settle()
    cost = 1e6 * (peer.cpu_seconds() - before) / MESSAGES
    first = peer.memory_bytes()
    taken = _asked_meanwhile(bench, peer)
    return cost, MESSAGES / seconds, percentile(taken, 0.99), peer.memory_bytes() / first


def _asked_meanwhile(bench: Bench, peer: Peer) -> list[float]:
    flooding = threading.Thread(target=bench.hall.flood, args=(MESSAGES,), daemon=True)
    flooding.start()
    taken: list[float] = []
    while flooding.is_alive():
        started = perf_counter()
        peer.ask(called(len(taken), "echo", message="hello"))
        taken.append(1000 * (perf_counter() - started))
    return taken


def _bytes_each(path: Path) -> float:
    with closing(sqlite3.connect(path)) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((count,),) = store.execute("SELECT count(*) FROM events").fetchall()
    return path.stat().st_size / float(count)


def _inserted(folder: Path) -> float:
    """Return what one row takes of the processor where a loop does nothing but insert."""
    path = folder / "bare.db"
    path.unlink(missing_ok=True)
    said = MessageReceived("room@x/Wilma", "Wilma", "what somebody says in a room", id="m")
    row = (0, 1, 1, 1, "message", text_of(said), str(encode(said)))
    with closing(sqlite3.connect(path, isolation_level=None)) as store:
        store.execute("PRAGMA journal_mode = WAL")
        store.execute("PRAGMA synchronous = NORMAL")
        store.execute("CREATE TABLE events (at, room, observer, shared, kind, text, event)")
        began = process_time()
        for _ in range(MESSAGES // 1_000):
            store.execute("BEGIN")
            store.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [row] * 1_000)
            store.execute("COMMIT")
        return 1e6 * (process_time() - began) / MESSAGES
