"""Many who wait for the same message."""

from time import perf_counter

from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, percentile
from tests.benchmarks.peer import called, result_of

NAME = "waits"
WAITS = 200
LIMIT_MS = 50.0


def measure(bench: Bench) -> Outcome:
    """Let all wait, say one thing in the room, and see when the last has heard of it."""
    taken = []
    with bench.bridge(bench.hall.environment) as bridge:
        bridge.awaits(b"Z joined\n")
        bridge.shake_hands()
        bridge.says(b"Z joined\n")
        for number in range(bench.pairs + 1):
            call = {"contains": f"news {number}.", "timeoutSeconds": 50}
            bridge.write(b"".join(called(id_, "xmppWait", **call) for id_ in range(WAITS)))
            for turn in range(3):  # by then each has begun to wait
                bridge.write(called(f"echo {turn}", "echo", message="?"))
                bridge.answer_to(f"echo {turn}")
            said = bench.hall.say(f"news {number}.")
            replies = [bridge.line() for _ in range(WAITS)]
            if number:
                taken.append(1000 * (perf_counter() - said))
            assert all(result_of(reply)["structuredContent"]["matched"] for reply in replies)
    worst = percentile(taken, 0.99)
    return Outcome(
        NAME,
        "200 concurrent `xmppWait` calls, and one message that matches them all",
        (Series(BRIDGE, "message to the last reply", "ms", tuple(taken)),),
        (Aim("for the last reply, in the worst run", worst, "at most", LIMIT_MS, "ms"),),
        "the room is the scripted server",
    )
