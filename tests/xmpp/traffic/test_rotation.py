"""A log that is full, and its earlier files."""

import stat
from pathlib import Path

import pytest

from bridge.xmpp.traffic import KEPT, MAX_BYTES, MODE, RETRY_SECONDS, TrafficLog
from tests.xmpp.traffic.logs import HEADER, Clock, earlier, lines, refusal


@pytest.mark.parametrize(("beyond", "files"), [(0, 1), (1, 2)])
def test_a_file_is_filled_to_the_last_byte_and_not_beyond(
    beyond: int, files: int, path: Path, tmp_path: Path
) -> None:
    traffic = TrafficLog(path, max_bytes=len(HEADER) + 16)
    traffic.write({"n": 1})  # 8 bytes
    traffic.write({"n": 10**beyond})
    traffic.close()
    assert len(list(tmp_path.iterdir())) == files
    assert all(one.stat().st_size <= len(HEADER) + 16 for one in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("last", "files"), [(3, [[1, 2, 3]]), (10, [[1, 2], [10]])], ids=["fits", "does not"]
)
def test_what_is_written_together_fills_a_file_likewise_and_goes_on_in_the_next(
    last: int, files: list[list[int]], path: Path, tmp_path: Path
) -> None:
    traffic = TrafficLog(path, max_bytes=len(HEADER) + 24)
    traffic.write({"n": 1})  # 8 bytes
    traffic.write({"n": 2}, {"n": last})
    traffic.close()
    names = [earlier(path, 1), path][-len(files) :]
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert [[line["n"] for line in lines(name)] for name in names] == files


def test_a_line_longer_than_a_file_has_one_to_itself(path: Path) -> None:
    traffic = TrafficLog(path, max_bytes=100)
    for number in range(3):
        traffic.write({"n": number, "body": "x" * 200})
    traffic.close()
    names = (earlier(path, 2), earlier(path, 1), path)
    assert [[line["n"] for line in lines(name)] for name in names] == [[0], [1], [2]]


def test_the_oldest_file_is_dropped_and_all_are_private(path: Path, tmp_path: Path) -> None:
    traffic = TrafficLog(path, max_bytes=1, kept=2)
    for number in range(6):
        traffic.write({"n": number})
    traffic.close()
    names = (earlier(path, 2), earlier(path, 1), path)
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert [lines(name) for name in names] == [[{"n": 3}], [{"n": 4}], [{"n": 5}]]
    assert {stat.S_IMODE(name.stat().st_mode) for name in names} == {MODE}


def test_where_a_file_is_missing_among_the_earlier_ones_none_is_dropped(path: Path) -> None:
    for number in (1, 3):
        earlier(path, number).write_bytes(HEADER + b'{"n":%d}\n' % -number)
    traffic = TrafficLog(path, max_bytes=1, kept=3)
    for number in range(2):
        traffic.write({"n": number})
    traffic.close()
    names = [earlier(path, number) for number in (3, 2, 1)]
    assert [lines(name)[0]["n"] for name in [*names, path]] == [-3, -1, 0, 1]


@pytest.mark.parametrize("kind", ["foreign", "empty", "link", "directory"])
def test_what_stands_in_the_way_of_the_next_file_is_seen_at_the_start(
    kind: str, path: Path, tmp_path: Path
) -> None:
    path.write_bytes(HEADER)
    _obstruct(earlier(path, 4), kind)
    before = _all(tmp_path)
    assert str(earlier(path, 4)) in refusal(path)
    assert _all(tmp_path) == before


@pytest.mark.parametrize("kind", ["foreign", "empty", "link", "directory"])
def test_what_comes_into_the_way_of_the_next_file_is_neither_followed_nor_replaced(
    kind: str, path: Path, tmp_path: Path, clock: Clock
) -> None:
    traffic = TrafficLog(path, max_bytes=1, kept=1, clock=clock)
    traffic.write({"n": 1})
    obstacle = earlier(path, 1)
    _obstruct(obstacle, kind)
    before = _all(tmp_path)
    for number in (2, 3):
        traffic.write({"n": number})
    assert traffic.problem is not None
    assert str(obstacle) in traffic.problem
    assert _all(tmp_path) == before

    obstacle.rename(tmp_path / "out of the way")
    clock.now = RETRY_SECONDS
    traffic.write({"n": 4})
    traffic.close()
    assert lines(obstacle) == [{"n": 1}]
    assert [line.get("events", line.get("n")) for line in lines(path)] == [2, 4]


def _obstruct(path: Path, kind: str) -> None:
    match kind:
        case "foreign":
            path.write_bytes(b"# my notes\n")
        case "empty":
            path.touch()
        case "link":
            (path.parent / "target").write_bytes(HEADER)
            path.symlink_to("target")
        case "directory":
            path.mkdir()


def _all(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Everything there: what it is, and what is in it."""
    return {
        one.name: (one.lstat().st_mode, one.read_bytes() if one.is_file() else b"")
        for one in directory.iterdir()
    }


def test_the_sizes_are_as_the_manual_says() -> None:
    assert (MAX_BYTES, KEPT) == (64 * 1024 * 1024, 4)
