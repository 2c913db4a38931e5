"""How soon one is in the room, from the start of the process."""

from tests.benchmarks.bench import BRIDGE, PARTICIPANT, PARTICIPANT_FAST, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.benchmarks.peer import HELLO, LIST, READY, Peer

NAME = "joined"


def measure(bench: Bench) -> Outcome:
    """Begin each, and wait until it says that it is in the room."""
    settings = bench.prosody.environment()

    def joined(peer: Peer, text: bytes, *, asks: bool) -> float:
        with peer:
            peer.awaits(text)
            if asks:  # as agents do, first of all
                peer.write(HELLO + READY + LIST)
            return peer.says(text) - peer.started

    seconds = alternated(
        bench.pairs,
        {
            BRIDGE: lambda: joined(bench.bridge(settings), b"Z joined\n", asks=True),
            PARTICIPANT_FAST: lambda: joined(
                bench.participant(settings, "--fast-scram"), b"joined\n", asks=False
            ),
            PARTICIPANT: lambda: joined(bench.participant(settings), b"joined\n", asks=False),
        },
    )
    series = {
        name: Series(name, "start to joined", "ms", tuple(1000 * one for one in found))
        for name, found in seconds.items()
    }
    ratio = series[BRIDGE].over(series[PARTICIPANT_FAST])
    return Outcome(
        NAME,
        "Process start to being in the room (Prosody, STARTTLS, SCRAM)",
        tuple(series.values()),
        (Aim("times bare slixmpp with a fast SCRAM", ratio, "at most", 1.15),),
    )
