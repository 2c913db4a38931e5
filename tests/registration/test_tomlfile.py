import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.registration import tomlfile
from bridge.registration.errors import EditError

OURS = ("mcp_servers", "xmpp")
ENTRY = {"command": "/opt/xmpp-bridge", "required": True, "env": {"TIA_ENV_PATH": "/home/me/.env"}}

FULL = '''\
# mine
model = "gpt-5"   # why
notes = """
[mcp_servers.xmpp]
command = "not a table"
"""
raw = \'\'\'
# [mcp_servers.xmpp]
\'\'\'

# about the other
[mcp_servers.other]  # other's
command = 'foo'
args = [ 'a',
  "b", # ]
  "[mcp_servers.xmpp]",
] # ab
nested = [
["mcp_servers.xmpp"],
]

[[things]]
x = {y = [1, 2]}

[projects."/home/me/a b"]
trust_level = "trusted"
'''


def test_a_new_table_goes_to_the_end_and_nothing_else_changes() -> None:
    after = tomlfile.edit(FULL, OURS, ENTRY)
    assert after.startswith(FULL)
    assert tomllib.loads(after)["mcp_servers"]["xmpp"] == ENTRY


def test_what_was_put_in_can_be_taken_out_to_the_letter() -> None:
    assert tomlfile.edit(tomlfile.edit(FULL, OURS, ENTRY), OURS, None) == FULL


def test_a_table_in_the_middle_is_exchanged_where_it_stands() -> None:
    text = (
        "[mcp_servers.a]\ncommand = 'a'\n\n# about ours\n"
        "[mcp_servers.xmpp] # ours\ncommand = 'old'\n"
        "\n[mcp_servers.xmpp.env]\nX = '1'\n\n# about b\n[mcp_servers.b]\ncommand = 'b'\n"
        "[mcp_servers.xmpp.tools.t]\napproval_mode = 'prompt'\n"
    )
    after = tomlfile.edit(text, OURS, ENTRY)
    assert after == (
        "[mcp_servers.a]\ncommand = 'a'\n\n# about ours\n[mcp_servers.xmpp]\n"
        'command = "/opt/xmpp-bridge"\nrequired = true\n\n[mcp_servers.xmpp.env]\n'
        "TIA_ENV_PATH = \"/home/me/.env\"\n\n# about b\n[mcp_servers.b]\ncommand = 'b'\n"
    )
    assert tomlfile.edit(after, OURS, ENTRY) == after


def test_a_table_in_the_middle_is_taken_out_with_all_its_parts() -> None:
    text = "[mcp_servers.xmpp]\ncommand = 'x'\n[mcp_servers.xmpp.env]\nA = 'b'\n\n# b\n[b]\nc = 1\n"
    assert tomlfile.edit(text, OURS, None) == "\n# b\n[b]\nc = 1\n"


def test_comments_between_our_parts_stay_too() -> None:
    text = (
        "[mcp_servers.xmpp]\n# inside\ncommand = 'x'\n\n# one\n[mcp_servers.xmpp.env]\n"
        "A = 'b' # inside\n  # two\n\n[[mcp_servers.xmpp.list]]\n# three\n\n# four"
    )
    assert tomlfile.edit(text, OURS, None) == "\n# one\n  # two\n# three\n\n# four"


@pytest.mark.parametrize("quoted", ['"xmpp"', "'xmpp'", ' "xm\\u0070p" '])
def test_a_name_in_quotation_marks_is_the_same_name(quoted: str) -> None:
    text = f"[ mcp_servers . {quoted} ]\ncommand = 'x'\n[b]\nc = 1\n"
    assert tomlfile.edit(text, OURS, None) == "[b]\nc = 1\n"


def test_windows_line_ends_stay() -> None:
    text = FULL.replace("\n", "\r\n")
    after = tomlfile.edit(text, OURS, ENTRY)
    assert "\n" not in after.replace("\r\n", "")
    assert tomlfile.edit(after, OURS, None) == text


def test_a_last_line_without_an_end_gets_one() -> None:
    assert tomlfile.edit("a = 1", OURS, {"command": "x"}) == (
        'a = 1\n\n[mcp_servers.xmpp]\ncommand = "x"\n'
    )


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "\ufeffa = 1\n"])
def test_an_almost_empty_file_will_do(text: str) -> None:
    after = tomlfile.edit(text, OURS, ENTRY)
    assert tomlfile.load(after)["mcp_servers"] == {"xmpp": ENTRY}
    assert after.startswith(text)


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = {}\n",
        "mcp_servers = {xmpp = {command = 'x'}}\n",
        "[mcp_servers]\nxmpp = {command = 'x'}\n",
        "mcp_servers.xmpp.command = 'x'\n",
        "[mcp_servers]\nxmpp.command = 'x'\n",
        "mcp_servers = 3\n",
        "[[mcp_servers]]\na = 1\n",
    ],
)
def test_what_is_written_in_another_way_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        tomlfile.edit(text, OURS, ENTRY)


@pytest.mark.parametrize("text", ["mcp_servers.xmpp.command = 'x'\n", "[mcp_servers]\nxmpp = {}\n"])
def test_what_cannot_be_taken_out_safely_is_left_in(text: str) -> None:
    with pytest.raises(EditError, match="safely"):
        tomlfile.edit(text, OURS, None)


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("[[a]]\n", "[[a]]\n"),
        ("[[a]]\n", "[a.b]\nc = 1\n"),
        ("[mcp_servers.b]\n[[a]]\n", ""),
        ("a = [\n[1],\n[2]]\n", '[b]\na = """\n[c]\n# [d]"""\n'),
    ],
)
def test_a_table_is_taken_out_from_between_the_tables_and_values_of_others(
    before: str, behind: str
) -> None:
    text = f"{before}[mcp_servers.xmpp]\ncommand = 'x'\n{behind}"
    assert tomlfile.edit(text, OURS, None) == before + behind
    block = tomlfile.snippet(OURS, ENTRY) + "\n"
    assert tomlfile.edit(text, OURS, ENTRY) == before + block + behind


@pytest.mark.parametrize("text", ["a = ", "[a", "a = 1\na = 2\n", "a = " + "[" * 5000])
def test_what_is_no_toml_is_refused(text: str) -> None:
    with pytest.raises(EditError):
        tomlfile.edit(text, OURS, ENTRY)


def test_taking_out_what_is_not_there_changes_nothing() -> None:
    assert tomlfile.edit(FULL, OURS, None) == FULL
    assert tomlfile.edit("mcp_servers = 3\n", OURS, None) == "mcp_servers = 3\n"


def test_all_kinds_of_values_that_a_user_may_have_added_survive() -> None:
    extra = tomlfile.load(
        "a = 1.5\nb = 2024-01-02T03:04:05Z\nc = 07:08:09\nd = [{x = 'y', z = [true]}]\n"
        "e = inf\nf = 2024-01-02\nn = [-7, 0x1F, nan]\n'odd key' = 'tab\\t'\n[g.h]\n"
    )
    entry = ENTRY | extra
    assert tomlfile.load(tomlfile.edit(FULL, OURS, entry))["mcp_servers"]["xmpp"] == entry


_KEY = st.one_of(st.sampled_from(["xmpp", "other", "a-b"]), st.text(max_size=6))
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_LEAF = st.one_of(st.booleans(), st.integers(-(2**62), 2**62), _TEXT)
_TABLE = st.dictionaries(
    _KEY.filter(lambda key: key.isprintable()),
    st.one_of(_LEAF, st.lists(_LEAF, max_size=3), st.dictionaries(_TEXT, _LEAF, max_size=2)),
    max_size=4,
)
_COMMENT = st.sampled_from(["", "# [mcp_servers.xmpp]\n", "\n", "x_note = '''\n[a]\n'''\n"])


@st.composite
def _files(draw: st.DrawFn) -> str:
    """Files of other people: tables of every kind, with comments in between."""
    servers = draw(st.dictionaries(_KEY.filter(lambda k: k.isprintable()), _TABLE, max_size=3))
    servers.pop("xmpp", None)
    text = draw(
        st.sampled_from(["", "# top\n", "a = 1 # one\n", 'b = """\n[mcp_servers.xmpp]\n"""\n'])
    )
    for index, (name, table) in enumerate(servers.items()):
        text += draw(_COMMENT).replace("x_note", f"note{index}")
        text += tomlfile.snippet(("mcp_servers", name), table) + "\n"
    return draw(st.sampled_from([text, text.rstrip("\n"), text.replace("\n", "\r\n")]))


def _others(text: str) -> dict[str, Any]:
    document = tomlfile.load(text)
    servers = document.pop("mcp_servers", {})
    servers.pop("xmpp", None)
    return {**document, "mcp_servers": servers}


@given(_files(), _TABLE, _TABLE)
def test_whatever_stands_there_only_ours_changes(
    text: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    once = tomlfile.edit(text, OURS, first)
    twice = tomlfile.edit(once, OURS, second)
    for after, entry in ((once, first), (twice, second)):
        assert json.dumps(tomlfile.load(after)["mcp_servers"]["xmpp"]) == json.dumps(
            {key: value for key, value in entry.items() if not isinstance(value, dict)}
            | {key: value for key, value in entry.items() if isinstance(value, dict)}
        )
        assert _others(after) == _others(text)
        assert tomlfile.edit(after, OURS, entry) == after
    assert once.startswith(text)
    restored = tomlfile.edit(twice, OURS, None)
    assert restored.rstrip("\r\n") == text.rstrip("\r\n")
    assert _others(restored) == _others(text)


_PIECES = [
    "\n",
    "# c\n",
    "  # indented\n",
    "a = 1 # x\n",
    "b = '''\n[mcp_servers.xmpp]\n# y'''\n",
    'c = [\n  "a", # in\n\n# [mcp_servers.xmpp]\n]\n',
    "  d.e = +1.5e+3\n",
    "f = {g = nan, 'h i' = 0x1F}\n",
    "xmpp.command = 'x'\n",
    "mcp_servers.dotted.command = 'x'\n",
    "[mcp_servers]\n",
    "[mcp_servers.xmpp] # ours\n",
    "  [ mcp_servers . 'xmpp' . env ]\n",
    "[mcp_servers.xmpp.tools.t]\n",
    "[[mcp_servers.xmpp.list]]\n",
    "[mcp_servers.other]\n",
    "[mcp_servers.other.env]\n",
    "[[mcp_servers.other.list]]\n",
    "[o.p]\n",
    "[o]\n",
    "[[things]]\n",
    "[things.more]\n",
]


def _readable(text: str) -> bool:
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        return False
    return True


_ODD_FILES = st.builds(
    lambda bom, pieces, newline: bom + "".join(pieces).replace("\n", newline),
    st.sampled_from(["", "\ufeff"]),
    st.lists(st.sampled_from(_PIECES), max_size=9, unique=True),
    st.sampled_from(["\n", "\r\n"]),
).filter(_readable)


@given(_ODD_FILES)
def test_however_ours_is_scattered_lines_of_others_stay_or_it_is_refused(text: str) -> None:
    try:
        without = tomlfile.edit(text, OURS, None)
        put = tomlfile.edit(text, OURS, ENTRY)
        again = tomlfile.edit(put, OURS, ENTRY)
    except EditError:
        return
    lines = iter(text.removeprefix("\ufeff").splitlines(keepends=True))
    assert all(line in lines for line in without.removeprefix("\ufeff").splitlines(keepends=True))
    assert _others(without) == _others(put) == _others(text)
    assert again == put
    assert tomlfile.load(put)["mcp_servers"]["xmpp"] == ENTRY
