from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import methods
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS

from bridge.mcp import revisions
from bridge.mcp.jsonrpc import Json, RpcError
from bridge.mcp.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    HANDSHAKE_METHODS,
    LEVELS,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    STATELESS_METHODS,
    V2025_06_18,
    RequestMeta,
    Revision,
    read_meta,
)
from tests.mcp.sample_tools import EVERY


@pytest.mark.parametrize("requested", ["2099-01-01", "2025-06-18 ", "2026-07-28"])
def test_one_we_do_not_shake_hands_on_is_answered_with_the_newest(requested: str) -> None:
    assert revisions.negotiate(requested).date == "2025-11-25"


def test_the_table_holds_every_revision_there_is_newest_first() -> None:
    dates = [each.date for each in revisions.ALL]
    assert dates == sorted(KNOWN_PROTOCOL_VERSIONS, reverse=True)
    assert revisions.UNNEGOTIATED._replace(named=True) == revisions.HANDSHAKE[0]


@EVERY
def test_a_revision_has_the_methods_that_the_official_types_have(revision: Revision) -> None:
    for method, date in methods.CLIENT_REQUESTS:
        if date == revision.date:
            assert revision.has(method)
    ended = STATELESS_METHODS if revision.handshake else HANDSHAKE_METHODS
    for method in ended:
        assert not revision.has(method)
        assert (method, revision.date) not in methods.CLIENT_REQUESTS


# What a request says of itself


WHOLE: dict[str, Json] = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {"sampling": {}}}


SESSION = RequestMeta(V2025_06_18, {"roots": {}}, None, "error")


def opened(meta: object, *, required: bool = False) -> RequestMeta:
    """Return what a request in a session of 2025-06-18 that set a log level is served by."""
    return read_meta({"_meta": meta}, SESSION, required=required)


@pytest.mark.parametrize("meta", [{}, WHOLE], ids=["session", "request"])
def test_a_progress_token_is_a_string_or_an_integer(meta: dict[str, Json]) -> None:
    tokens: list[object] = ["", 0, 2.0, True, 1.5, None, []]
    taken = [opened({**meta, "progressToken": each}).progress_token for each in tokens]
    assert taken == ["", 0, 2, None, None, None, None]


@pytest.mark.parametrize(
    ("declared", "takes_forms"),
    [
        ({}, True),
        ([], True),
        ({"form": {}, "url": {}}, True),
        ({"applyDefaults": True}, True),
        ({"url": {}}, False),
        (None, False),
        (True, False),
    ],
    ids=str,
)
def test_a_client_takes_forms_unless_it_names_other_ways_alone(
    declared: Json, takes_forms: bool
) -> None:
    meta = RequestMeta(V2025_06_18, {"elicitation": declared})
    assert meta.accepts("elicitation/create") is takes_forms


keys = st.sampled_from([*WHOLE, CLIENT_INFO, LOG_LEVEL, "progressToken"])
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["2026-07-28", "2024-11-05", "x", *LEVELS]),
    st.just({}),
    st.just([]),
)


def test_a_long_version_is_not_repeated_as_a_whole() -> None:
    with pytest.raises(RpcError) as refused:
        opened(WHOLE | {PROTOCOL_VERSION: "2" * 10_000})
    assert len(str(refused.value.data)) + len(str(refused.value)) < 1_000


@given(st.one_of(values, st.dictionaries(keys, values)), st.booleans())
def test_whatever_meta_holds_it_is_read_or_refused(meta: object, required: bool) -> None:
    with suppress(RpcError):
        opening = opened(meta, required=required)
        assert isinstance(meta, dict) or (meta in (None, []) and not required)
        assert opening.revision.handshake or PROTOCOL_VERSION in (meta or {})
