"""Types that tools may have in their signatures, and any JSON to try them with."""

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from hypothesis import strategies as st


class Colour(Enum):
    RED = "red"
    ONE = 1


class Level(IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Point:
    x_axis: int
    label_: str = "here"
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Line:
    points: tuple[Point, ...]
    colour: Colour | None = None


texts = st.text(st.characters(exclude_categories=[]), max_size=5)
keys = st.one_of(texts, st.sampled_from(["xAxis", "label", "tags", "points", "colour"]))
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 7),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, 1.0, 2.5, "a", "b", "red"]),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.fixed_dictionaries({"xAxis": inner}, optional={"label": inner, "tags": inner}),
        st.fixed_dictionaries({"points": st.lists(inner)}, optional={"colour": inner}),
    ),
    max_leaves=8,
)
