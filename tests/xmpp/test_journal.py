from collections.abc import Sequence
from xml.etree.ElementTree import Element

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from bridge.xmpp.events import Event, MessageReceived, RoomConfigured, SubjectChanged
from bridge.xmpp.journal import ITEM_CHARACTERS, Journal, Record
from bridge.xmpp.ring import CursorError, Loss, Numbered
from bridge.xmpp.trace import ELEMENT_WEIGHT, Trace


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
    assert journal.since(start) == (records, None)
    assert journal.since(journal.cursor_of(2)) == (records[2:], None)
    assert journal.since(journal.cursor) == ([], None)


def test_the_oldest_cursor_gives_everything_that_is_kept_without_a_loss() -> None:
    journal = Journal("epoch", 2)
    for expected in ([], [1], [1, 2], [2, 3], [3, 4]):
        records, loss = journal.since(journal.oldest)
        assert ([record.number for record in records], loss) == (expected, None)
        journal.append(SubjectChanged(""), 0)


def test_what_is_evicted_is_told() -> None:
    journal = Journal("epoch", 1)
    assert journal.evicted is None
    journal.append(SubjectChanged(""), 0)
    assert journal.evicted is None
    journal.append(SubjectChanged(""), 0)
    assert journal.evicted == Loss(1, 1, "evicted")


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
    """Follows a book with the cursors it gives, and checks that nothing is told twice or lost."""

    def __init__(self, cursor: str, place: int) -> None:
        self.cursor = cursor
        self.place = place
        """Position, in all that ever happened, of the first thing not yet told."""


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
        self.trace = Trace(
            self.journal.numbering, self.capacity, max_weight=self.weight * ELEMENT_WEIGHT
        )

    @rule(text=st.text("x", max_size=6))
    def something_happens(self, text: str) -> None:
        record = self.journal.append(SubjectChanged(text), 0)
        self.happened["journal"].append((self.runs, record.number))

    @rule(children=st.integers(0, 6))
    def a_stanza_comes(self, children: int) -> None:
        element = Element("message")
        element.extend(Element("body") for _ in range(children))
        self.trace.append("in", "1", element, 0)
        self.happened["trace"].append((self.runs, self.journal.numbering.last))

    @rule(target=readers, name=st.sampled_from(["journal", "trace"]))
    def somebody_begins_to_follow(self, name: str) -> tuple[str, Reader]:
        return name, Reader(self._book(name).cursor, len(self.happened[name]))

    @rule(target=readers, reader=readers)
    def somebody_else_follows_from_the_same_place(
        self, reader: tuple[str, Reader]
    ) -> tuple[str, Reader]:
        return reader[0], Reader(reader[1].cursor, reader[1].place)

    @rule(reader=readers, most=st.none() | st.integers(0, 3))
    def a_reader_looks(self, reader: tuple[str, Reader], most: int | None) -> None:
        name, one = reader
        book = self._book(name)
        found, loss = self._since(name, one.cursor)
        told = [(self.runs, piece.number) for piece in found]
        due = self.happened[name][one.place :]
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
            one.cursor, one.place = book.cursor, len(self.happened[name])
        elif most:
            last = found[most - 1]
            one.cursor = book.cursor_of(last.number)
            one.place = self.happened[name].index((self.runs, last.number)) + 1

    @rule(name=st.sampled_from(["journal", "trace"]), ahead=st.integers(1, 10))
    def somebody_asks_for_the_future(self, name: str, ahead: int) -> None:
        book = self._book(name)
        with pytest.raises(CursorError):
            book.since(book.cursor_of(self.journal.numbering.last + ahead))

    @invariant()
    def what_is_told_as_evicted_is_all_that_is(self) -> None:
        for name, happened in self.happened.items():
            book = self._book(name)
            kept = self._kept(name)
            here = [number for run, number in happened if run == self.runs]
            gone = [number for number in here if number not in kept]
            assert len(book) == len(kept) <= self.capacity
            assert book.evicted == (Loss(1, gone[-1], "evicted") if gone else None)

    def _since(self, name: str, cursor: str) -> tuple[Sequence[Numbered], Loss | None]:
        return self.journal.since(cursor) if name == "journal" else self.trace.since(cursor)

    def _kept(self, name: str) -> list[int]:
        if name == "journal":
            return [record.number for record in self.journal]
        return [traced.number for traced in reversed(self.trace)][::-1]

    def _book(self, name: str) -> Journal | Trace:
        return self.journal if name == "journal" else self.trace


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
