from pathlib import Path

import pytest

from bridge.console.input_history import MAX_LINE_CHARACTERS, MAX_LINES, LineHistory, history_path


@pytest.mark.parametrize(
    ("environ", "where"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/xmpp-bridge/history"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/xmpp-bridge/history"),
        ({"HOME": "/h"}, "/h/.local/state/xmpp-bridge/history"),
        ({}, None),
    ],
)
def test_it_lies_where_the_xdg_specification_says(
    environ: dict[str, str], where: str | None
) -> None:
    assert history_path(environ) == (None if where is None else Path(where))


def test_what_is_kept_is_recalled_and_is_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "new" / "history"
    LineHistory(file).store_string("one")
    LineHistory(file).store_string("zwei €")
    assert LineHistory(file).load_history_strings() == ["zwei €", "one"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.touch(mode=0o644)
    LineHistory(file).store_string("one")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "line",
    ["", " private", "send hi", "/send hi", "a\nb", "a\x85b", "x" * (MAX_LINE_CHARACTERS + 1)],
)
def test_some_lines_are_not_kept(line: str, tmp_path: Path) -> None:
    file = tmp_path / "history"
    LineHistory(file).store_string(line)
    assert not file.exists()


def test_the_longest_line_is_kept(tmp_path: Path) -> None:
    history = LineHistory(tmp_path / "history")
    history.store_string("x" * MAX_LINE_CHARACTERS)
    assert history.load_history_strings() == ["x" * MAX_LINE_CHARACTERS]


@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_lines_stay(more: int, tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_text("".join(f"{n}\n" for n in range(MAX_LINES + more)), "utf-8")
    recalled = LineHistory(file).load_history_strings()
    assert (len(recalled), recalled[-1]) == (MAX_LINES, str(more))
    LineHistory(file).store_string("last")
    assert LineHistory(file).load_history_strings() == ["last", *recalled[:-1]]
    assert len(file.read_text("utf-8").splitlines()) == MAX_LINES
    assert [one.name for one in tmp_path.iterdir()] == ["history"]


def test_a_place_that_cannot_be_used_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = LineHistory(tmp_path / "file" / "history")
    history.store_string("one")
    assert history.load_history_strings() == []
    LineHistory(None).store_string("one")
    assert LineHistory(None).load_history_strings() == []


def test_rubbish_in_the_file_breaks_nothing(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"\xff\x00\nfine\n")
    assert LineHistory(file).load_history_strings()[0] == "fine"
