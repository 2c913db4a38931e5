import json
import logging
import os
import resource
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.traffic import (
    KEPT,
    MARK,
    MAX_BYTES,
    MODE,
    RETRY_SECONDS,
    TAIL_BYTES,
    TrafficLog,
    TrafficLogError,
)

HEADER = MARK + b'"at":"1970-01-01T00:00:00.000Z"}\n'
NOBODY = 65534


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


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


@contextmanager
def without_privileges() -> Iterator[None]:
    """Not as root, whom no permission binds."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def _lines(path: Path) -> list[dict[str, Any]]:
    """What stands in one file after its header."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    header, *lines = [json.loads(line) for line in data.split(b"\n")[:-1]]
    assert list(header) == ["log", "format", "at"]
    return lines


def _earlier(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _refusal(path: Path, **options: Any) -> str:
    with pytest.raises(TrafficLogError) as refusal:
        TrafficLog(path, **options).open()
    assert str(refusal.value).startswith("BRIDGE_TRAFFIC_LOG leads to ")
    assert str(refusal.value).endswith(" would be right")
    return str(refusal.value)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_a_new_log_begins_with_its_mark_and_is_for_its_owner_alone(
    umask: int, traffic: TrafficLog, path: Path
) -> None:
    with mask(umask):
        traffic.open()
    assert path.read_bytes() == HEADER
    assert stat.S_IMODE(path.stat().st_mode) == MODE == 0o600
    assert traffic.problem is None


def test_the_first_line_opens_the_log_where_nothing_else_did(
    traffic: TrafficLog, path: Path
) -> None:
    traffic.write({"kind": "message", "body": "hello"})
    assert path.read_bytes() == HEADER + b'{"kind":"message","body":"hello"}\n'


@pytest.mark.parametrize(
    "text",
    [
        "two\nlines\r\n",
        "\x00\x07\x1b[2J\x7f\x9b",
        "\u202e\u200b\u2028\ufeff\U000e0041",
        'quo"te \\u0041 \\',
        "\U0001f600 \ufe0f",
        "lone \ud83d",
        "\ude00 lone",
    ],
)
def test_the_exact_text_stands_in_it_without_a_character_that_a_terminal_obeys(
    text: str, traffic: TrafficLog, path: Path
) -> None:
    traffic.write({"body": text, text: 1})
    raw = path.read_bytes()
    assert raw.count(b"\n") == 2
    assert raw.replace(b"\n", b"").decode("ascii").isprintable()
    assert _lines(path) == [{"body": text, text: 1}]


@given(texts=st.lists(st.text(), max_size=30), max_bytes=st.integers(1, 400))
def test_any_texts_come_back_exactly_and_in_order_over_all_files(
    texts: list[str], max_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "room.jsonl"
        traffic = TrafficLog(path, max_bytes=max_bytes, kept=len(texts) + 1)
        traffic.open()
        for text in texts:
            traffic.write({"body": text})
        traffic.close()
        names = [_earlier(path, number) for number in range(len(texts) + 1, 0, -1)]
        found = [line for name in [*names, path] if name.exists() for line in _lines(name)]
    assert [line["body"] for line in found] == texts


def test_an_old_log_is_gone_on_with(traffic: TrafficLog, path: Path, clock: Clock) -> None:
    traffic.write({"n": 1})
    traffic.close()
    clock.now = 60.0
    again = TrafficLog(path, clock=clock)
    again.write({"n": 2})
    again.close()
    assert path.read_bytes() == HEADER + b'{"n":1}\n{"n":2}\n'


def test_a_log_that_others_may_read_is_made_private(traffic: TrafficLog, path: Path) -> None:
    path.write_bytes(HEADER)
    path.chmod(0o644)
    traffic.open()
    assert stat.S_IMODE(path.stat().st_mode) == MODE


def test_an_empty_file_is_as_good_as_a_new_one(traffic: TrafficLog, path: Path) -> None:
    path.touch(0o640)
    traffic.open()
    assert path.read_bytes() == HEADER
    assert stat.S_IMODE(path.stat().st_mode) == MODE


def test_a_directory_may_be_reached_by_a_symbolic_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    traffic = TrafficLog(tmp_path / "link" / "room.jsonl")
    traffic.open()
    traffic.close()
    assert (tmp_path / "real" / "room.jsonl").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"# my notes\n",
        b"{}\n",
        HEADER.replace(b"debug", b"other"),
        HEADER.replace(b":1,", b":2,"),
        b" " + HEADER,
        MARK[:-1],
        b"\0" * 200,
        b"no newline",
    ],
)
def test_a_file_that_is_no_such_log_is_left_as_it_is(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    path.chmod(0o644)
    before = path.stat()
    assert "something other than such a log" in _refusal(path)
    after = path.stat()
    assert path.read_bytes() == content
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


@pytest.mark.parametrize("target", ["log", "nothing"])
def test_a_symbolic_link_is_not_followed(target: str, path: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(HEADER)
    path.symlink_to(target)
    assert "a symbolic link" in _refusal(path)
    assert (tmp_path / "log").read_bytes() == HEADER
    assert not (tmp_path / "nothing").exists()


def test_a_second_name_of_a_file_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(HEADER)
    path.hardlink_to(tmp_path / "log")
    assert "a hard link" in _refusal(path)
    assert path.read_bytes() == HEADER


def test_what_is_no_regular_file_is_refused_without_waiting_for_anybody(
    path: Path, tmp_path: Path
) -> None:
    assert "a directory" in _refusal(tmp_path)
    os.mkfifo(path)
    assert "no regular file" in _refusal(path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "no regular file" in _refusal(tmp_path / "socket")
    assert "no regular file" in _refusal(Path("/dev/full"))


def test_somebody_elses_file_is_refused(path: Path) -> None:
    if os.geteuid() == 0:
        path.write_bytes(HEADER)
        os.chown(path, NOBODY, NOBODY)
    else:
        path = Path("/etc/passwd")
    assert "belongs to somebody else" in _refusal(path)


def test_a_directory_that_is_not_there_is_named_as_the_cause(path: Path) -> None:
    assert "whose directory does not exist" in _refusal(path / "deeper" / "room.jsonl")
    path.touch()
    assert "whose directory does not exist" in _refusal(path / "room.jsonl")


def test_a_missing_permission_is_named_as_the_cause(tmp_path: Path) -> None:
    directory = tmp_path / "closed"
    directory.mkdir(0o500)
    with without_privileges():
        assert "may not write (Permission denied)" in _refusal(directory / "room.jsonl")


def test_a_path_with_odd_characters_is_shown_safely(tmp_path: Path) -> None:
    path = tmp_path / "a\n\u202eb"
    path.mkdir()
    assert "a\\n\\u202eb" in _refusal(path)


@pytest.mark.parametrize("torn", [b'{"body":"hel', b"{" + b"x" * 3 * TAIL_BYTES, b"\0\0\0\0"])
def test_a_line_that_a_crash_left_incomplete_is_cut_off(
    torn: bytes, traffic: TrafficLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(HEADER + b'{"n":1}\n' + torn)
    traffic.write({"n": 2})
    assert path.read_bytes() == HEADER + b'{"n":1}\n{"n":2}\n'
    assert f"its {len(torn)} bytes were cut off" in caplog.text


def test_a_last_line_just_beyond_the_first_look_is_kept(traffic: TrafficLog, path: Path) -> None:
    for torn in (TAIL_BYTES - 1, TAIL_BYTES, TAIL_BYTES + 1):
        path.write_bytes(HEADER + b'{"n":1}\n' + b"x" * torn)
        traffic.write({"n": 2})
        assert path.read_bytes() == HEADER + b'{"n":1}\n{"n":2}\n'


def test_a_header_that_a_crash_left_incomplete_is_written_anew(
    traffic: TrafficLog, path: Path
) -> None:
    path.write_bytes(HEADER[:-5])
    traffic.open()
    assert path.read_bytes() == HEADER


def test_a_bridge_that_is_killed_leaves_complete_lines(path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from bridge.xmpp.traffic import TrafficLog\n"
        "traffic = TrafficLog(Path(sys.argv[1]), max_bytes=1_000_000); n = 0\n"
        "while True:\n"
        "    traffic.write({'n': n, 'body': 'x' * 5_000}); n += 1\n"
        "    if n == 50: print('go', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"go\n"
        child.kill()
    again = TrafficLog(path, max_bytes=1_000_000)
    again.open()  # the dead one holds no lock
    again.close()
    names = [_earlier(path, number) for number in range(KEPT, 0, -1)]
    numbers = [line["n"] for name in [*names, path] if name.exists() for line in _lines(name)]
    assert len(numbers) >= 50
    assert all(second == first + 1 for first, second in pairwise(numbers))


def test_a_full_disk_is_told_once_survived_and_owned_up_to(
    traffic: TrafficLog, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.write({"n": 0})
    complete = path.read_bytes()
    with no_file_beyond(len(complete) + 50):
        for number in range(1, 4):
            clock.now = float(number)
            traffic.write({"n": number, "body": "x" * 100})
            assert path.read_bytes() == complete
    assert traffic.problem is not None
    assert "cannot be written (File too large)" in traffic.problem
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert traffic.problem in caplog.text

    clock.now = 1.0 + RETRY_SECONDS - 0.001
    traffic.write({"n": 4})
    assert path.read_bytes() == complete, "tried again too soon"
    clock.now = 1.0 + RETRY_SECONDS
    traffic.write({"n": 5})
    assert traffic.problem is None
    zero, lost, five = _lines(path)
    assert (zero["n"], five["n"]) == (0, 5)
    assert lost.pop("reason").startswith("BRIDGE_TRAFFIC_LOG leads to ")
    assert lost == {
        "kind": "lost",
        "at": "1970-01-01T00:00:11.000Z",
        "events": 4,
        "from": "1970-01-01T00:00:01.000Z",
        "to": "1970-01-01T00:00:11.000Z",
    }
    assert len(caplog.records) == 2
    assert "is written again; 4 events were lost" in caplog.text

    traffic.write({"n": 6})
    assert _lines(path)[3:] == [{"n": 6}]


def test_a_disk_that_stays_full_is_tried_seldom_and_told_no_further_time(
    traffic: TrafficLog, path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        for number in range(100):
            clock.now = number * RETRY_SECONDS / 2
            traffic.write({"n": number})
    assert len(caplog.records) == 1
    clock.now += RETRY_SECONDS
    traffic.write({"n": 100})
    assert [line.get("events") for line in _lines(path)] == [100, None]


def test_a_clock_that_is_set_back_does_not_put_off_the_next_try(
    traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    traffic.open()
    clock.now = 1_000_000.0
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
    clock.now = 500_000.0
    traffic.write({"n": 2})
    assert [line.get("n") for line in _lines(path)] == [None, 2]


def test_what_was_lost_is_owned_up_to_at_the_end_at_the_latest(
    traffic: TrafficLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
    traffic.close()
    assert [line["events"] for line in _lines(path)] == [1]
    assert "1 events were lost" in caplog.text


def test_where_the_disk_is_still_full_at_the_end_the_loss_is_told_to_people(
    traffic: TrafficLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER)):
        traffic.write({"n": 1})
        traffic.close()
    assert path.read_bytes() == HEADER
    assert "1 events were lost" in caplog.text


@pytest.mark.parametrize("size", [0, 10, len(HEADER) - 1])
def test_a_disk_that_is_full_from_the_start_gets_its_log_when_there_is_room(
    size: int, traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    with no_file_beyond(size):
        with pytest.raises(TrafficLogError, match="more room there"):
            traffic.open()
        traffic.write({"n": 1})
        assert path.read_bytes() == b""
    clock.now = RETRY_SECONDS
    traffic.write({"n": 2})
    assert [line.get("events", line.get("n")) for line in _lines(path)] == [1, 2]


def test_nothing_is_written_after_the_end(traffic: TrafficLog, path: Path) -> None:
    traffic.open()
    traffic.close()
    traffic.close()
    traffic.write({"n": 1})
    assert path.read_bytes() == HEADER


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
    names = [_earlier(path, 1), path][-len(files) :]
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert [[line["n"] for line in _lines(name)] for name in names] == files


def test_of_what_is_written_together_each_is_counted_where_it_is_lost(
    traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    traffic.open()
    with no_file_beyond(len(HEADER) + 10):
        traffic.write({"n": 1}, {"n": 2})
        traffic.write({"n": 3}, {"n": 4}, {"n": 5})
        assert path.read_bytes() == HEADER
    clock.now = RETRY_SECONDS
    traffic.write({"n": 6}, {"n": 7})
    assert [line.get("events", line.get("n")) for line in _lines(path)] == [5, 6, 7]


def test_a_line_longer_than_a_file_has_one_to_itself(path: Path) -> None:
    traffic = TrafficLog(path, max_bytes=100)
    for number in range(3):
        traffic.write({"n": number, "body": "x" * 200})
    traffic.close()
    names = (_earlier(path, 2), _earlier(path, 1), path)
    assert [[line["n"] for line in _lines(name)] for name in names] == [[0], [1], [2]]


def test_the_oldest_file_is_dropped_and_all_are_private(path: Path, tmp_path: Path) -> None:
    traffic = TrafficLog(path, max_bytes=1, kept=2)
    for number in range(6):
        traffic.write({"n": number})
    traffic.close()
    names = (_earlier(path, 2), _earlier(path, 1), path)
    assert sorted(tmp_path.iterdir()) == sorted(names)
    assert [_lines(name) for name in names] == [[{"n": 3}], [{"n": 4}], [{"n": 5}]]
    assert {stat.S_IMODE(name.stat().st_mode) for name in names} == {MODE}


def test_where_a_file_is_missing_among_the_earlier_ones_none_is_dropped(path: Path) -> None:
    for number in (1, 3):
        _earlier(path, number).write_bytes(HEADER + b'{"n":%d}\n' % -number)
    traffic = TrafficLog(path, max_bytes=1, kept=3)
    for number in range(2):
        traffic.write({"n": number})
    traffic.close()
    names = [_earlier(path, number) for number in (3, 2, 1)]
    assert [_lines(name)[0]["n"] for name in [*names, path]] == [-3, -1, 0, 1]


@pytest.mark.parametrize("kind", ["foreign", "empty", "link", "directory"])
def test_what_stands_in_the_way_of_the_next_file_is_seen_at_the_start(
    kind: str, path: Path, tmp_path: Path
) -> None:
    path.write_bytes(HEADER)
    _obstruct(_earlier(path, 4), kind)
    before = _all(tmp_path)
    assert str(_earlier(path, 4)) in _refusal(path)
    assert _all(tmp_path) == before


@pytest.mark.parametrize("kind", ["foreign", "empty", "link", "directory"])
def test_what_comes_into_the_way_of_the_next_file_is_neither_followed_nor_replaced(
    kind: str, path: Path, tmp_path: Path, clock: Clock
) -> None:
    traffic = TrafficLog(path, max_bytes=1, kept=1, clock=clock)
    traffic.write({"n": 1})
    obstacle = _earlier(path, 1)
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
    assert _lines(obstacle) == [{"n": 1}]
    assert [line.get("events", line.get("n")) for line in _lines(path)] == [2, 4]


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


def test_a_second_bridge_keeps_off_until_the_first_has_ended(
    traffic: TrafficLog, path: Path, clock: Clock
) -> None:
    traffic.write({"n": 1})
    second = TrafficLog(path, clock=clock)
    with pytest.raises(TrafficLogError, match="which another bridge is writing to"):
        second.open()
    second.write({"n": -1})
    clock.now = RETRY_SECONDS
    second.write({"n": -2})
    assert _lines(path) == [{"n": 1}]
    traffic.close()
    clock.now = 2 * RETRY_SECONDS
    second.write({"n": 2})
    second.close()
    assert [line.get("events", line.get("n")) for line in _lines(path)] == [1, 2, 2]


def test_a_second_bridge_keeps_off_the_next_file_too(path: Path) -> None:
    first = TrafficLog(path, max_bytes=1)
    first.write({"n": 1})
    first.write({"n": 2})
    assert "another bridge" in _refusal(path)
    first.close()


def test_a_log_that_was_moved_away_is_begun_anew(
    traffic: TrafficLog, path: Path, tmp_path: Path
) -> None:
    traffic.write({"n": 1})
    path.rename(tmp_path / "kept.jsonl")
    traffic.write({"n": 2})
    path.unlink()
    traffic.write({"n": 3})
    assert _lines(tmp_path / "kept.jsonl") == [{"n": 1}]
    assert _lines(path) == [{"n": 3}]


def test_a_log_that_was_emptied_gets_its_mark_again(traffic: TrafficLog, path: Path) -> None:
    traffic.write({"n": 1})
    os.truncate(path, 0)
    traffic.write({"n": 2})
    assert _lines(path) == [{"n": 2}]


def test_a_log_whose_place_somebody_else_took_leaves_that_alone(
    traffic: TrafficLog, path: Path
) -> None:
    traffic.write({"n": 1})
    path.unlink()
    path.write_bytes(b"# my notes\n")
    traffic.write({"n": 2})
    assert path.read_bytes() == b"# my notes\n"
    assert traffic.problem is not None


def test_the_sizes_are_as_the_manual_says() -> None:
    assert (MAX_BYTES, KEPT) == (64 * 1024 * 1024, 4)
