"""`echo` while the room is in flood."""

import threading
from time import perf_counter

from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, percentile
from tests.benchmarks.peer import Peer, called

NAME = "flood"
SECONDS = 4.0
"""How long each flood is. Prosody's own storage grows slow, some thirty times, once it has 10,000
messages of one room, so that each flood is short and in a room of its own."""
BLOCK = 100
AHEAD = 1_000
"""What the flooder has on its way before it waits for reflections: the server never runs dry."""
LIMIT_MS = 50.0


class Flooder(threading.Thread):
    """Somebody who talks as fast as the server passes it on: a participant on a pipe."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(daemon=True)
        self._peer = peer
        self.began = threading.Event()
        self.ended = threading.Event()
        self.rate = 0.0
        """Messages a second, known at the end."""

    def run(self) -> None:
        """Talk until `ended`."""
        said = heard = 0
        lines = b"what somebody says in a room is about as long as this line, or this\n" * BLOCK
        with self._peer as peer:
            peer.says(b"joined\n")
            started = perf_counter()
            while not self.ended.is_set():
                peer.write(lines)
                said += BLOCK
                while said - heard > AHEAD:
                    heard += peer.chunk().count(b"\n")
                    self.began.set()
            self.rate = heard / (perf_counter() - started)


def measure(bench: Bench) -> Outcome:
    """Ask one thing at a time while a second occupant talks as fast as Prosody passes it on."""
    worst, rates = [], []
    wilma = bench.prosody.witness
    account = {"XMPP_USERNAME": wilma.username, "XMPP_PASSWORD": wilma.password}
    for _ in range(bench.pairs):
        settings = bench.prosody.environment()
        theirs = {**settings, **account, "MCP_BOT_NICKNAME": "Wilma"}
        with bench.bridge(settings) as bridge:
            bridge.awaits(b"Z joined\n")
            bridge.shake_hands()
            bridge.says(b"Z joined\n")
            flooder = Flooder(bench.participant(theirs, "--fast-scram", "--talk"))
            flooder.start()
            assert flooder.began.wait(60.0)
            taken: list[float] = []
            end = perf_counter() + SECONDS
            while (started := perf_counter()) < end:
                bridge.ask(called(len(taken), "echo", message="hello"))
                taken.append(1000 * (perf_counter() - started))
            flooder.ended.set()
            flooder.join()
            worst.append(percentile(taken, 0.99))
            rates.append(flooder.rate)
    series = Series(BRIDGE, "echo p99", "ms", tuple(worst))
    return Outcome(
        NAME,
        "One `echo` at a time while the room floods at Prosody's full rate",
        (series, Series("Prosody", "rate", "messages/s", tuple(rates))),
        (Aim("p99, median of the runs", series.median, "at most", LIMIT_MS, "ms"),),
    )
