import json

import pytest
from mcp_types import methods

from bridge.mcp import revisions
from bridge.mcp.calls import Call, Crashed, Failed, Outcome, Succeeded
from bridge.mcp.jsonrpc import compact
from bridge.mcp.replies import (
    CONTENTS,
    LISTS,
    Caching,
    described,
    reply_to,
    stamped,
)
from bridge.mcp.revisions import V2024_11_05, V2025_03_26, V2026_07_28, Envelope, Revision
from bridge.mcp.toolset import ArgumentError, ToolError
from tests.mcp.sample_tools import IMPLEMENTATION, PREFIX, Count, count, say, wait

EVERY = pytest.mark.parametrize("revision", revisions.ALL, ids=lambda one: one.date)
SERVER_INFO = {f"{PREFIX}serverInfo": IMPLEMENTATION.wire(V2026_07_28)}


def asked(revision: Revision | None) -> Call:
    """Return a call in the words of `revision`; None is the bare dialect."""
    envelope = None if revision is None else Envelope(revision, {})
    return Call(1, "id", wait, wait.function, {}, envelope)


@EVERY
def test_who_we_are_has_a_title_where_things_have_titles(revision: Revision) -> None:
    wire = IMPLEMENTATION.wire(revision)
    assert wire == {"name": "sample", "version": "1.2.3"} | (
        {"title": "Sample server"} if revision.titles else {}
    )


def test_a_handshake_result_stays_as_it_is() -> None:
    for caching in (None, LISTS):
        assert stamped({"x": 1}, V2025_03_26, IMPLEMENTATION, caching) == {"x": 1}


@pytest.mark.parametrize(
    ("caching", "ttl", "scope"), [(LISTS, 3_600_000, "public"), (CONTENTS, 0, "private")]
)
def test_a_stateless_result_is_stamped_and_may_be_kept(
    caching: Caching, ttl: int, scope: str
) -> None:
    whole = {"resultType": "complete", "x": 1, "_meta": SERVER_INFO}
    assert stamped({"x": 1}, V2026_07_28, IMPLEMENTATION) == whole
    kept = stamped({"x": 1}, V2026_07_28, IMPLEMENTATION, caching)
    assert kept == whole | {"ttlMs": ttl, "cacheScope": scope}


@EVERY
def test_a_tool_is_described_in_what_the_revision_knows(revision: Revision) -> None:
    wire = described(count, revision)
    assert wire["name"] == "count"
    assert ("title" in wire) is revision.titles
    assert ("outputSchema" in wire) is revision.structured
    assert "outputSchema" not in described(say, revision)
    assert wire.get("annotations") == (
        {
            "title": "Count words",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        }
        if revision.annotations
        else None
    )


@EVERY
@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded("text"),
        Succeeded(Count(2, "ü\ud800")),
        Failed(ToolError("gone", condition="gone", hint="Wait.")),
    ],
    ids=["text", "object", "failure"],
)
def test_each_outcome_is_a_result_that_the_revision_allows(
    outcome: Outcome, revision: Revision
) -> None:
    response = reply_to(asked(revision), outcome, IMPLEMENTATION)
    assert response.id == "id"
    result = response.result
    assert isinstance(result, dict)
    methods.validate_server_result("tools/call", revision.date, result)
    assert result["isError"] is isinstance(outcome, Failed)
    assert ("resultType" in result) is not revision.handshake
    (block,) = result["content"]
    if "structuredContent" in result:
        assert json.loads(block["text"]) == result["structuredContent"]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (
            Failed(ToolError("gone", condition="gone", hint="Wait.")),
            {"code": -32603, "message": "gone", "data": {"condition": "gone", "hint": "Wait."}},
        ),
        (
            Failed(ArgumentError("too long", condition="bad-request", hint="Cut it.")),
            {
                "code": -32602,
                "message": "too long",
                "data": {"condition": "bad-request", "hint": "Cut it."},
            },
        ),
        (
            Crashed("it broke"),
            {
                "code": -32603,
                "message": "Internal error",
                "data": {"condition": "internal-server-error", "hint": "it broke"},
            },
        ),
    ],
    ids=["failure", "argument", "crash"],
)
def test_what_goes_wrong_in_the_bare_dialect_is_an_error(
    outcome: Outcome, error: dict[str, object]
) -> None:
    assert reply_to(asked(None), outcome, IMPLEMENTATION).error == error


@pytest.mark.parametrize("revision", [None, V2024_11_05, V2026_07_28])
def test_what_json_cannot_say_is_a_crash_in_every_dialect(revision: Revision | None) -> None:
    response = reply_to(asked(revision), Succeeded({"x": float("nan")}), IMPLEMENTATION)
    assert response.error is not None
    assert response.error["code"] == -32603
    assert "the tool wait returned is not JSON" in json.dumps(response.error["data"])


def test_json_for_a_model_is_one_line_of_plain_unicode() -> None:
    assert compact({"a": ["ü", None, 1.5]}) == '{"a":["ü",null,1.5]}'
