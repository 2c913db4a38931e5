"""What one recorder carries: rooms, and messages a second that the store takes, for docs/store.md.

python -m tests.benchmarks.carried
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from bridge.store.database import Happened, Observer
from bridge.store.location import put_aside
from bridge.store.recorder import Recorder
from bridge.store.sqlite import SqliteDatabase
from bridge.store.writer import MAX_WAITING, Entered
from bridge.xmpp.model.events import MessageReceived, encode

MESSAGES = 100_000
IDLE_SECONDS = 10


def main() -> None:
    """Measure with one room, with ten and with as many as a bridge may be in."""
    for count in (1, 10, 50):
        rooms = [f"room{number}@conference.localhost" for number in range(count)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rooms.db"
            recorder = Recorder(partial(SqliteDatabase, path), partial(put_aside, path))
            recorder.add(Observer("bot@localhost", "McpDebug", "run"))
            for room in rooms:
                recorder.add(Entered(room, time.time(), time.monotonic()))
            time.sleep(1)
            idle = time.process_time()
            time.sleep(IDLE_SECONDS)
            idle = (time.process_time() - idle) / IDLE_SECONDS
            began, cost = time.perf_counter(), time.process_time()
            for number in range(MESSAGES):
                room = rooms[number % count]
                body = f"number {number}: what somebody says in a room is about as long as this"
                said = MessageReceived(
                    f"{room}/Wilma", "Wilma", body, id=f"flood-{number}", stanza_id=f"id-{number}"
                )
                recorder.add(Happened(time.time(), room, encode(said), shared=True))
                if number % 1_000 == 0:
                    while len(recorder._waiting) > MAX_WAITING // 2:  # noqa: SLF001 - as fast as it can
                        time.sleep(0.001)
            recorder.close()
            seconds, cost = time.perf_counter() - began, time.process_time() - cost
            size = path.stat().st_size / MESSAGES
        sys.stdout.write(
            f"{count} rooms: {MESSAGES / seconds:,.0f} messages/s, {1e6 * cost / MESSAGES:.0f} µs "
            f"each, {size:.0f} bytes each; idle {100 * idle:.2f} % of a processor\n"
        )


if __name__ == "__main__":
    main()
