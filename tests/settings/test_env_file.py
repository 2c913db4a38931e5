"""What becomes of a settings file in which variables are set."""

import io

import pytest
from dotenv.parser import parse_stream
from hypothesis import given
from hypothesis import strategies as st

from bridge.settings.env_file import difference, with_variables

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

XMPP_PASSWORD='it\\'s new'
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


def test_a_difference_shows_every_change_and_no_secret() -> None:
    assert difference(AFTER, AFTER, "/x") == []
    lines = difference(BEFORE, AFTER, "/x")
    assert [line for line in lines if line.startswith(("-", "+"))] == [
        "--- /x",
        "+++ /x (new)",
        "-XMPP_SERVICE=xmpp://old.example",
        "-XMPP_PASSWORD=***",
        "+XMPP_PASSWORD=***",
        "-XMPP_SERVICE=xmpp://older.example",
        "+MCP_BOT_NICKNAME=Zoe",
    ]


@pytest.mark.parametrize(
    "before",
    [
        "\ufeffXMPP_PASSWORD=hunter2hunter2\n",
        "XMPP_PASSWORD='hunter2\nhunter2'\n",
        "XMPP_PASSWORD='hunter2\u2028hunter2'\n",
        "\n\t export 'XMPP_PASSWORD' = hunter2 # hunter2\n",
        "XMPP_PASSWORD=hunter2\rXMPP_PASSWORD=hunter2\r",
    ],
)
@pytest.mark.parametrize("password", ["new", "", "hunter2hunter2", "hunter2\u2029hunter2"])
def test_a_difference_shows_no_secret_however_it_was_written(before: str, password: str) -> None:
    after = with_variables(before, {"XMPP_PASSWORD": password, "MUC_ROOM": "a@b"})
    shown = "\n".join(difference(before, after, "/x"))
    assert "hunter" not in shown
    assert "+MUC_ROOM=a@b" in shown


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), min_size=1))
def test_every_value_is_read_as_it_was_written(value: str) -> None:
    text = with_variables("# mine", {"XMPP_PASSWORD": value})
    comment, binding = parse_stream(io.StringIO(text, newline=""))
    assert (comment.original.string, binding.value) == ("# mine\n", value)
