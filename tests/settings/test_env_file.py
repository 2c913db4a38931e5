"""What becomes of a settings file in which variables are set."""

import io

import pytest
from dotenv.parser import parse_stream
from hypothesis import given
from hypothesis import strategies as st

from bridge.settings.env_file import changed, with_variables
from bridge.settings.values import SettingsError

BEFORE = """\
# mine
export OTHER="a ${b}" # why
XMPP_SERVICE=xmpp://old.example

XMPP_PASSWORD="old # secret" # why
?
MUC_ROOM=a@b # stays as it is
XMPP_SERVICE=xmpp://older.example"""

AFTER = """\
# mine
export OTHER="a ${b}" # why

XMPP_PASSWORD='it\\'s new' # why
?
MUC_ROOM=a@b # stays as it is
MCP_BOT_NICKNAME=Zoe
"""

VALUES = {
    "XMPP_SERVICE": "",
    "XMPP_PASSWORD": "it's new",
    "MUC_ROOM": "a@b",
    "MUC_PASSWORD": "",
    "MCP_BOT_NICKNAME": "Zoe",
}


def test_only_what_has_another_value_is_changed() -> None:
    assert with_variables(BEFORE, VALUES) == AFTER
    assert with_variables(AFTER, VALUES) == AFTER


def test_the_variables_that_change_are_named() -> None:
    assert changed(AFTER, AFTER, VALUES) == []
    names = ["XMPP_SERVICE", "XMPP_PASSWORD", "MCP_BOT_NICKNAME"]
    assert changed(BEFORE, AFTER, VALUES) == names


@pytest.mark.parametrize(
    ("before", "named"),
    [
        ("XMPP_USERNAME='bot\nBRIDGE_READ_ONLY=1\n", "BRIDGE_READ_ONLY"),
        ("X='open\nBRIDGE_READ_ONLY=1\n", "BRIDGE_READ_ONLY"),
        ("BRIDGE_READ_ONLY=1\nX=\"open\nY='open\n", "another variable|XMPP_PASSWORD"),
        ("hunter2 hunter2\n'=\nBRIDGE_SEND_RATE=5\n# it's\nA='\n", "another variable|XMPP_"),
    ],
)
def test_a_file_in_which_other_variables_would_change_is_refused(before: str, named: str) -> None:
    values = {"XMPP_USERNAME": "", "XMPP_PASSWORD": "it's \" new", "MUC_ROOM": "a'b@c"}
    with pytest.raises(SettingsError, match=f"left alone: .*({named})") as caught:
        with_variables(before, values)
    assert "line" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# it's mine\nA='b'  # c", "# it's mine\nA='b'  # c"),
        ("export  MUC_ROOM =  old@b   # c", "export  MUC_ROOM =a@b   # c"),
        ('MUC_ROOM="o # \'"# c', "MUC_ROOM=a@b # c"),
        ("'MUC_ROOM'='o\\' # x'", "'MUC_ROOM'=a@b"),
        ("MUC_ROOM= # c", "MUC_ROOM=a@b # c"),
        ("MUC_ROOM", "MUC_ROOM=a@b"),
        ("MUC_ROOM=#o", "MUC_ROOM=a@b"),
        ("\n\n  MUC_ROOM=o#p # c\n\nB=c", "\n\n  MUC_ROOM=a@b # c\n\nB=c"),
        ("A=b\nXMPP_SERVICE=xmpp://a   # c\nC=d", "A=b\n# c\nC=d"),
    ],
)
def test_no_byte_changes_but_those_of_the_value(
    before: str, after: str, end: str, bom: str, newline: str
) -> None:
    values = {"MUC_ROOM": "a@b"} if "MUC_ROOM" in before else {}
    written = with_variables(
        (bom + before + end).replace("\n", newline), values | {"XMPP_SERVICE": ""}
    )
    assert written == (bom + after + end).replace("\n", newline)
    added = with_variables(written, {"MCP_BOT_NICKNAME": "Zoe"})
    line = f"MCP_BOT_NICKNAME=Zoe{newline if newline in written else chr(10)}"
    start = written if end else written + (newline if newline in written else "\n")
    assert added == start + line


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1))
def test_every_value_is_read_as_it_was_written(value: str) -> None:
    text = with_variables("# mine", {"XMPP_PASSWORD": value})
    comment, binding = parse_stream(io.StringIO(text, newline=""))
    assert (comment.original.string, binding.value) == ("# mine\n", value)
