"""What recording costs, beside a bridge that records nothing and a bare insert; and shipping."""

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
from tests.benchmarks.shipping import shipped

NAME = "store"
MESSAGES = 20_000
WARM_MESSAGES = 2_000
RECORDING = f"{BRIDGE}, with a store"
WITH_STANZAS = f"{RECORDING} and stanzas"
SHIPPING = f"{BRIDGE}, into PostgreSQL"
BARE = "bare sqlite3 insert"
TIMES, STANZA_TIMES, LIMIT_MS, LIMIT_BYTES, FLAT = 2.0, 2.2, 50.0, 450.0, 1.1
LEAST_SHIPPED = 8_000.0


def measure(bench: Bench) -> Outcome:
    """Flood each: what a message costs, how long an echo takes meanwhile, what is kept of it."""
    settings = dict(bench.hall.environment)

    def recording(stanzas: str = "0") -> Sequence[float]:
        for path in bench.folder.glob("rooms.db*"):
            path.unlink()
        path = bench.folder / "rooms.db"
        more = {"BRIDGE_STORE": str(path), "BRIDGE_STORE_STANZAS": stanzas}
        with bench.bridge({**settings, **more}) as peer:
            figures = _flooded(bench, peer)
        return (*figures, _bytes_each(path))

    def alone() -> Sequence[float]:
        with bench.bridge(settings) as peer:
            return _flooded(bench, peer)

    runs = alternated(
        bench.pairs,
        {
            BRIDGE: alone,
            RECORDING: recording,
            WITH_STANZAS: lambda: recording("1"),
            BARE: lambda: (_inserted(bench.folder),),
            SHIPPING: lambda: (shipped(bench),),
        },
    )

    def series(contender: str, what: str, unit: str, place: int) -> Series:
        return Series(contender, what, unit, tuple(run[place] for run in runs[contender]))

    names = (BRIDGE, RECORDING, WITH_STANZAS, BARE)
    plain, with_store, with_stanzas, bare = (series(name, "CPU", "µs/message", 0) for name in names)
    rate = series(RECORDING, "rate", "messages/s", 1)
    echo, growth = series(RECORDING, "echo p99", "ms", 2), series(RECORDING, "growth", "times", 3)
    size = series(RECORDING, "size", "bytes/event", 4)
    shipping = series(SHIPPING, "shipped", "events/s", 0)
    return Outcome(
        NAME,
        "Room messages recorded, and an `echo` at a time meanwhile",
        (plain, with_store, with_stanzas, bare, rate, echo, growth, size, shipping),
        (
            Aim("times the CPU without a store", with_store.over(plain), "at most", TIMES),
            Aim("times the same, with stanzas", with_stanzas.over(plain), "at most", STANZA_TIMES),
            Aim("echo p99 in the flood", echo.median, "at most", LIMIT_MS, "ms"),
            Aim("without stanzas", size.median, "at most", LIMIT_BYTES, "bytes/event"),
            Aim("memory, second flood over first", growth.median, "at most", FLAT),
            Aim("into PostgreSQL", shipping.median, "at least", LEAST_SHIPPED, "events/s"),
        ),
        "the room is the scripted server; CPU is of all threads; the floor is one transaction a "
        "thousand rows; what is shipped waited for PostgreSQL, which does not wait for the disk",
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
    return path.stat().st_size / (WARM_MESSAGES + 2 * MESSAGES)


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
