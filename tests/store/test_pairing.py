"""Which events are the same, whoever observed them."""

from math import inf

import pytest

from bridge.store.pairing import Alike, Key, Wanted, key_of, same

WANTED = Wanted(Key(1, 5), 100.0, -inf)
PLAIN = WANTED._replace(key=Key(1, None))


@pytest.mark.parametrize(
    ("wanted", "rows", "taken", "expected"),
    [
        (WANTED, [Alike(3, 500.0, 5), Alike(4, 100.0, None)], (), 3),
        (WANTED, [Alike(3, 500.0, 5)], (3,), 3),
        (WANTED, [Alike(3, 100.0, 6)], (), None),
        (WANTED, [Alike(3, 100.0, None)], (), 3),
        (PLAIN, [Alike(3, 100.0, 6)], (), 3),
        (PLAIN, [Alike(3, 100.0, None)], (3,), None),
        (PLAIN, [Alike(3, 101.0, None), Alike(4, 100.5, None)], (), 4),
        (PLAIN, [Alike(3, 130.0, None)], (), 3),
        (PLAIN, [Alike(3, 131.0, None)], (), None),
        (PLAIN._replace(since=90.0), [Alike(3, 90.0, None)], (), 3),
        (PLAIN._replace(since=90.0), [Alike(3, 89.9, None)], (), None),
        (PLAIN._replace(since=90.0), [Alike(3, 89.1, None, is_history=True)], (), 3),
        (PLAIN, [Alike(3, 100.0, None), Alike(9, 500.0, 7, copied=True)], (), 9),
        (PLAIN, [Alike(3, 101.0, None, asked=100.0)], (), 3),
        (PLAIN, [Alike(3, 101.0, None, asked=100.1)], (), None),
        (PLAIN, [Alike(3, 101.0, None, is_history=True, asked=100.1)], (), 3),
    ],
)
def test_which_row_is_an_event(
    wanted: Wanted, rows: list[Alike], taken: tuple[int, ...], expected: int | None
) -> None:
    row = same(wanted, rows, taken)
    assert (row and row.id) == expected


@pytest.mark.parametrize(
    ("ours", "theirs", "equal"),
    [
        ({"sender": "Wilma", "body": "x"}, {"sender": "Wilma", "body": "x", "jid": "w@x"}, True),
        ({"sender": "Wilma", "body": "x"}, {"sender": "Wilma", "body": "y"}, False),
        ({"sender": "", "retracts": "1"}, {"sender": "", "retracts": "1", "author": "W"}, True),
        ({"sender": "Wilma"}, {"sender": "Wilma", "payload": ["reaction"]}, False),
        ({"codes": [104]}, {"codes": [172]}, False),
    ],
)
def test_fields_that_the_room_shows_to_some_only_make_no_difference(
    ours: dict[str, object], theirs: dict[str, object], equal: bool
) -> None:
    keys = [key_of({"kind": "message"} | fields) for fields in (ours, theirs)]
    assert (keys[0] == keys[1]) is equal
