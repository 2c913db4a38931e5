"""How fast one recorder brings into a team's database what has waited for it."""

import os
import subprocess
from collections.abc import Mapping
from time import perf_counter, sleep

from tests.benchmarks.bench import Bench
from tests.servers.postgresql import Postgresql

EVENTS = 15_000
"""Fewer than may wait for the file, of which a flood would lose the rest."""
LOOK_EVERY_SECONDS = 0.05
WAIT_SECONDS = 120.0


def shipped(bench: Bench) -> float:
    """Return the events a second that reach the database once it is back after a flood.

    It is away during the flood, so that the bridge has nothing to do but to ship.
    """
    server = bench.postgresql
    url = server.new()
    schema = url.rpartition("%3D")[2]
    settings = {**bench.hall.environment, "BRIDGE_STORE": url}
    _prepare(bench, settings)
    with bench.bridge(settings) as peer:
        peer.awaits(b"Z joined\n")
        peer.shake_hands()
        peer.says(b"Z joined\n")
        server.kill()
        try:
            bench.hall.flood(EVENTS)
            peer.settle()
        finally:
            server.start()
        first = started = 0.0
        count, until = 0, perf_counter() + WAIT_SECONDS
        while count < EVENTS:
            assert perf_counter() < until, f"{count} events after {WAIT_SECONDS} s"
            sleep(LOOK_EVERY_SECONDS)
            now, count = perf_counter(), _count(server, schema)
            if count > EVENTS // 10 and not started:
                started, first = now, count
        return (count - first) / (now - started)


def _prepare(bench: Bench, settings: Mapping[str, str]) -> None:
    command = bench.environments.bridge.parent / "xmpp-bridge"
    subprocess.run(
        [command, "record", "--prepare-store"],
        env={"PATH": os.environ["PATH"], "HOME": str(bench.folder), **settings},
        check=True,
        capture_output=True,
    )


def _count(server: Postgresql, schema: str) -> int:
    """Return how many messages are in the database, whichever version made its tables."""
    made = "SELECT table_name FROM information_schema.tables WHERE table_schema = '{}'"
    names = {name for (name,) in server.query(made.format(schema))}
    table = "entries" if "entries" in names else "events"
    ((count,),) = server.query(f"SELECT count(*) FROM {schema}.{table}")  # noqa: S608 - of ours
    assert isinstance(count, int)
    return count
