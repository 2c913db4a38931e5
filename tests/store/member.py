"""A process that records what it is told."""

import time
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from bridge.settings.database_url import store
from bridge.store.database import Observer
from bridge.store.location import put_aside
from bridge.store.opening import Team, open_recorder_store
from bridge.store.recorder import Recorder
from bridge.store.writer import Entered
from tests.store.hall import ROOM, said

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

    def hears(self, mark: int, id_: str | None = None) -> None:
        """Tell it what is said, with the id that the room gives it.

        What is below zero is heard by this process alone.
        """
        self._told.send((mark, id_))

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
    recorder = Recorder(opened, partial(put_aside, spool))
    recorder.add(Observer("bot@localhost", run, run))
    recorder.add(Entered(ROOM, time.time(), time.monotonic()))
    told.send(None)
    try:
        while True:
            mark, id_ = told.recv()
            heard = said(mark, at=time.time(), **({"stanzaId": id_} if id_ else {}))
            recorder.add(heard._replace(shared=mark >= 0))
    except EOFError:
        while recorder.warnings or recorder._added != recorder._written:  # noqa: SLF001 - tells nobody
            time.sleep(0.1)
        recorder.close()
