import json
from typing import Any, get_args

import pytest

from bridge.text import wire_name
from bridge.xmpp.model import events
from bridge.xmpp.model.faults import Fault, Retry

WILMA = "r@s/a/b"
WHO = (WILMA, "a/b")
HISTORY = events.Source.HISTORY

HERS: dict[str, object] = {"direction": "in", "sender": "a/b", "from": WILMA}
SAID = {"kind": "message", **HERS, "type": "groupchat", "source": "live"}
ERROR: dict[str, object] = {"kind": "error", "direction": "in"}
ROLE = {"kind": "role", **HERS, "role": "visitor", "affiliation": "none"}
LEAVE = {"kind": "leave", **HERS}
LOGGED_IN: dict[str, object] = {
    "kind": "connection",
    "jid": "me@example/1",
    "service": "xmpp://h:1",
}


def _wired(fields: dict[str, Any]) -> dict[str, object]:
    return {
        wire_name(name): [*value] if isinstance(value, tuple) else value
        for name, value in fields.items()
    }


REFERENCES: dict[str, Any] = {
    "id": "1",
    "stanza_id": "2",
    "delayed_from": "2020-01-01T00:00:00.000Z",
    "jid": "w@example",
    "replaces": "3",
    "reply_to": "4",
    "reacts_to": "5",
    "reactions": ("x", "y"),
    "retracts": "6",
    "moderated_by": "Mod",
    "reason": "spam",
    "author": "Wilma",
    "languages": ("fr", "de"),
    "marked": ("fallback", "xhtml"),
}
DETAILS: dict[str, Any] = {
    "show": "away",
    "status": "out",
    "jid": "w@example/1",
    "reason": "noisy",
    "actor": "Owner",
    "former_role": "participant",
}
CONFIG: dict[str, object] = {"kind": "config", "direction": "in", "codes": [104, 172]}
AFFILIATED = {"affiliation": "member", "reason": "welcome", "actor": "Owner"}
REFUSED: dict[str, Any] = {"condition": "forbidden", "text": "no voice", "id": "1"}
TAKEN = Fault("conflict", "Taken.", "Wait.", Retry.SOON)
WAITING = {"phase": "waiting", "condition": "conflict", "text": "Taken.", "hint": "Wait."}
TLS = events.Tls("TLSv1.3", "AES", verified=False)
MADE = "in the room, which joining made: is MUC_ROOM spelt right?"
TIMES = ("1970-01-01T00:00:00.000Z", "1970-01-01T00:00:01.500Z")

TOLD: list[tuple[events.Event, dict[str, object]]] = [
    (events.MessageReceived(*WHO, "hello"), SAID | {"body": "hello"}),
    (
        events.MessageReceived(*WHO, "\u202e\n", "chat", **REFERENCES, source=HISTORY, own=True),
        SAID | {"body": "\u202e\n", "type": "chat", "source": "history"} | _wired(REFERENCES),
    ),
    (
        events.MessageReceived(*WHO, "", id="1", own=True, reacts_to="5", reactions=()),
        SAID | {"reflection": True, "id": "1", "reactsTo": "5", "reactions": []},
    ),
    (events.MessageReceived(*WHO, "", payload=("a (x)",)), SAID | {"payload": ["a (x)"]}),
    (events.MessageReceived(*WHO, "x", encrypted="OTR"), SAID | {"body": "x", "encrypted": "OTR"}),
    (events.MessageReceived("r@s", "", "x"), SAID | {"sender": "", "from": "r@s", "body": "x"}),
    (events.MessageSent(*WHO, "x", "1"), SAID | {"direction": "out", "body": "x", "id": "1"}),
    (events.SendFailed("1", "forbidden", "no voice"), ERROR | REFUSED),
    (events.SendFailed("1", "gone", by="b"), ERROR | {"id": "1", "condition": "gone", "by": "b"}),
    (events.OccupantError(*WHO, **REFUSED), ERROR | HERS | REFUSED),
    (events.OccupantError(*WHO, "gone"), ERROR | HERS | {"condition": "gone"}),
    (
        events.OccupantJoined(*WHO, "visitor", "none", self_=True, codes=frozenset({201, 110})),
        ROLE
        | {"kind": "join", "self": True, "codes": [110, 201]}
        | {"meaning": [events.STATUS_CODES[110], events.STATUS_CODES[201]]},
    ),
    (events.OccupantChanged(*WHO, "visitor", "none", **DETAILS), ROLE | _wired(DETAILS)),
    (
        events.OccupantChanged(*WHO, "visitor", "member", former_affiliation="none"),
        ROLE | {"affiliation": "member", "formerAffiliation": "none"},
    ),
    (
        events.AffiliationChanged("w@example", **AFFILIATED),
        {"kind": "role", "direction": "in", "jid": "w@example", **AFFILIATED},
    ),
    (
        events.OccupantLeft(*WHO, codes=frozenset({307, 999}), reason="spam", actor="Owner"),
        LEAVE | {"codes": [307, 999], "meaning": ["kicked"], "reason": "spam", "actor": "Owner"},
    ),
    (
        events.OccupantLeft(*WHO, self_=True, status="bye", codes=frozenset({999})),
        LEAVE | {"status": "bye", "self": True, "codes": [999]},
    ),
    (events.NicknameChanged(*WHO, "c"), {"kind": "nick", **HERS, "newNickname": "c"}),
    (
        events.RoomDestroyed("moved", "n@muc"),
        {
            "kind": "leave",
            "direction": "in",
            "destroyed": True,
            "reason": "moved",
            "venue": "n@muc",
        },
    ),
    (
        events.SubjectChanged("", "a/b"),
        {"kind": "subject", "direction": "in", "sender": "a/b", "subject": ""},
    ),
    (
        events.RoomConfigured(frozenset({172, 104})),
        CONFIG | {"meaning": [events.STATUS_CODES[104], events.STATUS_CODES[172]]},
    ),
    (
        events.RoomError("gone", "moved", "xmpp:n@muc"),
        ERROR | {"condition": "gone", "text": "moved", "venue": "xmpp:n@muc"},
    ),
    (
        events.StanzaDamaged(*WHO, "it is odd"),
        ERROR | HERS | {"condition": "unreadable-stanza", "reason": "it is odd"},
    ),
    (events.ConnectionChanged(events.Phase.JOINED), {"kind": "connection", "phase": "joined"}),
    (
        events.ConnectionChanged(events.Phase.WAITING, TAKEN, 2, 1500),
        {"kind": "connection", **WAITING, "attempt": 2, "nextAttemptInMs": 1500},
    ),
    (
        events.Connected("me@example/1", "xmpp://h:1", TLS, "PLAIN"),
        LOGGED_IN
        | {"text": "logged in", "tls": "TLSv1.3, AES, certificate not checked", "sasl": "PLAIN"},
    ),
    (
        events.Connected("me@example/1", "xmpp://h:1", None, "SCRAM-SHA-1", resumed=True),
        LOGGED_IN | {"text": "the former session goes on", "tls": "none", "sasl": "SCRAM-SHA-1"},
    ),
    (
        events.Joined(*WHO, created=True),
        {"kind": "connection", "text": MADE, "sender": "a/b", "from": WILMA},
    ),
    (events.Gap(*TIMES), {"kind": "gap", "from": TIMES[0], "to": TIMES[1]}),
]


@pytest.mark.parametrize(("event", "expected"), TOLD)
def test_an_event_is_told_and_made_again(event: events.Event, expected: dict[str, object]) -> None:
    assert events.encode(event) == expected
    assert event.kind == expected["kind"]
    again = events.decode(json.loads(json.dumps(expected)))
    assert type(again) is type(event)
    left = {"tls", "text"} if event.kind == "connection" else {"reflection"}
    told, wanted = (
        {name: value for name, value in each.items() if name not in left}
        for each in (events.encode(again), expected)
    )
    assert told == wanted


def test_every_event_is_told_here_and_every_kind_has_one() -> None:
    assert {type(event) for event, _ in TOLD} == set(get_args(events.Event))
    assert {each.kind for each in get_args(events.Event)} == set(get_args(events.Kind))
