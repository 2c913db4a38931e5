"""What stands in a log."""

import os
import stat
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.traffic import KEPT, MODE, TAIL_BYTES, TrafficLog
from tests.xmpp.traffic.logs import HEADER, Clock, earlier, lines, mask


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
    assert lines(path) == [{"body": text, text: 1}]


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
        names = [earlier(path, number) for number in range(len(texts) + 1, 0, -1)]
        found = [line for name in [*names, path] if name.exists() for line in lines(name)]
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
    names = [earlier(path, number) for number in range(KEPT, 0, -1)]
    numbers = [line["n"] for name in [*names, path] if name.exists() for line in lines(name)]
    assert len(numbers) >= 50
    assert all(second == first + 1 for first, second in pairwise(numbers))


def test_nothing_is_written_after_the_end(traffic: TrafficLog, path: Path) -> None:
    traffic.open()
    traffic.close()
    traffic.close()
    traffic.write({"n": 1})
    assert path.read_bytes() == HEADER


def test_a_log_that_was_moved_away_is_begun_anew(
    traffic: TrafficLog, path: Path, tmp_path: Path
) -> None:
    traffic.write({"n": 1})
    path.rename(tmp_path / "kept.jsonl")
    traffic.write({"n": 2})
    path.unlink()
    traffic.write({"n": 3})
    assert lines(tmp_path / "kept.jsonl") == [{"n": 1}]
    assert lines(path) == [{"n": 3}]


def test_a_log_that_was_emptied_gets_its_mark_again(traffic: TrafficLog, path: Path) -> None:
    traffic.write({"n": 1})
    os.truncate(path, 0)
    traffic.write({"n": 2})
    assert lines(path) == [{"n": 2}]


def test_a_log_whose_place_somebody_else_took_leaves_that_alone(
    traffic: TrafficLog, path: Path
) -> None:
    traffic.write({"n": 1})
    path.unlink()
    path.write_bytes(b"# my notes\n")
    traffic.write({"n": 2})
    assert path.read_bytes() == b"# my notes\n"
    assert traffic.problem is not None
