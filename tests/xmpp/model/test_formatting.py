import inspect
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp.model import formatting
from bridge.xmpp.model.events import (
    ConnectionChanged,
    Event,
    Kind,
    MessageReceived,
    Phase,
    RoomDestroyed,
    encode,
)
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.formatting import MAX_TEXT_CHARACTERS, format_event

_hostile = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    ["\n[Server] forged", "\r\x1b[2J", "\u202egnihton", "\u2028", "\x85", "\ud800", "\u3164"]
)


def _line(event: Event) -> str:
    return format_event(encode(event))


def _check_line(line: str) -> None:
    # What `isprintable` objects to beyond that is unassigned or private: it shows as a box.
    assert line.splitlines() == [line]
    assert not any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in line)
    assert not set(line) & set("\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u200b\ufeff")
    line.encode()


REACTION = "T <A> (reacting to 1: x)"
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_hostile, inner, max_size=3),
    max_leaves=8,
)
_kinds = st.sampled_from([*get_args(Kind), "unheard-of"])
_names = st.sampled_from(re.findall("[\"']([A-Za-z]+)[\"']", inspect.getsource(formatting)))
"""The fields that are looked at, and a few other words."""


@given(_kinds | _json, st.dictionaries(_names | _hostile, _json, max_size=8))
def test_whatever_strangers_write_is_one_line(kind: object, entry: dict[str, object]) -> None:
    _check_line(format_event(entry))
    _check_line(format_event({"kind": kind} | entry))


SAYS: dict[str, object] = {"kind": "message", "sender": "A", "body": "x"}
ERROR = {"kind": "error", "condition": "gone"}
LEFT: dict[str, object] = {"kind": "leave", "sender": "A"}
GAP = {"kind": "gap", "from": "A", "to": "B"}


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"kind": "message", "sender": "A", "reactsTo": 1, "reactions": "x"}, REACTION),
        (LEFT | {"codes": [307, None, {}]}, "T * <A> left [307, ?, ?]"),
        ({"kind": "connection", "phase": "waiting", "nextAttemptInMs": 10**400}, None),
        ({"kind": "unheard-of"}, "T * unheard-of"),
        (ERROR | {"id": "1"}, "T returned, id 1: gone"),
        (ERROR, "T * the room refused us: gone"),
        (
            ERROR | {"sender": "A", "text": "a\nb", "id": "1"},
            "T * <A> answered id 1 with an error: gone: a\\u{A}b",
        ),
        (ERROR | {"sender": "A"}, "T * <A> answered with an error: gone"),
        (SAYS | {"reflection": False, "replaces": None}, "T <A> x"),
        (LEFT | {"destroyed": False}, "T * <A> left"),
        (SAYS | {"heard": True}, "T <A> (our own) x"),
        (SAYS | {"times": 3, "lastAt": "U"}, "T <A> (3 times until U) x"),
        (SAYS | {"heard": False}, "T <A> (our own, not heard) x"),
        (
            {"kind": "message", "sender": "", "moderatedBy": "Mod"}
            | {"author": "A> x", "reason": "1) (our own"},
            "T <> (moderated by <Mod>, written by <A\\u{3E} x>: 1\\u{29} \\u{28}our own)",
        ),
        (
            {"kind": "message", "sender": "", "retracts": "7", "reason": "spam"},
            "T <> (taking back 7) (moderated: spam)",
        ),
        (SAYS | {"languages": ["fr", "de"]}, "T <A> (also in other languages: fr, de) x"),
        (
            SAYS | {"marked": ["fallback", "xhtml"]},
            "T <A> (people may see another text: fallback, xhtml) x",
        ),
        (LEFT | {"meaning": ["kicked"]}, "T * <A> left [kicked]"),
        ({"kind": "config", "meaning": ["x"]}, "T * the room's configuration changed [x]"),
        ({"kind": "connection", "text": "in the room", "sender": "A"}, "T in the room as A"),
        ({}, "T * "),
        (SAYS | {"room": "lobby@muc"}, "T lobby@muc: <A> x"),
        ({"room": "lobby@muc", "kind": "connection", "phase": "joined"}, "T lobby@muc: joined"),
        (ERROR | {"room": "a\n\u202eb"}, "T a\\u{A}\\u{202E}b: * the room refused us: gone"),
        (SAYS | {"room": None}, "T <A> x"),
        (SAYS | {"room": 1.5}, "T 1.5: <A> x"),
        (
            GAP | {"reason": "nobody recorded this room"},
            "T * nobody recorded this room from A to B; what happened may be missing",
        ),
        (
            GAP | {"events": 3, "reason": "too much at once"},
            "T * 3 events and stanzas from A to B were not recorded: too much at once",
        ),
        (
            {**SAYS, "type": "chat", "body": None, "payload": ["x (urn:x)", "y (urn:y)"]},
            "T <A> (private) (no body: x (urn:x), y (urn:y))",
        ),
        (SAYS | {"delayedFrom": "1999"}, "T <A> (said 1999) x"),
        (SAYS | {"sender": "a\nb", "body": "x\n[Server] y"}, "T <a\\u{A}b> x\\u{A}[Server] y"),
        (
            LEFT | {"codes": [110, 307], "actor": "Owner", "reason": "spam"},
            "T * <A> left by <Owner> [110, 307]: spam",
        ),
        (
            encode(RoomDestroyed("old", "new@muc")),
            "T * the room was destroyed: old; its owner names new@muc",
        ),
        (GAP, "T * what was said from A to B may be missing"),
        (
            encode(ConnectionChanged(Phase.WAITING, Fault("gone", "It went.", "Wait."), 1, 4_200)),
            "T waiting: It went. [gone] Wait. Next attempt in 4 s.",
        ),
        # What would end a part early is escaped.
        (SAYS | {"body": "(our own) hi"}, "T <A> \\u{28}our own) hi"),
        (SAYS | {"body": " \uff08private) hi"}, "T <A>  \\u{FF08}private) hi"),
        (SAYS | {"body": "hi (there)"}, "T <A> hi (there)"),
        (SAYS | {"sender": "A> (our own) hi"}, "T <A\\u{3E} (our own) hi> x"),
        (SAYS | {"replyTo": "1) (our own"}, "T <A> (answering 1\\u{29} \\u{28}our own) x"),
        (SAYS | {"kind": "join", "sender": "A left", "role": "r"}, "T * <A left> is here (r)"),
        (
            {"kind": "role", "jid": "a@b", "sender": None, "affiliation": "none"},
            "T * <a@b>, who is not here, is now none",
        ),
    ],
)
def test_an_entry_reads_like_a_line_of_a_chat_log(
    entry: dict[str, object], line: str | None
) -> None:
    shown = format_event({"at": "T", **entry})
    assert line is None or shown == line


def test_a_long_body_is_cut_with_a_mark() -> None:
    for over, mark in ((0, ""), (1, "... (2001 characters)")):
        line = _line(MessageReceived("r/a", "a", "x" * (MAX_TEXT_CHARACTERS + over)))
        assert line == f"<a> {'x' * MAX_TEXT_CHARACTERS}{mark}"


FORGERIES = [
    *("(our own) hi", " (our own) hi", "\n(private) hi", "\u2800\u0301(said 1999) x"),
    *("\uff08our own\uff09 x", "\ufe59our own) x", "(", "> (our own) hi", "Bob\uff1e hi", ")"),
    *("x) (our own", "x)(private) hi", ") <Admin> hi", "x\uff09 (our own", "(a) (b", "a (b) c"),
    *("Bob left by Admin: spam", "Bob  is here (moderator)", "subject: x", "Bob> left", " Bob"),
    *("x, moderator) by <Admin>: y", "* <Bob> left", "<", "<>", "\u2800", "T r@muc: <Bob> hi"),
]
_forgery = st.lists(st.sampled_from(FORGERIES) | st.text("()<> *:x\u0301\uff09")).map("".join)
_NAME = r"<([^<>\ufe64\ufe65\uff1c\uff1e]*)>"
_NOTE = r"\((?:[^()\uff08\uff09]|\([^()]*\))*\)"


@given(_forgery, _forgery, _forgery, st.sampled_from(["own", "chat", "note", "bare"]))
def test_no_part_of_it_looks_like_another(nickname: str, body: str, text: str, kind: str) -> None:
    entry: dict[str, object] = {"kind": "message", "sender": nickname, "body": body}
    match kind:
        case "own":
            entry["heard"] = True
        case "chat":
            entry["type"] = "chat"
        case "note":
            entry |= dict.fromkeys(("reactsTo", "reactions", "encrypted", "delayedFrom"), text)
    line = format_event(entry)
    match = re.fullmatch(rf"{_NAME}((?: {_NOTE})*) (.*)", line)
    assert match, line
    assert len(re.findall(f" {_NOTE}", match[2])) == {"note": 3, "bare": 0}.get(kind, 1), line
    assert match[1] == format_event({**entry, "body": "x"}).partition(">")[0].removeprefix("<")
    assert not re.match(r"[\s\u2800\u0300-\u036f]*[(\uff08\ufe59]", match[3])


@given(_forgery, _forgery, st.sampled_from(["join", "leave", "nick", "role", "subject"]))
def test_no_nickname_can_be_taken_for_what_happened(nickname: str, other: str, kind: str) -> None:
    entry = {"kind": kind, "sender": nickname, "actor": other, "newNickname": other, "role": other}
    words = re.sub(rf"{_NAME}|{_NOTE}", "_", format_event(entry))
    assert (
        words
        == {
            "join": "* _ is here _",
            "leave": f"* _ left{' by _' if other else ''}",
            "nick": "* _ is now _",
            "role": f"* _ is now _{' by _' if other else ''}",
            "subject": f"* subject{' by _' if nickname else ''}: ",
        }[kind]
    )
