import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.mcp.errors import ArgumentError
from bridge.settings.load import load
from bridge.settings.table import Configuration
from bridge.text import visible
from bridge.tools import status as status_module
from bridge.tools.check import CurrentSettings
from bridge.tools.entries import NOTICE, RESULT_BYTES
from bridge.xmpp.model.events import MessageReceived, Phase, SubjectChanged
from bridge.xmpp.model.faults import Fault
from bridge.xmpp.model.room import LastError, LastIncoming
from tests.tools.played import (
    FAULT,
    LOGS,
    OTHER_LOBBY,
    ROOM,
    STATUS,
    Played,
    fitting,
    in_room,
    in_rooms,
)


@pytest.fixture
def configuration(tmp_path: Path) -> Configuration:
    return load(
        {
            "XMPP_USERNAME": "bot@example",
            "XMPP_PASSWORD": "bot-passes-4711",
            "MUC_ROOM": ROOM,
            "NODE_TLS_REJECT_UNAUTHORIZED": "0",
        },
        cwd=tmp_path,
        package_root=tmp_path / "package",
    )


def _status(played: Played, configuration: Configuration) -> dict[str, Any]:
    current = CurrentSettings(configuration, lambda: configuration)
    tool = status_module.xmpp_status
    return fitting(tool, tool(played.link, current))


def test_an_echo_is_what_was_said_in_one_text() -> None:
    assert status_module.echo(message="hello\n\u202e") == "Echo: hello\n\u202e"
    assert (status_module.echo(message=""), status_module.echo(text="")) == ("Echo: ", "")
    for given in ({}, {"message": "a", "text": "a"}):
        with pytest.raises(ArgumentError, match="message or text, and exactly one"):
            status_module.echo(**given)


def test_a_status_in_the_room_has_what_there_is_to_say(configuration: Configuration) -> None:
    played = Played(dataclasses.replace(STATUS, subject=None))
    played.journal.append(SubjectChanged("tests"), 0.0)
    status = _status(played, configuration)
    assert status == {
        "connected": True,
        "room": ROOM,
        "nickname": "McpDebug",
        "lastIncoming": None,
        "phase": "joined",
        "since": "1970-01-01T00:00:00.000Z",
        "occupants": 1,
        "jid": "bot@example/r",
        "service": "xmpp://example:5222",
        "tls": {"version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "verified": True},
        "sasl": "SCRAM-SHA-256",
        "self": {"role": "participant", "affiliation": "none", "voice": True},
        "warnings": list(configuration.warnings),
        "cursor": "epoch-1",
    }
    assert len(configuration.warnings) == 1


def test_a_status_out_of_the_room_tells_why_and_when_next(configuration: Configuration) -> None:
    picture = dataclasses.replace(
        STATUS,
        phase=Phase.WAITING,
        attempt=3,
        next_attempt_at=60.5,
        last_error=LastError(FAULT, 1.0),
        subject=None,
        tls=None,
    )
    status = _status(Played(picture), configuration)
    assert (status["connected"], status["phase"], status["attempt"]) == (False, "waiting", 3)
    assert status["nextAttemptAt"] == "1970-01-01T00:01:00.500Z"
    assert status["tls"] is None
    assert status["lastError"] == {
        "condition": "connection-refused",
        "message": "Nothing listens there.",
        "hint": "Check XMPP_SERVICE.",
        "at": "1970-01-01T00:00:01.000Z",
        "retry": "Tried again at 1970-01-01T00:01:00.500Z by itself; xmppCheck tries at once if "
        "nothing prevents it.",
    }
    assert status["envCandidates"] == [
        {"path": each.path, "reason": "missing"} for each in configuration.candidates
    ]
    assert "notice" not in status


@pytest.mark.parametrize(
    ("role", "moderated", "voice"), [("visitor", True, False), ("moderator", None, True)]
)
def test_a_status_in_the_room_says_what_the_bridge_may_do_there(
    role: str, moderated: bool | None, voice: bool, configuration: Configuration
) -> None:
    own = dataclasses.replace(STATUS.occupants[0], role=role)
    picture = dataclasses.replace(STATUS, occupants=(own,), moderated=moderated)
    status = _status(Played(picture), configuration)
    assert status["self"] == {"role": role, "affiliation": "none", "voice": voice}
    assert status.get("moderated") is moderated
    assert any("no voice" in it for it in status.get("warnings", ())) is not voice
    out = _status(Played(dataclasses.replace(picture, occupants=())), configuration)
    assert not {"self", "moderated"} & out.keys()


@pytest.mark.parametrize(
    ("changes", "noticed"),
    [
        ({}, False),
        ({"subject": "ours"}, True),
        ({"similar_rooms": ("a@b",)}, True),
        ({"last_error": LastError(FAULT._replace(quotes=True), 0.0)}, True),
        ({"last_incoming": LastIncoming(MessageReceived("a@b/c", "c", "hi"), 0.0)}, True),
    ],
)
def test_the_notice_stands_where_strangers_had_a_say(
    changes: dict[str, Any], noticed: bool, configuration: Configuration
) -> None:
    picture = dataclasses.replace(STATUS, subject=None)
    status = _status(Played(dataclasses.replace(picture, **changes)), configuration)
    assert (status.get("notice") == NOTICE) is noticed


def test_what_the_bridge_warns_of_now_stands_beside_what_the_settings_said(
    configuration: Configuration,
) -> None:
    now: list[str] = []
    link = Played(warnings=now).link
    current = CurrentSettings(configuration, lambda: configuration)
    before = status_module.describe_status(link, current)["warnings"]
    assert isinstance(before, list)
    now.append("the disk is full")
    after = status_module.describe_status(link, current)["warnings"]
    assert after == [*before, "the disk is full"]


def _last(body: str, room: str, at: float) -> LastIncoming:
    return LastIncoming(MessageReceived(f"{room}/Wilma", "Wilma", body), at)


def test_with_several_rooms_a_status_tells_of_each(configuration: Configuration) -> None:
    played = in_rooms(ROOM, LOGS, OTHER_LOBBY)
    _, logs, other = (played, *played.further)
    played.picture = dataclasses.replace(STATUS, last_incoming=_last("old", ROOM, 1.0))
    error = LastError(FAULT, 2.0)
    logs.picture = dataclasses.replace(
        STATUS, phase=Phase.FAILED, last_error=error, occupants=(), nickname="McpDebug-2"
    )
    other.picture = dataclasses.replace(
        in_room(OTHER_LOBBY, "Wilma"), last_incoming=_last("new", OTHER_LOBBY, 3.0), crowded=True
    )
    status = _status(played, configuration)
    assert (status["room"], status["phase"], status["occupants"]) == (ROOM, "joined", 1)
    assert "lastError" not in status
    incoming = status["lastIncoming"]
    assert (incoming["body"], incoming["room"]) == ("new", OTHER_LOBBY)
    assert [each for each in status["warnings"] if each.startswith(f"{OTHER_LOBBY}: The room has ")]
    well = {"phase": "joined", "nickname": "McpDebug"}
    assert status["rooms"] == [
        well | {"room": ROOM, "occupants": 1},
        {
            "room": LOGS,
            "phase": "failed",
            "nickname": "McpDebug-2",
            "occupants": 0,
            "lastError": {
                "condition": FAULT.condition,
                "message": FAULT.message,
                "hint": FAULT.hint,
                "at": "1970-01-01T00:00:02.000Z",
                "retry": logs.picture.outlook,
            },
        },
        well | {"room": OTHER_LOBBY, "occupants": 2},
    ]


@pytest.mark.parametrize("text", ["m" * 150, "\u202e" * 5_000])
@pytest.mark.parametrize(("characters", "whole"), [(20, True), (1_000, False)])
def test_fifty_rooms_in_trouble_fit_into_a_status(
    configuration: Configuration, text: str, characters: int, whole: bool
) -> None:
    rooms = [f"{number:x<{characters}}@conference.example" for number in range(50)]
    played = in_rooms(*rooms)
    fault = Fault("a-condition-of-26-letters-", text, text)
    for each in (played, *played.further):
        each.picture = dataclasses.replace(
            STATUS,
            phase=Phase.AUTHENTICATING,
            last_error=LastError(fault, 1.0),
            last_incoming=_last(text, ROOM, 1.0),
            subject=text,
        )
    told = dataclasses.replace(configuration, warnings=(text,) * 40)
    status = _status(played, told)
    written = json.dumps(status, ensure_ascii=False)
    assert visible(written) == written
    assert len(json.dumps(status)) <= RESULT_BYTES
    assert [each["phase"] for each in status["rooms"]] == ["authenticating"] * 50
    assert {each["lastError"]["condition"] for each in status["rooms"]} == {fault.condition}
    named = [each["room"] for each in status["rooms"]]
    assert named == rooms if whole else all(map(str.startswith, rooms, named))
    assert len(set(named)) == 50
