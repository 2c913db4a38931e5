"""What a check came to, in words."""

import pytest

from bridge.xmpp.faults import Fault, Place
from bridge.xmpp.report import CREATED, CheckPhase, report_of

PLACE = Place(
    "xmpp://example.org:5222",
    "example.org",
    "bot@example.org",
    "lab@conference.example.org",
    "McpDebug",
)
PHASE = CheckPhase("leave", True, 1.5, "the room confirmed it", "")


@pytest.mark.parametrize(
    ("others", "company"),
    [(0, "nobody else"), (1, "1 other occupant"), (2, "2 other occupants")],
)
def test_the_diagnosis_counts_the_other_occupants(others: int, company: str) -> None:
    report = report_of(PLACE, [PHASE], 0.4567, None, created=False, others=others)
    assert report.diagnosis == (
        f"Everything works: in the room lab@conference.example.org with {company}, 0.46 s in all."
    )
    assert (report.ok, report.condition, report.ms) == (True, None, 456.7)


def test_a_room_that_joining_made_is_named_with_what_that_may_mean() -> None:
    report = report_of(PLACE, [PHASE], 0.4567, None, created=True, others=0)
    assert report.room_created
    assert report.diagnosis.endswith(f" was made by joining it: {CREATED}")


def test_the_words_of_a_fault_fit_into_one_line() -> None:
    fault = Fault("made\nup", "first\nsecond\u202e", "hint")
    report = report_of(PLACE, [], 1.0, fault, created=False, others=0)
    assert (report.ok, report.condition) == (False, "made\\u{A}up")
    assert report.diagnosis == "first\\u{A}second\\u{202E}"


def test_the_phase_of_the_settings_goes_before_those_of_the_connection() -> None:
    first = CheckPhase("settings", True, 0.1, "from the environment alone", "")
    report = report_of(PLACE, [PHASE], 1.0, None, created=False, others=0)
    assert report.preceded_by(first).phases == [first, PHASE]
    assert report.phases == [PHASE]
