"""A client's file gets our entry, and no other byte of it changes; or it is left alone."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.registration.errors import EditError
from bridge.registration.formats import Change, Format, edited, load, restored
from bridge.registration.json_text import MISSING
from tests.registration.written import JSON_FILES, TOML_FILES, gaps

ENTRY = {"command": "/opt/xmpp-bridge", "args": ["--env-file", "/e"], "env": {"A": "b, // }"}}
PATH = ("mcpServers", "xmpp")
PUT: list[Change] = [(PATH, ENTRY)]
TAKE: list[Change] = [(PATH, MISSING)]


def holds(text: str, other: str) -> bool:
    """Whether `text` is `other` with something put into it."""
    characters = iter(text)
    return all(character in characters for character in other)


def others(text: str, form: Format) -> Any:
    document = load(text, form)
    servers = document.pop("mcpServers", {})
    servers.pop("xmpp", None)
    return document, servers


@pytest.mark.parametrize(
    ("form", "text"),
    [*product(["json"], JSON_FILES.values()), *product(["toml"], TOML_FILES.values())],
    ids=[*JSON_FILES, *TOML_FILES],
)
def test_the_entry_is_added_no_other_byte_changes_and_it_is_taken_out_again(
    form: Format, text: str
) -> None:
    after = edited(text, form, PUT)
    assert load(after, form)["mcpServers"]["xmpp"] == ENTRY
    assert others(after, form) == others(text, form)
    assert holds(after, text)
    assert ("\r\n" in after) is ("\r\n" in text)
    assert after.count("\n") == after.count("\r\n") or "\r\n" not in text
    assert restored(after, form, TAKE, PUT, [text]) == text
    # What came since stays, and what has been there before stays byte for byte.
    assert holds(edited(after, form, TAKE), text)
    assert others(edited(after, form, TAKE), form) == others(text, form)


@st.composite
def written(draw: st.DrawFn, value: Any, newline: str) -> str:
    """A value as a person might write it: comments and blanks anywhere, trailing commas."""
    gap = st.sampled_from(gaps(newline))
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    members = []
    for key in value:
        name = json.dumps(key) + draw(gap) + ":" if isinstance(value, dict) else ""
        item = value[key] if isinstance(value, dict) else key
        words = draw(written(item, newline))
        members.append(draw(gap) + name + draw(gap) + words + draw(gap))
    brackets = "{}" if isinstance(value, dict) else "[]"
    comma = "," if draw(st.booleans()) else ""
    return brackets[0] + ",".join(members) + comma + draw(gap) + brackets[1]


WORDS = st.sampled_from(["a", 'q"\\', "//", "/*", ",}", "é\u2028", "\t", "{", "mcpServers", "xmpp"])
LEAVES = st.sampled_from([1, -0.5, True, None, "", *['"', "// x", "/*", ",]", "a\\"]])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
)
SERVERS = st.dictionaries(st.sampled_from(["o", "p//", '"']), VALUES, max_size=3)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.dictionaries(WORDS, VALUES, max_size=3), SERVERS, st.sampled_from("nr"))
def test_however_a_person_lays_json_out_only_the_entry_comes_and_goes(
    data: st.DataObject, held: dict[str, Any], servers: dict[str, Any], end: str
) -> None:
    held |= {"mcpServers": servers} if data.draw(st.booleans()) else {}
    if not isinstance(held.get("mcpServers", {}), dict):
        del held["mcpServers"]
    held.get("mcpServers", {}).pop("xmpp", None)
    text = data.draw(written(held, "\r\n" if end == "r" else "\n"))
    after = edited(text, "json", PUT)
    assert json.dumps(others(after, "json")) == json.dumps(others(text, "json"))
    assert load(after, "json")["mcpServers"]["xmpp"] == ENTRY
    assert holds(after, text)
    with suppress(EditError):  # as where a comment up to the end of its line would take a bracket
        assert holds(gone := edited(after, "json", TAKE), text)
        assert others(gone, "json") == others(text, "json")
    assert restored(after, "json", TAKE, PUT, [text]) == text


PIECES = [
    "\n",
    "# c\n",
    "a = 1 # x\n",
    "b = '''\n[mcpServers.xmpp]\n# y'''\n",
    'c = [\n  "a", # in\n\n# [mcpServers.xmpp]\n]\n',
    "  d.e = +1.5e+3\n",
    "f = {g = inf, 'h i' = 0x1F}\n",
    "n = nan\n",
    "xmpp.command = 'x'\n",
    "[mcpServers]\n",
    "[mcpServers.xmpp] # ours\n",
    "  [ mcpServers . 'xmpp' . env ]\n",
    "[mcpServers.xmpp.tools.t]\n",
    "[[mcpServers.xmpp.list]]\n",
    "[mcpServers.other]\n",
    '["a.b#".\'c = "\']\n',
    "[[things]]\n",
    "[things.more]\n",
]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), max_size=9, unique=True).map("".join),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_however_tables_are_scattered_others_stay_or_the_file_is_left_alone(
    text: str, newline: str, has_end: bool
) -> None:
    text = text.replace("\n", newline)
    text = text if has_end else text.removesuffix(newline)
    with suppress(EditError):
        after = edited(text, "toml", PUT)
        assert others(after, "toml") == others(text, "toml")
        assert load(after, "toml")["mcpServers"]["xmpp"].items() >= ENTRY.items()
        assert after.count("#") >= text.count("#")
        if "xmpp" not in load(text, "toml").get("mcpServers", {}):
            assert after.startswith(text)
            assert edited(after, "toml", TAKE) == text


@pytest.mark.parametrize("number", ["0.00001", "1e-7", "1E5", "-0.0", "1.50", "1e999", "12", "NaN"])
def test_a_number_of_json_stays_as_it_is_written(number: str) -> None:
    text = f'{{"mcpServers": {{}}, "z": {number}}}'
    assert edited(edited(text, "json", PUT), "json", TAKE) == text


def _changed(path: tuple[str, ...], value: object) -> list[Change]:
    return [((*PATH, *path), value)]


JSON_ENTRY = """\
{
  "mcpServers": {
    "a": 1, // about a
    // ours
    "xmpp": {
      "command": "/old", // where
      "args": ["-y", "x"],
      "env": {
        "A": "b"
      }
    }, // behind ours
    // about z
    "z": 2
  }
}
"""
TOML_ENTRY = """\
# about a
[mcpServers.a]
x = 1

# ours
[mcpServers.xmpp]
command = "/old#" # where
args = [ "-y",
  "x" ] # args

[mcpServers.xmpp.env]
A = "b"
# behind ours

# about z
[z]
y = 2
"""


@pytest.mark.parametrize(
    ("form", "text", "path", "value", "before", "after"),
    [
        ("json", JSON_ENTRY, ("command",), "/new", '"/old"', '"/new"'),
        ("json", JSON_ENTRY, ("args",), ["z"], '["-y", "x"]', '["z"]'),
        ("json", JSON_ENTRY, ("env",), {"B": "c"}, '"A": "b"', '"B": "c"'),
        ("json", JSON_ENTRY, ("new",), True, '"command"', '"new": true,\n      "command"'),
        ("json", JSON_ENTRY, ("args",), MISSING, '"args": ["-y", "x"],\n      ', ""),
        ("json", JSON_ENTRY, ("env",), MISSING, ',\n      "env": {\n        "A": "b"\n      }', ""),
        ("toml", TOML_ENTRY, ("command",), "/new", '"/old#"', '"/new"'),
        ("toml", TOML_ENTRY, ("args",), ["z"], '[ "-y",\n  "x" ]', '["z"]'),
        ("toml", TOML_ENTRY, ("new",), True, "command", "new = true\ncommand"),
        ("toml", TOML_ENTRY, ("env",), MISSING, '\n[mcpServers.xmpp.env]\nA = "b"\n', ""),
    ],
)
def test_in_an_entry_of_ours_only_what_changes_is_written(
    form: Format, text: str, path: tuple[str, ...], value: object, before: str, after: str
) -> None:
    assert text.count(before) == 1
    assert edited(text, form, _changed(path, value)) == text.replace(before, after)


def test_comments_beside_an_entry_of_ours_stay_when_it_goes() -> None:
    lines = JSON_ENTRY.splitlines(keepends=True)
    kept = "".join([*lines[:4], "    // behind ours\n", *lines[11:]])
    assert edited(JSON_ENTRY, "json", TAKE) == kept
    after = edited(TOML_ENTRY, "toml", TAKE)
    assert after == "".join(
        ["# about a\n[mcpServers.a]\nx = 1\n\n# ours\n# behind ours\n\n# about z\n[z]\ny = 2\n"]
    )


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("json", '{"mcpServers": {"xmpp": {"args": [ // why\n"x"]}}}'),
        ("json", '{"mcpServers": {"xmpp": {"args": ["x" /* why */]}}}'),
        ("toml", '[mcpServers.xmpp]\nargs = [ # why\n"x"]\n'),
        ("toml", '[mcpServers.xmpp]\nargs = ["x", # why\n] # z\n'),
    ],
)
def test_comments_that_would_go_with_a_value_are_named_as_the_reason(
    form: Format, text: str
) -> None:
    with pytest.raises(EditError, match="comments"):
        edited(text, form, _changed(("args",), ["y"]))


NO_JSON = [
    *("[]", "null", "{", "\x00", '{"a" 1}', '{"a": 1} x', '{"a": 1} /* open', "{,}", "[1,,2]"),
    *('{"a": 1,,}', '{"mcpServers": {,}}', '{"a": "\n"}', f'{{"a": {"[" * 100_000}}}'),
]
NO_TOML = [
    *("a = ", "[a", "a = 1\na = 2\n", f"a = {'[' * 5_000}", "a = 1 \r b = 2"),
    # The entry has no place in these.
    *("mcpServers = 3\n", "[[mcpServers]]\na = 1\n", "mcpServers = {}\n", "mcpServers = {a = 1}\n"),
]


@pytest.mark.parametrize(
    ("form", "text"), [*product(["json"], NO_JSON), *product(["toml"], NO_TOML)]
)
def test_what_cannot_be_read_or_has_no_place_for_the_entry_is_left_alone(
    form: Format, text: str
) -> None:
    with pytest.raises(EditError):
        edited(text, form, PUT)


def test_what_was_not_there_is_not_there_again() -> None:
    for form in ("json", "toml"):
        new = edited("", form, PUT)
        assert restored(new, form, TAKE, PUT, []) is None
        assert restored(new, form, TAKE, PUT, [new, ""]) == ""
        assert restored(new, form, TAKE, PUT, [f"{new}\n"]) is None
    assert tomllib.loads(edited("", "toml", PUT)) == {"mcpServers": {"xmpp": ENTRY}}
    assert edited("", "json", PUT) == json.dumps({"mcpServers": {"xmpp": ENTRY}}, indent=2) + "\n"


def _texts() -> Iterator[str]:
    yield from (*JSON_FILES.values(), *TOML_FILES.values(), JSON_ENTRY, TOML_ENTRY)


@given(st.text(max_size=300) | st.sampled_from([*_texts()]), st.sampled_from(["json", "toml"]))
def test_no_text_fails_in_another_way(text: str, form: Format) -> None:
    for changes in (PUT, _changed(("args",), ["z"])):
        with suppress(EditError):
            edited(text, form, changes)
