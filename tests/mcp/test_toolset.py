from collections.abc import Sequence
from types import ModuleType
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.content import Content, Image, Interpret, ResourceLink, tool_result
from bridge.mcp.context import Context
from bridge.mcp.revisions import HANDSHAKE_METHODS, STATELESS_METHODS, V2025_11_25
from bridge.mcp.schema import Bounds, MismatchError, Schema, SchemaError, object_of, read_members
from bridge.mcp.toolset import (
    RESERVED,
    Signature,
    Toolset,
    ToolsetError,
    merge,
    tool,
)
from tests.mcp.sample_tools import Count, Workbench, count, greet, say, words
from tests.mcp.shapes import Colour, Line, Point

WORDS = Toolset("words", (count,))
TALK = Toolset("talk", (say,))


MORE = Toolset("more", (), (words,), (greet,))


def test_what_is_not_said_is_taken_cautiously_and_what_only_reads_destroys_nothing() -> None:
    @tool(title="Plain")
    def plain() -> str:
        """Do something."""
        return ""

    @tool(title="Read", read_only=True, destructive=True)
    def read() -> str:
        """Read."""
        return ""

    told = {(each.read_only, each.destructive, each.idempotent) for each in (plain, read)}
    assert told == {(False, False, False), (True, False, True)}
    assert plain.open_world


def no_docstring() -> str:
    return ""


def bare_number() -> int:
    """Return a number."""
    return 1


def interpreted_text() -> Interpret[str]:
    """Return data that is no object."""
    return Interpret("text", "Tell it.")


def early(context: Context, bench: Workbench, /) -> str:
    """Take the context first."""
    return bench.people[0]


def several(name: str, more: str = "") -> str:
    """Take two."""
    return name + more


NO_OBJECT: dict[str, Any] = {"anyOf": []}


@pytest.mark.parametrize(
    ("function", "schemas", "complaint"),
    [
        (no_docstring, {}, "no_docstring"),
        (bare_number, {}, "bare_number"),
        (interpreted_text, {}, "interpreted_text"),
        (early, {}, "early: the Context comes last"),
        (several, {"input_schema": {"type": "object"}}, "several takes one argument"),
        (several, {"input_schema": NO_OBJECT}, "several: a schema has no `type: object`"),
        (several, {"output_schema": NO_OBJECT}, "several: a schema has no `type: object`"),
    ],
)
def test_a_function_that_makes_no_tool_is_its_authors_error(
    function: Any, schemas: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ToolsetError, match=complaint):
        tool(title="Wrong", **schemas)(function)


@pytest.mark.parametrize(
    "name", ["a" * 129, "tools/call", "with space", "ü", "line\n", *sorted(RESERVED)]
)
def test_any_other_name_and_a_method_of_mcp_are_their_authors_error(name: str) -> None:
    for given in ("a" * 128, "A.b_c-9"):
        assert tool(given, title="Named")(count.function).name == given
    with pytest.raises(ToolsetError, match="no name for a tool"):
        tool(name, title="Named")(count.function)


def test_every_method_of_mcp_that_could_be_a_tools_name_is_reserved() -> None:
    methods = HANDSHAKE_METHODS | STATELESS_METHODS | {"initialize", "ping", "tools/list"}
    assert {each for each in methods if "/" not in each} == RESERVED


def test_schemas_that_an_author_wrote_are_listed_as_they_are() -> None:
    schema: Schema = {"type": "object", "allOf": [{"required": ["name"]}]}

    @tool(title="Written", input_schema=schema, output_schema=schema)
    def written(arguments: dict[str, object]) -> Count:
        """Take what comes."""
        return Count(len(arguments))

    assert written.input_schema is schema
    assert written.output_schema is schema
    given = {"name": 1, "more": None}
    assert written.bound(given) == {"arguments": given}


@pytest.mark.parametrize("result", [str, Content, Image | ResourceLink, list[Count]])
def test_content_has_no_schema(result: Any) -> None:
    def shown() -> Any:
        """Show it."""

    shown.__annotations__["return"] = result
    assert tool(title="Shown")(shown).output_schema is None


def test_a_tool_that_returns_a_dict_of_anything_says_only_that_it_is_an_object() -> None:
    @tool(title="Told")
    def made() -> Annotated[dict, "a thing"]:  # type: ignore[type-arg]
        """Tell it."""
        return {"any": ["thing", 1]}

    assert made.output_schema is not None
    assert made.output_schema["type"] == "object"
    assert "additionalProperties" not in made.output_schema
    structured = tool_result(made(), V2025_11_25)["structuredContent"]
    assert structured == {"any": ["thing", 1]}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (((len,),), "the toolset new: len is no tool; is there an @tool"),
        (((words,),), "Resource is no tool"),
        (((), (say,)), "Tool is no resource; is there an @resource"),
    ],
    ids=["function", "resource", "tool"],
)
def test_a_set_of_anything_else_is_its_authors_error(content: Any, complaint: str) -> None:
    with pytest.raises(ToolsetError, match=complaint):
        Toolset("new", *content)


def test_a_collaborator_that_is_missing_or_ambiguous_is_an_error() -> None:
    for given, number in (([Count(1)], 0), ([Workbench(), Workbench()], 2)):
        with pytest.raises(ToolsetError, match=f"wants a Workbench; there are {number} here"):
            say.signature.inject(say.name, say.function, given)


def test_modules_give_what_they_have_in_the_order_it_is_written() -> None:
    first, second = ModuleType("first"), ModuleType("second")
    vars(first).update(b=say, other="text", words=words, a=count)
    vars(second).update(greet=greet)
    toolset = Toolset.of_modules("all", first, second)
    assert vars(toolset) == vars(Toolset("all", (say, count), (words,), (greet,)))


def test_a_read_only_set_withholds_what_changes_anything() -> None:
    rest = merge([TALK, WORDS, MORE]).that_only_read("")
    assert (rest.tools, rest.resources, rest.prompts) == ((count,), (words,), (greet,))


@pytest.mark.parametrize(
    ("others", "clash"),
    [
        ([Toolset("new", (say, say))], "the toolset new has two of the tool say"),
        ([WORDS, Toolset("new", (count,))], "words and new both have a tool count"),
        ([MORE, Toolset("new", (), (words,))], "more and new both have a resource sample://wor"),
        ([MORE, Toolset("new", (), (), (greet,))], "more and new both have a prompt greet"),
    ],
    ids=["one set", "tool", "resource", "prompt"],
)
def test_two_things_of_one_kind_and_name_clash(others: list[Toolset], clash: str) -> None:
    with pytest.raises(ToolsetError, match=clash):
        merge(others)


# What a function takes


PLACE = Point(1)


def gather(
    house: Point,
    /,
    message: Annotated[str, Bounds(min_length=1)],
    timeout_seconds: Annotated[float, Bounds(minimum=0, maximum=50)] = 10,
    from_: str | None = None,
    *,
    colours: Sequence[Colour] = (Colour.RED,),
    where: Point = PLACE,
) -> Line:
    raise AssertionError((house, message, timeout_seconds, from_, colours, where))


SIGNATURE = Signature.of(gather)


def test_a_signature_is_told_apart_and_its_schema_names_defaults() -> None:
    assert (SIGNATURE.collaborators, SIGNATURE.result) == ((Point,), Line)
    assert [each.name for each in SIGNATURE.parameters][1:3] == ["timeout_seconds", "from_"]
    schema = object_of(SIGNATURE.parameters)
    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["message"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert {name: each.get("default") for name, each in properties.items()} == {
        "message": None,
        "timeoutSeconds": 10,
        "from": None,
        "colours": ["red"],
        "where": {"xAxis": 1, "label": "here", "tags": []},
    }


def test_many_unknown_and_long_arguments_are_told_briefly() -> None:
    with pytest.raises(MismatchError) as caught:
        read_members(
            SIGNATURE.parameters,
            {"message": "m"} | {f"{index}" * 10_000: 1 for index in range(100)},
        )
    assert str(caught.value).count("is not known") == 5
    assert len(str(caught.value)) < 1000


def test_a_signature_that_json_cannot_say_is_its_authors_error() -> None:
    def untyped(x) -> str:  # type: ignore[no-untyped-def]
        return str(x)

    def several(*xs: int) -> str:
        return str(xs)

    def options(**xs: int) -> str:
        return str(xs)

    def raw(x: bytes) -> str:
        return str(x)

    for function in (untyped, several, options, raw):
        with pytest.raises(SchemaError):
            Signature.of(function)
