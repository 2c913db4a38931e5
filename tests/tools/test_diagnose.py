"""What xmppDiagnose asks and returns; what it finds is in tests/xmpp/checks/test_diagnosis.py."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.store.database import Observer
from bridge.text import iso
from bridge.tools.answers import MAX_ANSWERS
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.entries import NOTICE, RESULT_BYTES
from bridge.tools.link import RoomLink
from bridge.xmpp.link.stanzas import PING, IqError, StanzaError
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantLeft,
)
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.journal import RECORDED, Journal
from tests.store.shelf import ACCOUNT, NIGHTLY, SETTINGS, Shelf
from tests.tools.played import FAULT, ROOM, STATUS, arguments, wire
from tests.tools.standing import Asked, Standing, occupant

ME, ROBOT = f"{ROOM}/McpDebug", f"{ROOM}/Robot"
SENT = MessageSent(ME, "McpDebug", "!ping", "m1")
HEARD = MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)


def _beside(*events: Event, nickname: str = "Robot", stream: Asked | None = None) -> Standing:
    """In the room with a bot, where these events have happened."""
    there = (*STATUS.occupants, occupant(nickname))
    played = Standing(picture=replace(STATUS, occupants=there))
    if stream is not None:
        played.stream = stream
    for event in events:
        played.publish(event)
    return played


async def _diagnosed(link: RoomLink, **given: object) -> dict[str, Any]:
    """What a client sees of the result, which is as its schema has it, and not too long."""
    found = wire(
        await xmpp_diagnose(link, **arguments(xmpp_diagnose, {"nickname": "Robot", **given}))
    )
    Draft202012Validator(xmpp_diagnose.output_schema).validate(found)
    assert len(json.dumps(found)) <= RESULT_BYTES
    assert found["notice"] == NOTICE
    return found


def _ok(found: dict[str, Any]) -> dict[str, bool | None]:
    return {one["name"]: one["ok"] for one in found["findings"]}


async def test_it_says_nothing_and_asks_only_whom_it_concerns() -> None:
    played = _beside(SENT, HEARD, MessageReceived(ROBOT, "Robot", "pong"))
    found = await _diagnosed(played.link)
    assert played.stream.asked == [(ROBOT, PING)]
    assert played.said == []
    (answer,) = found["answers"]
    assert (answer["body"], answer["how"], answer["cursor"]) == ("pong", "public", "epoch-3")
    assert found["verdict"].startswith("Nothing is wrong")


async def test_who_left_before_the_bridge_came_is_looked_for_in_what_was_recorded(
    tmp_path: Path,
) -> None:
    shelf, played = Shelf(tmp_path / "rooms.db"), _beside(nickname="Wilma")
    played.reader, played.settings = shelf.reader, SETTINGS
    never = await _diagnosed(played.link)
    assert '"Robot" was never in the room while the bridge watched' in never["verdict"]
    shelf.put(OccupantLeft(ROBOT, "Robot", status="early"), at=1)
    kick = OccupantLeft(ROBOT, "Robot", codes=frozenset({307}), actor="Mallory", reason="enough")
    shelf.put(kick, at=2)
    shelf.put(NicknameChanged(f"{ROOM}/Fred", "Fred", "Robot"), at=3)
    shelf.put(OccupantLeft(f"{ROOM}/Z", "Z", status="late"), at=4)
    found = await _diagnosed(played.link)
    assert found["verdict"] == (
        '"Robot" left the room at 1970-01-01T00:00:02.000Z: kicked by "Mallory", saying "enough"; '
        'before, it left the room at 1970-01-01T00:00:01.000Z: it went by itself, saying "early".'
    )
    played.publish(OccupantLeft(ROBOT, "Robot", status="seen"), at=5)
    assert "00:00:05" in (await _diagnosed(played.link))["verdict"]
    shelf.path.write_bytes(b"no store")
    played.journal = Journal("epoch")
    assert "was never in the room" in (await _diagnosed(played.link))["verdict"]


OURS = Observer(ACCOUNT, "McpDebug-send", "former")


@pytest.mark.parametrize(
    ("by", "ago", "since", "verdict"),
    [
        (OURS, 60.0, 60.0, "Nothing is wrong: "),
        (NIGHTLY, 60.0, 59.9, "Nothing is found wrong "),  # another account said it
        (OURS, 3_700.0, 0.0, "Nothing is found wrong "),  # nobody remembers
    ],
)
async def test_what_our_account_said_before_the_bridge_came_counts_for_an_hour(
    by: Observer, ago: float, since: float, verdict: str, tmp_path: Path
) -> None:
    shelf, played = Shelf(tmp_path / "rooms.db"), _beside()
    played.reader, played.settings = shelf.reader, SETTINGS
    now = float(round(time.time()))
    shelf.put(SENT, at=now - ago, by=by, shared=False)
    shelf.put(replace(HEARD, own=False), at=now - ago + 0.1)
    shelf.put(MessageReceived(ROBOT, "Robot", "pong"), at=now - ago + 0.2)
    played.publish(OccupantLeft(f"{ROOM}/Z", "Z"), at=now)
    found = await _diagnosed(played.link)
    assert found["verdict"].startswith(verdict)
    if answers := found["answers"]:
        assert (answers[0]["body"], answers[0]["answerMs"]) == ("pong", pytest.approx(100, abs=2))
        assert answers[0]["cursor"].startswith(RECORDED)
    assert found["since"] == iso(now - since)
    played.publish(SENT, at=now + 1)  # its own words count before those of others
    assert (await _diagnosed(played.link))["answers"] == []


async def test_a_nickname_with_hidden_characters_is_known_by_either_spelling() -> None:
    for spelt in ("Rob\u200bot", r"Rob\u{200B}ot"):
        link = _beside(nickname="Rob\u200bot").link
        assert _ok(await _diagnosed(link, nickname=spelt))["present"] is True


@pytest.mark.parametrize(
    "refused", [ConnectionFailedError(FAULT), IqError(StanzaError("forbidden"))]
)
async def test_a_ping_that_cannot_be_made_tells_nothing(refused: Exception) -> None:
    found = await _diagnosed(_beside(stream=Asked(lambda *_: refused)).link)
    assert _ok(found)["ping"] is None


async def test_a_flood_of_long_answers_is_cut() -> None:
    flood = [MessageReceived(ROBOT, "Robot", "\u202e" * 4_000 + str(one)) for one in range(50)]
    found = await _diagnosed(_beside(SENT, HEARD, *flood).link)
    assert 1 < len(found["answers"]) <= MAX_ANSWERS
    assert all(one["escaped"] for one in found["answers"])
