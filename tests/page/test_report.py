"""The file of a report: private, replaced as a whole, and never written through a link."""

import json
import stat
from pathlib import Path

import pytest

from bridge.page.report import ReportError, UnusableReportError, check, write
from bridge.page.timeline import encode
from tests.page.samples import incident
from tests.support.disk import no_file_beyond
from tests.support.nobody import without_privileges


@pytest.mark.parametrize("name", ["page.html", "page", "page.json", "PAGE.JSON"])
def test_the_file_is_for_its_owner_alone_and_json_by_its_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("what was there before")
    path.chmod(0o644)
    write(incident(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text("utf-8")
    if name.lower().endswith(".json"):
        assert json.loads(text) == encode(incident())
    else:
        assert text.lower().startswith("<!doctype html>")
    assert [*tmp_path.iterdir()] == [path]


def test_a_link_a_folder_a_missing_one_stdout_and_a_test_are_no_place_for_it(
    tmp_path: Path,
) -> None:
    target, link = tmp_path / "target", tmp_path / "link.html"
    target.write_text("mine")
    link.symlink_to(target)
    gone = tmp_path / "none" / "page.html"
    tests = (tmp_path / "test_it.py", tmp_path / "it.room.toml")
    for path in (link, tmp_path, gone, Path("/dev/null"), Path("a\0b"), Path("-"), *tests):
        with pytest.raises(UnusableReportError):
            check(path)
        with pytest.raises(UnusableReportError):
            write(incident(), path)
    assert (target.read_text(), sorted(tmp_path.iterdir())) == ("mine", [link, target])


def test_what_a_report_is_made_from_is_no_place_for_it_under_any_name(tmp_path: Path) -> None:
    source, same = tmp_path / "bot.log", tmp_path / "same.log"
    source.write_text("mine")
    same.hardlink_to(source)
    with pytest.raises(UnusableReportError, match="is read for a report"):
        check(same, ["-", "a\0b", tmp_path / "none", source])
    check(same, [tmp_path / "none"])


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("what was there before")
    with no_file_beyond(1_000), pytest.raises(ReportError, match="cannot be written"):
        write(incident(), path)
    tmp_path.chmod(0o555)
    with without_privileges(), pytest.raises(ReportError, match="Permission denied"):
        write(incident(), path)
    tmp_path.chmod(0o755)
    assert path.read_text() == "what was there before"
    assert [*tmp_path.iterdir()] == [path]
