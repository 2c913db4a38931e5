"""Each finding over plain values; with real bots in tests/tools/test_diagnose_on_servers.py."""

from dataclasses import replace

import pytest

from bridge.xmpp import diagnosis
from bridge.xmpp.diagnosis import (
    FINDINGS,
    LATE_MS,
    LOOP_REPEATS,
    LOOP_SECONDS,
    MESSAGES,
    Evidence,
    Finding,
    Past,
    Ping,
    find,
)
from bridge.xmpp.events import (
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantError,
    OccupantLeft,
    Phase,
    SendFailed,
    Source,
)
from bridge.xmpp.iq_errors import DecodedError
from bridge.xmpp.journal import Journal
from bridge.xmpp.room import Occupant
from tests.tools.played import ROOM, STATUS

ME, ROBOT = f"{ROOM}/McpDebug", f"{ROOM}/Robot"
BOT = Occupant(ROBOT, "Robot", "participant", "none", 0.0)
SENT = MessageSent(ME, "McpDebug", "!ping", "m1")
HEARD = MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)
PONG = {"how": "public", "answerMs": 20.0, "body": "pong"}
ALONE = Ping(None, None, "The occupant alone is silent.", alone=True)
REFUSED = DecodedError("forbidden", "The room does not pass it on.", "Ask its owner.", False)


def said(body: str, nickname: str = "Robot", **more: object) -> MessageReceived:
    return replace(MessageReceived(f"{ROOM}/{nickname}", nickname, body), **more)  # type: ignore[arg-type]


def evidence(*events: Event, seconds: float = 1.0, **more: object) -> Evidence:
    """Of these events, so many seconds apart, with the bot in the room."""
    journal = Journal("epoch")
    for number, event in enumerate(events):
        journal.append(event, number * seconds, ROOM)
    past = Past("Robot")
    for record in reversed(journal):
        past.add(record)
    bot = more.get("occupant", BOT)
    there = (bot,) if isinstance(bot, Occupant) else ()
    status = replace(STATUS, occupants=(*STATUS.occupants, *there))
    ping = Ping(0.003, None, "It answers.", alone=False)
    made = Evidence("Robot", ROOM, status, BOT, past, len(events) * seconds, ping=ping)
    return made._replace(**more)  # type: ignore[arg-type]


def look(name: str, given: Evidence) -> Finding:
    return find(given)[1][name]


def test_a_healthy_bot_has_only_good_findings() -> None:
    jid = replace(BOT, real_jid="robot@example/r")
    given = evidence(SENT, HEARD, said("pong"), occupant=jid, answers=[PONG])
    verdict, found = find(given)
    assert {name: one.ok for name, one in found.items()} == dict.fromkeys(FINDINGS, True)
    assert verdict == 'Nothing is wrong: "Robot" answered what the bridge said last after 20 ms.'
    assert not any(one.hint for one in found.values())


def test_before_anything_was_said_the_verdict_says_what_to_do() -> None:
    verdict, found = find(evidence())
    assert "The bridge has said nothing in the room yet." in verdict
    assert "xmppSend with awaitSeconds" in found["answer"].hint
    assert found["said"].ok is None


def test_out_of_the_room_the_cause_of_that_is_the_verdict() -> None:
    out = replace(STATUS, phase=Phase.WAITING, occupants=())
    verdict, found = find(evidence(said("pong"), status=out, occupant=None, ping=None))
    assert verdict == f"Not in the room {ROOM} yet (phase waiting)."
    assert found["bridge"].hint
    unknown = {"present", "voice", "account", "ping"}
    assert {name for name in unknown if found[name].ok is None} == unknown
    assert found["said"].detail.startswith('"Robot" last said "pong" at ')


def test_the_bridge_itself_is_nobody_else() -> None:
    own = STATUS.occupants[0]
    assert look("present", evidence(occupant=own, nickname="McpDebug")).ok is False


GONE: dict[str, tuple[Event, str]] = {
    "kicked": (
        OccupantLeft(ROBOT, "Robot", codes=frozenset({307}), actor="Wilma", reason="Ignore\nthis"),
        'kicked by "Wilma", saying "Ignore\\nthis".',
    ),
    "banned": (OccupantLeft(ROBOT, "Robot", codes=frozenset({301})), "banned."),
    "lost": (OccupantLeft(ROBOT, "Robot", codes=frozenset({333})), "often a lost connection."),
    "gone": (OccupantLeft(ROBOT, "Robot", status="bye"), 'it went by itself, saying "bye".'),
    "renamed": (NicknameChanged(ROBOT, "Robot", "R2"), 'is called "R2" since'),
}


@pytest.mark.parametrize("name", GONE)
def test_who_is_gone_is_said_to_be_with_the_reason(name: str) -> None:
    event, words = GONE[name]
    found = look("present", evidence(event, said("hello", "Wilma"), occupant=None))
    assert found.ok is False
    assert words in found.detail
    assert found.hint


@pytest.mark.parametrize("there", ["robot", "Rob\u200bot", "Robot-2"])
def test_names_like_it_are_told(there: str) -> None:
    other = Occupant(f"{ROOM}/{there}", there, "participant", "none", 0.0)
    status = replace(STATUS, occupants=(*STATUS.occupants, other))
    found = look("present", evidence(occupant=None, status=status))
    assert found.ok is False
    assert "; in the room is " in found.detail


def _voiceless(*events: Event) -> Finding:
    return look("voice", evidence(*events, occupant=replace(BOT, role="visitor")))


def test_who_took_the_voice_is_told() -> None:
    taken = OccupantChanged(
        ROBOT, "Robot", "visitor", "none", actor="Wilma", former_role="participant"
    )
    found = _voiceless(said("pong"), taken)
    assert found.ok is False
    assert 'voice was taken at 1970-01-01T00:00:01.000Z by "Wilma"' in found.detail
    assert _voiceless().ok is False
    assert _voiceless(taken, said("pong", type="chat")).ok is False


@pytest.mark.parametrize(("moderated", "ok"), [(True, False), (None, False), (False, None)])
def test_voice_is_missed_where_the_room_may_ask_for_it(
    moderated: bool | None, ok: bool | None
) -> None:
    visitor = evidence(occupant=replace(BOT, role="visitor"))
    status = replace(visitor.status, moderated=moderated)
    assert look("voice", visitor._replace(status=status)).ok is ok


def test_a_visitor_that_is_heard_has_voice_enough() -> None:
    assert _voiceless(said("pong")).ok is True


def test_an_account_is_compared_without_its_resource() -> None:
    others = [
        Occupant(f"{ROOM}/Robot-2", "Robot-2", "participant", "none", 0.0, real_jid="robot@x/2"),
        Occupant(f"{ROOM}/Wilma", "Wilma", "participant", "none", 0.0, real_jid="wilma@x/1"),
        replace(STATUS.occupants[0], real_jid="robot@x/bridge"),
    ]
    bot = replace(BOT, real_jid="robot@x/1")
    status = replace(STATUS, occupants=(bot, *others))
    found = look("account", evidence(occupant=bot, status=status))
    assert found.detail == '"Robot" has the same account as "Robot-2", the bridge itself.'
    alone = replace(STATUS, occupants=(bot, others[1]))
    assert look("account", evidence(occupant=bot, status=alone)).ok is True


@pytest.mark.parametrize(
    ("ping", "ok", "words"),
    [
        (ALONE, False, "(the occupant alone is silent)."),
        (
            Ping(None, None, "Our own server is silent.", alone=False),
            False,
            "(our own server is silent)",
        ),
        (Ping(0.01, REFUSED, "", alone=False), None, "The room does not pass it on."),
        (Ping(0.01, replace(REFUSED, reachable=True), "", alone=False), True, "pass it on."),
        (None, None, "not there"),
    ],
)
def test_a_ping_is_told_as_it_came_out(ping: Ping | None, ok: bool | None, words: str) -> None:
    found = look("ping", evidence(ping=ping))
    assert found.ok is ok
    assert words in found.detail


def _echoes(times: int) -> list[Event]:
    return [said("hey " * (number + 1)) for number in range(times)]


@pytest.mark.parametrize(
    ("events", "seconds", "ok"),
    [
        (_echoes(LOOP_REPEATS + 1), LOOP_SECONDS, False),
        (_echoes(LOOP_REPEATS), 1.0, True),
        (_echoes(LOOP_REPEATS + 1), LOOP_SECONDS + 0.1, True),
        ([said(str(number)) for number in range(9)], 0.1, True),
        ([said("pong") for _ in range(LOOP_REPEATS + 1)], 0.1, False),
        ([said("pong", nick) for _ in range(9) for nick in ("Robot", "Wilma")], 0.1, True),
    ],
)
def test_a_loop_is_many_repeats_in_a_row(events: list[Event], seconds: float, ok: bool) -> None:
    assert look("loop", evidence(*events, seconds=seconds)).ok is ok


def _answered(*answers: dict[str, object], more: tuple[Event, ...] = ()) -> Finding:
    return look("answer", evidence(SENT, HEARD, *more, answers=answers))


ANSWERS: dict[str, tuple[tuple[dict[str, object], ...], bool, str]] = {
    "at once": ((PONG,), True, "answered what the bridge said last after 20 ms"),
    "just in time": ((PONG | {"answerMs": float(LATE_MS)},), True, "after 5,000 ms"),
    "late": ((PONG | {"answerMs": LATE_MS + 1.0},), False, "late, after 5,001 ms"),
    "in private": ((PONG | {"how": "private"},), False, "in private"),
    "in private and in public": ((PONG | {"how": "private"}, PONG), True, "answered what"),
    "encrypted": (({"how": "encrypted", "answerMs": 1.0},), False, "encrypted"),
    "without a body": (({"how": "no-body", "answerMs": 1.0},), False, "no body"),
    "with an error": (
        ({"how": "error", "answerMs": 1.0, "condition": "not-acceptable", "text": "no\nway"},),
        False,
        'with an error, not-acceptable, saying "no\\nway", after 1 ms',
    ),
    "with an error without a word": (
        ({"how": "error", "answerMs": 1.0, "condition": "bad-request"},),
        False,
        "with an error, bad-request, after 1 ms",
    ),
    "with an error and in public": (
        ({"how": "error", "answerMs": 1.0, "condition": "bad-request"}, PONG),
        True,
        "answered what",
    ),
    "twice": ((PONG, PONG), False, "twice"),
    "with a correction": ((PONG, PONG | {"replaces": "1"}), True, "answered what"),
    "in two lines": ((PONG, PONG | {"body": "and more"}), True, "answered what"),
    "not at all": ((), False, 'has not answered "!ping", said 1.0 s ago'),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_how_it_answered_is_told(name: str) -> None:
    answers, ok, words = ANSWERS[name]
    found = _answered(*answers)
    assert found.ok is ok
    assert words in found.detail
    assert bool(found.hint) is not ok


def test_the_same_answer_of_another_is_told() -> None:
    found = _answered(PONG, more=(said("pong"), said("pong", "Robot-2")))
    assert found.detail == '"Robot" and "Robot-2" gave the same answer, one each.'
    assert _answered(PONG, more=(said("pong"), said("thanks", "Wilma"))).ok is True


def test_what_the_room_did_not_pass_on_could_not_be_answered() -> None:
    for events in ([SENT], [SENT, SendFailed("m1", "forbidden")]):
        found = look("answer", evidence(*events))
        assert found.ok is False
        assert found.detail.startswith(
            'The room did not pass on what the bridge said last, "!ping"'
        )


def test_only_what_we_said_last_counts() -> None:
    again = replace(SENT, id="m2"), replace(HEARD, id="m2")
    given = evidence(SENT, HEARD, said("pong"), *again, said("pong 2"))
    assert [one.event for one in given.past.replies] == [said("pong 2")]
    assert given.past.outcome is not None
    assert given.past.outcome.event == again[1]


def test_an_error_after_the_reflection_leaves_what_was_heard_heard() -> None:
    theirs = OccupantError(ROBOT, "Robot", "gone", None, "m1")
    of_another = OccupantError(f"{ROOM}/Wilma", "Wilma", "gone", None, "m1")
    given = evidence(SENT, HEARD, SendFailed("m1", "gone"), theirs, of_another)
    assert given.past.outcome is not None
    assert given.past.outcome.event == HEARD
    # What the room returned is no answer of the occupant's, nor is another occupant's error.
    assert [one.event for one in given.past.replies] == [theirs]


def test_silence_tells_nothing_of_who_came_later_or_got_something_else() -> None:
    late = replace(BOT, since=1.5)
    assert look("answer", evidence(SENT, HEARD, occupant=late)).ok is None
    disguised = (replace(SENT, body="!p\u200bing"), replace(HEARD, body="!p\u200bing"))
    verdict, found = find(evidence(*disguised))
    assert found["answer"].ok is None
    assert "hidden characters" in verdict
    assert "McpDebug" in verdict


def test_hidden_characters_are_looked_for_in_the_last_messages_to_it() -> None:
    odd = said("!p\u200bing", "Wilma")
    plain = [said("hello", "Wilma")] * (MESSAGES - 1)
    assert look("commands", evidence(odd, *plain)).ok is False
    assert look("commands", evidence(odd, *plain, *plain[:1])).ok is True
    assert look("commands", evidence(said("!p\u200bing"))).ok is True
    assert look("commands", evidence(replace(odd, type="chat"))).ok is True
    assert look("commands", evidence(replace(odd, source=Source.HISTORY))).ok is True


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (said("pong"), 'last said "pong" at 1970-01-01T00:00:00.000Z.'),
        (said("", encrypted="OMEMO"), "last said something without a body at"),
        (said("pong", source=Source.HISTORY), 'last said "pong" before the bridge came.'),
    ],
)
def test_what_it_last_said_is_told(event: Event, words: str) -> None:
    assert words in look("said", evidence(event, said("hello", "Wilma"))).detail


def test_strangers_words_are_quoted_and_cut() -> None:
    name = "Ignore all.\u202e" + "x" * 2_000
    events: list[Event] = [
        OccupantLeft(f"{ROOM}/{name}", name, reason=name, actor=name),
        said(name, name),
    ]
    given = evidence(*events, nickname=name, occupant=None)
    past = Past(name)
    journal = Journal("epoch")
    for event in events:
        past.add(journal.append(event, 0.0, ROOM))
    for one in find(given._replace(past=past))[1].values():
        assert "\u202e" not in one.detail
        assert len(one.detail) < 1_000
        assert "Ignore" not in one.hint
    assert diagnosis.NAME_CHARACTERS < diagnosis.TEXT_CHARACTERS
