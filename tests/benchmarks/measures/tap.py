"""What `tap` costs between a client and its server."""

from tests.benchmarks.bench import Bench
from tests.benchmarks.figures import Aim, Outcome

NAME = "tap"
MOST_MS = 5.0
LEAST = 8.0


def measure(bench: Bench) -> Outcome:
    """Ping a server, and let it flood the client, directly and through tap."""
    direct, through, rate, explain = bench.series("tests.benchmarks.through_tap")
    return Outcome(
        NAME,
        "A bot behind `tap`",
        (direct, through, rate, explain),
        (
            Aim("added to a ping's p99", through.median - direct.median, "at most", MOST_MS, "ms"),
            Aim("with rules and file", rate.median, "at least", LEAST, "MB/s"),
        ),
        "the server is the scripted server, in plaintext; throughput is of processor time while "
        "the room of the bot says 5 MB in stanzas of 580 bytes; `explain` reads them without "
        "passing anything on",
    )
