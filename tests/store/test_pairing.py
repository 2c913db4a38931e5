"""Which events are the same, whoever observed them."""

from bridge.store.database import Happened, Observer, Recorded
from bridge.store.pairing import unrecorded


def test_the_same_words_in_another_room_are_no_copy() -> None:
    event, by = {"kind": "message", "sender": "Wilma", "body": "hello"}, Observer("a@b", "c", "d")
    observed = [Happened(1.0, room, event, number=place) for place, room in enumerate("xyy")]
    recorded = [Recorded(place, 1.0, room, event, by, True) for place, room in enumerate("xy")]
    assert unrecorded(observed, recorded) == {2}
    assert unrecorded(observed, recorded[:1]) == {1, 2}


def test_a_moderation_is_the_same_whether_or_not_its_author_was_seen() -> None:
    by = Observer("a@b", "c", "d")
    event = {"kind": "message", "sender": "", "retracts": "1", "moderatedBy": "Mod"}
    observed = [Happened(1.0, "x", event | {"author": "Wilma"}, number=0)]
    assert unrecorded(observed, [Recorded(0, 1.0, "x", event, by, True)]) == set()
