import itertools

import pytest

from bridge.mcp import revisions


@pytest.mark.parametrize("revision", revisions.HANDSHAKE, ids=lambda one: one.date)
def test_a_revision_we_know_is_agreed_on(revision: revisions.Revision) -> None:
    assert revisions.negotiate(revision.date) is revision
    assert revision.handshake


@pytest.mark.parametrize("requested", ["2099-01-01", "", "2025-06-18 ", "1.0", "2026-07-28"])
def test_one_we_do_not_shake_hands_on_is_answered_with_the_newest(requested: str) -> None:
    assert revisions.negotiate(requested).date == "2025-11-25"


def test_none_at_all_is_answered_with_the_oldest() -> None:
    assert revisions.negotiate(None).date == "2024-11-05"


def test_only_one_revision_has_batches() -> None:
    assert [one.date for one in revisions.HANDSHAKE if one.batches] == ["2025-03-26"]


def test_the_revisions_stand_newest_first() -> None:
    dates = [one.date for one in revisions.HANDSHAKE]
    assert dates == sorted(dates, reverse=True)
    assert revisions.UNNEGOTIATED is revisions.HANDSHAKE[0]


def test_what_a_later_revision_has_an_earlier_one_may_lack_and_never_the_reverse() -> None:
    oldest_first = tuple(reversed(revisions.HANDSHAKE))
    for older, newer in itertools.pairwise(oldest_first):
        for name in ("annotations", "titles", "structured"):
            assert getattr(older, name) <= getattr(newer, name)
