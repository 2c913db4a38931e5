"""What counts as an answer to what we said, and how it came."""

import pytest

from bridge.tools.answers import answer, doubled
from bridge.tools.entries import Entry
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantError,
    OccupantJoined,
    SendFailed,
    Source,
)
from bridge.xmpp.model.journal import Journal
from tests.tools.played import ROOM

ME, ROBOT = f"{ROOM}/McpDebug", f"{ROOM}/Robot"
SAID = MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)


def _message(body: str = "", *payload: str, type_: str = "groupchat") -> MessageReceived:
    return MessageReceived(ROBOT, "Robot", body, type_, payload=payload)


COMPOSING = "composing (http://jabber.org/protocol/chatstates)"

HOWS: dict[str, tuple[Event, str | None]] = {
    "a message": (_message("pong"), "public"),
    "a private one": (_message("pong", type_="chat"), "private"),
    "one with OMEMO": (MessageReceived(ROBOT, "Robot", encrypted="OMEMO"), "encrypted"),
    "one with OMEMO and a word on it": (
        MessageReceived(ROBOT, "Robot", "Use OMEMO.", "chat", encrypted="OMEMO"),
        "encrypted",
    ),
    "an empty body": (_message(), "no-body"),
    "an element beside a chat state": (_message("", COMPOSING, "pong (urn:example)"), "no-body"),
    "a reaction": (MessageReceived(ROBOT, "Robot", reacts_to="m1", reactions=("!",)), "public"),
    "a reaction taken back": (
        MessageReceived(ROBOT, "Robot", reacts_to="m1", reactions=()),
        None,
    ),
    "an earlier message taken back": (
        MessageReceived(ROBOT, "Robot", "took it back", retracts="m0"),
        None,
    ),
    "our message returned": (SendFailed("m1", "forbidden"), "error"),
    "another message returned": (SendFailed("m0", "forbidden"), None),
    "an error of theirs": (OccupantError(ROBOT, "Robot", "bad-request", "eh?", "m1"), "error"),
    "an error to another message": (OccupantError(ROBOT, "Robot", "bad-request", None, "m0"), None),
    "an error to no message": (OccupantError(ROBOT, "Robot", "bad-request"), None),
    "typing": (_message("", COMPOSING), None),
    "received and shown": (
        _message("", "received (urn:xmpp:receipts)", "displayed (urn:xmpp:chat-markers:0)"),
        None,
    ),
    "what we say ourselves": (MessageSent(ME, "McpDebug", "again", "m2"), None),
    "our own reflection": (MessageReceived(ME, "McpDebug", "again", id="m2", own=True), None),
    "history": (MessageReceived(ROBOT, "Robot", "pong", source=Source.HISTORY), None),
    "the archive": (MessageReceived(ROBOT, "Robot", "pong", source=Source.ARCHIVE), None),
    "a notice of the room": (MessageReceived(ROOM, "", "This room is logged."), None),
    "somebody coming": (OccupantJoined(ROBOT, "Robot", "participant", "none"), None),
}


@pytest.mark.parametrize("name", HOWS)
def test_an_answer_says_how_it_came(name: str) -> None:
    event, how = HOWS[name]
    journal = Journal("epoch")
    before, said = journal.append(event, 0.5, ROOM), journal.append(SAID, 1.0, ROOM)
    assert answer(before, journal, said) is None
    for at, milliseconds in ((1.25, 250.0), (0.75, 0.0)):  # then the clock was set back
        answered = answer(then := journal.append(event, at, ROOM), journal, said)
        if how is None:
            assert answered is None
        else:
            assert answered is not None
            assert (answered["how"], answered["answerMs"]) == (how, milliseconds)
            assert answered["cursor"] == journal.cursor_of(then.number)
            assert "from" not in answered


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([("Robot", "a"), ("Robot", "b")], []),
        ([("Robot", "a"), ("Eve", "a")], []),
        ([("Robot", ""), ("Robot", "")], []),
        ([("Robot", "a"), ("Eve", "b"), ("Robot", "a")], ['"Robot" said the same twice.']),
        (
            [("Robot-2", "a"), ("Robot", "a")],
            ['"Robot-2" and "Robot" have one account: does the program run twice?'],
        ),
    ],
)
def test_two_answers_of_one_account_are_told(
    answers: list[tuple[str, str]], told: list[str]
) -> None:
    entries: list[Entry] = [{"sender": sender, "body": body} for sender, body in answers]
    accounts = {"robot@example": ["Robot", "Robot-2", "Robot-3"], "eve@example": ["Eve"]}
    assert doubled(entries, accounts) == told
