from collections.abc import Mapping
from pathlib import Path

from bridge.settings.load import load
from bridge.settings.table import Settings
from bridge.xmpp.checks.probe import probe
from bridge.xmpp.checks.report import CheckStage, Report


def settings(environment: Mapping[str, str]) -> Settings:
    nowhere = Path("/nonexistent")
    read = load(environment, cwd=nowhere, package_root=nowhere, searching=False)
    assert read.settings is not None, read.problems
    return read.settings


async def check(
    environment: Mapping[str, str], *, send: bool = False, must_exist: bool = False
) -> Report:
    told: list[CheckStage] = []
    report = await probe(settings(environment), told.append, send=send, must_exist=must_exist)
    assert told == list(report.phases)
    assert environment["XMPP_PASSWORD"] not in repr(report)
    return report


def names(report: Report) -> list[str]:
    return [each.name for each in report.phases]


def detail(report: Report, name: str) -> str:
    (text,) = (each.detail for each in report.phases if each.name == name)
    return text


def failed(report: Report, name: str) -> CheckStage:
    """The stage that failed: the last one, and no other."""
    assert not report.ok
    assert [each.name for each in report.phases if not each.ok] == [name], report
    last = report.phases[-1]
    assert last.name == name
    assert last.hint
    assert report.diagnosis in last.detail
    return last
