import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.registration import jsonfile
from bridge.registration.errors import EditError
from bridge.registration.jsonfile import MAX_DEPTH

OURS = ("mcpServers", "xmpp")
ENTRY = {"command": "/opt/xmpp-bridge", "args": [], "env": {"TIA_ENV_PATH": "/home/me/.env"}}

PLAIN = """\
{
    "z": 1.50e2,
    "mcpServers": {
        "other": {"command": "foo", "args": ["\\u00e9"]}
    },
    "a": null
}
"""

COMMENTED = """\
// mine
{
\t"inputs": [], // none
\t"mcpServers": {
\t\t/* "xmpp": {} */
\t\t"other": { "command": "foo" }, // "}
\t},
}
"""


def test_a_new_member_stands_behind_the_others_in_their_own_indentation() -> None:
    assert jsonfile.edit(PLAIN, OURS, {"command": "x"}) == PLAIN.replace(
        '["\\u00e9"]}\n',
        '["\\u00e9"]},\n        "xmpp": {\n            "command": "x"\n        }\n',
    )


def test_comments_and_trailing_commas_stay() -> None:
    after = jsonfile.edit(COMMENTED, OURS, ENTRY)
    assert jsonfile.load(after)["mcpServers"]["xmpp"] == ENTRY
    assert [line for line in after.splitlines() if line in COMMENTED.splitlines()] == (
        COMMENTED.splitlines()
    )
    assert '\n\t\t"xmpp": {\n\t\t\t"command"' in after


@pytest.mark.parametrize("text", [PLAIN, COMMENTED])
def test_what_was_put_in_can_be_taken_out_to_the_letter(text: str) -> None:
    assert jsonfile.edit(jsonfile.edit(text, OURS, ENTRY), OURS, None) == text


def test_an_entry_is_exchanged_where_it_stands() -> None:
    text = '{"mcpServers": {"xmpp": 1, "other": 2}}'
    assert jsonfile.edit(text, OURS, True) == '{"mcpServers": {"xmpp": true, "other": 2}}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"mcpServers": {"xmpp": 1}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {"xmpp": 1, "b": 2}}', '{"mcpServers": {"b": 2}}'),
        ('{"mcpServers": {"b": 2, "xmpp": 1}}', '{"mcpServers": {"b": 2}}'),
        ('{"mcpServers": {\n  "xmpp": 1\n}}', '{"mcpServers": {}}'),
        ('{"mcpServers": {\n  "a": 0,\n  "xmpp": 1\n}}', '{"mcpServers": {\n  "a": 0\n}}'),
        ('{"mcpServers": { // c\n  "xmpp": 1,\n}}', '{"mcpServers": { // c\n}}'),
        ('{"mcpServers": {"a": 0 /*,*/, "xmpp": 1}}', '{"mcpServers": {"a": 0 /*,*/}}'),
    ],
)
def test_a_member_goes_with_its_comma_and_its_lines(text: str, after: str) -> None:
    assert jsonfile.edit(text, OURS, None) == after


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "\ufeff", "{}", "{ }\n", "{\n}\n", "{ // c\n}", "\ufeff{}", '{"mcpServers":{}}'],
)
def test_an_empty_file_gets_what_is_needed(text: str) -> None:
    after = jsonfile.edit(text, OURS, ENTRY)
    assert jsonfile.load(after) == {"mcpServers": {"xmpp": ENTRY}}
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    assert len(re.findall("// c", after)) == text.count("// c")


def test_windows_line_ends_stay() -> None:
    text = PLAIN.replace("\n", "\r\n")
    after = jsonfile.edit(text, OURS, ENTRY)
    assert "\n" not in after.replace("\r\n", "")
    assert jsonfile.edit(after, OURS, None) == text


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a": }',
        "[1, 2",
        '{"a": 1} x',
        '{"a" 1}',
        "{a: 1}",
        '{"a": 1 /* ',
        '{"a": "\n"}',
        '{"a": nul}',
        "{,}",
        "\x00",
        "[]",
        "3",
        '{"mcpServers": []}',
        '{"mcpServers": {}, "mcpServers": {}}',
        "[" * 100_000,
    ],
)
def test_what_is_broken_or_no_object_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        jsonfile.edit(text, OURS, ENTRY)


def test_what_stands_there_twice_is_refused() -> None:
    with pytest.raises(EditError, match="mcpServers stands there twice"):
        jsonfile.edit('{"mcpServers": {}, "mcpServers": {"a": 1}}', OURS, ENTRY)
    with pytest.raises(EditError, match="safely"):
        jsonfile.edit('{"mcpServers": {"xmpp": 1, "xmpp": 2}}', OURS, ENTRY)
    with pytest.raises(EditError, match="safely"):
        jsonfile.edit('{"mcpServers": {"xmpp": 1, "xmpp": 2}}', OURS, None)


def test_a_member_that_is_null_is_a_member() -> None:
    text = '{"mcpServers": {"xmpp": {"a": null, "b": 1}}}'
    assert jsonfile.edit(text, OURS, {"a": None}) == '{"mcpServers": {"xmpp": {"a": null}}}'
    assert jsonfile.edit(text, OURS, {"b": 1}) == '{"mcpServers": {"xmpp": {"b": 1}}}'
    assert jsonfile.edit('{"mcpServers": {"xmpp": null}}', OURS, None) == '{"mcpServers": {}}'


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"mcpServers": {\n "xmpp": 1, // c\n "b": 2\n}}', '{"mcpServers": {\n // c\n "b": 2\n}}'),
        ('{"mcpServers": {\n "a": 1, // c\n "xmpp": 2}}', '{"mcpServers": {\n "a": 1 // c\n}}'),
        (
            '{"mcpServers": {\n "a": 1,\n "xmpp": 2, // c\n}}',
            '{"mcpServers": {\n "a": 1,\n // c\n}}',
        ),
    ],
)
def test_a_comment_beside_what_is_taken_out_stays_a_comment(text: str, after: str) -> None:
    assert jsonfile.edit(text, OURS, None) == after


def test_comments_are_damage_where_a_client_does_not_know_them() -> None:
    with pytest.raises(EditError, match="line 1"):
        jsonfile.load(COMMENTED, comments=False)


def test_the_depth_has_a_limit() -> None:
    deep = "[" * MAX_DEPTH + "/**/1" + "]" * MAX_DEPTH
    assert json.dumps(jsonfile.load(deep)) == deep.replace("/**/", "")
    with pytest.raises(EditError, match="nested"):
        jsonfile.load(f"[{deep}]")


def test_a_word_is_added_to_a_list_once_and_taken_away_alone() -> None:
    path = ("permissions", "allow")
    text = '{\n  "permissions": {\n    "allow": [\n      "Bash(ls)" // mine\n    ]\n  }\n}\n'
    after = jsonfile.append(text, path, "w")
    assert jsonfile.load(after) == {"permissions": {"allow": ["Bash(ls)", "w"]}}
    assert jsonfile.append(after, path, "w") == after
    assert jsonfile.discard(after, path, "w") == text
    assert jsonfile.discard(text, path, "w") == text
    assert jsonfile.load(jsonfile.append("", path, "w")) == {"permissions": {"allow": ["w"]}}
    with pytest.raises(EditError, match="no list"):
        jsonfile.append('{"permissions": {"allow": {}}}', path, "w")


_LEAF = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),  # JSON has neither
    st.text(max_size=8),
)


def _values(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
        ),
        max_leaves=8,
    )


_OUR_VALUE = _values(_LEAF)
_VALUE = _values(st.one_of(st.none(), _LEAF))
_SERVERS = st.dictionaries(st.sampled_from(["xmpp", "a", "//", "/*", '"}']), _VALUE, max_size=4)


@st.composite
def _files(draw: st.DrawFn) -> str:
    """Files of other people, in whatever style, with comments between the lines."""
    document = draw(st.dictionaries(st.text(max_size=4), _VALUE, max_size=3))
    if draw(st.booleans()):
        document["mcpServers"] = draw(_SERVERS)
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    text = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()))
    if indent is not None and draw(st.booleans()):
        text = re.sub(r"([\]}0-9]),\n", r'\1, // "}, {\n/* ] */', text)
    if indent is not None and draw(st.booleans()):
        text = re.sub(r"([^\s\[{,])\n(\s*[}\]])", r"\1,\n\2", text)
    return draw(st.sampled_from([text, text + "\n", text.replace("\n", "\r\n")]))


def _others(text: str) -> Any:
    document = jsonfile.load(text)
    document.setdefault("mcpServers", {}).pop("xmpp", None)
    return document


@given(_files(), _OUR_VALUE, _OUR_VALUE)
def test_whatever_stands_there_only_ours_changes(text: str, first: Any, second: Any) -> None:
    once = jsonfile.edit(text, OURS, first)
    twice = jsonfile.edit(once, OURS, second)
    for after, value in ((once, first), (twice, second)):
        assert jsonfile.load(after)["mcpServers"]["xmpp"] == value
        assert _others(after) == _others(text)
        # What stands within our own entry goes with what it was about.
        rest = jsonfile.edit(after, OURS, None)
        assert rest.count("// ") == jsonfile.edit(once, OURS, None).count("// ")
    restored = jsonfile.edit(twice, OURS, None)
    assert _others(restored) == _others(text)
    assert jsonfile.edit(restored, OURS, None) == restored


def test_a_file_that_holds_null_is_left_as_it_is() -> None:
    assert jsonfile.edit("null", OURS, None) == "null"
    with pytest.raises(EditError, match="the whole is no object"):
        jsonfile.edit("null", OURS, ENTRY)


@given(_files(), st.text(max_size=300))
def test_no_text_makes_the_reader_fail_in_another_way(text: str, rubbish: str) -> None:
    for one in (rubbish, text[: len(text) // 2] + rubbish):
        with suppress(EditError):
            jsonfile.edit(one, OURS, ENTRY)
