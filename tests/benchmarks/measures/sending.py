"""From `xmppSend` to the reflection."""

from time import perf_counter

from tests.benchmarks.bench import BRIDGE, PARTICIPANT, PARTICIPANT_MANAGED, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated, percentile
from tests.benchmarks.peer import called, result_of

NAME = "sending"
MESSAGES = 200
WARM_MESSAGES = 20


def measure(bench: Bench) -> Outcome:
    """Have each say something through Prosody, and wait until it has heard it.

    Each run has a room of its own: Prosody takes the longer, the more was said in one.
    """

    def bridge() -> float:
        with bench.bridge(bench.prosody.environment(BRIDGE_SEND_RATE="6000")) as peer:
            peer.awaits(b"Z joined\n")
            peer.shake_hands()
            peer.says(b"Z joined\n")
            taken = []
            for number in range(WARM_MESSAGES + MESSAGES):
                call = called(f"send {number}", "xmppSend", message=f"number {number}")
                started = perf_counter()
                peer.write(call)
                reply = peer.answer_to(f"send {number}")
                taken.append(1000 * (perf_counter() - started))
            assert result_of(reply)["structuredContent"]["sent"]
            return percentile(taken[WARM_MESSAGES:], 0.5)

    def participant(*options: str) -> float:
        settings = bench.prosody.environment()
        with bench.participant(settings, "--fast-scram", "--talk", *options) as peer:
            peer.says(b"joined\n")
            taken = []
            for number in range(WARM_MESSAGES + MESSAGES):
                started = perf_counter()
                assert peer.ask(b"number %d\n" % number) == b"number %d" % number
                taken.append(1000 * (perf_counter() - started))
            return percentile(taken[WARM_MESSAGES:], 0.5)

    found = alternated(
        bench.pairs,
        {
            BRIDGE: bridge,
            PARTICIPANT: participant,
            PARTICIPANT_MANAGED: lambda: participant("--managed"),
        },
    )
    series = {name: Series(name, "p50", "ms", tuple(runs)) for name, runs in found.items()}
    ratio = series[BRIDGE].over(series[PARTICIPANT])
    return Outcome(
        NAME,
        "`xmppSend` to its reflection (Prosody)",
        tuple(series.values()),
        (Aim("times the bare participant", ratio, "at most", 1.1),),
        "with XEP-0198, Prosody asks after each stanza what has come; that participant answers "
        "each at once, the bridge once for all of a moment",
    )
