from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.xmpp.traffic import TrafficLog
from tests.xmpp.traffic.logs import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "room.jsonl"


@pytest.fixture
def traffic(path: Path, clock: Clock) -> Iterator[TrafficLog]:
    """A log of the usual size."""
    one = TrafficLog(path, clock=clock)
    yield one
    one.close()
