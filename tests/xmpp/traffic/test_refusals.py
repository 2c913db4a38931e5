"""What a log is not written to."""

import os
import socket
from pathlib import Path

import pytest

from bridge.xmpp.traffic import MARK, RETRY_SECONDS, TrafficLog, TrafficLogError
from tests.nobody import NOBODY, without_privileges
from tests.xmpp.traffic.logs import HEADER, Clock, lines, refusal


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
    assert "something other than such a log" in refusal(path)
    after = path.stat()
    assert path.read_bytes() == content
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


@pytest.mark.parametrize("target", ["log", "nothing"])
def test_a_symbolic_link_is_not_followed(target: str, path: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(HEADER)
    path.symlink_to(target)
    assert "a symbolic link" in refusal(path)
    assert (tmp_path / "log").read_bytes() == HEADER
    assert not (tmp_path / "nothing").exists()


def test_a_second_name_of_a_file_is_refused(path: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(HEADER)
    path.hardlink_to(tmp_path / "log")
    assert "a hard link" in refusal(path)
    assert path.read_bytes() == HEADER


def test_what_is_no_regular_file_is_refused_without_waiting_for_anybody(
    path: Path, tmp_path: Path
) -> None:
    assert "a directory" in refusal(tmp_path)
    os.mkfifo(path)
    assert "no regular file" in refusal(path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "no regular file" in refusal(tmp_path / "socket")
    assert "no regular file" in refusal(Path("/dev/full"))


def test_somebody_elses_file_is_refused(path: Path) -> None:
    if os.geteuid() == 0:
        path.write_bytes(HEADER)
        os.chown(path, NOBODY, NOBODY)
    else:
        path = Path("/etc/passwd")
    assert "belongs to somebody else" in refusal(path)


def test_a_directory_that_is_not_there_is_named_as_the_cause(path: Path) -> None:
    assert "whose directory does not exist" in refusal(path / "deeper" / "room.jsonl")
    path.touch()
    assert "whose directory does not exist" in refusal(path / "room.jsonl")


def test_a_missing_permission_is_named_as_the_cause(tmp_path: Path) -> None:
    directory = tmp_path / "closed"
    directory.mkdir(0o500)
    with without_privileges():
        assert "may not write (Permission denied)" in refusal(directory / "room.jsonl")


def test_a_path_with_odd_characters_is_shown_safely(tmp_path: Path) -> None:
    path = tmp_path / "a\n\u202eb"
    path.mkdir()
    assert "a\\n\\u202eb" in refusal(path)


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
    assert lines(path) == [{"n": 1}]
    traffic.close()
    clock.now = 2 * RETRY_SECONDS
    second.write({"n": 2})
    second.close()
    assert [line.get("events", line.get("n")) for line in lines(path)] == [1, 2, 2]


def test_a_second_bridge_keeps_off_the_next_file_too(path: Path) -> None:
    first = TrafficLog(path, max_bytes=1)
    first.write({"n": 1})
    first.write({"n": 2})
    assert "another bridge" in refusal(path)
    first.close()
