from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp import ring as ring_module
from bridge.xmpp.ring import CursorError, Loss, Numbering, Ring


@dataclass(frozen=True)
class Bead:
    number: int


def _numbering(last: int) -> Numbering:
    numbering = Numbering("epoch")
    for _ in range(last):
        numbering.next()
    return numbering


def _kept(ring: Ring[Bead]) -> list[int]:
    return [one.number for one in ring]


def test_numbers_are_given_out_from_one() -> None:
    numbering = Numbering("epoch")
    assert numbering.last == 0
    assert [numbering.next(), numbering.next(), numbering.last] == [1, 2, 2]


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_cursor_stands_where_it_was_taken(number: int) -> None:
    numbering = _numbering(3)
    assert numbering.place(numbering.cursor_of(number), 0) == (number, None)


@pytest.mark.parametrize(
    ("number", "forgotten", "loss"),
    [
        (0, 0, None),
        (0, 1, Loss(1, 1, "evicted")),
        (1, 3, Loss(2, 3, "evicted")),
        (2, 3, Loss(3, 3, "evicted")),
        (3, 3, None),
        (5, 3, None),
    ],
)
def test_a_loss_reaches_from_the_cursor_to_the_newest_that_is_gone(
    number: int, forgotten: int, loss: Loss | None
) -> None:
    numbering = _numbering(5)
    assert numbering.place(numbering.cursor_of(number), forgotten) == (number, loss)


@pytest.mark.parametrize("forgotten", [0, 3])
def test_a_cursor_of_another_run_stands_before_everything_of_this_one(forgotten: int) -> None:
    place = _numbering(5).place("former-7", forgotten)
    assert place == (0, Loss(8, forgotten, "restarted"))


def test_a_cursor_of_another_run_may_lie_ahead_of_everything_in_this_one() -> None:
    assert Numbering("epoch").place(f"former-{'9' * 18}", 0)[0] == 0


def test_a_cursor_of_the_future_is_refused() -> None:
    numbering = _numbering(5)
    with pytest.raises(CursorError, match="ahead"):
        numbering.place(numbering.cursor_of(6), 0)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "-",
        "epoch",
        "epoch-",
        "-1",
        "1",
        "epoch--1",
        "epoch-+1",
        "epoch-1.0",
        "epoch-1e1",
        "epoch-0x1",
        "epoch-1_0",
        "epoch-01",
        "epoch-00",
        "epoch- 1",
        " epoch-1",
        "epoch-1 ",
        "epoch-1\n",
        "epoch-1\0",
        "EPOCH-1",
        "ep-och-1",
        "epoch-1-1",
        "epoch-\u0661",  # a digit to Python's `int`
        "epoch-\u00b2",
        "epoch-\uff11",
        "\u0435poch-1",  # Cyrillic
        f"epoch-{'9' * 19}",
        f"epoch-{'9' * 5_000}",
        f"{'e' * 33}-1",
        f"{'e' * 1_000_000}-1",
        "epoch-\ud800",
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(CursorError):
        _numbering(5).place(cursor, 0)


@given(st.text(max_size=60) | st.from_regex(r"epoch-\w*"), st.integers(0, 5))
def test_whatever_is_given_for_a_cursor_is_one_of_ours_or_refused(text: str, last: int) -> None:
    numbering = _numbering(last)
    try:
        number, loss = numbering.place(text, 0)
    except CursorError:
        return
    if loss is None:
        assert text == numbering.cursor_of(number)
    else:
        assert (loss.reason, number) == ("restarted", 0)


def test_the_oldest_makes_room_at_the_capacity_and_not_before() -> None:
    ring = Ring[Bead](2, 100)
    ring.append(Bead(1), 1)
    ring.append(Bead(2), 1)
    assert (_kept(ring), ring.forgotten) == ([1, 2], 0)
    ring.append(Bead(3), 1)
    assert (_kept(ring), ring.forgotten, len(ring)) == ([2, 3], 1, 2)


def test_the_oldest_makes_room_beyond_the_greatest_weight_and_not_at_it() -> None:
    ring = Ring[Bead](100, 10)
    ring.append(Bead(1), 4)
    ring.append(Bead(2), 6)
    assert _kept(ring) == [1, 2]
    ring.append(Bead(3), 1)
    assert _kept(ring) == [2, 3]
    ring.append(Bead(4), 9)
    assert _kept(ring) == [3, 4]


def test_what_weighs_all_there_may_be_stands_alone_and_what_weighs_more_is_not_kept() -> None:
    ring = Ring[Bead](100, 10)
    ring.append(Bead(1), 1)
    ring.append(Bead(2), 10)
    assert _kept(ring) == [2]
    ring.append(Bead(3), 11)
    assert (_kept(ring), ring.forgotten) == ([], 3)
    ring.append(Bead(4), 10)
    assert _kept(ring) == [4]


def test_what_weighs_nothing_is_bounded_by_the_capacity() -> None:
    ring = Ring[Bead](3, 0)
    for number in range(1, 10):
        ring.append(Bead(number), 0)
    assert _kept(ring) == [7, 8, 9]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 7])
def test_what_comes_after_a_number_need_not_have_the_next_one(number: int) -> None:
    ring = Ring[Bead](10, 10)
    for kept in (2, 4, 6):
        ring.append(Bead(kept), 1)
    assert [one.number for one in ring.after(number)] == [it for it in (2, 4, 6) if it > number]


def test_a_ring_is_read_both_ways() -> None:
    ring = Ring[Bead](10, 10)
    for number in (1, 2, 3):
        ring.append(Bead(number), 1)
    assert _kept(ring) == [1, 2, 3]
    assert [one.number for one in reversed(ring)] == [3, 2, 1]


@pytest.mark.parametrize("stretch", [1, 2, 3])
@given(
    capacity=st.integers(0, 8),
    max_weight=st.integers(0, 12),
    weights=st.lists(st.integers(0, 6), max_size=25),
)
def test_stretches_are_what_is_kept_and_whole_ones_stay_what_they_are(
    stretch: int, capacity: int, max_weight: int, weights: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ring_module, "STRETCH", stretch)
        ring = Ring[Bead](capacity, max_weight)
        kept: list[tuple[Bead, int]] = []
        seen: list[tuple[list[Sequence[Bead]], list[list[Bead]]]] = []
        for number, weight in enumerate(weights, 1):
            ring.append(Bead(2 * number), weight)
            kept.append((Bead(2 * number), weight))
            while len(kept) > capacity or sum(one for _, one in kept) > max_weight:
                assert ring.forgotten >= kept.pop(0)[0].number
            beads = [bead for bead, _ in kept]
            assert list(ring) == beads
            assert list(reversed(ring)) == beads[::-1]
            assert len(ring) == len(beads)
            for after in range(2 * number + 2):
                parts = ring.stretches(after)
                assert [one for part in parts for one in part] == ring.after(after)
                assert ring.after(after) == [one for one in beads if one.number > after]
                assert all(parts)
            parts = ring.stretches()
            seen.append((parts, [list(one) for one in parts]))
        assert all([list(one) for one in parts] == then for parts, then in seen)
