import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import revisions
from bridge.mcp.catalogue import MAX_COMPLETIONS, Catalogue
from bridge.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from bridge.mcp.revisions import V2024_11_05, V2025_11_25, V2026_07_28, Revision
from bridge.mcp.toolset import Toolset, ToolsetError
from tests.mcp.sample_tools import EVERY, PROMPTS, RESOURCES, TOOLS, Workbench, greet


def catalogue(bench: Workbench | None = None) -> Catalogue:
    return Catalogue(TOOLS, [bench or Workbench()])


def answer(method: str, revision: Revision = V2025_11_25, /, **params: object) -> Any:
    return getattr(catalogue(), method)(params, revision)


def refusal(method: str, revision: Revision = V2025_11_25, /, **params: object) -> RpcError:
    with pytest.raises(RpcError) as refused:
        answer(method, revision, **params)
    return refused.value


def completion(typed: str, *, name: str = "name", bench: Workbench | None = None) -> Any:
    reference = {"type": "ref/prompt", "name": "greet"}
    params = {"ref": reference, "argument": {"name": name, "value": typed}}
    return catalogue(bench).complete(params, V2025_11_25)["completion"]


@EVERY
def test_everything_is_listed_in_order_with_titles_where_there_are_titles(
    revision: Revision,
) -> None:
    tools = answer("list_tools", revision)["tools"]
    resources = answer("list_resources", revision)["resources"]
    prompts = answer("list_prompts", revision)["prompts"]
    assert [one["name"] for one in tools] == [one.name for one in TOOLS.tools]
    assert [one["uri"] for one in resources] == [one.uri for one in RESOURCES]
    assert [one["name"] for one in prompts] == [one.name for one in PROMPTS]
    for one in (*tools, *resources, *prompts):
        assert ("title" in one) is revision.titles
    assert answer("list_resource_templates", revision) == {"resourceTemplates": []}


def test_a_resource_is_listed_and_read_as_json() -> None:
    listed = answer("list_resources")["resources"][0]
    assert listed == {
        "uri": "sample://words",
        "name": "words",
        "title": "Words so far",
        "description": "How much was said.",
        "mimeType": "application/json",
    }
    (content,) = answer("read_resource", uri="sample://words")["contents"]
    assert (content["uri"], content["mimeType"]) == ("sample://words", "application/json")
    assert json.loads(content["text"]) == {"words": 0, "longestWord": None}


def test_a_prompt_is_listed_with_its_arguments_and_written_out_with_them() -> None:
    assert answer("list_prompts")["prompts"][0]["arguments"] == [
        {"name": "name", "required": True, "description": "whom"},
        {"name": "mood", "required": False},
        {"name": "run", "required": False},
    ]
    written = answer("get_prompt", name="greet", arguments={"name": "Anna", "run": " Now."})
    assert written == {
        "description": "Ask for a greeting.",
        "messages": [
            {
                "role": "user",
                "content": {"type": "text", "text": "Greet Anna in a good mood. Now."},
            }
        ],
    }


@pytest.mark.parametrize(("revision", "code"), [(V2024_11_05, -32002), (V2026_07_28, -32602)])
def test_a_resource_that_is_not_there_is_told_with_those_that_are(
    revision: Revision, code: int
) -> None:
    error = refusal("read_resource", revision, uri="x" * 300)
    assert (error.code, error.message) == (code, "Resource not found")
    assert error.data == {"uri": "x" * 200, "known": [one.uri for one in RESOURCES]}


@pytest.mark.parametrize(
    ("method", "params", "reason"),
    [
        ("list_tools", {"cursor": ""}, "cursor"),
        ("list_prompts", {"cursor": 1}, "cursor"),
        ("list_resources", {"cursor": "x"}, "cursor"),
        ("list_resource_templates", {"cursor": "x"}, "cursor"),
        ("read_resource", {}, "uri"),
        ("read_resource", {"uri": 1}, "uri"),
        ("find_resource", {"uri": None}, "uri"),
        ("get_prompt", {}, "the prompts here are greet, falter"),
        ("get_prompt", {"name": "nope"}, "the prompts here are greet, falter"),
        ("get_prompt", {"name": "greet"}, "name is missing"),
        ("get_prompt", {"name": "greet", "arguments": []}, "an object is wanted"),
        ("get_prompt", {"name": "greet", "arguments": {"name": 1}}, "a string is wanted"),
        ("get_prompt", {"name": "falter", "arguments": {"x": "y"}}, "'x' is not an argument"),
        ("complete", {}, "ref and argument"),
        ("complete", {"ref": {}, "argument": {}}, "a name and a value"),
        ("complete", {"ref": {}, "argument": {"name": "a", "value": "b"}}, "ref/prompt or"),
    ],
)
def test_params_that_do_not_fit_are_invalid_and_say_what_would(
    method: str, params: dict[str, object], reason: str
) -> None:
    error = refusal(method, **params)
    assert error.code == INVALID_PARAMS
    assert reason in str(error.data)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("read_resource", {"uri": "sample://broken"}),
        ("read_resource", {"uri": "sample://endless"}),
        ("get_prompt", {"name": "falter"}),
        (
            "complete",
            {
                "ref": {"type": "ref/prompt", "name": "greet"},
                "argument": {"name": "mood", "value": ""},
            },
        ),
    ],
)
def test_what_breaks_is_our_fault_tells_no_secret_and_keeps_the_cause_for_the_log(
    method: str, params: dict[str, object]
) -> None:
    error = refusal(method, **params)
    assert error.code == INTERNAL_ERROR
    assert error.__cause__ is not None
    assert "secret" not in str(error.data)


def test_a_completion_offers_what_begins_as_typed_whatever_its_case() -> None:
    assert completion("AN") == {"values": ["Anna", "anton"], "total": 2, "hasMore": False}
    assert completion("x") == {"values": [], "total": 0, "hasMore": False}
    assert completion("", name="run")["values"] == []


@pytest.mark.parametrize("count", [MAX_COMPLETIONS, MAX_COMPLETIONS + 1])
def test_a_completion_holds_a_hundred_values_and_counts_the_rest(count: int) -> None:
    bench = Workbench()
    bench.people = [f"p{number}" for number in range(count)]
    found = completion("", bench=bench)
    assert found["values"] == bench.people[:MAX_COMPLETIONS]
    assert (found["total"], found["hasMore"]) == (count, count > MAX_COMPLETIONS)


def test_a_completion_is_of_an_argument_that_is_there() -> None:
    with pytest.raises(RpcError, match="greet has no argument 'nope'"):
        completion("", name="nope")
    argument = {"name": "x", "value": ""}
    address = {"type": "ref/resource", "uri": "sample://words"}
    assert answer("complete", ref=address, argument=argument)["completion"]["values"] == []
    nowhere = {"type": "ref/resource", "uri": "sample://nope"}
    assert refusal("complete", ref=nowhere, argument=argument).code == -32002


@pytest.mark.parametrize(
    "toolset",
    [
        Toolset("tools", TOOLS.tools),
        Toolset("resources", (), RESOURCES),
        Toolset("completions", (), (), (greet,)),
    ],
    ids=lambda one: one.name,
)
def test_a_collaborator_that_nobody_gave_is_missed_before_anybody_asks(toolset: Toolset) -> None:
    with pytest.raises(ToolsetError, match="wants a Workbench; there are 0 here"):
        Catalogue(toolset, [])


names = st.sampled_from(["greet", "falter", "sample://words", "sample://broken", "nope"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), names, st.text(max_size=3)),
    lambda inner: st.dictionaries(
        st.sampled_from(["type", "name", "uri", "value", "mood"]), inner, max_size=4
    ),
    max_leaves=6,
)
keys = st.sampled_from(["uri", "name", "arguments", "ref", "argument", "cursor"])


@given(
    st.sampled_from(["list_tools", "read_resource", "get_prompt", "complete"]),
    st.dictionaries(keys, values),
    st.sampled_from(revisions.ALL),
)
def test_whatever_is_asked_is_answered_or_refused(
    method: str, params: dict[str, object], revision: Revision
) -> None:
    try:
        json.dumps(getattr(catalogue(), method)(params, revision))
    except RpcError as error:
        json.dumps(error.wire())
