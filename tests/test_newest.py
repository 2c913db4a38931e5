"""A mapping that keeps the newest keys only."""

import pytest

from bridge.newest import Newest


@pytest.mark.parametrize(
    ("added", "kept"),
    [
        ("", ""),
        ("ab", "ab"),
        ("abc", "bc"),
        ("aba", "ba"),  # what is added again is the newest
        ("abac", "ac"),
        ("aabb", "ab"),
    ],
)
def test_the_keys_that_were_added_last_are_kept_in_order(added: str, kept: str) -> None:
    newest = Newest[str, int](2)
    for number, key in enumerate(added):
        newest.add(key, number)
    assert "".join(newest) == kept
    assert [*newest.values()] == [added.rindex(key) for key in kept]
