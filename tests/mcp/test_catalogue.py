import json
from typing import Annotated, Any
from urllib.parse import quote

import pytest

from bridge.mcp.catalogue import MAX_COMPLETIONS, Catalogue
from bridge.mcp.jsonrpc import RpcError
from bridge.mcp.revisions import V2025_03_26, V2025_11_25, V2026_07_28
from bridge.mcp.schema import Bounds
from bridge.mcp.toolset import MAX_VALUE_CHARACTERS, Completes, Toolset, ToolsetError, resource
from tests.mcp.sample_tools import RESOURCES, TOOLS, Count, Workbench, nothing


@pytest.mark.parametrize("count", [MAX_COMPLETIONS, MAX_COMPLETIONS + 1])
def test_a_completion_holds_a_hundred_values_and_counts_the_rest(count: int) -> None:
    bench = Workbench()
    bench.people = [f"p{number}" for number in range(count)]
    reference = {"type": "ref/prompt", "name": "greet"}
    params: Any = {"ref": reference, "argument": {"name": "name", "value": ""}}
    completion: Any = Catalogue(TOOLS, [bench]).complete(params, V2025_11_25)["completion"]
    assert completion["values"] == bench.people[:MAX_COMPLETIONS]
    assert (completion["total"], completion["hasMore"]) == (count, count > MAX_COMPLETIONS)


def shelves(bench: Workbench, /) -> list[str]:
    return bench.people


@resource("sample://shelf/{shelf}/words", title="Words on a shelf")
def shelf_words(bench: Workbench, /, shelf: Annotated[str, Completes(shelves)]) -> Count:
    """How much stands on one shelf."""
    return Count(len(bench.people), shelf)


NAMES = ["top@home", "a b", "ü", "100%", "{shelf}", "."]


def shelved() -> Catalogue:
    bench = Workbench()
    bench.people = NAMES
    return Catalogue(Toolset("shelves", (), (*RESOURCES, shelf_words)), [bench])


def test_a_template_is_listed_apart_from_resources() -> None:
    templates: Any = shelved().list_resource_templates({}, V2025_03_26)["resourceTemplates"]
    (listed,) = templates
    assert (listed["uriTemplate"], listed["name"]) == (shelf_words.uri, "shelf-words")
    assert "title" not in listed
    resources: Any = shelved().list_resources({}, V2025_11_25)["resources"]
    assert [each["uri"] for each in resources] == [each.uri for each in RESOURCES]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("safe", ["", "@"])
def test_each_value_of_a_template_can_be_read(name: str, safe: str) -> None:
    uri = f"sample://shelf/{quote(name, safe)}/words"
    read: Any = shelved().read_resource({"uri": uri}, V2025_11_25)
    (content,) = read["contents"]
    assert content["uri"] == uri
    assert json.loads(content["text"]) == {"words": len(NAMES), "longestWord": name}
    assert shelved().resource_at(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "sample://shelf/none/words",
        "sample://shelf//words",
        "sample://shelf/top@home/words/",
        "sample://shelf/%74op%40home/words",
        "sample://shelf/\ud800/words",
        "Sample://shelf/top@home/words",
    ],
)
def test_another_value_is_no_resource(uri: str) -> None:
    catalogue_ = shelved()
    assert not catalogue_.resource_at(uri)
    with pytest.raises(RpcError) as refused:
        catalogue_.read_resource({"uri": uri}, V2026_07_28)
    told: Any = refused.value.data
    shelves = [shelf_words.expanded({"shelf": name})[1] for name in NAMES]
    assert told["known"] == [*(each.uri for each in RESOURCES), *shelves]


def test_the_variable_of_a_template_is_completed() -> None:
    for uri, typed, values in (
        (shelf_words.uri, "TOP", ["top@home"]),
        (shelf_words.uri, "", NAMES),
        (shelf_words.expanded({"shelf": "a b"})[0], "", []),
        ("sample://words", "", []),
    ):
        reference = {"type": "ref/resource", "uri": uri}
        params: Any = {"ref": reference, "argument": {"name": "shelf", "value": typed}}
        answered: Any = shelved().complete(params, V2025_11_25)
        assert answered["completion"]["values"] == values
    for wrong in ("sample://shelf/none/words", None):
        params = {"ref": {"type": "ref/resource", "uri": wrong}, "argument": params["argument"]}
        with pytest.raises(RpcError):
            shelved().complete(params, V2025_11_25)


@resource("sample://row/{row}/book-{number}", title="A book")
def book(row: str, number: Annotated[str, Bounds(max_length=3)]) -> str:
    """One book of a row."""
    return f"{number} in {row}"


@resource("sample://cover", title="A cover", mime_type="image/png")
def cover() -> bytes:
    """A picture."""
    return b"\x89"


@pytest.mark.parametrize(
    ("uri", "content"),
    [
        ("sample://row/a%20b/book-12", {"mimeType": "text/plain", "text": "12 in a b"}),
        ("sample://cover", {"mimeType": "image/png", "blob": "iQ=="}),
    ],
)
def test_a_resource_is_text_bytes_or_made_of_any_value(uri: str, content: dict[str, str]) -> None:
    library = Catalogue(Toolset("books", (), (book, cover)), [])
    read: Any = library.read_resource({"uri": uri}, V2025_11_25)
    assert read["contents"] == [{"uri": uri, **content}]


def test_a_resource_without_a_path_is_read_with_the_slash_that_libraries_add() -> None:
    library = Catalogue(Toolset("books", (), (book, cover)), [])
    read: Any = library.read_resource({"uri": "sample://cover/"}, V2025_11_25)
    assert read["contents"][0]["uri"] == "sample://cover"


@pytest.mark.parametrize("cursor", [None, "", "next", 0, []])
def test_a_list_has_one_page_to_which_no_cursor_leads(cursor: object) -> None:
    catalogue_ = shelved()
    if cursor in (None, ""):
        assert catalogue_.list_tools({"cursor": cursor}, V2025_11_25)
    else:
        with pytest.raises(RpcError, match="cursor"):
            catalogue_.list_tools({"cursor": cursor}, V2025_11_25)


LONGEST = "x" * MAX_VALUE_CHARACTERS


@pytest.mark.parametrize(
    ("rest", "is_there"),
    [
        ("/book-1", False),
        ("a/b/book-1", False),
        ("a/book-1234", False),
        (f"{LONGEST}/book-1", True),
        (f"{LONGEST}x/book-1", False),
    ],
)
def test_a_value_that_a_template_does_not_take_is_no_resource(rest: str, is_there: bool) -> None:
    books = Catalogue(Toolset("books", (), (book,)), [])
    assert (books.resource_at(f"sample://row/{rest}") is not None) is is_there


def test_a_template_takes_the_variables_of_its_uri_each_once() -> None:
    def one(bench: Workbench, /, shelf: Annotated[str, Completes(shelves)]) -> Count:
        return Count(0, shelf)

    def two(shelf: Annotated[str, Completes(shelves)], row: str) -> Count:
        return Count(0, shelf + row)

    for uri, function in (
        ("sample://{row}", one),
        ("sample://{shelf}/{shelf}", one),
        ("sample://{shelf}", two),
        ("sample://{shelf}", nothing.function),
    ):
        with pytest.raises(ToolsetError):
            resource(uri, title="Wrong")(function)
