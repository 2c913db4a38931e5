"""A traffic log on disk, seen from outside."""

import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridge.xmpp.traffic import MARK, TrafficLog, TrafficLogError

HEADER = MARK + b'"at":"1970-01-01T00:00:00.000Z"}\n'


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """A disk that is full, as this process sees it: writes stop short at `size`, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def mask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def lines(path: Path) -> list[dict[str, Any]]:
    """What stands in one file after its header."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    header, *found = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert list(header) == ["log", "format", "at"]
    return found


def earlier(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(TrafficLogError) as refusal:
        TrafficLog(path, **options).open()
    assert str(refusal.value).startswith("BRIDGE_TRAFFIC_LOG leads to ")
    assert str(refusal.value).endswith(" would be right")
    return str(refusal.value)
