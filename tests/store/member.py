"""A process that records what it is told."""

import time
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection

from bridge.store.location import Place, Team
from bridge.store.shipping import Shipper
from bridge.store.sqlite import open_file
from tests.store.hall import recorder_in_room, said

PROCESSES = get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
SECONDS = 60.0


class Member:
    """Such a process, once it is in the room."""

    def __init__(self, place: Place, run: str) -> None:
        self._told, told = PROCESSES.Pipe()
        self._process = PROCESSES.Process(target=_record, args=(told, place, run))
        self._process.start()
        told.close()

    def is_in(self) -> bool:
        """Wait until it is."""
        return self._told.poll(SECONDS) and self._told.recv() is None

    def hears(self, mark: int) -> None:
        """Record what is said in the room, or, if `mark` is below zero, what it alone hears."""
        self._told.send(mark)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()

    def end(self) -> None:
        """Let it write what it has, and end."""
        self._told.close()
        self._process.join(SECONDS)
        assert self._process.exitcode == 0


def _record(told: Connection, place: Place, run: str) -> None:
    spool = place.file if isinstance(place, Team) else place
    shippers = list[Shipper]()
    recorder = recorder_in_room(
        partial(open_file, place), spool, run, committed=lambda: [*map(Shipper.wake, shippers)]
    )
    if isinstance(place, Team):
        shippers.append(Shipper(place, recorder.refuse, stanzas=False, retention=None))
    told.send(None)
    try:
        while True:
            heard = said(told.recv(), at=time.time())
            recorder.add(heard._replace(shared=heard.event["jid"] >= 0))
    except EOFError:
        while recorder.warnings or recorder._added != recorder._written:  # noqa: SLF001 - tells nobody
            time.sleep(0.1)
        recorder.close()
        for shipper in shippers:
            shipper.close()
