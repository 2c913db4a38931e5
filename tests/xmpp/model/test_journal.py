from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.events import Event, MessageReceived, RoomConfigured, SubjectChanged
from bridge.xmpp.model.journal import (
    ITEM_CHARACTERS,
    CursorError,
    Journal,
    Kept,
    Loss,
    Numbered,
    Numbering,
    Record,
    Records,
    Ring,
)
from tests.xmpp.elements import append


def since(ring: Records[Kept], cursor: str) -> tuple[list[Kept], Loss | None]:
    """What is kept of all that came after `cursor`, and what of it is lost."""
    number, loss = ring.position(cursor)
    return list(ring.after(number)), loss


def test_events_are_numbered_from_one_and_stamped() -> None:
    journal = Journal("epoch")
    first, second = (journal.append(SubjectChanged(text), 1.5) for text in ("a", "b"))
    assert first == Record(1, 1.5, SubjectChanged("a"))
    assert second.number == 2
    assert list(journal) == [first, second]


def test_the_oldest_makes_room_at_the_capacity() -> None:
    journal = Journal("epoch", 2)
    for number in range(3):
        journal.append(SubjectChanged(str(number)), 0)
    assert [record.number for record in journal] == [2, 3]
    assert len(journal) == 2


def test_a_cursor_stands_after_the_newest_event_and_names_this_run() -> None:
    journal = Journal("epoch", 2)
    assert journal.cursor == journal.cursor_of(0)
    records = [journal.append(SubjectChanged(""), 0) for _ in range(5)]
    assert journal.cursor == journal.cursor_of(records[-1].number)
    assert journal.cursor != Journal("another").cursor_of(5)


def test_bodies_beyond_the_bound_push_out_the_oldest() -> None:
    journal = Journal("epoch", 100, max_characters=50)
    for body in ("12345", "12345", "1"):
        journal.append(MessageReceived("room@rooms/W", "W", body), 0.0)
    assert [record.number for record in journal] == [2, 3]
    journal.append(MessageReceived("room@rooms/W", "W", "x" * 29), 0.0)
    assert len(journal) == 0
    assert journal.cursor == "epoch-4"


def test_what_came_after_a_cursor_is_told_oldest_first() -> None:
    journal = Journal("epoch")
    start = journal.cursor
    records = [journal.append(SubjectChanged(str(number)), 0) for number in range(3)]
    assert since(journal, start) == (records, None)
    assert since(journal, journal.cursor_of(2)) == (records[2:], None)
    assert since(journal, journal.cursor) == ([], None)


def test_the_oldest_cursor_gives_everything_that_is_kept_without_a_loss() -> None:
    journal = Journal("epoch", 2)
    for expected in ([], [1], [1, 2], [2, 3], [3, 4]):
        records, loss = since(journal, journal.oldest)
        assert ([record.number for record in records], loss) == (expected, None)
        journal.append(SubjectChanged(""), 0)


def test_what_is_evicted_is_told() -> None:
    journal = Journal("epoch", 1)
    assert journal.forgotten == 0
    journal.append(SubjectChanged(""), 0)
    assert journal.forgotten == 0
    journal.append(SubjectChanged(""), 0)
    assert journal.forgotten == 1


def _reaction(*reactions: str) -> MessageReceived:
    return MessageReceived("r@s/W", "W", "", reacts_to="1", reactions=reactions)


@pytest.mark.parametrize(
    ("event", "characters"),
    [
        (SubjectChanged("x" * 50), 50),
        (_reaction("x" * 50), len("r@s/WWgroupchat1") + 50 + ITEM_CHARACTERS),
        (_reaction(*"xxxx"), len("r@s/WWgroupchat1") + 4 + 4 * ITEM_CHARACTERS),
        (RoomConfigured(frozenset({104, 170})), 2 * ITEM_CHARACTERS),
    ],
)
def test_whatever_room_people_and_servers_may_fill_is_counted(
    event: Event, characters: int
) -> None:
    exact = Journal("epoch", 100, max_characters=characters)
    exact.append(event, 0)
    assert len(exact) == 1
    tight = Journal("epoch", 100, max_characters=characters - 1)
    tight.append(event, 0)
    assert len(tight) == 0


class Reader:
    """Follows a ring with the cursors it gives, and checks that nothing is told twice or lost."""

    def __init__(self, cursor: str, position: int) -> None:
        self.cursor = cursor
        self.position = position
        """Index, in all that ever happened, of the first thing not yet told."""


class Following(RuleBasedStateMachine):
    """Any number of readers of journal and trace, whatever happens between two looks."""

    readers: Bundle[tuple[str, Reader]] = Bundle("readers")

    @initialize(capacity=st.integers(0, 4), weight=st.integers(0, 12))
    def begin(self, capacity: int, weight: int) -> None:
        self.capacity, self.weight = capacity, weight
        self.runs = 0
        self.happened: dict[str, list[tuple[int, int]]] = {"journal": [], "trace": []}
        """Run and number of each event and each stanza, in order."""
        self.restart()

    @rule()
    def restart(self) -> None:
        self.runs += 1
        self.journal = Journal(f"run{self.runs}", self.capacity, max_characters=self.weight)
        self.trace = Trace(self.journal.numbering, self.capacity, max_weight=self.weight * 500)

    @rule(text=st.text("x", max_size=6))
    def something_happens(self, text: str) -> None:
        record = self.journal.append(SubjectChanged(text), 0)
        self.happened["journal"].append((self.runs, record.number))

    @rule(children=st.integers(0, 6))
    def a_stanza_comes(self, children: int) -> None:
        element = Element("message")
        element.extend(Element("body") for _ in range(children))
        append(self.trace, "in", "1", element, 0)
        self.happened["trace"].append((self.runs, self.journal.numbering.last))

    @rule(target=readers, name=st.sampled_from(["journal", "trace"]))
    def somebody_begins_to_follow(self, name: str) -> tuple[str, Reader]:
        return name, Reader(self._ring(name).cursor, len(self.happened[name]))

    @rule(target=readers, reader=readers)
    def somebody_else_follows_from_the_same_place(
        self, reader: tuple[str, Reader]
    ) -> tuple[str, Reader]:
        return reader[0], Reader(reader[1].cursor, reader[1].position)

    @rule(reader=readers, most=st.none() | st.integers(0, 3))
    def a_reader_looks(self, reader: tuple[str, Reader], most: int | None) -> None:
        name, one = reader
        ring = self._ring(name)
        found, loss = self._since(name, one.cursor)
        told = [(self.runs, piece.number) for piece in found]
        due = self.happened[name][one.position :]
        missing = due[: len(due) - len(told)]
        assert due[len(missing) :] == told
        run, _, number = one.cursor.partition("-")
        if loss is None:
            assert not missing
            assert run == f"run{self.runs}"
        elif loss.reason == "evicted":
            assert missing
            assert run == f"run{self.runs}"
            assert loss.first == int(number) + 1
            assert missing[0][1] >= loss.first
            assert missing[-1] == (self.runs, loss.last)
        else:
            assert run != f"run{self.runs}"
            assert loss.first == int(number) + 1
            here = [missed for ran, missed in missing if ran == self.runs]
            assert loss.last == (here[-1] if here else 0)
        assert loss is None or not told or loss.last < told[0][1]
        if most is None or most >= len(found):
            one.cursor, one.position = ring.cursor, len(self.happened[name])
        elif most:
            last = found[most - 1]
            one.cursor = ring.cursor_of(last.number)
            one.position = self.happened[name].index((self.runs, last.number)) + 1

    @rule(name=st.sampled_from(["journal", "trace"]), ahead=st.integers(1, 10))
    def somebody_asks_for_the_future(self, name: str, ahead: int) -> None:
        ring = self._ring(name)
        with pytest.raises(CursorError):
            ring.position(ring.cursor_of(self.journal.numbering.last + ahead))

    @invariant()
    def what_is_told_as_evicted_is_all_that_is(self) -> None:
        for name, happened in self.happened.items():
            ring = self._ring(name)
            kept = self._kept(name)
            here = [number for run, number in happened if run == self.runs]
            gone = [number for number in here if number not in kept]
            assert len(ring) == len(kept) <= self.capacity
            assert ring.forgotten == (gone[-1] if gone else 0)

    def _since(self, name: str, cursor: str) -> tuple[Sequence[Numbered], Loss | None]:
        if name == "journal":
            records, loss = since(self.journal, cursor)
            return records, loss
        stanzas, loss = since(self.trace, cursor)
        return stanzas, loss

    def _kept(self, name: str) -> list[int]:
        if name == "journal":
            return [record.number for record in self.journal]
        return [traced.number for traced in reversed(self.trace)][::-1]

    def _ring(self, name: str) -> Journal | Trace:
        return self.journal if name == "journal" else self.trace


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


@dataclass(frozen=True)
class Bead:
    number: int


class Beads(Ring[Bead]):
    def __init__(self, capacity: int, max_weight: int) -> None:
        super().__init__(Numbering("epoch"))
        self.bounds = capacity, max_weight

    def append(self, bead: Bead, weight: int) -> None:
        self.numbering.last = bead.number
        self.add(bead, weight)
        self.evict_beyond(*self.bounds)


def _ring(last: int, forgotten: int = 0) -> Beads:
    """Return a ring where so much has happened, and so much of it is evicted."""
    ring = Beads(100, 100)
    ring.numbering.last = last
    ring.forgotten = forgotten
    return ring


def _numbers(ring: Beads) -> list[int]:
    return [one.number for one in ring]


def test_numbers_are_given_out_from_one() -> None:
    numbering = Numbering("epoch")
    assert numbering.last == 0
    assert [numbering.next(), numbering.next(), numbering.last] == [1, 2, 2]


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_cursor_stands_where_it_was_taken(number: int) -> None:
    ring = _ring(3)
    assert ring.position(ring.cursor_of(number)) == (number, None)


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
    ring = _ring(5, forgotten)
    assert ring.position(ring.cursor_of(number)) == (max(number, forgotten), loss)


@pytest.mark.parametrize("forgotten", [0, 3])
def test_a_cursor_of_another_run_stands_before_everything_of_this_one(forgotten: int) -> None:
    position = _ring(5, forgotten).position("former-7")
    assert position == (forgotten, Loss(8, forgotten, "restarted"))


def test_a_cursor_of_another_run_may_lie_ahead_of_everything_in_this_one() -> None:
    assert _ring(0).position(f"former-{'9' * 18}")[0] == 0


def test_a_cursor_of_the_future_is_refused() -> None:
    ring = _ring(5)
    with pytest.raises(CursorError, match="ahead"):
        ring.position(ring.cursor_of(6))


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
        _ring(5).position(cursor)


@given(st.text(max_size=60) | st.from_regex(r"epoch-\w*"), st.integers(0, 5))
def test_whatever_is_given_for_a_cursor_is_one_of_ours_or_refused(text: str, last: int) -> None:
    ring = _ring(last)
    try:
        number, loss = ring.position(text)
    except CursorError:
        return
    if loss is None:
        assert text == ring.cursor_of(number)
    else:
        assert (loss.reason, number) == ("restarted", 0)


def test_the_oldest_makes_room_at_the_capacity_and_not_before() -> None:
    ring = Beads(2, 100)
    ring.append(Bead(1), 1)
    ring.append(Bead(2), 1)
    assert (_numbers(ring), ring.forgotten) == ([1, 2], 0)
    ring.append(Bead(3), 1)
    assert (_numbers(ring), ring.forgotten, len(ring)) == ([2, 3], 1, 2)


def test_the_oldest_makes_room_beyond_the_greatest_weight_and_not_at_it() -> None:
    ring = Beads(100, 10)
    ring.append(Bead(1), 4)
    ring.append(Bead(2), 6)
    assert _numbers(ring) == [1, 2]
    ring.append(Bead(3), 1)
    assert _numbers(ring) == [2, 3]
    ring.append(Bead(4), 9)
    assert _numbers(ring) == [3, 4]


def test_what_weighs_all_there_may_be_stands_alone_and_what_weighs_more_is_not_kept() -> None:
    ring = Beads(100, 10)
    ring.append(Bead(1), 1)
    ring.append(Bead(2), 10)
    assert _numbers(ring) == [2]
    ring.append(Bead(3), 11)
    assert (_numbers(ring), ring.forgotten) == ([], 3)
    ring.append(Bead(4), 10)
    assert _numbers(ring) == [4]


def test_what_weighs_nothing_is_bounded_by_the_capacity() -> None:
    ring = Beads(3, 0)
    for number in range(1, 10):
        ring.append(Bead(number), 0)
    assert _numbers(ring) == [7, 8, 9]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5, 6, 7])
def test_what_comes_after_a_number_need_not_have_the_next_one(number: int) -> None:
    ring = Beads(10, 10)
    for kept in (2, 4, 6):
        ring.append(Bead(kept), 1)
    assert [one.number for one in ring.after(number)] == [it for it in (2, 4, 6) if it > number]


def test_a_ring_is_read_both_ways() -> None:
    ring = Beads(10, 10)
    for number in (1, 2, 3):
        ring.append(Bead(number), 1)
    assert _numbers(ring) == [1, 2, 3]
    assert [one.number for one in reversed(ring)] == [3, 2, 1]


@given(
    capacity=st.integers(0, 8),
    max_weight=st.integers(0, 12),
    weights=st.lists(st.integers(0, 6), max_size=25),
)
def test_a_ring_keeps_the_newest_and_yields_what_comes_after_each_number(
    capacity: int, max_weight: int, weights: list[int]
) -> None:
    ring = Beads(capacity, max_weight)
    kept: list[tuple[Bead, int]] = []
    for number, weight in enumerate(weights, 1):
        ring.append(Bead(2 * number), weight)
        kept.append((Bead(2 * number), weight))
        while len(kept) > capacity or sum(one for _, one in kept) > max_weight:
            assert ring.forgotten >= kept.pop(0)[0].number
        beads = [bead for bead, _ in kept]
        assert list(ring) == beads
        assert list(reversed(ring)) == beads[::-1]
        assert len(ring) == len(beads)
        for after in range(ring.forgotten, 2 * number + 2):
            assert list(ring.after(after)) == [one for one in beads if one.number > after]


@given(
    capacity=st.integers(1, 8),
    arrivals=st.lists(st.integers(0, 6), max_size=20),
)
def test_a_ring_can_be_read_while_records_come_and_go(capacity: int, arrivals: list[int]) -> None:
    ring = Beads(capacity, 1_000)
    for number in range(1, capacity + 1):
        ring.append(Bead(number), 1)
    forward, backward = ring.after(0), reversed(ring)
    seen, seen_backward = [0], [capacity + 1]
    for arriving in arrivals:
        seen += [one.number for one in islice(forward, 1)]
        seen_backward += [one.number for one in islice(backward, 1)]
        for _ in range(arriving):
            ring.append(Bead(ring.numbering.last + 1), 1)
    seen += [one.number for one in forward]
    seen_backward += [one.number for one in backward]
    # Forward nothing is left out: it goes on after the last one, or what is lost is known.
    assert seen == list(range(len(seen)))
    rest, loss = since(ring, ring.cursor_of(seen[-1]))
    begin = seen[-1] if loss is None else loss.last
    assert [one.number for one in rest] == list(range(begin + 1, ring.numbering.last + 1))
    # Backward only what was evicted is.
    assert seen_backward == list(range(capacity + 1, capacity + 1 - len(seen_backward), -1))
    assert seen_backward[-1] <= ring.forgotten + 1
