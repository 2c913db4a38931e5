"""What xmppDiagnose asks and returns; what it finds is in tests/xmpp/checks/test_diagnosis.py."""

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.store.database import Observer
from bridge.text import iso
from bridge.tools.answers import MAX_ANSWERS
from bridge.tools.check import xmpp_check
from bridge.tools.diagnose import BRIEF_BYTES, MAX_ASKED, MAX_PROGRAMS, xmpp_diagnose
from bridge.tools.entries import NOTICE, RESULT_BYTES
from bridge.tools.link import RoomLink
from bridge.tools.occupants import xmpp_occupants
from bridge.tools.send import xmpp_send
from bridge.tools.wait import xmpp_wait
from bridge.wire.names import DISCO_INFO, PING, StanzaError
from bridge.wire.speech import LOOP_ROUNDS
from bridge.xmpp.checks.conduct import STAYS
from bridge.xmpp.link.stanzas import IqError
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
)
from bridge.xmpp.model.faults import ConnectionFailedError
from bridge.xmpp.model.journal import RECORDED, Journal
from tests.store.shelf import ACCOUNT, NIGHTLY, SETTINGS, Shelf
from tests.tools.played import FAULT, ROOM, STATUS, arguments, fitting
from tests.tools.standing import Answer, Asked, Standing, occupant, outside, standing, standing_in
from tests.xmpp.elements import append, parsed

CALLED = (xmpp_diagnose, xmpp_send, xmpp_wait, xmpp_check, xmpp_occupants)
TOOLS = {each.name: each for each in CALLED}
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
    asked = {"nickname": "Robot", **given}
    asked = {name: value for name, value in asked.items() if value is not None}
    result = fitting(xmpp_diagnose, await xmpp_diagnose(link, **arguments(xmpp_diagnose, asked)))
    assert len(json.dumps(result)) <= (RESULT_BYTES if "detail" in given else BRIEF_BYTES)
    assert result["notice"] == NOTICE
    if "arguments" in (step := result.get("nextStep", {})):
        Draft202012Validator(TOOLS[step["tool"]].input_schema).validate(step["arguments"])
    return result


def _ok(result: dict[str, Any]) -> dict[str, bool | None]:
    return {each["name"]: each["ok"] for each in result["findings"]}


async def test_it_says_nothing_and_asks_only_where_no_answer_decides() -> None:
    silent = _beside(SENT, HEARD)
    assert (await _diagnosed(silent.link))["outcome"] == "unknown"
    assert silent.stream.asked == [(ROBOT, DISCO_INFO), (ROBOT, PING)]
    played = _beside(SENT, HEARD, MessageReceived(ROBOT, "Robot", "pong"))
    result = await _diagnosed(played.link)
    assert (result["outcome"], played.stream.asked) == ("well", [])
    assert played.said == []
    (answer,) = result["answers"]
    assert (answer["body"], answer["how"], answer["cursor"]) == ("pong", "public", "epoch-3")
    assert result["verdict"].startswith("Nothing is wrong")


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
    result = await _diagnosed(played.link)
    assert result["verdict"] == (
        '"Robot" left the room at 1970-01-01T00:00:02.000Z: kicked by "Mallory", saying "enough"; '
        "before, it, or another occupant (the room shows neither accounts nor ids) left the room "
        'at 1970-01-01T00:00:01.000Z: its words were "early".'
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
        (NIGHTLY, 60.0, 59.9, "Nothing is wrong, as far as the bridge saw since "),
        (OURS, 3_700.0, 0.0, "It is not known whether "),  # nobody remembers
    ],
)
async def test_what_our_account_said_before_the_bridge_came_counts_for_an_hour(
    by: Observer, ago: float, since: float, verdict: str, tmp_path: Path
) -> None:
    shelf, played = Shelf(tmp_path / "rooms.db"), _beside()
    played.reader, played.settings = shelf.reader, SETTINGS
    now = float(round(time.time()))
    shelf.put(SENT, at=now - ago, by=by, shared=False)
    shelf.put(HEARD._replace(own=False), at=now - ago + 0.1)
    shelf.put(MessageReceived(ROBOT, "Robot", "pong"), at=now - ago + 0.2)
    played.publish(OccupantLeft(f"{ROOM}/Z", "Z"), at=now)
    result = await _diagnosed(played.link)
    assert result["verdict"].startswith(verdict)
    if (answers := result["answers"]) and by is OURS:
        assert (answers[0]["body"], answers[0]["answerMs"]) == ("pong", pytest.approx(100, abs=2))
        assert answers[0]["cursor"].startswith(RECORDED)
    assert result["since"] == iso(now - since)
    played.publish(SENT, at=now + 1)  # its own words count before those of others
    assert (await _diagnosed(played.link))["answers"] == []


async def test_a_nickname_with_hidden_characters_is_known_by_either_spelling() -> None:
    for spelt in ("Rob\u200bot", r"Rob\u{200B}ot"):
        link = _beside(nickname="Rob\u200bot").link
        assert _ok(await _diagnosed(link, nickname=spelt, detail="full"))["present"] is True


@pytest.mark.parametrize(
    "refused", [ConnectionFailedError(FAULT), IqError(StanzaError("forbidden"))]
)
async def test_a_ping_that_cannot_be_made_tells_nothing(refused: Exception) -> None:
    link = _beside(stream=Asked(lambda *_: refused)).link
    assert _ok(await _diagnosed(link, detail="full"))["ping"] is None


async def test_a_flood_of_long_answers_is_cut() -> None:
    flood = [MessageReceived(ROBOT, "Robot", "\u202e" * 4_000 + str(each)) for each in range(50)]
    result = await _diagnosed(_beside(SENT, HEARD, *flood).link)
    assert 1 < len(result["answers"]) <= MAX_ANSWERS
    assert all(each["escaped"] for each in result["answers"])


CAME = OccupantJoined(ROBOT, "Robot", "participant", "none")
TAKEN = OccupantChanged(ROBOT, "Robot", "visitor", "none", actor="Wilma", former_role="participant")


async def test_who_took_the_voice_long_ago_is_looked_for_in_what_was_recorded(
    tmp_path: Path,
) -> None:
    shelf, played = Shelf(tmp_path / "rooms.db"), _beside()
    played.reader, played.settings = shelf.reader, SETTINGS
    visitor = replace(occupant("Robot"), role="visitor")
    played.picture = replace(STATUS, occupants=(*STATUS.occupants, visitor))
    shelf.put(TAKEN, at=5)
    result = await _diagnosed(played.link)
    assert 'voice was taken at 1970-01-01T00:00:05.000Z by "Wilma"' in result["verdict"]
    shelf.put(OccupantLeft(ROBOT, "Robot"), at=6)  # whoever had the nickname then
    assert "voice was taken" not in (await _diagnosed(played.link))["verdict"]


def _saying(kinds: Mapping[str, str]) -> Answer:
    """Return how occupants answer, of whom some say what they are, as in `client/bot`."""

    def answer(to: str, namespace: str) -> Element | Exception:
        kind = kinds.get(to.rpartition("/")[2])
        if namespace != DISCO_INFO:
            return Element("iq", {"type": "result"})
        if kind is None:
            return IqError(StanzaError("feature-not-implemented"))
        iq = Element("iq", {"type": "result"})
        query = SubElement(iq, f"{{{DISCO_INFO}}}query")
        for category, _, type_ in (each.partition("/") for each in kind.split()):
            identity = {"category": category, "type": type_}
            SubElement(query, f"{{{DISCO_INFO}}}identity", identity)
        return iq

    return answer


def _said(nickname: str, body: str) -> MessageReceived:
    return MessageReceived(f"{ROOM}/{nickname}", nickname, body)


async def test_without_a_nickname_it_looks_at_whoever_says_that_it_is_a_program() -> None:
    programs = {"Bot": "client/bot", "Door": "automation/device-node", "Gate": "component/generic"}
    people = {
        "Ann": "client/pc",
        "Bob": "client/phone",
        "Cid": "client/web client/bot",
        "Dan": "account/x",
    }
    everybody = {**programs, **people}
    link, stream = standing(_saying(everybody), *everybody, "Silent")
    result = await _diagnosed(link, nickname=None)
    assert [(it["name"], it["ok"]) for it in result["findings"]] == [("program", None)] * 3
    assert [it["detail"].partition('"')[2].partition('"')[0] for it in result["findings"]] == [
        *programs
    ]
    words = "It is not known whether anything is wrong with the programs (3 of 8 other occupants)."
    assert (result["outcome"], result["verdict"]) == ("unknown", words)
    assert result["nextStep"] == {"tool": "xmppDiagnose", "arguments": {"nickname": "Bot"}}
    assert result["answers"] == []
    pinged = [to for to, namespace in stream.asked if namespace == PING]
    assert pinged == [f"{ROOM}/{name}" for name in programs]


@pytest.mark.parametrize("kind", [None, "client/phone"])
async def test_without_a_nickname_it_looks_at_whoever_answers_as_a_program(
    kind: str | None,
) -> None:
    played = _beside(stream=Asked(_saying({"Robot": kind} if kind else {})))
    for number in range(3):
        played.publish(_said("Wilma", "!ping"), at=30.0 * number)
        played.publish(_said("Robot", "pong"), at=30.0 * number + 0.1)
    result = await _diagnosed(played.link, nickname=None)
    assert [it["detail"] for it in result["findings"]] == (
        []
        if kind
        else ['"Robot" answers as programs do; it answered "!ping" of "Wilma" after 100 ms.']
    )
    assert (result["verdict"] == "No program is seen among the 1 other occupant.") is (
        kind is not None
    )


async def test_what_the_room_has_not_passed_on_is_not_to_be_said_again_to_all_programs() -> None:
    result = await _diagnosed(_beside(SENT, stream=Asked(_saying({}))).link, nickname=None)
    assert (result["outcome"], result["nextStep"]["tool"]) == ("unknown", "xmppCheck")
    assert result["verdict"].endswith(' The room did not pass on "!ping".')
    heard = await _diagnosed(_beside(SENT, HEARD, stream=Asked(_saying({}))).link, nickname=None)
    assert "did not pass on" not in heard["verdict"]


@pytest.mark.parametrize(("body", "outcome"), [("!ping", "unknown"), ("pong", "well")])
async def test_who_gives_the_same_command_at_once_has_not_answered(body: str, outcome: str) -> None:
    played = _beside(SENT, HEARD, stream=Asked(_saying({"Robot": "client/pc"})))
    played.publish(_said("Robot", body), at=0.1)
    result = await _diagnosed(played.link, nickname=None)
    assert (result["outcome"], result["findings"]) == (outcome, [])
    played.stream = Asked(_saying({}))
    assert bool((await _diagnosed(played.link, nickname=None))["findings"]) is (body == "pong")


async def test_a_cause_of_one_program_is_the_verdict_and_the_bridges_words_concern_nobody() -> None:
    played = _beside(SENT, HEARD, stream=Asked(_saying({"Robot": "client/bot"})))
    result = await _diagnosed(played.link, nickname=None)
    assert _ok(result) == {"program": None}
    assert result["verdict"].endswith('(1 of 1 other occupant). Nobody answered "!ping".')
    visitor = replace(occupant("Robot"), role="visitor")
    played.picture = replace(STATUS, occupants=(*STATUS.occupants, visitor), moderated=True)
    played.publish(_said("Wilma", "!ping"))
    result = await _diagnosed(played.link, nickname=None)
    assert _ok(result) == {"voice": False}
    assert result["verdict"] == result["findings"][0]["detail"]
    assert result["verdict"].startswith('"Robot" has no voice')
    others = [replace(visitor, jid=f"{ROOM}/Bot {it}", nickname=f"Bot {it}") for it in range(2)]
    played.picture = replace(played.picture, occupants=(*played.picture.occupants, *others))
    played.stream = Asked(_saying(dict.fromkeys(["Robot", "Bot 0", "Bot 1"], "client/bot")))
    result = await _diagnosed(played.link, nickname=None)
    assert result["verdict"] == f"{result['findings'][0]['detail']} 2 more are found wrong."


async def test_a_crowd_is_asked_within_limits_and_the_bridges_other_session_is_left_out() -> None:
    crowd = [f"Bot {number}" for number in range(MAX_ASKED + 1)]
    link, stream = standing(_saying(dict.fromkeys(crowd, "client/bot")), *crowd)
    result = await _diagnosed(link, nickname=None, detail="full")
    asked = [to for to, namespace in stream.asked if namespace == DISCO_INFO]
    assert (len(asked), len(result["findings"])) == (MAX_ASKED, MAX_PROGRAMS)
    brief = await _diagnosed(link, nickname=None)
    assert brief["truncated"]
    asked = [to for to, namespace in stream.asked if namespace == DISCO_INFO]
    assert len(asked) == MAX_ASKED  # what was answered counts for an hour
    assert "Not every occupant was looked at" in result["verdict"]
    ours = replace(occupant("Other"), real_jid="bot@example/other")
    own = replace(STATUS.occupants[0], real_jid="bot@example/r")
    played = Standing(picture=replace(STATUS, occupants=(own, ours)))
    played.stream = Asked(_saying({"Other": "client/bot"}))
    assert (await _diagnosed(played.link, nickname=None))["findings"] == []
    assert played.stream.asked == []


async def test_all_rooms_are_looked_at_and_each_line_names_its_own() -> None:
    rooms = (("lobby@conference.example", "Robot"), ("logs@conference.example", "Robot"))
    link, stream = standing_in(*rooms)
    stream.answer = _saying({"Robot": "client/bot"})
    result = await _diagnosed(link, nickname=None)
    assert [it["detail"].partition(": ")[0] for it in result["findings"]] == [it for it, _ in rooms]
    result = await _diagnosed(link, nickname=None, room="logs")
    assert [it["detail"].partition(" ")[0] for it in result["findings"]] == ['"Robot"']


async def test_out_of_one_of_several_rooms_the_next_step_is_a_check_of_all() -> None:
    link, _ = standing_in(("lobby@conference.example", "Eve"), ("logs@conference.example", "Bot"))
    link.participant.memberships[1].picture = outside()[0].room().status()  # type: ignore[attr-defined]
    for nickname in ("Bot", None):
        result = await _diagnosed(link, nickname=nickname, room="logs")
        assert result["nextStep"] == {"tool": "xmppCheck", "arguments": {}}


async def test_without_programs_the_next_step_is_in_the_room_that_was_asked_about() -> None:
    link, _ = standing_in(("lobby@conference.example", "Eve"), ("logs@conference.example", "Bot"))
    step = (await _diagnosed(link, nickname=None, room="logs"))["nextStep"]
    assert (step["tool"], step["arguments"]["room"]) == ("xmppSend", "logs@conference.example")


async def test_out_of_the_room_nobody_is_looked_at_but_the_bridge() -> None:
    link, stream = outside()
    result = await _diagnosed(link, nickname=None)
    assert _ok(result) == {"bridge": False}
    assert "We were kicked." in result["verdict"]
    assert stream.asked == []


async def test_out_of_the_room_former_answers_are_not_shown() -> None:
    link, _ = outside()
    for event in (SENT, HEARD, MessageReceived(ROBOT, "Robot", "pong")):
        link.participant.journal.append(event, time.time(), ROOM)
    result = await _diagnosed(link)
    assert (result["outcome"], result["answers"]) == ("cause", [])


async def test_only_who_alternates_with_it_is_asked_whether_it_is_a_program() -> None:
    events = [_said(("Robot", "Eve")[number % 2], str(number)) for number in range(2 * LOOP_ROUNDS)]
    played = _beside()
    there = (*played.picture.occupants, occupant("Eve"), occupant("Wilma"))
    played.picture = replace(STATUS, occupants=there)
    played.stream = Asked(_saying({"Robot": "client/bot", "Eve": "client/bot"}))
    for number, event in enumerate(events):
        played.publish(event, at=0.1 * number)
    assert _ok(await _diagnosed(played.link))["pair"] is False
    asked = [to for to, namespace in played.stream.asked if namespace == DISCO_INFO]
    assert asked == [ROBOT, f"{ROOM}/Eve"]


async def test_who_came_back_is_asked_last_and_the_verdict_says_so() -> None:
    played = _beside(OccupantLeft(ROBOT, "Robot"), CAME, SENT, HEARD)
    result = await _diagnosed(played.link)
    assert played.stream.asked == [(ROBOT, PING)]
    assert "which may hide an idle timeout for a round." in result["verdict"]
    broken = [
        event
        for _ in range(STAYS)
        for event in (OccupantLeft(ROBOT, "Robot", codes=frozenset({333})), CAME)
    ]
    played = _beside()
    for number, event in enumerate(broken):
        played.publish(event, at=time.time() - 600 + 30.0 * number)
    assert (await _diagnosed(played.link))["outcome"] == "cause"
    assert played.stream.asked == []


async def test_the_next_step_says_nothing_where_nothing_may_be_said() -> None:
    link = _beside().link
    asking = (await _diagnosed(link))["nextStep"]
    arguments_ = {"message": "!ping", "awaitSeconds": 10, "from": "Robot"}
    assert asking == {"tool": "xmppSend", "arguments": arguments_}
    link.read_only = True
    waiting = {"tool": "xmppWait", "arguments": {"from": "Robot"}}
    assert (await _diagnosed(link))["nextStep"] == waiting


async def test_the_next_step_names_the_room_if_there_are_several() -> None:
    link, _ = standing_in(("lobby@conference.example", "Robot"), ("logs@conference.example", "Bot"))
    result = await _diagnosed(link, nickname="Bot", room="logs")
    assert result["nextStep"]["arguments"]["room"] == "logs@conference.example"
    assert result["room"] == "logs@conference.example"
    link, stream = standing_in(
        ("lobby@conference.example", "Eve"), ("logs@conference.example", "Bot")
    )
    stream.answer = _saying({"Bot": "client/bot"})
    step = (await _diagnosed(link, nickname=None))["nextStep"]["arguments"]
    assert step == {"nickname": "Bot", "room": "logs@conference.example"}


@pytest.mark.parametrize(
    ("nickname", "told", "step"),
    [
        ("Bot", '"Bot" is in the room "logs@conference.example"', {"nickname": "Bot"}),
        ("bot", '"Bot" is in the room "logs@conference.example"', {"nickname": "Bot"}),
        ("logs", '"logs" is the name of a room', {}),
    ],
)
async def test_who_is_absent_here_is_said_to_be_in_the_other_room(
    nickname: str, told: str, step: dict[str, object]
) -> None:
    link, _ = standing_in(("lobby@conference.example", "Eve"), ("logs@conference.example", "Bot"))
    result = await _diagnosed(link, nickname=nickname)
    assert told in result["verdict"]
    assert (result["outcome"], result["room"]) == ("unknown", "lobby@conference.example")
    assert result["nextStep"]["arguments"] == {**step, "room": "logs@conference.example"}


async def test_the_bridge_is_not_said_to_leave_its_own_words_unanswered() -> None:
    result = await _diagnosed(_beside(SENT, HEARD).link, nickname="McpDebug")
    assert _ok(result) == {"present": False}


async def test_a_log_that_cannot_be_read_or_is_of_another_is_named(tmp_path: Path) -> None:
    link, log = _beside().link, tmp_path / "bot.log"
    link.bot_logs = {"Robot": log}
    for words in ("cannot be read", 'has no stream of "Robot"'):
        (finding,) = (await _diagnosed(link))["findings"]
        assert (finding["name"], finding["ok"]) == ("stream", None)
        assert words in finding["detail"]
        log.touch()


@pytest.mark.parametrize(
    ("who", "pause", "is_named"), [("Robot", 0.0, True), ("Robot", 3.0, False), ("Eve", 0.0, False)]
)
async def test_an_answer_in_another_room_of_the_bridge_is_named(
    who: str, pause: float, is_named: bool
) -> None:
    link, _ = standing_in(("lobby@conference.example", "Robot"), ("logs@conference.example", "Eve"))
    here, there = link.participant.memberships
    now = time.time() - 20
    for event in (SENT, HEARD):
        link.participant.journal.append(event, now, here.name)
    said_ = MessageReceived(f"{there.name}/{who}", who, "pong")
    link.participant.journal.append(said_, now + 0.1 + pause, there.name)
    result = await _diagnosed(link, room="lobby")
    assert ("in another room" in result["verdict"]) is is_named
    assert result["outcome"] == ("cause" if is_named else "unknown")


@pytest.mark.parametrize(
    ("stanza", "seconds", "is_named"),
    [
        ("<message from='robot@example/r' type='chat'><body>pong</body></message>", 1, True),
        ("<message from='robot@example/r' type='chat'><body>pong</body></message>", 59, True),
        ("<message from='robot@example/r' type='chat'><body>hello</body></message>", 61, False),
        ("<message from='robot@example/r' type='chat'><active xmlns='x'/></message>", 1, False),
        ("<message from='robot@example/r' type='error'><body>!ping</body></message>", 1, False),
        ("<message from='eve@example/r' type='chat'><body>pong</body></message>", 1, False),
    ],
)
async def test_that_the_account_answered_the_bridges_own_address_is_told(
    stanza: str, seconds: float, is_named: bool
) -> None:
    robot = replace(occupant("Robot"), real_jid="robot@example/r")
    played = Standing(picture=replace(STATUS, occupants=(*STATUS.occupants, robot)))
    now = time.time()
    for event in (SENT, HEARD):
        played.publish(event, at=now - 90)
    append(played.trace, "in", "1", parsed(stanza), now - 90 + seconds)
    verdict = (await _diagnosed(played.link))["verdict"]
    assert ("Its account wrote to the bridge's own address" in verdict) is is_named


@pytest.mark.parametrize(
    ("nickname", "words"), [("Robot", ["--nickname", "Robot"]), ("--bot", ["--nickname=--bot"])]
)
async def test_a_known_log_that_says_nothing_is_the_next_step(
    nickname: str, words: list[str], tmp_path: Path
) -> None:
    body = f"{nickname}: ping"  # else the next step is to say that
    link = _beside(replace(SENT, body=body), HEARD._replace(body=body), nickname=nickname).link
    assert "--log FILE" in (await _diagnosed(link, nickname=nickname))["hint"]
    log = tmp_path / "bot's.log"
    link.bot_logs = {nickname: log}
    result = await _diagnosed(link, nickname=nickname)
    command = shlex.join(["xmpp-bridge", "explain", *words, str(log)])
    assert (result["outcome"], result["nextStep"]) == ("unknown", {"command": command})


async def test_without_a_nickname_three_silent_bots_are_no_all_clear() -> None:
    bots = dict.fromkeys(["Ann", "Bot", "Cid"], "client/bot")
    link, _ = standing(_saying(bots), *bots)
    for event in (SENT, HEARD):
        link.participant.publish(event, at=time.time() - 100)  # type: ignore[attr-defined]
    result = await _diagnosed(link, nickname=None)
    assert (result["outcome"], len(result["findings"])) == ("unknown", 3)
    assert result["verdict"].endswith('(3 of 3 other occupants). Nobody answered "!ping".')
    answered = _said("Bot", "pong")
    link.participant.publish(answered, at=time.time() - 99.9)  # type: ignore[attr-defined]
    result = await _diagnosed(link, nickname=None)
    assert 'Answered what the bridge said last: "Bot" after ' in result["verdict"]
    assert result["verdict"].endswith('; "Ann", "Cid" did not.')


async def test_what_others_said_is_in_the_answers_if_the_bridge_said_nothing() -> None:
    played, began = _beside(), time.time() - 200
    for at, who, body in ((0, "Ann", "!ping"), (0.1, "Robot", "pong"), (50, "Bob", "!sun")):
        played.publish(_said(who, body), at=began + at)
    result = await _diagnosed(played.link)
    answered, left = result["answers"]
    assert (answered["to"], answered["asked"], round(answered["answerMs"])) == ("Ann", "!ping", 100)
    assert (left["to"], left["asked"], left["how"]) == ("Bob", "!sun", "not at all")


async def test_whom_an_address_in_the_room_names_is_not_said_to_be_absent() -> None:
    link, _ = standing(None, "Robot")
    told = fitting(xmpp_diagnose, await xmpp_diagnose(link, f"{ROOM}/Robot"))
    assert "was never in the room" not in told["verdict"]
    assert told["verdict"] == (await xmpp_diagnose(link, "Robot"))["verdict"]
