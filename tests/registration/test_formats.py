"""A client's file is given back to the letter but for our entry, or it is left alone."""

import json
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
import tomlkit
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.registration.errors import EditError
from bridge.registration.formats import Document, Format, edited, load, table_in

ENTRY = {"command": "/opt/xmpp-bridge", "required": True, "env": {"A": "b"}}
TOML = """\
# mine
model = "gpt-5"   # why
raw = \'\'\'
# [mcp_servers.xmpp]
\'\'\'

# about the other
[mcp_servers.other]  # other's
command = 'foo'
args = [ 'a',
  "b", # ]
] # ab

[[things]]
x = {y = [1, 2], z = inf, at = 1979-05-27T07:32:00Z}

[projects."/home/me/a b"]
trust_level = "trusted"
"""
JSON = {"z": 1.5e300, "mcp_servers": {"o": {"args": ["é\u2028", "", None]}}, "a": {}, "b": []}


def put(document: Document) -> None:
    table_in(document, "mcp_servers")["xmpp"] = ENTRY


def take(document: Document) -> None:
    table_in(document, "mcp_servers").pop("xmpp", None)


@pytest.mark.parametrize("indent", [2, 4, "\t", None])
@pytest.mark.parametrize("end", ["\n", ""])
def test_json_keeps_its_indentation_and_its_end(indent: int | str | None, end: str) -> None:
    text = json.dumps(JSON, ensure_ascii=False, indent=indent) + end
    after = edited(text, "json", put)
    wanted = JSON | {"mcp_servers": {"o": {"args": ["é\u2028", "", None]}, "xmpp": ENTRY}}
    assert after == json.dumps(wanted, ensure_ascii=False, indent=indent) + end
    assert edited(after, "json", take) == text
    new = json.dumps({"mcp_servers": {"xmpp": ENTRY}}, indent=2) + "\n"
    assert edited("", "json", put) == edited(" \n", "json", put) == new


@pytest.mark.parametrize("number", ["0.00001", "1e-7", "1E5", "-0.0", "1.50", "1e999", "12"])
def test_a_number_of_json_stays_as_it_is_written(number: str) -> None:
    text = f'{{\n  "z": {number},\n  "mcp_servers": {{}}\n}}\n'
    assert edited(edited(text, "json", put), "json", take) == text


NO_JSON = [
    *('{"a": 1, "a": 2}', '\ufeff{"a": 1}', '{"a": 1} // mine', '{"a": [1, 2,]}', '{"a":1}'),
    *('{\n   "a": 1\n}', '{\r\n  "a": 1\r\n}', '{"a": "\\u00e9"}', '{"a": "\\ud800"}'),
    *('{"a": "\\u0000x"}', '{"a": -0}', f'{{"a": {"7" * 5_000}}}', f'{{"a": {"[" * 100_000}}}'),
    *("[]", "null", "{", "\x00", '{"mcp_servers": []}', '{"mcp_servers": null}'),
]
NO_TOML = [
    *("a = ", "[a", "a = 1\na = 2\n", "\ufeffa = 1\n", f"a = {'[' * 5_000}"),
    *("mcp_servers = 3\n", "[[mcp_servers]]\na = 1\n"),
]


@pytest.mark.parametrize(
    ("form", "text"), [*product(["json"], NO_JSON), *product(["toml"], NO_TOML)]
)
def test_what_would_lose_anything_cannot_be_read_or_has_no_servers_is_left_alone(
    form: Format, text: str
) -> None:
    with pytest.raises(EditError):
        edited(text, form, put)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_toml_keeps_comments_and_every_value(newline: str) -> None:
    text = TOML.replace("\n", newline)
    after = edited(text, "toml", put)
    lines = iter(after.splitlines(keepends=True))
    assert all(line in lines for line in text.splitlines(keepends=True))
    assert load(after, "toml")["mcp_servers"]["xmpp"] == ENTRY
    assert edited(after, "toml", take).strip() == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = {}\n",
        "mcp_servers = {xmpp = {command = 'x'}}\n",
        "mcp_servers.xmpp.command = 'x'\n",
        "[ mcp_servers . 'xm\\u0070p' ]\ncommand = 'x'\n[b]\nc = 1\n".replace("'", '"'),
        "[mcp_servers.xmpp.tools.t]\na = 1\n[o]\np = 1\n[mcp_servers.xmpp]\ncommand = 'x'\n",
        "[mcp_servers.a]\nc = 1\n[b]\nd = 1\n[mcp_servers.c]\ne = 1\n",
    ],
)
def test_however_the_servers_are_written_in_toml_the_entry_is_set(text: str) -> None:
    after = load(edited(text, "toml", put), "toml")
    assert after.pop("mcp_servers")["xmpp"] == ENTRY
    assert after == {name: value for name, value in load(text, "toml").items() if name in after}


def test_a_comment_that_would_go_with_our_entry_is_left_where_it_is() -> None:
    text = "[mcp_servers.xmpp]\ncommand = 'x'\n\n# about b\n[b]\nc = 1\n"
    with pytest.raises(EditError, match="comment"):
        edited(text, "toml", take)


_PIECES = [
    "\n",
    "# c\n",
    "a = 1 # x\n",
    "b = '''\n[mcp_servers.xmpp]\n# y'''\n",
    'c = [\n  "a", # in\n\n# [mcp_servers.xmpp]\n]\n',
    "  d.e = +1.5e+3\n",
    "f = {g = inf, 'h i' = 0x1F}\n",
    "xmpp.command = 'x'\n",
    "[mcp_servers]\n",
    "[mcp_servers.xmpp] # ours\n",
    "  [ mcp_servers . 'xmpp' . env ]\n",
    "[mcp_servers.xmpp.tools.t]\n",
    "[[mcp_servers.xmpp.list]]\n",
    "[mcp_servers.other]\n",
    "[[things]]\n",
    "[things.more]\n",
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=9, unique=True).map("".join))
def test_however_tables_are_scattered_others_stay_or_the_file_is_left_alone(text: str) -> None:
    def others(text: str) -> Any:
        document = load(text, "toml")
        servers = document.pop("mcp_servers", {})
        servers.pop("xmpp", None)
        return document, servers

    with suppress(EditError):
        after = edited(text, "toml", put)
        assert others(after) == others(text)
        assert tomlkit.parse(after).unwrap()["mcp_servers"]["xmpp"] == ENTRY
        assert after.count("#") >= text.count("#")


@given(st.text(max_size=300), st.sampled_from(["json", "toml"]))
def test_no_text_fails_in_another_way(text: str, form: Format) -> None:
    with suppress(EditError):
        edited(text, form, put)
