"""A process that records what it is told."""

import time
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bridge.settings.database_url import store
from bridge.store.opening import Team, open_recorder_store
from tests.store.hall import recorder_in_room, said

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
SECONDS = 30.0


class Member:
    """Such a process, once it is in the room."""

    def __init__(self, place: str, run: str, spool: Path) -> None:
        self._told, told = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_record, args=(told, place, run, spool))
        self._process.start()
        told.close()

    def is_in(self) -> bool:
        """Wait until it is."""
        return self._told.poll(SECONDS) and self._told.recv() is None

    def hears(self, mark: int) -> None:
        self._told.send(mark)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        """Let it write what it has, and end."""
        self._told.close()
        self._process.join(SECONDS)
        assert self._process.exitcode == 0


def _record(told: Connection, where: str, run: str, spool: Path) -> None:
    named = store(where)
    place = named if isinstance(named, Path) else Team(named, spool, 10)
    opened = partial(open_recorder_store, place, making=False)
    recorder = recorder_in_room(opened, spool, run)
    told.send(None)
    try:
        while True:
            recorder.add(said(told.recv(), at=time.time()))
    except EOFError:
        while recorder.warnings or recorder._added != recorder._written:  # noqa: SLF001 - tells nobody
            time.sleep(0.1)
        recorder.close()
