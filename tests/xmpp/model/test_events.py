import json
from typing import get_args

import pytest

from bridge.xmpp.model.events import (
    STATUS_CODES,
    AffiliationChanged,
    Connected,
    ConnectionChanged,
    Event,
    Gap,
    Joined,
    Kind,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantError,
    OccupantJoined,
    OccupantLeft,
    Phase,
    RoomConfigured,
    RoomDestroyed,
    RoomError,
    SendFailed,
    Source,
    StanzaDamaged,
    SubjectChanged,
    Tls,
    decode,
    encode,
)
from bridge.xmpp.model.faults import Fault, Retry
from tests.docs.pages import section

WILMA = "r@s/a/b"

HERS: dict[str, object] = {"direction": "in", "sender": "a/b", "from": WILMA}
SAID = {"kind": "message", **HERS, "type": "groupchat", "source": "live"}
ERROR: dict[str, object] = {"kind": "error", "direction": "in"}
ROLE = {"kind": "role", **HERS, "role": "visitor"}
LEAVE = {"kind": "leave", **HERS}
LOGGED_IN: dict[str, object] = {
    "kind": "connection",
    "jid": "me@example/1",
    "service": "xmpp://h:1",
}

TOLD: list[tuple[Event, dict[str, object]]] = [
    (MessageReceived(WILMA, "a/b", "hello"), SAID | {"body": "hello"}),
    (
        MessageReceived(
            WILMA,
            "a/b",
            "\u202eraw\n",
            type="chat",
            id="1",
            stanza_id="2",
            delayed_from="2020-01-01T00:00:00.000Z",
            source=Source.HISTORY,
            own=True,
            jid="w@example",
            replaces="3",
            reply_to="4",
            reacts_to="5",
            reactions=("x", "y"),
            retracts="6",
        ),
        SAID
        | {
            "jid": "w@example",
            "body": "\u202eraw\n",
            "type": "chat",
            "source": "history",
            "id": "1",
            "stanzaId": "2",
            "delayedFrom": "2020-01-01T00:00:00.000Z",
            "replaces": "3",
            "replyTo": "4",
            "reactsTo": "5",
            "reactions": ["x", "y"],
            "retracts": "6",
        },
    ),
    (
        MessageReceived(WILMA, "a/b", "", id="1", own=True, reacts_to="5", reactions=()),
        SAID | {"reflection": True, "id": "1", "reactsTo": "5", "reactions": []},
    ),
    (
        MessageReceived(WILMA, "a/b", "", payload=("composing (x)",)),
        SAID | {"payload": ["composing (x)"]},
    ),
    (
        MessageReceived(WILMA, "a/b", "cannot be read", encrypted="OMEMO"),
        SAID | {"body": "cannot be read", "encrypted": "OMEMO"},
    ),
    (
        MessageReceived("r@s", "", "this room is logged"),
        SAID | {"sender": "", "from": "r@s", "body": "this room is logged"},
    ),
    (
        MessageSent(WILMA, "a/b", "hello", "1"),
        SAID | {"direction": "out", "body": "hello", "id": "1"},
    ),
    (
        SendFailed("1", "forbidden", "no voice"),
        ERROR | {"condition": "forbidden", "text": "no voice", "id": "1"},
    ),
    (
        OccupantError(WILMA, "a/b", "not-acceptable", "what?", "1"),
        ERROR | HERS | {"condition": "not-acceptable", "text": "what?", "id": "1"},
    ),
    (
        OccupantError(WILMA, "a/b", "undefined-condition"),
        ERROR | HERS | {"condition": "undefined-condition"},
    ),
    (
        OccupantJoined(
            WILMA, "a/b", "participant", "none", self_=True, codes=frozenset({201, 110})
        ),
        {
            "kind": "join",
            **HERS,
            "role": "participant",
            "affiliation": "none",
            "self": True,
            "codes": [110, 201],
            "meaning": [STATUS_CODES[110], STATUS_CODES[201]],
        },
    ),
    (
        OccupantChanged(
            WILMA,
            "a/b",
            "visitor",
            "none",
            former_role="participant",
            show="away",
            status="out",
            jid="w@example/1",
            reason="noisy",
            actor="Owner",
        ),
        ROLE
        | {
            "affiliation": "none",
            "show": "away",
            "status": "out",
            "jid": "w@example/1",
            "reason": "noisy",
            "actor": "Owner",
            "formerRole": "participant",
        },
    ),
    (
        OccupantChanged(WILMA, "a/b", "visitor", "member", former_affiliation="none"),
        ROLE | {"affiliation": "member", "formerAffiliation": "none"},
    ),
    (
        AffiliationChanged("w@example", "member", "welcome", "Owner"),
        {
            "kind": "role",
            "direction": "in",
            "jid": "w@example",
            "affiliation": "member",
            "reason": "welcome",
            "actor": "Owner",
        },
    ),
    (
        OccupantLeft(WILMA, "a/b", codes=frozenset({307, 999}), reason="spam", actor="Owner"),
        LEAVE | {"codes": [307, 999], "meaning": ["kicked"], "reason": "spam", "actor": "Owner"},
    ),
    (
        OccupantLeft(WILMA, "a/b", self_=True, status="bye", codes=frozenset({999})),
        LEAVE | {"status": "bye", "self": True, "codes": [999]},
    ),
    (NicknameChanged(WILMA, "a/b", "c"), {"kind": "nick", **HERS, "newNickname": "c"}),
    (
        RoomDestroyed("moved", "new@muc"),
        {"kind": "leave", "direction": "in", "destroyed": True, "reason": "moved"}
        | {"venue": "new@muc"},
    ),
    (
        SubjectChanged("", "a/b"),
        {"kind": "subject", "direction": "in", "sender": "a/b", "subject": ""},
    ),
    (
        RoomConfigured(frozenset({172, 104})),
        {
            "kind": "config",
            "direction": "in",
            "codes": [104, 172],
            "meaning": [STATUS_CODES[104], STATUS_CODES[172]],
        },
    ),
    (
        RoomError("gone", "moved", "xmpp:new@muc"),
        ERROR | {"condition": "gone", "text": "moved", "venue": "xmpp:new@muc"},
    ),
    (
        StanzaDamaged(WILMA, "a/b", "it is odd"),
        ERROR | HERS | {"condition": "unreadable-stanza", "reason": "it is odd"},
    ),
    (ConnectionChanged(Phase.JOINED), {"kind": "connection", "phase": "joined"}),
    (
        ConnectionChanged(Phase.WAITING, Fault("conflict", "Taken.", "Wait.", Retry.SOON), 2, 1500),
        {
            "kind": "connection",
            "phase": "waiting",
            "condition": "conflict",
            "text": "Taken.",
            "hint": "Wait.",
            "attempt": 2,
            "nextAttemptInMs": 1500,
        },
    ),
    (
        Connected("me@example/1", "xmpp://h:1", Tls("TLSv1.3", "AES", verified=False), "PLAIN"),
        LOGGED_IN
        | {"text": "logged in", "tls": "TLSv1.3, AES, certificate not checked", "sasl": "PLAIN"},
    ),
    (
        Connected("me@example/1", "xmpp://h:1", None, "SCRAM-SHA-1", resumed=True),
        LOGGED_IN | {"text": "the former session goes on", "tls": "none", "sasl": "SCRAM-SHA-1"},
    ),
    (
        Joined(WILMA, "a/b", created=True),
        {
            "kind": "connection",
            "text": "in the room, which joining made: is MUC_ROOM spelt right?",
            "sender": "a/b",
            "from": WILMA,
        },
    ),
    (
        Gap("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.500Z"),
        {"kind": "gap", "from": "1970-01-01T00:00:00.000Z", "to": "1970-01-01T00:00:01.500Z"},
    ),
]


def test_the_page_of_the_tools_has_each_field() -> None:
    fields_on_it = section("docs/tools.md", "## What an entry has")
    fields_told = {name for _, expected in TOLD for name in expected}
    assert [name for name in fields_told if f"`{name}`" not in fields_on_it] == []


@pytest.mark.parametrize(("event", "expected"), TOLD)
def test_an_event_is_told_as_it_is_and_made_again(
    event: Event, expected: dict[str, object]
) -> None:
    assert encode(event) == expected
    assert event.kind == expected["kind"]
    again = decode(json.loads(json.dumps(expected)))
    assert type(again) is type(event)
    left = {"tls", "text"} if event.kind == "connection" else {"reflection"}
    told, wanted = (
        {name: value for name, value in one.items() if name not in left}
        for one in (encode(again), expected)
    )
    assert told == wanted


def test_every_event_is_told_here_and_every_kind_has_one() -> None:
    assert {type(event) for event, _ in TOLD} == set(get_args(Event))
    assert {one.kind for one in get_args(Event)} == set(get_args(Kind))
