import fcntl
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.client.history import MAX_BYTES, MAX_LINES, LineFile
from tests.support.racing import put

SECONDS = 20.0
"""Limit for each call."""


@pytest.mark.parametrize(
    "line",
    ["send hunter2 is it", '/call login {"Secret": "x"}', "/call f api_key = x", "TOKEN: x"],
)
def test_a_line_with_a_secret_is_not_kept(tmp_path: Path, line: str) -> None:
    lines = LineFile(tmp_path / "history", ["hunter2"])
    lines.add(f"before\n{line}\n  \nthe password is not here")
    assert lines.read() == ["the password is not here", "before"]


@pytest.mark.parametrize("more", [0, 1])
def test_the_oldest_lines_go_first(tmp_path: Path, more: int) -> None:
    path = tmp_path / "history"
    lines = LineFile(path, [])
    lines.add("\n".join(map(str, range(MAX_LINES + more))))
    assert lines.read() == [str(n) for n in reversed(range(more, MAX_LINES + more))]
    assert len(path.read_text().splitlines()) == MAX_LINES


def test_a_line_that_another_client_adds_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text("old\n" * (MAX_LINES + 1))
    with path.open("a") as other, ThreadPoolExecutor(2) as clients:
        fcntl.flock(other, fcntl.LOCK_EX)
        reading = clients.submit(LineFile(path, []).read)
        adding: Future[object] = clients.submit(LineFile(path, []).add, "mine")
        for each in (reading, adding):
            with pytest.raises(TimeoutError):
                each.result(0.2)
        other.write("theirs\n")
        other.flush()
        fcntl.flock(other, fcntl.LOCK_UN)
        assert "theirs" in reading.result(SECONDS)
        adding.result(SECONDS)
    assert LineFile(path, []).read()[:2] == ["mine", "theirs"]
    assert len(path.read_text().splitlines()) == MAX_LINES


@pytest.mark.parametrize("more", [0, 1])
def test_of_a_file_beyond_its_limit_the_end_is_kept(tmp_path: Path, more: int) -> None:
    path = tmp_path / "history"
    path.write_text("x" * (MAX_BYTES - 3 + more) + "\n" + "y\n")
    assert [len(line) for line in LineFile(path, []).read()] == [1, MAX_BYTES - 3]


@pytest.mark.parametrize("kind", ["FIFO", "directory", "link to nothing"])
def test_what_lies_in_the_place_of_the_file_is_left_alone(tmp_path: Path, kind: str) -> None:
    put(tmp_path / "history", kind, tmp_path / "victim")
    lines = LineFile(tmp_path / "history", [])
    lines.add("hello")
    assert lines.read() == []
    assert not (tmp_path / "victim").exists()
