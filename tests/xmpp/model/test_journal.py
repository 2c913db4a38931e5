from dataclasses import dataclass
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.text import memory_of
from bridge.xmpp.model import journal
from bridge.xmpp.model.events import Event, MessageReceived, RoomConfigured, Source, SubjectChanged


def since(
    ring: journal.Records[journal.Kept], cursor: str
) -> tuple[list[journal.Kept], journal.Loss | None]:
    number, loss = ring.position(cursor)
    return list(ring.after(number)), loss


def _reaction(*reactions: str) -> MessageReceived:
    return MessageReceived("r@s/W", "W", "", reacts_to="1", reactions=reactions)


SAID = MessageReceived("r@s/W", "W", "hi")


@pytest.mark.parametrize(
    ("event", "sender", "body", "marks"),
    [
        (SAID, "W", "hi", (False, True, True)),
        (SAID._replace(own=True, source=Source.HISTORY), "W", "hi", (True, True, False)),
        (SAID._replace(type="chat", body=""), "W", "", (False, False, True)),
        (SubjectChanged("x"), "", "", (False, False, False)),
        (RoomConfigured(), "", "", (False, False, False)),
    ],
)
def test_a_record_says_who_said_what_and_nothing_of_what_is_no_message(
    event: Event, sender: str, body: str, marks: tuple[bool, bool, bool]
) -> None:
    record = journal.Record(1, 0.0, event)
    assert (record.sender, record.body) == (sender, body)
    assert (record.is_own, record.is_public, record.is_live) == marks


WIDE = "x" * 49 + "\N{GRINNING FACE}"
"""Python stores each character of it in four bytes."""


@pytest.mark.parametrize(
    ("event", "weight"),
    [
        (SubjectChanged("x" * 50), 50),
        (SubjectChanged(WIDE), memory_of(WIDE)),
        (_reaction(WIDE), len("r@s/WWgroupchat1") + memory_of(WIDE) + journal.ITEM_WEIGHT),
        (_reaction("x" * 50), len("r@s/WWgroupchat1") + 50 + journal.ITEM_WEIGHT),
        (_reaction(*"xxxx"), len("r@s/WWgroupchat1") + 4 + 4 * journal.ITEM_WEIGHT),
        (RoomConfigured(frozenset({104, 170})), 2 * journal.ITEM_WEIGHT),
    ],
)
def test_whatever_room_people_or_servers_fill_is_counted(event: Event, weight: int) -> None:
    exact = journal.Journal("epoch", 100, max_weight=weight)
    exact.append(event, 0)
    assert len(exact) == 1
    tight = journal.Journal("epoch", 100, max_weight=weight - 1)
    tight.append(event, 0)
    assert len(tight) == 0


@dataclass(frozen=True)
class Bead:
    number: int


class Beads(journal.Ring[Bead]):
    def __init__(self, capacity: int, max_weight: int) -> None:
        super().__init__(journal.Numbering("epoch"))
        self.bounds = capacity, max_weight

    def append(self, bead: Bead, weight: int) -> None:
        self.numbering.last = bead.number
        self.add(bead, weight)
        self.evict_beyond(*self.bounds)


def _ring(last: int, forgotten: int = 0) -> Beads:
    ring = Beads(100, 100)
    ring.numbering.last = last
    ring.forgotten = forgotten
    return ring


@pytest.mark.parametrize(
    ("number", "forgotten", "loss"),
    [
        (0, 0, None),
        (0, 1, journal.Loss(1, 1, "evicted")),
        (1, 3, journal.Loss(2, 3, "evicted")),
        (2, 3, journal.Loss(3, 3, "evicted")),
        (3, 3, None),
        (5, 3, None),
    ],
)
def test_a_loss_begins_at_a_cursor(number: int, forgotten: int, loss: journal.Loss | None) -> None:
    ring = _ring(5, forgotten)
    assert ring.position(ring.cursor_of(number)) == (max(number, forgotten), loss)


def test_a_cursor_of_another_run_stands_before_everything_of_this_one() -> None:
    for forgotten in (0, 3):
        position = _ring(5, forgotten).position("former-7")
        assert position == (forgotten, journal.Loss(8, forgotten, "restarted"))
    assert _ring(0).position(f"former-{'9' * 18}")[0] == 0  # it may lie ahead


def test_a_cursor_of_the_future_is_refused() -> None:
    ring = _ring(5)
    with pytest.raises(journal.CursorError, match="ahead"):
        ring.position(ring.cursor_of(6))


@pytest.mark.parametrize(
    "cursor",
    [
        *("", "-", "epoch", "epoch-", "-1", "1", "epoch--1", "epoch-+1", "epoch-1.0", "epoch-01"),
        *("epoch-00", "epoch- 1", " epoch-1", "epoch-1\n", "epoch-1\0", "EPOCH-1", "ep-och-1"),
        *("epoch-\u0661", "epoch-\u00b2", "\u0435poch-1", "epoch-\ud800"),  # digits, Cyrillic
        *(f"epoch-{'9' * 19}", f"epoch-{'9' * 5_000}", f"{'e' * 33}-1", f"{'e' * 1_000_000}-1"),
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(journal.CursorError):
        _ring(5).position(cursor)


@given(st.text(max_size=60) | st.from_regex(r"epoch-\w*"), st.integers(0, 5))
def test_whatever_is_given_for_a_cursor_is_one_of_ours_or_refused(text: str, last: int) -> None:
    ring = _ring(last)
    try:
        number, loss = ring.position(text)
    except journal.CursorError:
        return
    if loss is None:
        assert text == ring.cursor_of(number)
    else:
        assert (loss.reason, number) == ("restarted", 0)


@given(
    capacity=st.integers(0, 8),
    max_weight=st.integers(0, 12),
    weights=st.lists(st.integers(0, 6), max_size=25),
)
def test_a_ring_keeps_what_is_newest(capacity: int, max_weight: int, weights: list[int]) -> None:
    ring = Beads(capacity, max_weight)
    kept: list[tuple[Bead, int]] = []
    for number, weight in enumerate(weights, 1):
        ring.append(Bead(2 * number), weight)
        kept.append((Bead(2 * number), weight))
        while len(kept) > capacity or sum(each for _, each in kept) > max_weight:
            assert ring.forgotten >= kept.pop(0)[0].number
        beads = [bead for bead, _ in kept]
        assert list(ring) == beads
        assert list(reversed(ring)) == beads[::-1]
        assert len(ring) == len(beads)
        for after in range(ring.forgotten, 2 * number + 2):
            assert list(ring.after(after)) == [each for each in beads if each.number > after]


@given(capacity=st.integers(1, 8), arrivals=st.lists(st.integers(0, 6), max_size=20))
def test_a_ring_can_be_read_while_records_come_and_go(capacity: int, arrivals: list[int]) -> None:
    ring = Beads(capacity, 1_000)
    for number in range(1, capacity + 1):
        ring.append(Bead(number), 1)
    forward, backward = ring.after(0), reversed(ring)
    seen, seen_backward = [0], [capacity + 1]
    for arriving in arrivals:
        seen += [each.number for each in islice(forward, 1)]
        seen_backward += [each.number for each in islice(backward, 1)]
        for _ in range(arriving):
            ring.append(Bead(ring.numbering.last + 1), 1)
    seen += [each.number for each in forward]
    seen_backward += [each.number for each in backward]
    # Forward nothing is left out: it goes on after the last one, or what is lost is known.
    assert seen == list(range(len(seen)))
    rest, loss = since(ring, ring.cursor_of(seen[-1]))
    begin = seen[-1] if loss is None else loss.last
    assert [each.number for each in rest] == list(range(begin + 1, ring.numbering.last + 1))
    # Backward only what was evicted is.
    assert seen_backward == list(range(capacity + 1, capacity + 1 - len(seen_backward), -1))
    assert seen_backward[-1] <= ring.forgotten + 1
