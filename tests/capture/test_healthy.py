"""Nothing is found on streams on which nothing went wrong."""

from collections.abc import Callable
from random import Random

import pytest

from bridge.capture.finding import Severity
from tests.capture.healthy import Healthy, Passed
from tests.capture.logs import found
from tests.capture.writers import WRITERS, written

DEEDS = 20
"""How many things happen on a stream."""

STREAMS = 6
"""How many streams are written in a format."""
PARTS: dict[str, Callable[[list[Passed], Random], list[Passed]]] = {
    "without its beginning": lambda passed, random: passed[random.randrange(len(passed)) :],
    "what came": lambda passed, _: [each for each in passed if not each.sent],
    "what was sent": lambda passed, _: [each for each in passed if each.sent],
    "what came last": lambda passed, random: [
        each for each in passed[random.randrange(len(passed)) :] if not each.sent
    ],
    "a few stanzas": lambda passed, random: passed[random.randrange(len(passed)) :][:6],
}
"""What a log may have of a stream."""
MORE_STREAMS = 3_000


@pytest.mark.parametrize(
    "seeds",
    [range(STREAMS), pytest.param(range(STREAMS, MORE_STREAMS), marks=pytest.mark.long)],
    ids=["some", "more"],
)
@pytest.mark.parametrize("format_", WRITERS)
def test_nothing_is_found_on_a_healthy_stream(format_: str, seeds: range) -> None:
    for seed in seeds:
        healthy = Healthy(Random(f"{format_} {seed}"))  # noqa: S311 - nothing is secret
        log = written(format_, healthy.live(DEEDS))
        findings = found(*log.split("\n"))
        if healthy.was_put_out:
            kicked = [each for each in findings if each.name == "removed"]
            assert {each.severity for each in kicked} == {Severity.WARNING}
            findings = [each for each in findings if each.name != "removed"]
        assert findings == [], f"{format_} {seed}"


@pytest.mark.parametrize("part", PARTS)
def test_no_part_of_a_healthy_stream_accuses_the_client_or_the_server(part: str) -> None:
    for seed in range(20 * STREAMS):
        random = Random(f"{part} {seed}")  # noqa: S311 - nothing is secret
        passed = PARTS[part](Healthy(random).live(random.randrange(8)), random)
        log = written(random.choice(["slixmpp", "arrows", "SleekXMPP"]), passed)
        errors = [each for each in found(*log.split("\n")) if each.severity is Severity.ERROR]
        assert errors == [], f"{part} {seed}"
