"""Which events are the same, whoever observed them."""

from bridge.store.database import Happened, Observer, Recorded
from bridge.store.pairing import unrecorded


def test_the_same_words_in_another_room_are_no_copy() -> None:
    event, by = {"kind": "message", "sender": "Wilma", "body": "hello"}, Observer("a@b", "c", "d")
    observed = [Happened(1.0, room, event, number=place) for place, room in enumerate("xyy")]
    recorded = [Recorded(place, 1.0, room, event, by, True) for place, room in enumerate("xy")]
    assert unrecorded(observed, recorded) == {2}
    assert unrecorded(observed, recorded[:1]) == {1, 2}
