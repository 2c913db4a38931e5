from bridge.xmpp.events import MessageReceived, SubjectChanged
from bridge.xmpp.journal import Journal, Record


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
