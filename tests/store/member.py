"""A process that records what it is told on its stdin: `python -m tests.store.member RUN SPOOL`.

First comes where. Each line after that is the number of something that is said in the room, with
the id that the room gives it, if any; what is below zero is heard by this process alone.
"""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from functools import partial
from pathlib import Path

from bridge.settings.database_url import store
from bridge.store.database import Observer
from bridge.store.location import put_aside
from bridge.store.opening import Team, open_recorder_store
from bridge.store.recorder import Recorder
from bridge.store.writer import Entered
from tests.store.hall import ROOM, said


async def started(place: str, run: str, spool: Path) -> Process:
    """Start one; it is in the room."""
    command = (sys.executable, "-m", "tests.store.member", run, spool)
    member = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert member.stdout is not None
    tell(member, place)  # a password is not among the arguments
    assert await member.stdout.readline() == b"in\n"
    return member


def tell(member: Process, line: str) -> None:
    assert member.stdin is not None
    member.stdin.write(f"{line}\n".encode())


async def ended(*members: Process) -> None:
    """Let them write what they have, and end."""
    for member in members:
        assert member.stdin is not None
        member.stdin.close()
    for member in members:
        assert await member.wait() == 0


def main(run: str, spool: Path) -> None:
    named = store(sys.stdin.readline().strip())
    place = named if isinstance(named, Path) else Team(named, spool, 10)
    opened = partial(open_recorder_store, place, making=False)
    recorder = Recorder(opened, partial(put_aside, spool))
    recorder.add(Observer("bot@localhost", run, run))
    recorder.add(Entered(ROOM, time.time(), time.monotonic()))
    sys.stdout.write("in\n")
    sys.stdout.flush()
    for line in sys.stdin:
        mark, *id_ = line.split()
        more = {"stanzaId": id_[0]} if id_ else {}
        heard = said(int(mark), at=time.time(), **more)
        recorder.add(heard._replace(shared=int(mark) >= 0))
    while recorder.warnings or recorder._added != recorder._written:  # noqa: SLF001 - tells nobody
        time.sleep(0.1)
    recorder.close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
