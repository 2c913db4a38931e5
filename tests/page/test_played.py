"""The page of tests: failed ones first, with their steps, findings and failures."""

import json

import pytest

from bridge.capture.finding import Finding, Severity
from bridge.capture.stanza import LogPlace
from bridge.page.chronicle import Chronicle
from bridge.page.played import MAX_FAILURE_CHARACTERS, Played, PlayedPage
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import Bar, Timeline, encode

ROOM = "test-1@rooms.localhost"
FAILURE = 'ping.room.toml, line 7: Bob waited 1 s for a message from "Robot" that contains "pong".'


def drawn(*, pseudonyms: bool = False) -> Timeline:
    page = PlayedPage(Chronicle(Pseudonyms(on=pseudonyms)))
    said = {"kind": "message", "direction": "in", "sender": "Alice", "body": "hi", "source": "live"}
    good = Played(ROOM, [(1.0, said, ["<message/>"])], [], [])
    hint = 'Let "Robot" join first.'
    finding = Finding(
        "join", Severity.ERROR, "Refused.", hint, "XEP", LogPlace("", 0, "1970-01-01T00:00:02Z")
    )
    expected = {"from": "Robot", "contains": "pong", "within": 1}
    bad = good._replace(steps=[("Bob", "expect", expected, 2.0, 3.0, False)], findings=[finding])
    page.take("good.room.toml", "", Played(*json.loads(json.dumps(good))))
    page.take("ping.room.toml", f"{FAILURE}\nNothing came.", Played(*json.loads(json.dumps(bad))))
    return page.timeline(9.0)


def test_failed_tests_come_first_with_failure_steps_and_findings() -> None:
    timeline = drawn()
    failed, passed = timeline.parts
    said = 'ping.room.toml, line 7: Bob waited 1 s for a message from "Robot" that contains "pong".'
    assert (timeline.verdict, timeline.left_out) == (f"1 of 2 tests failed. {said}", 0)
    assert (passed.title, passed.outcome, passed.verdict) == ("good.room.toml", "passed", "")
    assert (failed.outcome, failed.verdict) == ("failed", f"{FAILURE}\nNothing came.")
    detail = 'from "Robot", contains "pong", within 1'
    assert failed.stages == (Bar("Bob: expect", 2_000, 3_000, ok=False, detail=detail),)
    (finding,) = failed.findings
    assert (finding.severity, finding.at) == ("error", 2_000)
    assert (failed.events[0].lane, failed.events[0].stanzas) == (0, ("<message/>",))
    assert failed.to == 3_000


def test_with_pseudonyms_names_in_steps_and_failures_are_replaced() -> None:
    timeline = drawn(pseudonyms=True)
    failed, _ = timeline.parts
    text = json.dumps(encode(timeline))
    assert not [name for name in ("Alice", "Bob", "Robot", "pong", "ping", ROOM) if name in text]
    bob, robot = failed.stages[0].name.partition(":")[0], failed.stages[0].detail.split('"')[1]
    assert failed.verdict == (
        f'{failed.title}, line 7: {bob} waited 1 s for a message from "{robot}" that contains '
        '"[4 characters]".'
    )
    assert failed.findings[0].hint == f'Let "{robot}" join first.'


@pytest.mark.parametrize("more", [0, 1])
def test_a_long_failure_is_cut(more: int) -> None:
    page = PlayedPage(Chronicle(Pseudonyms(on=False)))
    page.take("a.room.toml", "x" * (MAX_FAILURE_CHARACTERS + more), Played(ROOM, [], [], []))
    assert len(page.timeline(1.0).parts[0].verdict) == MAX_FAILURE_CHARACTERS
