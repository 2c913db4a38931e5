"""What a command says of a report that it cannot write."""

from argparse import Namespace
from pathlib import Path

import pytest

from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.commands.report import report_path, write_report
from tests.page.samples import incident


def test_a_folder_that_is_gone_when_the_page_is_written_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    path = report_path(Namespace(report=str(folder / "page\n.html"), pseudonyms=True), [])
    assert path is not None
    assert write_report(incident(), path) == SUCCESS
    path.unlink()
    folder.rmdir()
    assert write_report(incident(), path) == FAILURE
    said = capsys.readouterr().err
    assert said.startswith("xmpp-bridge: --report: ")
    assert said.count("\n") == 1


def test_pseudonyms_without_a_report_are_a_mistake() -> None:
    assert report_path(Namespace(report=None, pseudonyms=False), []) is None
    with pytest.raises(UsageError, match="--report"):
        report_path(Namespace(report=None, pseudonyms=True), [])
