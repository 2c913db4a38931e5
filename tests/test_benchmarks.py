"""What `tests/benchmarks` promises, but for the figures themselves, which are the machine's."""

import json

from tests.benchmarks.command import MEASURES
from tests.benchmarks.report import BEGIN, END, README, RESULTS, Report, outcome_of

KEPT = json.loads(RESULTS.read_text(encoding="utf-8"))
REPORT = Report(KEPT["machine"], [outcome_of(each) for each in KEPT["outcomes"]])
PAGE = README.read_text(encoding="utf-8")


def test_every_measure_was_taken_nine_times_and_stands_on_the_page() -> None:
    assert [each.name for each in REPORT.outcomes] == list(MEASURES)
    for outcome in REPORT.outcomes:
        for series in outcome.series:
            assert len(series.values) >= 9, series
    assert PAGE.partition(BEGIN)[2].partition(END)[0].strip() == REPORT.as_text()


def test_each_aim_that_is_not_met_has_its_reason_on_the_page() -> None:
    reasons = PAGE.partition("## Where an aim is not met")[2].partition("\n## ")[0]
    unmet = [aim for outcome in REPORT.outcomes for aim in outcome.aims if not aim.met]
    assert reasons.count("\n- **") == len(unmet)
    for aim in unmet:
        assert f" for {aim.limit:g}" in reasons, aim
