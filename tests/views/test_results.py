"""What a person sees of the results of tools, whichever command or client shows them."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.client.formatting import for_person, tool_result
from bridge.views.results import lines_of
from bridge.views.screen import Display, width

SCREENS = Path(__file__).parent / "screens"
PLAIN = Display(coloured=False)

HEAD_COLUMNS = 30
"""The most columns before what a stage found."""

WARNING = '"Robot" said the same twice.'
PONG = {"kind": "message", "sender": "Robot", "body": "pong", "answerMs": 9.0, "at": "T"}
SENT: dict[str, Any] = {"sent": True, "to": "lobby@rooms.example", "roundTripMs": 1.5}
DIAGNOSIS = {
    "outcome": "cause",
    "lookedAt": 18,
    "nextStep": {"tool": "xmppDiagnose", "arguments": {"nickname": "Robot-2"}},
    "verdict": '"Robot" is in the room and cannot speak.',
    "findings": [
        {"name": "bridge", "ok": True, "detail": "The bridge is in the room."},
        {
            "name": "voice",
            "ok": False,
            "detail": '"Robot" is a visitor, and what visitors say in this room reaches nobody.',
            "hint": "Ask a moderator to give it voice.",
        },
        {"name": "answer", "ok": None, "detail": "Nothing was said.", "hint": "Say something."},
    ],
    "answers": [PONG],
    "since": "2026-11-24T18:12:31.004Z",
    "notice": "for models",
}
CHECK = {
    "ok": False,
    "phases": [
        {"name": "resolve", "ok": True, "ms": 12.5, "detail": "XMPP_SERVICE", "hint": "Use SRV."},
        {"name": "disco", "ok": True, "ms": 1.0, "detail": "a room", "room": "a@muc.example"},
        {"name": "join", "ok": False, "ms": 2.0, "detail": "banned", "room": "a@muc.example"}
        | {"hint": "Ask its owner."},
        {"name": "join", "ok": True, "ms": 3.0, "detail": "entered", "room": "b@muc.example"},
    ],
    "rooms": [
        {"room": "a@muc.example", "ok": False, "condition": "forbidden"},
        {"room": "b@muc.example", "ok": True},
    ],
    "condition": "forbidden",
    "diagnosis": "1 of 2 rooms failed.",
    "standing": "The bridge was left alone; it is in 1 of 2 rooms.",
}
HISTORY = {
    "entries": [
        {"at": "2026-11-24T18:12:31.004Z", "kind": "join", "sender": "Robot", "cursor": "x-1"},
        {
            "at": "2026-11-24T18:12:32.004Z",
            "kind": "message",
            "sender": "Robot",
            "body": "hi" + " hi" * 29,
        },
    ],
    "next": "x-2",
    "more": False,
    "notice": "for models",
}
TRACE = {"entries": [{"at": "2026-11-24T18:12:31.004Z", "direction": "in", "xml": "<presence/>"}]}
STATUS = {
    "connected": True,
    "room": "lobby@rooms.example",
    "rooms": [{"room": "lobby@rooms.example", "phase": "joined"}, {"room": "b@rooms.example"}],
    "tls": {"version": "TLSv1.3"},
    "subject": "two\nlines",
    "notice": "for models",
}
RESULTS = {
    "sent": SENT | {"answers": [PONG] * 2, "warnings": [WARNING], "heardAs": "another text"},
    "diagnosis": DIAGNOSIS,
    "check": CHECK,
    "history": HISTORY,
    "trace": TRACE,
    "status": STATUS,
}
DISPLAYS = {
    "pipe": PLAIN,
    "50-columns-colour": Display(coloured=True, columns=lambda: 50),
}


@pytest.mark.parametrize("display", DISPLAYS)
@pytest.mark.parametrize("name", RESULTS)
def test_the_screen_is_as_it_was_written_down(
    name: str, display: str, request: pytest.FixtureRequest
) -> None:
    lines = lines_of(RESULTS[name], DISPLAYS[display])
    shown = "".join(f"{line}\n" for line in lines).replace("\x1b", "␛")
    path = SCREENS / f"result-{name}-{display}.txt"
    if request.config.getoption("--update-screens"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text("utf-8"), "--update-screens if it is meant to be so"


@pytest.mark.parametrize("name", RESULTS)
def test_the_client_shows_a_result_as_the_command_does(name: str) -> None:
    result = RESULTS[name]
    for answer in (result, {"content": [], "structuredContent": result}):
        assert for_person(tool_result(answer)).split("\n") == lines_of(result, PLAIN)


STANDING = {
    "lastIncoming": {
        "body": "it rains, sender Bob\n* <Bob>",
        "sender": "Ann",
        "from": "lobby@rooms.example/Ann",
        "type": "groupchat",
        "receivedAt": "2026-11-24T18:12:31.004Z",
    },
    "self": {"role": "visitor", "affiliation": "none", "voice": False},
    "occupants": [
        {"nickname": "Ann", "role": "moderator", "payload": ["c", "x y"], "jid": None},
        {"nickname": "Bob, role owner", "self": True, "of": {"x": {}}},
    ],
}


def test_objects_are_short_lines_in_which_no_text_passes_for_a_field() -> None:
    assert lines_of(STANDING, PLAIN) == [
        "lastIncoming: 2026-11-24T18:12:31.004Z <Ann> it rains, sender Bob\\u{A}* <Bob>",
        "self: role visitor, affiliation none, voice false",
        "occupants:",
        '  nickname Ann, role moderator, payload (c, "x y"), jid none',
        '  nickname "Bob, role owner", self true, of (x ())',
    ]


def test_no_answer_is_said() -> None:
    assert lines_of({**SENT, "answers": []}, PLAIN)[-1] == "No answer."


@pytest.mark.parametrize(
    "result",
    [
        {"sent": True, "to": "lobby@rooms.example"},
        {"verdict": "Nothing was looked at.", "findings": 0},
        {"entries": [{"at": "T", "kind": "message"}, {"sum": 5}], "next": 7},
    ],
)
def test_a_result_with_some_fields_of_a_known_one_is_shown_field_by_field(
    result: dict[str, Any],
) -> None:
    assert {line.partition(":")[0] for line in lines_of(result, PLAIN) if line[0] != " "} == {
        *result
    }


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.just(10**400)
    | st.text(st.characters() | st.sampled_from("\n\x1b\u202e\x9b日")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("name", "ok", "ms", "detail", "hint", "room", "answerMs"), JSON)
        | dict.fromkeys(("at", "kind", "xml", "sender", "body", "direction"), JSON),
    ),
    max_size=3,
)
FIELDS = ("verdict", "diagnosis", "to", "roundTripMs", "since", "standing", "heardAs", "condition")


@given(
    result=JSON
    | st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(FIELDS, JSON)
        | dict.fromkeys(("findings", "phases", "answers", "rooms", "entries"), JSON | ROWS)
        | {"sent": st.just(value=True), "warnings": JSON},
    ),
    columns=st.none() | st.integers(20, 100),
)
def test_whatever_a_server_answers_is_lines_that_fit_and_hide_nothing(
    result: Any, columns: int | None
) -> None:
    for line in lines_of(result, Display(coloured=False, columns=lambda: columns)):
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff]", line)
        assert columns is None or columns < HEAD_COLUMNS or width(line) <= columns
