"""What a measure found: series of figures, ratios between them, and the aims they are held to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeVar

Found = TypeVar("Found")
Bound = Literal["at most", "at least"]


@dataclass(frozen=True)
class Series:
    """What one contender did, run by run."""

    contender: str
    what: str
    """The quantity, such as "p50"."""
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def spread(self) -> tuple[float, float]:
        return min(self.values), max(self.values)

    def over(self, other: "Series") -> float:
        """How many times the other's this is: the median of the ratios of neighbouring runs.

        The machine's moods come and go in seconds, and meet neighbours alike.
        """
        return median(mine / its for mine, its in zip(self.values, other.values, strict=True))


@dataclass(frozen=True)
class Aim:
    """One thing that was to be reached, and what was."""

    text: str
    value: float
    bound: Bound
    limit: float
    unit: str = "times"

    @property
    def met(self) -> bool:
        return self.value <= self.limit if self.bound == "at most" else self.value >= self.limit


@dataclass(frozen=True)
class Outcome:
    """All that one measure found."""

    name: str
    title: str
    series: tuple[Series, ...]
    aims: tuple[Aim, ...]
    note: str = ""


def alternated(
    pairs: int, contenders: Mapping[str, Callable[[], Found]]
) -> dict[str, Sequence[Found]]:
    """What each contender found, one after another `pairs` times, after a round that warms up."""
    results: dict[str, list[Found]] = {name: [] for name in contenders}
    for number in range(pairs + 1):
        for name, run in contenders.items():
            result = run()
            if number:
                results[name].append(result)
    return dict(results)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
