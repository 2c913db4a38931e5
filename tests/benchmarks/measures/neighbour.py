"""`echo` and `xmppSend` while another room than the one that is written to is in flood."""

from collections.abc import Mapping
from time import perf_counter

from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated, percentile
from tests.benchmarks.measures.flood import LIMIT_MS, SECONDS, Flooder
from tests.benchmarks.measures.rooms import joined
from tests.benchmarks.peer import Peer, called, result_of

NAME = "neighbour"
OUTSIDE = f"{BRIDGE}, in the quiet room only"
"""What the server takes for a message, which passes on the flood at the same time."""
UNITS = {"echo p99": "ms", "send p50": "ms", "send p99": "ms", "Prosody's rate": "messages/s"}


def measure(bench: Bench) -> Outcome:
    """Ask, then write into the quiet room, while somebody talks in the other without end."""
    found = alternated(
        bench.pairs,
        {
            BRIDGE: lambda: _beside_a_flood(bench, both=True),
            OUTSIDE: lambda: _beside_a_flood(bench, both=False),
        },
    )
    series = {
        (name, what): Series(name, what, unit, tuple(run[what] for run in runs))
        for what, unit in UNITS.items()
        for name, runs in found.items()
    }
    worst = series[BRIDGE, "echo p99"].median
    return Outcome(
        NAME,
        "One `echo`, or one `xmppSend` into a quiet room, at a time while another room floods",
        tuple(series.values()),
        (Aim("echo p99, median of the runs", worst, "at most", LIMIT_MS, "ms"),),
        "Prosody, which passes on the flood, takes its time for what is sent as well: hence a "
        "bridge that does not hear the flood",
    )


def _beside_a_flood(bench: Bench, *, both: bool) -> Mapping[str, float]:
    """One run, with the bridge in `both` rooms or in the quiet one only."""
    noisy, quiet = bench.prosody.room(), bench.prosody.room()
    rooms = f"{noisy},{quiet}" if both else quiet
    settings = bench.prosody.environment(MUC_ROOM=rooms, BRIDGE_SEND_RATE="6000")
    wilma = bench.prosody.witness
    theirs = bench.prosody.environment(
        MUC_ROOM=noisy,
        XMPP_USERNAME=wilma.username,
        XMPP_PASSWORD=wilma.password,
        MCP_BOT_NICKNAME="Wilma",
    )
    with bench.bridge(settings) as bridge:
        bridge.shake_hands()
        joined(bridge, 2 if both else 1)
        flooder = Flooder(bench.participant(theirs, "--fast-scram", "--talk"))
        flooder.start()
        assert flooder.began.wait(60.0)
        # Both within what a flood may last, since Prosody's storage grows slow.
        asked = _taken(bridge, "echo", message="hello")
        sent = _taken(bridge, "xmppSend", message="hello", **({"room": quiet} if both else {}))
        flooder.ended.set()
        flooder.join()
    return {
        "echo p99": percentile(asked, 0.99),
        "send p50": percentile(sent, 0.5),
        "send p99": percentile(sent, 0.99),
        "Prosody's rate": flooder.rate,
    }


def _taken(bridge: Peer, tool: str, **arguments: str) -> list[float]:
    """Call one after another for half of the flood; the milliseconds of each."""
    taken: list[float] = []
    end = perf_counter() + SECONDS / 2
    while (started := perf_counter()) < end:
        id_ = f"{tool} {len(taken)}"
        bridge.write(called(id_, tool, **arguments))
        reply = bridge.answer_to(id_)
        taken.append(1000 * (perf_counter() - started))
        result_of(reply)
    return taken
