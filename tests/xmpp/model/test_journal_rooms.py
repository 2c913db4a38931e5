"""One journal of several rooms: how its bounds are shared, and what is said of what is lost."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from bridge.xmpp.model.events import SubjectChanged
from bridge.xmpp.model.journal import Journal, Loss, Record
from tests.xmpp.model.test_journal import since

LOBBY, LOGS, _ = ROOMS = ("lobby@rooms", "logs@rooms", "team@rooms")
CONNECTION = ""


def _happen(journal: Journal, room: str, times: int, characters: int = 0) -> None:
    for _ in range(times):
        journal.append(SubjectChanged("x" * characters), 0, room)


def _numbers(records: Iterable[Record]) -> list[int]:
    return [record.number for record in records]


def test_a_room_that_is_left_out_of_the_settings_loses_its_events_first() -> None:
    journal = Journal("epoch", 9, max_weight=1_000)
    journal.share_among(ROOMS)
    for room in ROOMS:
        _happen(journal, room, 3)
    journal.share_among(ROOMS[1:])
    for more, held in ((2, [1, 5, 3]), (2, [0, 6, 3])):
        _happen(journal, LOGS, more)
        assert [len(list(journal.of(room))) for room in ROOMS] == held


def test_a_reader_of_all_rooms_stops_where_a_noisy_one_lost_what_came_meanwhile() -> None:
    journal = Journal("epoch", 12, max_weight=1_000)
    journal.share_among([LOBBY, LOGS])
    _happen(journal, LOBBY, 6)
    _happen(journal, LOGS, 10)
    reading = journal.after(0)
    seen = _numbers(islice(reading, 1))
    _happen(journal, LOGS, 7)
    seen += _numbers(reading)
    assert seen == [*range(1, 7), *range(11, 17)]
    assert since(journal, "epoch-16")[1] == Loss(17, 17, "evicted")


class Reader:
    def __init__(self, room: str | None, cursor: str, position: int) -> None:
        self.room = room
        self.cursor = cursor
        self.position = position
        """Index, in all that ever happened, of the first event not yet looked at."""


@dataclass(frozen=True)
class Happened:
    run: int
    number: int
    room: str
    characters: int


class Rooms(RuleBasedStateMachine):
    """Events of several rooms, and readers of all or one, beside a plain list of what is kept."""

    readers: Bundle[Reader] = Bundle("readers")
    rooms = st.sampled_from([*ROOMS, CONNECTION])

    @initialize(capacity=st.integers(0, 12), characters=st.integers(0, 30))
    def begin(self, capacity: int, characters: int) -> None:
        self.capacity, self.characters = capacity, characters
        self.run = 0
        self.happened: list[Happened] = []
        self.sharing: set[str] = set()
        self.restart()

    @rule()
    def restart(self) -> None:
        self.run += 1
        self.kept: list[Happened] = []
        self.journal = Journal(f"run{self.run}", self.capacity, max_weight=self.characters)
        self.journal.share_among(self.sharing)

    @rule(rooms=st.sets(st.sampled_from(ROOMS)))
    def the_settings_are_read_anew(self, rooms: set[str]) -> None:
        self.sharing = rooms
        self.journal.share_among(rooms)

    @rule(room=rooms, characters=st.integers(0, 8), times=st.integers(1, 5))
    def something_happens(self, room: str, characters: int, times: int) -> None:
        for _ in range(times):
            _happen(self.journal, room, 1, characters)
            event = Happened(self.run, self.journal.numbering.last, room, characters)
            self.happened.append(event)
            self._keep(event)

    @rule()
    def a_stanza_comes(self) -> None:
        self.journal.numbering.next()

    @rule(target=readers, room=st.none() | rooms)
    def somebody_begins_to_follow(self, room: str | None) -> Reader:
        return Reader(room, self.journal.of(room).cursor, len(self.happened))

    @rule(target=readers, room=st.none() | rooms)
    def somebody_reads_all_there_is(self, room: str | None) -> Reader:
        read = self.journal.of(room)
        assert _numbers(since(read, read.oldest)[0]) == self._kept_of(room)
        here = sum(each.run == self.run for each in self.happened)
        return Reader(room, self.journal.cursor_of(0), len(self.happened) - here)

    @rule(reader=readers, room=st.none() | rooms)
    def a_reader_turns_to_another_room(self, reader: Reader, room: str | None) -> None:
        reader.room = room

    @rule(reader=readers, most=st.none() | st.integers(0, 3))
    def a_reader_looks(self, reader: Reader, most: int | None) -> None:
        entries, loss = since(self.journal.of(reader.room), reader.cursor)
        due = [
            each for each in self.happened[reader.position :] if reader.room in {None, each.room}
        ]
        told = [(self.run, record.number) for record in entries]
        assert told == [(each.run, each.number) for each in due if each in self.kept]
        lost = [each for each in due if each not in self.kept]
        run, _, number = reader.cursor.partition("-")
        if loss is None:
            assert not lost
            assert run == f"run{self.run}"
        else:
            here = [each.number for each in lost if each.run == self.run]
            assert loss.first == int(number) + 1
            assert (loss.reason == "evicted") is (run == f"run{self.run}")
            assert here or loss.reason == "restarted"
            assert loss.last == (here[-1] if here else 0)
            assert all(loss.first <= each for each in here) or loss.reason == "restarted"
        if most is None or most >= len(entries):
            reader.cursor, reader.position = self.journal.cursor, len(self.happened)
        elif most:
            last = next(each for each in due if (each.run, each.number) == told[most - 1])
            reader.cursor = self.journal.cursor_of(last.number)
            reader.position = self.happened.index(last) + 1

    @invariant()
    def what_is_kept_is_what_the_list_has(self) -> None:
        assert _numbers(self.journal) == self._kept_of(None)
        assert _numbers(reversed(self.journal)) == self._kept_of(None)[::-1]
        assert len(self.journal) == len(self.kept) <= self.capacity
        assert sum(each.characters for each in self.kept) <= self.characters
        for room in (*ROOMS, CONNECTION):
            assert _numbers(self.journal.of(room)) == self._kept_of(room)

    def _kept_of(self, room: str | None) -> list[int]:
        return [each.number for each in self.kept if room in {None, each.room}]

    def _keep(self, event: Happened) -> None:
        """Take over what the journal has kept, if it evicted what `Journal` says that it does."""
        before = [*self.kept, event]
        numbers = set(_numbers(self.journal))
        self.kept = [each for each in before if each.number in numbers]
        gone = [each for each in before if each.number not in numbers]
        crowded = len(before) > self.capacity
        too_long = sum(each.characters for each in before) > self.characters
        assert bool(gone) == (crowded or too_long)
        if gone and not too_long:
            assert len(self.kept) == self.capacity
        shares = len(self.sharing)
        for room in (*ROOMS, CONNECTION):
            held = [each for each in before if each.room == room]
            kept = [each for each in self.kept if each.room == room]
            assert kept == held[len(held) - len(kept) :]  # the oldest go
            if shares > 1 and room in self.sharing:
                few = len(held) <= self.capacity // shares
                if few and sum(each.characters for each in held) <= self.characters // shares:
                    assert kept == held
        if shares < 2:
            assert self.kept == before[len(gone) :]
        elif any(each.room in self.sharing or each.room == CONNECTION for each in gone):
            # Those of a room that is no longer in the settings go before all others.
            assert {each.room for each in self.kept} <= {*self.sharing, CONNECTION}


TestRooms = Rooms.TestCase
TestRooms.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
