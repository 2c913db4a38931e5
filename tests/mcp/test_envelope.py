from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import revisions
from bridge.mcp.jsonrpc import INVALID_PARAMS, Json, RpcError
from bridge.mcp.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LEVELS,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    V2025_06_18,
    V2026_07_28,
    Envelope,
    open_envelope,
)

SESSION_CAPABILITIES: dict[str, Json] = {"roots": {}}
WHOLE: dict[str, Json] = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {"sampling": {}}}


def opened(meta: object, *, required: bool = False) -> Envelope:
    """Return the envelope of a request in a session of 2025-06-18 that set a log level."""
    return open_envelope(
        {"_meta": meta},
        session=V2025_06_18,
        session_capabilities=SESSION_CAPABILITIES,
        session_log_level="error",
        required=required,
    )


def refusal(meta: object, *, required: bool = False) -> RpcError:
    with pytest.raises(RpcError) as refused:
        opened(meta, required=required)
    return refused.value


@pytest.mark.parametrize("meta", [None, {}, {"com.example/other": 1}])
def test_without_an_envelope_the_sessions_word_holds(meta: object) -> None:
    assert opened(meta) == Envelope(V2025_06_18, SESSION_CAPABILITIES, None, "error")


def test_an_envelope_takes_nothing_from_the_session() -> None:
    assert opened(WHOLE) == Envelope(V2026_07_28, {"sampling": {}}, None, None)


@pytest.mark.parametrize("revision", revisions.ALL, ids=lambda one: one.date)
def test_an_envelope_may_name_any_revision_that_is_spoken(revision: revisions.Revision) -> None:
    assert opened({**WHOLE, PROTOCOL_VERSION: revision.date}).revision is revision


@pytest.mark.parametrize("mark", [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL])
def test_each_of_its_keys_alone_makes_an_envelope_that_lacks_the_others(mark: str) -> None:
    error = refusal({mark: {PROTOCOL_VERSION: "2026-07-28", LOG_LEVEL: "info"}.get(mark)})
    assert error.code == INVALID_PARAMS
    assert "is missing" in str(error.data)


def test_where_an_envelope_is_required_none_is_one_with_everything_missing() -> None:
    for meta in (None, {}, {"progressToken": 1}):
        error = refusal(meta, required=True)
        assert error.code == INVALID_PARAMS
        assert PROTOCOL_VERSION in str(error.data)


@pytest.mark.parametrize(
    "wrong",
    [
        {PROTOCOL_VERSION: 20260728},
        {PROTOCOL_VERSION: None},
        {CLIENT_CAPABILITIES: None},
        {CLIENT_CAPABILITIES: []},
        {LOG_LEVEL: "INFO"},
        {LOG_LEVEL: 7},
    ],
)
def test_a_part_of_the_wrong_kind_is_named(wrong: dict[str, Json]) -> None:
    error = refusal({**WHOLE, **wrong})
    assert error.code == INVALID_PARAMS
    assert next(iter(wrong)) in str(error.data)


@pytest.mark.parametrize("others", [WHOLE, {}])
def test_a_revision_that_is_not_spoken_comes_before_what_else_is_wrong(
    others: dict[str, Json],
) -> None:
    error = refusal({**others, PROTOCOL_VERSION: "1900-01-01"})
    assert error.wire() == {
        "code": -32022,
        "message": "Unsupported protocol version",
        "data": {"supported": [one.date for one in revisions.ALL], "requested": "1900-01-01"},
    }


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_of_the_standard_can_be_asked_for(level: str) -> None:
    assert opened({**WHOLE, LOG_LEVEL: level}).log_level == level


@pytest.mark.parametrize("meta", [{}, WHOLE], ids=["session", "envelope"])
@pytest.mark.parametrize(
    ("token", "kept"),
    [("t", "t"), ("", ""), (0, 0), (-1, -1), (True, None), (1.5, None), (None, None), ([], None)],
)
def test_a_progress_token_is_a_string_or_an_integer(
    meta: dict[str, Json], token: object, kept: object
) -> None:
    found = opened({**meta, "progressToken": token}).progress_token
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize("meta", [1, "x", [], True])
def test_a_meta_that_is_no_object_is_refused(meta: object) -> None:
    assert refusal(meta).code == INVALID_PARAMS


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


@given(st.one_of(values, st.dictionaries(keys, values)), st.booleans())
def test_whatever_meta_holds_it_is_read_or_refused(meta: object, required: bool) -> None:
    with suppress(RpcError):
        envelope = opened(meta, required=required)
        assert isinstance(meta, dict) or (meta is None and not required)
        assert envelope.revision.handshake or PROTOCOL_VERSION in (meta or {})
