import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import Any

import pytest

from bridge.frozen import dataclass


@dataclass(frozen=True)
class Quick:
    """Made by ours."""

    self: str
    number: int = 5
    hidden: str = field(default="secret", repr=False)
    items: list[int] = field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Standard:
    """Made by the standard library."""

    self: str
    number: int = 5
    hidden: str = field(default="secret", repr=False)
    items: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Checked:
    """With arguments by name only, and a check."""

    name: str
    size: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name.upper())


@dataclass(frozen=True)
class Pair:
    """Can be a key."""

    one: int
    two: int


@dataclass(frozen=True, slots=True)
class Small:
    """Made by ours, without a `__dict__`."""

    self: str
    number: int = 5
    hidden: str = field(default="secret", repr=False)
    items: list[int] = field(default_factory=list)


@pytest.mark.parametrize("cls", [Quick, Small, Standard])
def test_it_does_what_the_standard_one_does(cls: Callable[..., Any]) -> None:
    a = cls("x", items=[1])
    assert (a.self, a.number, a.hidden, a.items) == ("x", 5, "secret", [1])
    assert a == cls("x", 5, "secret", [1])
    assert a != cls("x", 6)
    assert a != ("x", 5, "secret", [1])
    assert cls("x").items is not cls("x").items
    assert repr(a).endswith("(self='x', number=5, items=[1])")
    assert dataclasses.asdict(a) == {"self": "x", "number": 5, "hidden": "secret", "items": [1]}
    assert dataclasses.replace(a, number=7).number == 7
    assert [one.name for one in dataclasses.fields(a)] == ["self", "number", "hidden", "items"]
    assert pickle.loads(pickle.dumps(a)) == copy.deepcopy(a) == a  # noqa: S301 - ours
    with pytest.raises(FrozenInstanceError):
        a.number = 1
    with pytest.raises(FrozenInstanceError):
        del a.number
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
    with pytest.raises(TypeError, match="required"):
        cls()
    with pytest.raises(TypeError, match="unexpected"):
        cls("x", other=1)
    match a:
        case Quick(name) | Small(name) | Standard(name):
            assert name == "x"
        case _:
            raise AssertionError(a)


def test_equal_ones_are_one_key() -> None:
    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1)}) == 2


def test_a_check_may_set_what_it_found() -> None:
    assert Checked(name="a") == Checked(name="A", size=1)
    with pytest.raises(TypeError, match="positional"):
        Checked("a")  # type: ignore[call-arg]


def test_one_with_slots_has_room_for_its_fields_alone() -> None:
    with pytest.raises(AttributeError):
        object.__setattr__(Small("x"), "other", 1)


def test_what_else_an_instance_keeps_makes_no_difference() -> None:
    class Keeping(Pair):
        @cached_property
        def total(self) -> int:
            return self.one + self.two

    a, b = Keeping(1, 2), Keeping(1, 2)
    assert a.total == 3
    assert (a, hash(a)) == (b, hash(b))


def test_what_the_class_says_itself_stands() -> None:
    @dataclass(frozen=True)
    class Spoken:
        word: str

        def __repr__(self) -> str:
            return "..."

    assert repr(Spoken("x")) == "..."
    assert Spoken("x") == Spoken("x")
