"""Nothing is found on streams on which nothing went wrong."""

from random import Random

import pytest

from bridge.capture.finding import Severity
from tests.capture.healthy import Healthy
from tests.capture.logs import found
from tests.capture.writers import WRITERS, written

DEEDS = 20
"""How many things happen on a stream."""

STREAMS = 6
"""How many streams are written in a format."""
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
