"""Makes the page of tests that were played in rooms: a part for each, failed ones first."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from bridge.capture.finding import Finding, Severity
from bridge.capture.stanza import LogPlace
from bridge.page.chronicle import Chronicle, Course
from bridge.page.timeline import Bar, Timeline
from bridge.text import one_line, quoted

FAILED = "failed"

MAX_FAILURE_CHARACTERS = 8_000
"""Most characters of a failure on a page; the report of pytest has all of it."""


Step: TypeAlias = tuple[str, str, Mapping[str, Any], float, float, bool]
"""A step of a scenario: actor, verb, arguments, begin and end in seconds, whether it went well."""

NAMES = ("from", "nickname", "who")
"""The arguments of steps that name an occupant, or an account."""


class Played(NamedTuple):
    """What one test did in its room, as values that JSON can hold."""

    room: str
    """A bare JID."""
    events: Sequence[tuple[float, Mapping[str, Any], Sequence[str]]]
    """The time of each event, its exact form, and the stanzas behind it."""
    steps: Sequence[Step]
    findings: Sequence[Sequence[Any]]
    """What was found on the streams of bots, as the values of `Finding`."""


class PlayedPage:
    """Collects the tests that have ended, and makes the page of them."""

    def __init__(self, chronicle: Chronicle) -> None:
        self._chronicle = chronicle
        self._courses: list[Course] = []

    def take(self, title: str, failure: str, played: Played) -> None:
        """Take a test; `failure` is empty if it passed."""
        words = self._chronicle.words
        words.learn({}, played.room)
        words.learn_file(title)
        if words.on:  # the other lines quote messages without quotation marks
            failure = failure.partition("\n")[0]
        for actor, _, arguments, *_ in played.steps:
            for name in [actor, *(arguments.get(name, "") for name in NAMES)]:
                words.learn({"nick": name})
        course = Course(
            "scenario",
            title,
            FAILED if failure else "passed",
            failure[:MAX_FAILURE_CHARACTERS],
            [
                Finding(name, Severity(severity), message, hint, clause, LogPlace(*place), *rest)
                for name, severity, message, hint, clause, place, *rest in played.findings
            ],
        )
        for at, exact, stanzas in played.events:
            self._chronicle.take(course, at, exact, room=played.room, stanzas=stanzas)
        for actor, verb, arguments, *times, ok in played.steps:
            begin, end = (round(seconds * 1_000) for seconds in times)
            detail = ", ".join(f"{name} {_written(value)}" for name, value in arguments.items())
            course.stages.append(Bar(f"{actor}: {verb}", begin, end, ok, detail))
            course.end = max(course.end, end)
        self._courses.append(course)

    def timeline(self, made_at: float) -> Timeline:
        """Return what the page shows."""
        courses = sorted(self._courses, key=lambda course: course.outcome)
        failed = sum(course.outcome == FAILED for course in courses)
        verdict = f"{failed} of {len(courses)} tests failed."
        timeline = self._chronicle.timeline("expect", courses, made_at)
        if failed:
            verdict += f" {one_line(timeline.parts[0].verdict.splitlines()[0])}"
        return replace(timeline, verdict=verdict)


def _written(value: object) -> str:
    return quoted(value) if isinstance(value, str) else str(value)
