import itertools

import pytest
from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from bridge.mcp import revisions
from bridge.mcp.revisions import HANDSHAKE_METHODS, STATELESS_METHODS, Revision

EVERY = pytest.mark.parametrize("revision", revisions.ALL, ids=lambda one: one.date)


@pytest.mark.parametrize("revision", revisions.HANDSHAKE, ids=lambda one: one.date)
def test_a_revision_we_know_is_agreed_on(revision: Revision) -> None:
    assert revisions.negotiate(revision.date) is revision


@pytest.mark.parametrize("requested", ["2099-01-01", "", "2025-06-18 ", "1.0", "2026-07-28"])
def test_one_we_do_not_shake_hands_on_is_answered_with_the_newest(requested: str) -> None:
    assert revisions.negotiate(requested).date == "2025-11-25"


def test_none_at_all_is_answered_with_the_oldest() -> None:
    assert revisions.negotiate(None).date == "2024-11-05"


@EVERY
def test_a_revision_is_found_by_its_date_alone(revision: Revision) -> None:
    assert revisions.find(revision.date) is revision
    assert revisions.find(f"{revision.date} ") is None


def test_the_table_holds_every_revision_there_is_newest_first() -> None:
    dates = [one.date for one in revisions.ALL]
    assert dates == sorted(KNOWN_PROTOCOL_VERSIONS, reverse=True)
    assert revisions.UNNEGOTIATED is revisions.HANDSHAKE[0]


@pytest.mark.parametrize(
    ("name", "dates"),
    [
        ("handshake", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]),
        ("batches", ["2025-03-26"]),
        ("annotations", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        ("completions", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        ("progress_message", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]),
        ("titles", ["2025-06-18", "2025-11-25", "2026-07-28"]),
        ("structured", ["2025-06-18", "2025-11-25", "2026-07-28"]),
        ("server_requests", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]),
    ],
)
def test_each_revision_has_what_its_changelog_says(name: str, dates: list[str]) -> None:
    assert [one.date for one in reversed(revisions.ALL) if getattr(one, name)] == dates


def test_what_a_later_revision_has_an_earlier_one_may_lack_and_never_the_reverse() -> None:
    for older, newer in itertools.pairwise(reversed(revisions.ALL)):
        for name in ("annotations", "completions", "progress_message", "titles", "structured"):
            assert getattr(older, name) <= getattr(newer, name)


@EVERY
def test_a_revision_has_the_methods_that_the_official_types_have(revision: Revision) -> None:
    for method, date in methods.CLIENT_REQUESTS:
        if date == revision.date:
            assert revision.has(method)
    ended = STATELESS_METHODS if revision.handshake else HANDSHAKE_METHODS
    for method in ended:
        assert not revision.has(method)
        assert (method, revision.date) not in methods.CLIENT_REQUESTS


@EVERY
def test_a_resource_that_is_not_there_has_its_code(revision: Revision) -> None:
    assert revision.unknown_resource == (-32002 if revision.handshake else -32602)
