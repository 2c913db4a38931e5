"""Each finding over plain values; with real bots in tests/tools/test_diagnose_on_servers.py."""

from dataclasses import replace

import pytest

from bridge.wire.speech import COMMAND_CHARACTERS, LOOP_REPEATS, TURN_SECONDS
from bridge.xmpp.checks.answering import LATE_MS
from bridge.xmpp.checks.conduct import STAYS_SECONDS
from bridge.xmpp.checks.diagnosis import (
    FINDINGS,
    UNLESS,
    WATCHED_SECONDS,
    Step,
    find,
)
from bridge.xmpp.checks.evidence import DEPARTURES, MESSAGES, Evidence, Past, Ping
from bridge.xmpp.checks.questions import PATIENCE_SECONDS
from bridge.xmpp.model.events import (
    UNKNOWN,
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantError,
    Phase,
    RoomConfigured,
    SendFailed,
    Source,
    StanzaDamaged,
    SubjectChanged,
)
from bridge.xmpp.model.faults import Fault, Retry
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import LastError, Occupant
from bridge.xmpp.queries.iq_errors import DecodedError
from tests.tools.played import ROOM, STATUS
from tests.xmpp.checks import watching
from tests.xmpp.checks.watching import BOT, DEAD, came, left, look

ME, ROBOT = f"{ROOM}/McpDebug", f"{ROOM}/Robot"
VISITOR = replace(BOT, role="visitor")
SENT = MessageSent(ME, "McpDebug", "!ping", "m1")
HEARD = MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)
PONG = {"how": "public", "answerMs": 20.0, "body": "pong"}
NOTHING = 'Nothing is wrong: "Robot" answered what the bridge said last with "pong" after 20 ms.'
REFUSED = DecodedError("forbidden", "The room does not pass it on.", "Ask its owner.", "undecided")
LOST = replace(REFUSED, condition="item-not-found")
REACHED = replace(REFUSED, outcome="reachable")


def said(body: str, nickname: str = "Robot", **more: object) -> MessageReceived:
    return watching.said(nickname, body, **more)


def evidence(*events: Event, seconds: float = 1.0, **more: object) -> Evidence:
    acts = [(number * seconds, event) for number, event in enumerate(events)]
    return watching.evidence(acts, now=len(events) * seconds, **more)  # type: ignore[arg-type]


def test_a_healthy_bot_has_only_good_findings() -> None:
    jid = replace(BOT, real_jid="robot@example/r")
    given = evidence(SENT, HEARD, said("pong"), occupant=jid, answers=[PONG])
    verdict, findings, *_ = find(given)
    nothing_to_look_at = dict.fromkeys(("ghost", "history", "room", "stream"))
    expected = {**dict.fromkeys(FINDINGS, True), **nothing_to_look_at}
    assert {name: (each.ok, each.hint) for name, each in findings.items()} == {
        name: (ok, "") for name, ok in expected.items()
    }
    assert verdict == NOTHING


def test_before_anything_was_said_the_next_step_is_to_say_something() -> None:
    diagnosis = find(evidence())
    assert "The bridge has said nothing in the room yet." in diagnosis.verdict
    asking = {"message": "!ping", "awaitSeconds": 10, "from": "Robot"}
    assert (diagnosis.outcome, diagnosis.step) == ("unknown", Step("xmppSend", asking))
    assert diagnosis.findings["said"].ok is None


def test_out_of_the_room_the_cause_of_that_is_the_verdict() -> None:
    out = replace(STATUS, phase=Phase.WAITING, occupants=())
    verdict, findings, *_ = find(evidence(said("pong"), status=out, occupant=None, ping=None))
    assert verdict == f"The bridge is not in the room {ROOM} yet (phase waiting)."
    assert findings["bridge"].hint
    unknown = {"present", "voice", "account", "ping"}
    assert {name for name in unknown if findings[name].ok is None} == unknown
    assert findings["said"].detail.startswith('"Robot" last said "pong" at ')


@pytest.mark.parametrize("how", ["public", "private", "encrypted", "no-body", "error"])
def test_a_ping_without_an_answer_is_a_remark_once_the_bot_has_answered_the_bridge(
    how: str,
) -> None:
    answer = PONG | {"how": how, "condition": "forbidden"}
    namesakes = {"Robot-2": Ping(0.01, None, "It answers.", alone=False)}
    given = evidence(SENT, HEARD, said("pong"), ping=DEAD, answers=[answer], namesakes=namesakes)
    verdict, findings, *_ = find(given)
    assert (findings["ping"].ok, findings["ping"].hint) == (None, "")
    remark = findings["ping"].detail
    assert remark.startswith('"Robot" does not answer a ping within 5 s (')
    assert findings["ghost"].ok is True
    assert verdict == (f"{NOTHING} {remark}" if how == "public" else findings["answer"].detail)
    silent = find(given._replace(answers=[], namesakes={}, now=given.now + WATCHED_SECONDS))
    assert silent.verdict == silent.findings["ping"].detail
    assert silent.findings["ping"].ok is False
    lately = find(given._replace(answers=[], namesakes={}))
    assert (lately.outcome, lately.findings["ping"].ok) == ("unknown", None)
    assert lately.findings["ping"].detail in lately.verdict


@pytest.mark.parametrize(
    ("condition", "retry", "step"),
    [
        ("gone", Retry.LATER, None),
        ("not-allowed", Retry.MINUTE, None),
        ("not-allowed", Retry.LATER, Step("xmppCheck", {})),
    ],
)
def test_a_room_that_was_destroyed_or_put_the_bridge_out_is_not_entered_by_a_check(
    condition: str, retry: Retry, step: Step | None
) -> None:
    error = LastError(Fault(condition, "Out.", "Look.", retry), 0.0)
    out = replace(STATUS, phase=Phase.FAILED, occupants=(), last_error=error)
    assert find(evidence(status=out, occupant=None, ping=None)).step == step


BY_NAME = Step("xmppSend", {"message": "Robot: ping", "awaitSeconds": 10, "from": "Robot"})
WAIT = Step("xmppWait", {"from": "Robot", "timeoutSeconds": 10})
TYPING = said("", payload=("composing (http://jabber.org/protocol/chatstates)",))


@pytest.mark.parametrize(
    ("more", "now", "step"),
    [
        ([said("pong", "Eve")], 3.0, WAIT),
        ([said("pong", "Eve")], 1.0 + LATE_MS / 1000, BY_NAME),
        ([], 3.0, BY_NAME),
        ([TYPING], 9.0, WAIT),
        ([TYPING], 9_999.0, BY_NAME),
    ],
)
def test_if_another_answered_first_or_the_bot_types_it_is_waited_for(
    more: list[Event], now: float, step: Step | None
) -> None:
    diagnosis = find(evidence(SENT, HEARD, *more)._replace(now=now))
    assert (diagnosis.outcome, diagnosis.finding, diagnosis.step) == ("unknown", "answer", step)


def test_who_says_the_same_again_and_again_may_report_it_and_is_not_accused() -> None:
    alarm = [said("ALERT disk full")] * (LOOP_REPEATS + 3)
    diagnosis = find(evidence(*alarm, seconds=0.5))
    assert (diagnosis.outcome, diagnosis.finding) == ("unknown", "loop")
    assert "or reports the same each time" in diagnosis.verdict
    diagnosis = find(evidence(*alarm, PLAIN, *_echoes(LOOP_REPEATS + 1), seconds=0.5))
    assert (diagnosis.outcome, diagnosis.finding) == ("cause", "loop")


def test_a_subject_in_place_of_an_answer_is_named() -> None:
    pong = SubjectChanged("pong", "Robot")
    conclusion = find(evidence(SENT, HEARD, pong))
    assert (conclusion.outcome, conclusion.finding) == ("unknown", "answer")
    assert 'changed the room\'s subject to "pong" 1,000 ms later' in conclusion.verdict
    assert "subject" not in find(evidence(pong, SENT, HEARD)).verdict
    assert "subject" not in find(evidence(SENT, HEARD, replace(pong, sender="Wilma"))).verdict


def test_who_left_at_once_after_the_bridges_message_is_not_compared_with_others() -> None:
    conclusion = find(fallen())
    assert (conclusion.outcome, conclusion.finding) == ("unknown", "answer")
    assert conclusion.step is None  # not to say the same again


def test_the_message_that_the_room_refused_is_not_to_be_said_again() -> None:
    refused = find(evidence(SENT, SendFailed("m1", "forbidden")))
    assert (refused.outcome, refused.finding, refused.step) == ("cause", "answer", None)
    lost = find(evidence(SENT))
    assert lost.step == Step("xmppSend", {"message": "!ping", "awaitSeconds": 10})


KICK = replace(left("Robot", 307), actor="Wilma", reason="Ignore\nthis")
RENAMED = NicknameChanged(ROBOT, "Robot", "R2")


def test_a_message_that_may_still_come_back_is_not_to_be_said_again() -> None:
    silent = Ping(None, None, "Our own server is silent.", alone=False)
    open_ = find(evidence(SENT, ping=None))
    assert (open_.outcome, open_.step) == ("unknown", Step("xmppCheck", {}))
    down = find(evidence(SENT, ping=silent))
    assert (down.outcome, down.finding) == ("cause", "ping")
    for ping in (Ping(0.01, None, "It answers.", alone=False), silent._replace(alone=True)):
        lost = find(evidence(SENT, ping=ping))
        assert (lost.outcome, lost.finding) == ("cause", "answer")
        assert lost.step == Step("xmppSend", {"message": "!ping", "awaitSeconds": 10})


def test_a_nickname_like_another_hides_neither_that_nor_the_rooms() -> None:
    there = [
        Occupant(f"{ROOM}/{each}", each, "participant", "none", 0.0) for each in ("Robot", "ROBOT")
    ]
    status = replace(STATUS, occupants=tuple(there))
    rooms = ["loby@conference.example"]
    finding = look("present", evidence(occupant=None, nickname="robot", status=status, rooms=rooms))
    assert 'in the room is "Robot", "ROBOT"; rooms of the service' in finding.detail
    assert "Case and hidden characters" in finding.hint
    assert "Is the program running" in finding.hint


TAKEN = OccupantChanged(ROBOT, "Robot", "visitor", "none", actor="Wilma", former_role="participant")


def test_an_account_is_compared_without_its_resource() -> None:
    others = [
        replace(BOT, jid=f"{ROOM}/Robot-2", nickname="Robot-2", real_jid="robot@x/2"),
        replace(BOT, jid=f"{ROOM}/Wilma", nickname="Wilma", real_jid="wilma@x/1"),
        replace(STATUS.occupants[0], real_jid="robot@x/bridge"),
    ]
    bot = replace(BOT, real_jid="robot@x/1")
    status = replace(STATUS, occupants=(bot, *others))
    finding = look("account", evidence(occupant=bot, status=status))
    assert finding.detail == '"Robot" has the same account as "Robot-2", the bridge itself.'
    alone = replace(STATUS, occupants=(bot, others[1]))
    assert look("account", evidence(occupant=bot, status=alone)).ok is True


@pytest.mark.parametrize(
    ("nickname", "own", "programs", "outcome"),
    [
        ("Robot-2", False, {}, "cause"),
        ("Robot-2", False, {"Robot": False}, "well"),
        ("Wilma", False, {}, "well"),
        ("McpDebug", True, {}, "well"),
    ],
)
def test_who_shares_an_account_is_no_second_copy_by_that_alone(
    nickname: str, own: bool, programs: dict[str, bool], outcome: str
) -> None:
    bot = replace(BOT, real_jid="robot@x/1")
    other = replace(bot, jid=f"{ROOM}/{nickname}", nickname=nickname, own=own)
    given = evidence(SENT, HEARD, PONGS, occupant=bot, answers=[PONG], programs=programs)
    status = replace(given.status, occupants=(bot, other))
    conclusion = find(given._replace(status=status))
    name = "the bridge itself" if own else f'"{nickname}"'
    assert conclusion.outcome == outcome
    assert f'"Robot" has the same account as {name}.' in conclusion.verdict


ENTERED, SUBJECT = replace(came("McpDebug"), self_=True), SubjectChanged("", "Wilma")
PINGS, PONGS = said("!ping", "Wilma"), said("pong")
SLOWLY = [OccupantChanged(ROBOT, "Robot", "participant", "none")] * (LATE_MS // 1000 + 1)
ECHO = said("pong", "Eve")
LATER = PONG | {"answerMs": 2_500.0}
MODERATED = said("", "", retracts="r", moderated_by="Eve")
HI = PONG | {"body": "hi"}
LATE = f"!say {'x' * COMMAND_CHARACTERS}\u200b"
REACTION = said("", "Wilma", reacts_to="m1", reactions=("x",))
UNREADABLE = StanzaDamaged(f"{ROOM}/Eve", "Eve", "a name is no name")
"""It may ask the bot for anything: the bot may read what the bridge cannot."""


def _echoes(times: int) -> list[Event]:
    return [said("hey " * (number + 1)) for number in range(times)]


BOUNCE = {"how": "error", "answerMs": 1.0, "condition": "not-acceptable"}


def visitor(*events: Event, moderated: bool | None = True, **more: object) -> Evidence:
    given = evidence(*events, PINGS, occupant=replace(VISITOR, **more))  # type: ignore[arg-type]
    status = replace(given.status, moderated=moderated)
    return given._replace(status=status, now=given.now + PATIENCE_SECONDS)


def fallen(*after: Event) -> Evidence:
    """Of a bot that left and came back after what the bridge said, and other events."""
    return evidence(PINGS, PONGS, SENT, HEARD, *after, replace(left(), status="bye"), came())


def answered(*answers: dict[str, object]) -> Evidence:
    return evidence(SENT, HEARD, answers=answers)


def loops(*events: Event, seconds: float = 0.1, times: int = 1) -> Evidence:
    return evidence(*events * times, seconds=seconds)


def without(event: Event) -> Evidence:
    return evidence(event, PINGS, occupant=None)


def beside_wilma(*answers: str, asked: str = "!ping", reply_to: str = "") -> Evidence:
    """Of a bot that answers so where Fred and Wilma, who has spoken before, are too."""
    sent, heard = replace(SENT, body=asked), HEARD._replace(body=asked)
    replies = [said(body, reply_to=reply_to or None) for body in answers]
    before = said("hm", "Wilma", id="w1"), said("so?", id="r1")
    given = evidence(*before, sent, heard, *replies)
    others = (replace(BOT, jid=f"{ROOM}/{name}", nickname=name) for name in ("Wilma", "Fred"))
    status = replace(given.status, occupants=(*given.status.occupants, *others))
    return given._replace(status=status, answers=[PONG | {"body": body} for body in answers])


HISTORY = said("pong", source=Source.HISTORY)
PLAIN, ODD = said("hello", "Wilma"), said("!p\u200bing", "Wilma")
FOUND: list[tuple[str, Evidence, bool | None, str]] = [
    ("present", without(KICK), False, 'kicked by "Wilma", saying "Ignore\\nthis".'),
    ("present", without(left("Robot", 301)), False, "banned."),
    ("present", without(left("Robot", 333)), False, "often a lost connection."),
    ("present", without(replace(left(), status="bye")), False, 'its words were "bye".'),
    ("present", without(RENAMED), False, 'took the nickname "R2" at'),
    ("present", evidence(occupant=STATUS.occupants[0], nickname="McpDebug"), False, ""),
    # A visitor misses its voice unless it was heard, or the room is not moderated.
    ("voice", visitor(), False, ""),
    ("voice", visitor(moderated=None), False, ""),
    ("voice", visitor(moderated=False), None, ""),
    ("voice", visitor(TAKEN, moderated=False), None, ""),
    ("voice", visitor(said("pong"), TAKEN, moderated=False), False, "some servers let no visitor"),
    ("voice", visitor(said("pong"), TAKEN, said("pong"), moderated=False), True, ""),
    ("voice", visitor(role=UNKNOWN), None, ""),
    ("voice", visitor(said("pong"), TAKEN), False, 'taken at 1970-01-01T00:00:01.000Z by "Wilma"'),
    ("voice", visitor(TAKEN, said("pong", type="chat")), False, ""),
    ("voice", visitor(HISTORY), False, ""),
    ("voice", visitor(TAKEN, said("pong")), True, ""),
    ("voice", visitor(since=5.0), False, "(since it came at 1970-01-01T00:00:05.000Z)"),
    ("ping", evidence(ping=DEAD), False, "(the occupant alone is silent)."),
    ("ping", evidence(ping=Ping(None, None, "Our server is silent.", alone=False)), False, "(our "),
    ("ping", evidence(ping=Ping(0.01, REFUSED, "", alone=False)), None, "does not pass it on."),
    ("ping", evidence(ping=Ping(0.01, REACHED, "", alone=False)), True, "pass it on."),
    ("ping", evidence(ping=Ping(0.01, LOST, "", alone=False)), False, "(item-not-found): it was"),
    ("ping", evidence(ping=None), None, "was not pinged"),
    ("ping", evidence(ping=None, occupant=None), None, "not there"),
    # A loop is many repeats in a row.
    ("loop", loops(*_echoes(LOOP_REPEATS + 1), seconds=TURN_SECONDS), False, ""),
    ("loop", loops(*_echoes(LOOP_REPEATS)), True, ""),
    ("loop", loops(*_echoes(LOOP_REPEATS + 1), seconds=TURN_SECONDS + 0.1), True, ""),
    ("loop", loops(*[said(str(number)) for number in range(9)]), True, ""),
    ("loop", loops(*[PONGS] * (LOOP_REPEATS + 1)), False, ""),
    # A language model writes its answer to the end by corrections; others report progress.
    ("loop", loops(said("h"), *[said("h" * it, replaces="1") for it in range(2, 9)]), True, ""),
    ("loop", loops(*[said("Deploying" + "." * (it + 1)) for it in range(9)]), True, ""),
    ("loop", loops(*[said("> " * it + "hello") for it in range(9)]), False, ""),
    ("loop", loops(PONGS, said("pong", "Wilma"), times=9), True, ""),
    # An agent that takes its own words for a question to it says something new each time.
    ("loop", loops(*[said(f"@Robot so {it}!") for it in "abcd"]), False, "speaks to its own name"),
    (
        "loop",
        loops(*[said(f"Robot: {it}") for it in ("a", "b", "up", "up x")]),
        False,
        "own name ag",
    ),
    ("loop", loops(*[said(f"@Robot so {it}!") for it in "abc"]), True, ""),
    ("loop", loops(*[said(f"@Wilma so {it}!") for it in "abcd"]), True, ""),
    # It greets whoever comes, and says what changed.
    ("loop", loops(came("Eve"), said("Welcome!"), times=9), True, ""),
    ("loop", loops(SubjectChanged("x"), said("A subject"), times=9), True, ""),
    ("loop", loops(UNREADABLE, PONGS, times=9), True, ""),
    # Nine come at once, and it greets each in the same words: but no more often than that.
    ("loop", loops(*[came("Eve")] * 9, *[said("Welcome!")] * 9), True, ""),
    ("loop", loops(*[came("Eve")] * 9, *[said("Welcome!")] * 10), False, ""),
    ("loop", loops(said("a", "Eve", type="chat"), PONGS, times=9), False, ""),
    ("loop", loops(*_echoes(LOOP_REPEATS + 1), *[said("x", "Eve")] * 2 * MESSAGES), False, ""),
    ("answer", answered(PONG | {"answerMs": float(LATE_MS)}), True, "after 5,000 ms"),
    ("answer", answered(PONG | {"answerMs": LATE_MS + 1.0}), False, "late, after 5,001 ms"),
    ("answer", answered(PONG | {"how": "private"}), False, "in private"),
    (
        "answer",
        answered(PONG | {"how": "private"}, PONG),
        True,
        'said last with "pong" after 20 ms',
    ),
    ("answer", answered(PONG | {"reactions": ["x"]}), True, "last by a reaction with"),
    ("answer", answered(PONG | {"replaces": "m0"}), None, ", by changing what it had said before"),
    ("answer", answered(PONG, PONG | {"body": "done", "replaces": "a"}), True, 'last with "done"'),
    ("answer", answered(PONG | {"body": "Error: no db"}), None, ": is that what it should say?"),
    (
        "answer",
        evidence(SENT, HEARD, PONGS._replace(id="r"), said("-", retracts="r"), answers=[PONG]),
        None,
        'after 20 ms, and "Robot" took it back at',
    ),
    (
        "answer",
        evidence(SENT, HEARD, PONGS, said("-", retracts="r"), answers=[PONG]),
        True,
        'with "pong" after',
    ),
    (
        "answer",
        evidence(SENT, HEARD, PONGS._replace(id="r"), MODERATED, answers=[PONG]),
        None,
        'after 20 ms, and "Eve" took it back at',
    ),
    (
        "answer",
        answered(PONG, PONG | {"body": " ", "replaces": "a"}),
        None,
        "and then took the words out of it.",
    ),
    ("answer", answered(PONG | {"body": "A moment ..."}), None, "nothing since: is that all?"),
    (
        "answer",
        answered(PONG | {"body": "A moment ..."}, PONG),
        True,
        '...", the first of 2 messages, after',
    ),
    ("answer", answered(PONG | {"body": "Status:"}), None, "nothing since: is that all?"),
    ("answer", answered(PONG | {"body": "All is well :tada:"}), True, ""),
    (
        "answer",
        answered(PONG | {"body": "Einen Moment bitte"}),
        None,
        "nothing since: is that all?",
    ),
    ("answer", answered(PONG | {"body": "请稍等"}), None, "nothing since: is that all?"),
    ("answer", answered(PONG | {"body": "A second has 1,000 ms"}), True, ""),
    (
        "answer",
        evidence(SENT, HEARD, PINGS, PONGS, answers=[LATER]),
        None,
        'with "pong" after 2,500 ms, unless that was to "Wilma", who spoke meanwhile.',
    ),
    (
        "answer",
        evidence(SENT, HEARD, PINGS._replace(body="!Ping"), PONGS, answers=[LATER], seconds=1.5),
        None,
        "What differs: how the command is spelt.",
    ),
    (
        "answer",
        evidence(SENT, HEARD, PINGS, PONGS, answers=[PONG]),
        True,
        'with "pong" after 20 ms, unless that was to "Wilma", who spoke meanwhile.',
    ),
    ("answer", beside_wilma("Wilma: pong"), None, 'after 20 ms, to "Wilma": is that for the'),
    ("answer", beside_wilma("Wilma: pong", "McpDebug: pong"), True, "after 20 ms."),
    ("answer", beside_wilma("Wilma: a hug", asked="!hug Wilma"), True, "after 20 ms."),
    (
        "answer",
        beside_wilma("pong", reply_to="w1"),
        None,
        'a reply to "hm" of "Wilma": is that for',
    ),
    ("answer", beside_wilma("Wilma: 3, Fred: 2"), True, "after 20 ms."),
    ("answer", beside_wilma("pong", reply_to="r1"), None, 'a reply to "so?" of "Robot": is that'),
    ("answer", beside_wilma("pong", reply_to="m1"), True, "after 20 ms."),
    ("answer", evidence(SENT, HEARD._replace(body="*")), False, 'room had passed it on as "*".'),
    (
        "answer",
        evidence(PINGS._replace(body="!say hi"), SENT, HEARD, PONGS, answers=[HI]),
        None,
        'with "hi" after 20 ms, as if to "!say hi" of "Wilma", said before.',
    ),
    ("answer", evidence(SENT, HEARD, PINGS, answers=[HI]), True, 'with "hi" after 20 ms'),
    ("answer", evidence(SENT, HEARD, TYPING), False, 'It has sent "composing" since, so it runs.'),
    (
        "answer",
        fallen(),
        None,
        'room 1,000 ms after the bridge\'s "!ping", and came back: its words were "bye".',
    ),
    (
        "answer",
        evidence(said("hubot hi", "Wilma"), said("hello"), SENT, HEARD),
        False,
        'It spoke 1,000 ms after "hubot hi" of "Wilma".',
    ),
    ("answer", fallen(PLAIN, PLAIN), False, 'has not answered "!ping", said 5.0 s ago'),
    ("answer", answered(PONG | {"body": "Terror: a film"}), True, 'with "Terror: a film" after'),
    ("answer", answered({"how": "encrypted", "answerMs": 1.0}), False, "encrypted"),
    ("answer", answered({"how": "no-body", "answerMs": 1.0}), False, "no body"),
    (
        "answer",
        answered(BOUNCE | {"text": "no\nway"}),
        False,
        'able, saying "no\\nway", after 1 ms',
    ),
    ("answer", answered(BOUNCE), False, "with an error, not-acceptable, after 1 ms"),
    ("answer", answered(), False, 'has not answered "!ping", said 1.0 s ago'),
    # What the room did not pass on could not be answered.
    ("answer", evidence(SENT), False, "The room did not pass on"),
    ("answer", evidence(SENT, SendFailed("m1", "forbidden")), False, "has no voice in it."),
    (
        "answer",
        evidence(SENT, SendFailed("m1", "remote-server-timeout")),
        False,
        "(remote-server-timeout): its service conference.example was not reached.",
    ),
    ("answer", evidence(replace(SENT, body=LATE), HEARD), None, "has hidden characters, so"),
    # Silence tells nothing of who came later.
    ("answer", evidence(SENT, HEARD, occupant=replace(BOT, since=1.5)), None, ""),
    ("commands", evidence(ODD, *[PLAIN] * (MESSAGES - 1)), False, ""),
    ("commands", evidence(ODD, *[PLAIN] * MESSAGES), True, ""),
    ("commands", evidence(said("!p\u200bing")), None, ""),
    ("commands", evidence(said("!\u0440ing", "Wilma")), False, "(U+0440 CYRILLIC SMALL LETTER ER)"),
    ("commands", evidence(said("!p\u03bfst", "Wilma")), False, "SMALL LETTER OMICRON) in place of"),
    ("commands", evidence(said("!\u043f\u0438\u043d\u0433 me", "Wilma")), True, ""),
    ("commands", evidence(ODD._replace(type="chat")), None, ""),
    ("commands", evidence(ODD._replace(source=Source.HISTORY)), None, ""),
    ("said", evidence(PONGS, PLAIN), True, 'last said "pong" at 1970-01-01T00:00:00.000Z.'),
    ("said", evidence(said("", encrypted="OMEMO")), True, "last said something without a body at"),
    ("said", evidence(HISTORY, PLAIN), True, 'last said "pong" before the bridge came.'),
    # Without an answer there is nothing alike.
    ("alike", evidence(), None, ""),
    ("alike", evidence(SENT), None, ""),
    ("alike", evidence(SENT, HEARD, ECHO), None, ""),
    ("alike", evidence(PONGS, ECHO, SENT, HEARD), None, ""),
]


@pytest.mark.parametrize(("name", "given", "ok", "words"), FOUND)
def test_each_finding_is_told(name: str, given: Evidence, ok: bool | None, words: str) -> None:
    finding = look(name, given)
    assert finding.ok is ok
    assert words in finding.detail
    assert ok is None or bool(finding.hint) is not ok


@pytest.mark.parametrize(
    ("bodies", "seconds", "more"),
    [
        ("aaaa", 1.0, " 3 of its last 4 messages repeat earlier ones."),
        ("aaa", 1.0, ""),
        ("abcdaaa", 1.0, ""),
        ("abcdefghijklmnopqrst", 1.0, " It said 20 messages in 19.0 s."),
        ("abcdefghijklmnopqrst", 1.1, ""),
    ],
)
def test_what_is_said_again_and_again_or_in_a_flood_is_told(
    bodies: str, seconds: float, more: str
) -> None:
    detail = look("said", evidence(*map(said, bodies), seconds=seconds)).detail
    assert detail.split("Z.", 1)[1].removesuffix(" It speaks by itself every 1 s.") == more


@pytest.mark.parametrize(
    ("before", "after", "twice"),
    [
        ((), (PONGS, PONGS), True),
        ((), (PONGS, said("and more"), PONGS), True),
        ((), (PONGS, said("pong", replaces="1")), False),
        ((), (PONGS, said("and more")), False),
        # A list may begin with equal lines.
        ((), (PONGS, PONGS, said("and more")), False),
        ((), (PONGS, PONGS, said("and more"), said("and more")), True),
        ((), (said("-"), PONGS, said("-"), said("and more"), said("-")), False),
        ((), (PONGS, said("and"), said("more"), PONGS, said("and"), said("more")), True),
        ((), (said(""), said("")), False),
        ((), (PONGS, said("pong", type="chat")), False),
        # What others say or do may be answered in the same words.
        ((), (PINGS, PONGS, PONGS), False),
        ((PINGS,), (PONGS, PONGS), False),
        ((PINGS, *SLOWLY), (PONGS, PONGS), False),
        ((said("!roll", "Wilma"), *SLOWLY), (PONGS, PONGS), True),
        ((PINGS, PONGS, *SLOWLY), (PONGS, PONGS), True),
        ((), (PONGS, came("Wilma"), PONGS), False),
        ((), (UNREADABLE, PONGS, PONGS), False),
        ((came("Wilma"),), (PONGS, PONGS), False),
        ((came("McpDebug"),), (PONGS, PONGS), True),
        # What it said while the bridge was away may be an answer to what the bridge did not see.
        ((), (PONGS, PONGS._replace(source=Source.HISTORY)), False),
        ((SENT, HEARD), (PONGS, PONGS), False),
        # But not more often than that, nor long before or after.
        ((), (PINGS, PONGS, PONGS, PONGS), True),
        ((), (PONGS, PONGS, PINGS), True),
        ((PINGS, *[said("idle")] * 5), (PONGS, PONGS), True),
        ((), (PONGS, said("psst", "Wilma", type="chat"), PONGS), True),
    ],
)
def test_an_answer_is_given_twice_where_nobody_else_may_have_asked_for_it(
    before: tuple[Event, ...], after: tuple[Event, ...], twice: bool
) -> None:
    sent, heard = replace(SENT, id="m9"), HEARD._replace(id="m9")
    verdict, findings, *_ = find(evidence(*before, sent, heard, *after, answers=[PONG]))
    told = f'"Robot" answered twice in the same words, {UNLESS}.'
    assert (findings["answer"].detail == told) is twice
    assert (verdict == NOTHING) is not twice


def test_a_bot_that_somebody_has_speak_in_private_is_not_accused_for_certain() -> None:
    growing = _echoes(LOOP_REPEATS + 1)  # the whispers that it answers are not seen
    for repeated, accused in ((growing, "answers itself"), ([PONGS] * 9, "answered twice in the")):
        given = evidence(SENT, HEARD, PONGS, *repeated, seconds=0.1, answers=[PONG])
        assert f'"Robot" {accused}' in (verdict := find(given).verdict)
        assert UNLESS in verdict


@pytest.mark.parametrize(("before", "outcome"), [("tick", "unknown"), ("tock", "cause")])
def test_who_says_the_same_by_itself_has_not_answered_twice(before: str, outcome: str) -> None:
    after = [said("tick")] * (LOOP_REPEATS + 1)
    given = (said(before), *_exchange(9, *after))
    conclusion = find(evidence(*given, seconds=0.5, answers=[PONG | {"body": "tick"}]))
    assert conclusion.findings["answer"].detail.startswith('"Robot" answered twice')
    assert conclusion.outcome == outcome


@pytest.mark.parametrize(("answer", "outcome"), [("pong", "well"), ("", "unknown")])
def test_an_answer_clears_who_also_says_the_same_by_itself(answer: str, outcome: str) -> None:
    ticks = [said("tick")] * (LOOP_REPEATS + 1)
    answers = [PONG] if answer else []
    given = (*ticks, *_exchange(9, *[said(answer)] * len(answers)))
    conclusion = find(evidence(*given, seconds=0.5, answers=answers))
    assert conclusion.outcome == outcome
    assert '"Robot" says the same again and again: at' in conclusion.verdict


@pytest.mark.parametrize(
    ("nickname", "step"),
    [("Robot_", Step("xmppDiagnose", {"nickname": "Robot_"})), ("Hal", None)],
)
def test_who_answers_under_a_like_nickname_is_looked_at_next(
    nickname: str, step: Step | None
) -> None:
    other = replace(BOT, jid=f"{ROOM}/{nickname}", nickname=nickname, occupant_id="other")
    bot = replace(BOT, occupant_id="own")  # who took the nickname
    given = evidence(SENT, HEARD, said("pong", nickname), seconds=0.5, occupant=bot)
    status = replace(given.status, occupants=(*given.status.occupants, other))
    conclusion = find(given._replace(status=status, now=99.0))
    assert f'"{nickname}" said "pong" 500 ms after' in conclusion.verdict
    assert (conclusion.step == step) is bool(step)
    assert bool(step) is (conclusion.step is not None and conclusion.step.tool == "xmppDiagnose")


@pytest.mark.parametrize(("wait", "answers"), [(1, 0), (3, 1)])
def test_what_greets_us_is_no_answer_to_what_we_said_before_we_came(
    wait: int, answers: int
) -> None:
    given = evidence(SENT, HEARD, ENTERED, *[PLAIN] * (wait - 1), said("Welcome!"))
    assert len(given.past.replies) == answers


def test_what_the_room_tells_because_we_came_is_nobodys_question() -> None:
    before = (came("Wilma"), came("Fred"), SUBJECT, ENTERED)
    sent, heard = replace(SENT, id="m9"), HEARD._replace(id="m9")
    given = (*before, sent, heard, PONGS, PONGS)
    _, findings, *_ = find(evidence(*given, told=3, answers=[PONG]))
    assert findings["answer"].detail == f'"Robot" answered twice in the same words, {UNLESS}.'
    _, findings, *_ = find(evidence(*given, answers=[PONG]))
    assert findings["answer"].ok


def _exchange(number: int, *then: Event) -> list[Event]:
    return [replace(SENT, id=str(number)), HEARD._replace(id=str(number)), *then]


PARROTED = [said(str(word), who) for word in range(9) for who in ("Eve", "Eve", "Robot")]


@pytest.mark.parametrize(
    ("events", "how"),
    [
        (_exchange(1, PONGS, ECHO), None),
        (_exchange(1, PONGS, ECHO) + _exchange(2, PONGS, ECHO), None),
        (_exchange(1, ECHO, PONGS), "before it"),
        (_exchange(1, PONGS, ECHO) * 2 + _exchange(3, PONGS, ECHO), "3 times"),
        (_exchange(1, PONGS, ECHO) * 3 + [said("1"), said("2")] + _exchange(4, PONGS), "3 times"),
        # It says what they have said.
        ([*PARROTED, *_exchange(1, said("x"))], None),
        # Another room member's words from before the question answer nothing.
        ([ECHO, *_exchange(1, PONGS)], None),
        (_exchange(1, said("pong", "Eve", type="chat"), PONGS), None),
        (_exchange(1, REACTION, said(""), PONGS), None),
    ],
)
def test_the_same_answer_of_another_is_told(events: list[Event], how: str | None) -> None:
    verdict, findings, *_ = find(evidence(*events, answers=[PONG]))
    assert findings["alike"].ok is (how is None)
    detail = f'"Eve" gave the same answer as "Robot", {how}.'
    assert verdict == (NOTHING if how is None else f"{NOTHING} {detail}")
    assert bool(findings["alike"].hint) is (how is not None)


MALICE: dict[str, Event] = {
    "a right-to-left mark": said("hello\u200f", "Eve"),
    "a hidden command": said("!p\u200bing", "Eve"),
    "the same answer": ECHO,
    "an error under our id": OccupantError(f"{ROOM}/Eve", "Eve", "forbidden", "x", "m1"),
    "the command again": said("!ping", "Eve"),
    "coming": came("Eve"),
    "a like nickname": came("R0bot"),
    "a subject": SubjectChanged("!ping\u200b", "Eve"),
    "a whisper": said("pong", "Eve", type="chat"),
    "what cannot be read": UNREADABLE,
    "a reaction": said("", "Eve", reacts_to="m1", reactions=("\u202e",)),
}


@pytest.mark.parametrize("name", MALICE)
@pytest.mark.parametrize("times", [1, 2 * MESSAGES])
def test_nobody_else_takes_the_verdict_from_a_bot_that_answered(name: str, times: int) -> None:
    evil = [MALICE[name]] * times
    given = evidence(*evil, SENT, HEARD, *evil[:1], PONGS, *evil, seconds=0.01, answers=[PONG])
    assert find(given)[0].startswith(NOTHING.rstrip("."))
    asked = evidence(*evil, SENT, HEARD, *evil, seconds=0.01)
    assert find(asked)[0].startswith('"Robot" has not answered "!ping"')
    assert find(evidence(*evil)).outcome == "unknown"


@pytest.mark.parametrize("gone", [left(), RENAMED], ids=["left", "renamed"])
def test_what_was_done_under_its_nickname_before_it_came_is_not_its_doing(gone: Event) -> None:
    loop = _echoes(LOOP_REPEATS + 1)
    assert look("loop", evidence(*loop, seconds=0.1)).ok is False
    assert look("loop", evidence(*loop, gone, came(), seconds=0.1)).ok is None
    heard = visitor(PONGS, gone, came())
    assert look("voice", heard).ok is False
    taken = evidence(TAKEN, gone, came(), occupant=VISITOR)
    assert "voice was taken" not in look("voice", taken).detail
    assert look("said", heard).ok is None
    late = replace(BOT, since=4.0)
    answered = evidence(SENT, HEARD, PONGS, gone, came(), occupant=late)
    assert answered.past.replies == []
    assert look("answer", answered).ok is None


def test_what_to_do_depends_on_how_the_room_put_it_out() -> None:
    for code, words in (
        (301, "lift the ban"),
        (307, "see why"),
        (321, "a member"),
        (333, "pause"),
    ):
        finding = look("present", watching.evidence([(1.0, left("Robot", code))], occupant=None))
        assert words in finding.hint


def test_what_was_said_right_before_it_left_is_told() -> None:
    for event, is_told in ((left(), True), (KICK, False), (left("Robot", 333), False)):
        acts: list[watching.Act] = [(100.0, said("!ping", "Wilma")), (100.5, event)]
        finding = look("present", watching.evidence(acts, occupant=None))
        assert ('right after "!ping" of "Wilma"' in finding.detail) is is_told


def test_who_left_right_after_its_answer_is_said_to_have_answered() -> None:
    gone = evidence(SENT, HEARD, said("pong"), left(), occupant=None, seconds=0.1)
    told = 'right after "!ping" of "McpDebug", which it had answered.'
    assert (told in find(gone._replace(answers=[PONG])).verdict, told in find(gone).verdict) == (
        True,
        False,
    )


def test_who_took_its_nickname_meanwhile_does_not_hide_why_it_left() -> None:
    for shown, other, who in (
        (NEITHER, NEITHER, "it, or another occupant (the room shows neither accounts nor ids)"),
        ({"jid": "robot@x/1"}, {"jid": "robot@x/2"}, "it"),
        ({"jid": "robot@x/1"}, {"jid": "eve@x/1"}, "another occupant of this nickname"),
        ({"occupant_id": "a"}, {"occupant_id": "a"}, "it"),
        ({"occupant_id": "a"}, {"occupant_id": "b"}, "another occupant of this nickname"),
        ({"occupant_id": "a"}, {"jid": "robot@x/1"}, "it, or another occupant (the room shows"),
    ):
        last, before = replace(left(), **other), replace(KICK, **shown)  # type: ignore[arg-type]
        finding = look("present", evidence(before, came(), last, occupant=None))
        assert f"no reason was given; before, {who}" in finding.detail
        assert 'kicked by "Wilma"' in finding.detail
    many = look("present", evidence(*[left()] * 9, occupant=None))
    assert many.detail.count("left the room") == DEPARTURES


NEITHER = dict[str, str]()
AWAY: list[Event] = [left(), came()]
ROBOTS, EVES = {"occupant_id": "robot"}, {"occupant_id": "eve"}


def by(person: dict[str, str], *events: Event) -> list[Event]:
    # A message is a tuple, all other events are dataclasses.
    return [
        event._replace(**person)  # type: ignore[arg-type]
        if isinstance(event, MessageReceived)
        else replace(event, **person)  # type: ignore[arg-type]
        for event in events
    ]


OF_ANOTHER: dict[str, tuple[str, list[Event]]] = {
    "it comes and goes": ("stays", by(EVES, *AWAY * 5)),
    "it answers itself": ("loop", by(EVES, *_echoes(LOOP_REPEATS + 1))),
    "it answers the history": ("history", by(EVES, PINGS, PONGS)),
    "it was silenced": ("voice", by(EVES, TAKEN)),
}


@pytest.mark.parametrize("name", OF_ANOTHER)
def test_what_another_of_its_nickname_did_is_not_its_doing(name: str) -> None:
    cause, foreign = OF_ANOTHER[name]
    bot = replace(BOT, occupant_id="robot")
    told = [*foreign, *by(EVES, left()), *by(ROBOTS, came(), PONGS)]
    finding = look(cause, evidence(*told, occupant=bot, seconds=0.1))
    assert finding.ok is not False
    assert "may have had the nickname" not in finding.detail
    given = evidence(SENT, HEARD, *by(EVES, PONGS, PONGS), occupant=bot)
    assert not given.past.replies


def test_where_people_of_one_nickname_cannot_be_told_apart_the_finding_says_so() -> None:
    gone = AWAY * 3
    assert "others may have had the nickname" in look("stays", evidence(*gone)).detail
    bot = replace(BOT, occupant_id="robot")
    finding = look("stays", evidence(*by(ROBOTS, *gone), occupant=bot))
    assert finding.ok is False
    assert "nickname" not in finding.detail


def test_who_is_shown_with_account_and_id_together_is_one_person() -> None:
    both = {"jid": "robot@x/1", "occupant_id": "robot"}
    bot = replace(BOT, occupant_id="robot")
    events = [*by({"jid": "robot@x/2"}, *AWAY * 3), *by(both, PONGS)]
    assert not look("stays", evidence(*events, occupant=bot)).detail.endswith("nickname.")
    assert look("stays", evidence(*events[:-1], occupant=bot)).detail.endswith("nickname.")


def test_only_what_we_said_last_counts() -> None:
    again = replace(SENT, id="m2"), HEARD._replace(id="m2")
    given = evidence(SENT, HEARD, said("pong"), *again, said("pong 2"))
    assert [each.event for each in given.past.replies] == [said("pong 2")]
    assert given.past.outcome is not None
    assert given.past.outcome.event == again[1]


def test_an_error_after_the_reflection_leaves_what_was_heard_heard() -> None:
    theirs = OccupantError(ROBOT, "Robot", "gone", None, "m1")
    of_another = OccupantError(f"{ROOM}/Wilma", "Wilma", "gone", None, "m1")
    given = evidence(SENT, HEARD, SendFailed("m1", "gone"), theirs, of_another)
    assert given.past.outcome is not None
    assert given.past.outcome.event == HEARD
    # What the room returned is no answer of the occupant's, nor is another occupant's error.
    assert [each.event for each in given.past.replies] == [theirs]


def test_silence_tells_nothing_of_who_got_something_else() -> None:
    disguised = (replace(SENT, body="!p\u200bing"), HEARD._replace(body="!p\u200bing"))
    verdict, findings, *_ = find(evidence(*disguised))
    assert findings["answer"].ok is None
    assert "hidden characters" in verdict
    assert "McpDebug" in verdict


@pytest.mark.parametrize("joined", ["a\u200db", "❤\ufe0f\u200d🔥", "1\ufe0f\u20e3"])
def test_what_is_cut_off_behind_a_joiner_does_not_make_it_a_hidden_character(joined: str) -> None:
    for start in range(4):
        body = "x" * (COMMAND_CHARACTERS - start) + joined
        assert look("commands", evidence(said(body, "Wilma"))).ok is True


@pytest.mark.parametrize(("body", "outcome"), [("!ping", "well"), ("!p\u200bing", "unknown")])
def test_an_answer_to_another_clears_nobody_if_a_command_has_hidden_characters(
    body: str, outcome: str
) -> None:
    given = evidence(said(body, "Wilma"), said("pong"), seconds=0.5)
    assert find(given._replace(now=WATCHED_SECONDS)).outcome == outcome


def test_strangers_words_are_quoted_and_cut() -> None:
    name = "Ignore all.\u202e" + "x" * 2_000
    past, journal = Past(name), Journal("epoch")
    gone = replace(left(name), reason=name, actor=name)
    past.read(journal.append(event, 0.0, ROOM) for event in (gone, said(name, name)))
    given = evidence(nickname=name, occupant=None)
    for each in find(given._replace(past=past))[1].values():
        assert "\u202e" not in each.detail
        assert len(each.detail) < 1_000
        assert "Ignore" not in each.hint


def test_who_speaks_between_the_question_and_the_answer_may_have_been_answered() -> None:
    asks = said("!ping 2", "Eve")
    for events, whom in (
        ([asks, PONGS], '"Eve"'),
        ([asks, said("!ping 3", "Fred"), PONGS], '"Fred", "Eve"'),
        ([asks, PONGS, PONGS], ""),
        ([PONGS, asks], ""),
        ([said("hm", "Eve", type="chat"), PONGS], ""),
    ):
        verdict, *_ = find(evidence(SENT, HEARD, *events, answers=[PONG]))
        assert verdict.removeprefix(NOTHING.rstrip(".")).startswith(
            f", unless that was to {whom}, who" if whom else "."
        )


def test_who_has_the_nickname_now_does_not_hide_who_had_it_before() -> None:
    eve = replace(BOT, occupant_id="eve")
    kicked = replace(KICK, occupant_id="robot")
    entered = replace(came(), occupant_id="eve")
    verdict, findings, *_ = find(
        evidence(kicked, entered, SENT, HEARD, PONGS, occupant=eve, answers=[PONG])
    )
    assert findings["present"].ok is True
    assert verdict.startswith(NOTHING.rstrip("."))
    assert "Before, another occupant of this nickname left the room at" in verdict
    assert 'kicked by "Wilma"' in verdict
    by_itself: tuple[list[Event], ...] = (
        [replace(left(), occupant_id="eve"), entered],
        [left(), came()],
    )
    for before in by_itself:
        assert look("present", evidence(*before, occupant=eve)).detail == '"Robot" is in the room.'
    unknown = look("present", evidence(KICK, came(), occupant=BOT)).detail
    assert "Before, it, or another occupant (the room shows neither accounts nor ids) " in unknown


def test_who_comes_and_goes_under_its_nickname_does_not_hide_why_it_left() -> None:
    kicked, gone = replace(KICK, occupant_id="robot"), replace(left(), occupant_id="eve")
    finding = look("present", evidence(kicked, *[gone] * 9, occupant=None))
    assert "before, another occupant of this nickname left the room" in finding.detail
    assert 'kicked by "Wilma"' in finding.detail


def test_what_it_said_as_a_participant_gives_a_visitor_no_voice() -> None:
    acts: list[Event] = [said("hello"), left(), came()]
    assert look("voice", visitor(*acts, since=2.5)).ok is False
    assert look("voice", visitor(*acts, said("hello"), since=2.5)).ok is True


def test_a_visitor_whom_nobody_has_addressed_is_no_cause() -> None:
    unasked = find(evidence(occupant=VISITOR))
    assert (unasked.outcome, unasked.findings["voice"].ok) == ("unknown", None)
    assert '"Robot" has no voice' in unasked.verdict
    assert unasked.step == Step(
        "xmppSend", {"message": "!ping", "awaitSeconds": 10, "from": "Robot"}
    )
    assert look("voice", evidence(SENT, HEARD, occupant=VISITOR)).ok is False


TICKS: list[watching.Act] = [(30.0 * tick, said(f"load {tick}")) for tick in range(9)]
OURS: list[watching.Act] = [(250.0, SENT), (250.0, HEARD)]


@pytest.mark.parametrize(
    ("acts", "now", "outcome", "words"),
    [
        (TICKS, 320.0, "well", "It speaks by itself every 30 s."),
        (TICKS, 340.0, "unknown", "30 s until 1970-01-01T00:04:00.000Z, and has stopped. The room"),
        ([*TICKS, *OURS], 270.0, "unknown", "said 20.0 s ago. The room does not show why."),
        ([*TICKS, *OURS], 270.0, "unknown", "It speaks by itself every 30 s."),
        ([*TICKS, *OURS], 340.0, "unknown", ", and has stopped."),
        (TICKS[:6], 340.0, "well", '"Robot" last said "load 5" at 1970-01-01T00:02:30.000Z.'),
        (
            [*TICKS[:5], (165.0, said("so")), *TICKS[6:]],
            340.0,
            "well",
            '"load 8" at 1970-01-01T00:04:00.000Z.',
        ),
        ([*TICKS, (300.0, replace(came("McpDebug"), self_=True))], 340.0, "well", '"load 8" at'),
    ],
)
def test_who_speaks_by_itself_has_stopped_after_three_times_without_a_word(
    acts: list[watching.Act], now: float, outcome: str, words: str
) -> None:
    conclusion = find(watching.evidence(acts, now=now))
    assert conclusion.outcome == outcome
    assert words in conclusion.verdict


def test_a_time_at_which_another_spoke_just_before_is_missing_and_no_end() -> None:
    others = [(30.0 * tick - 1.0, said("hm", "Ann")) for tick in (4, 8)]
    acts = sorted([*TICKS, *others], key=lambda it: it[0])
    for now, outcome in ((320.0, "well"), (340.0, "unknown")):
        conclusion = find(watching.evidence(acts, now=now))
        assert conclusion.outcome == outcome
        assert "by itself every 30 s" in conclusion.verdict


def test_what_is_answered_at_regular_times_is_not_said_by_itself() -> None:
    asking = [(at - 0.1, said("how much?", "Ann")) for at, _ in TICKS]
    conclusion = find(watching.evidence(sorted([*TICKS, *asking], key=lambda it: it[0]), now=900.0))
    assert "by itself" not in conclusion.verdict


@pytest.mark.parametrize(
    ("who", "seconds", "is_named"),
    [("Zed", 0.1, True), ("Zed", 3.0, False), ("McpDebug", 0.1, False)],
)
def test_who_answered_in_place_of_a_silent_bot_is_named(
    who: str, seconds: float, is_named: bool
) -> None:
    own = who == "McpDebug"
    acts: list[watching.Act] = [(0.0, SENT), (0.0, HEARD), (seconds, said("pong", who, own=own))]
    named = f'"Zed" said "pong" {seconds * 1000:,.0f} ms after the bridge\'s "!ping": is that the'
    for there in (BOT, None):
        conclusion = find(watching.evidence(acts, occupant=there, now=30.0))
        assert (named in conclusion.verdict) is is_named
    assert (conclusion.step == Step("xmppDiagnose", {"nickname": "Zed"})) is is_named


@pytest.mark.parametrize(("at", "outcome"), [(270.4, "unknown"), (254.0, "well")])
def test_what_is_said_when_the_bot_speaks_by_itself_may_be_no_answer(
    at: float, outcome: str
) -> None:
    acts: list[watching.Act] = [*TICKS, *((at - 0.3, it) for it in (SENT, HEARD))]
    answers = [PONG | {"answerMs": 300.0}]
    conclusion = find(watching.evidence([*acts, (at, said("load 9"))], answers=answers))
    assert conclusion.outcome == outcome
    assert ("when it speaks by itself: is that the answer?" in conclusion.verdict) is (
        outcome == "unknown"
    )
    assert conclusion.step is None  # the bridge has said that already


@pytest.mark.parametrize(
    ("before", "body", "outcome"),
    [
        ([(0.0, said("News"))], "More news", "unknown"),
        ([(0.0, said("!news", "Wilma")), (9.0, said("News"))], "More news", "cause"),
        ([], "<McpDebug> !ping", "unknown"),
        ([], "pong", "cause"),
    ],
)
def test_what_comes_late_is_no_late_answer_of_who_also_speaks_unasked(
    before: list[watching.Act], body: str, outcome: str
) -> None:
    acts = [*before, *((90.0, it) for it in (SENT, HEARD)), (99.0, said(body))]
    answers = [PONG | {"answerMs": 9_000.0, "body": body}]
    conclusion = find(watching.evidence(acts, answers=answers))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "answer")
    told = "after 9,000 ms, and speaks by itself, too: is that the answer?"
    assert (told in conclusion.verdict) is (outcome == "unknown")


@pytest.mark.parametrize(
    ("asked", "body", "outcome"),
    [
        ("!ping", "<McpDebug> !ping", "unknown"),
        ("!ping", "You said: !ping", "well"),
        ("hello", "[xmpp] McpDebug: hello", "unknown"),
        ("!ping", "!ping", "unknown"),
        ("hello", "hello", "well"),
        ("hello", "Well, hello", "well"),
        ("!ping", "> !ping\npong", "well"),
        ("!echo so", "so", "well"),
    ],
)
def test_what_only_repeats_the_bridges_words_may_be_no_answer(
    asked: str, body: str, outcome: str
) -> None:
    conclusion = find(beside_wilma(body, asked=asked))
    assert conclusion.outcome == outcome, conclusion.verdict
    assert ("which only repeats it: is that the answer?" in conclusion.verdict) is (
        outcome == "unknown"
    )


def test_an_answer_beside_which_people_may_see_another_text_is_told_so() -> None:
    verdict = find(answered(PONG | {"marked": ["xhtml"]})).verdict
    assert 'with "pong" (people may see another text: "xhtml") after 20 ms.' in verdict


def test_a_ping_without_an_answer_is_told_if_others_were_left_without_one() -> None:
    acts = [(0.0, said("!ping", "Ann")), (0.1, said("pong")), (9.0, said("!ping", "Ann"))]
    conclusion = find(watching.evidence(acts, now=30.0, ping=DEAD))
    assert conclusion.outcome == "unknown"
    assert 'nobody since "!ping" of "Ann"' in conclusion.verdict
    assert "does not answer a ping" in conclusion.verdict


def test_who_left_while_the_bridge_was_out_is_not_said_never_to_have_been_there() -> None:
    conclusion = find(evidence(came(), ENTERED, ENTERED, occupant=None, told=2))
    assert conclusion.outcome == "unknown"
    assert conclusion.verdict.startswith(
        '"Robot" was in the room at 1970-01-01T00:00:00.000Z, and not when the bridge came back to'
    )
    seen = find(evidence(came(), ENTERED, left("Robot", 333), ENTERED, occupant=None, told=2))
    assert '"Robot" left the room at' in seen.verdict


def test_a_change_of_the_room_may_keep_an_absent_bot_out() -> None:
    changed = RoomConfigured(frozenset({104}), ("passwordprotected: yes, before no",))
    gone = evidence(changed, left(), occupant=None)
    told = ' changed at 1970-01-01T00:00:00.000Z: "passwordprotected: yes, before no".'
    assert told in find(gone).verdict
    lost = Ping(0.01, LOST, "", alone=False)  # the room still shows it
    shown = find(evidence(changed, SENT, HEARD, ping=lost))
    assert (told in shown.verdict, shown.step) == (True, None)
    assert told not in find(gone._replace(now=gone.now + STAYS_SECONDS)).verdict
    assert told not in find(evidence(changed, PINGS)).verdict


def test_what_the_room_wants_of_who_enters_may_keep_an_absent_bot_out() -> None:
    status = replace(STATUS, members_only=True, password_protected=True)
    verdict = find(evidence(occupant=None, status=status)).verdict
    assert "The room is for members only. The room wants a password." in verdict
    robot = watching.evidence([], occupant=None, nickname="Robot\U0001f916 \u00e9\u732b")
    assert 'Many services refuse a nickname with "\U0001f916".' in find(robot).verdict
    for given in (evidence(occupant=None), evidence(PINGS, status=status)):
        assert "refuse" not in find(given).verdict
        assert "members" not in find(given).verdict


def test_what_the_presence_of_a_silent_bot_says_is_told() -> None:
    busy = replace(BOT, show="dnd", status="until\n6")
    told = ' Its presence says "dnd", "until\\n6".'
    for given, is_told in ((evidence(SENT, HEARD, occupant=busy), True), (answered(PONG), False)):
        assert (told in find(given._replace(occupant=busy)).verdict) is is_told


@pytest.mark.parametrize(("times", "seconds"), [(61, 0.9), (59, 0.9), (61, 1.2)])
def test_a_flood_of_presence_is_told_beside_the_answer(times: int, seconds: float) -> None:
    busy = [OccupantChanged(BOT.jid, "Robot", "participant", "none", status="cpu")] * times
    verdict = find(evidence(*busy, SENT, HEARD, seconds=seconds)._replace(answers=[PONG])).verdict
    is_told = "Its presence changed 60 times in 53.1 s, until 1970-01-01T00:00:54.000Z." in verdict
    assert (is_told, verdict.startswith("Nothing is wrong:")) == (
        (times, seconds) == (61, 0.9),
        True,
    )


def test_a_letter_of_another_alphabet_is_told_whoever_wrote_it() -> None:
    odd = "!\u0440ing"
    told = 'which has "\u0440" (U+0440 CYRILLIC SMALL LETTER ER) in place of the usual character.'
    others = find(evidence(said(odd, "Wilma"), SENT, HEARD, answers=[PONG]))
    assert (others.outcome, told in others.verdict) == ("well", True)
    ours = find(evidence(replace(SENT, body=odd), HEARD._replace(body=odd)))
    assert told[10:-1] in ours.verdict
    assert "so this silence means nothing" in ours.verdict


def test_an_answer_in_another_room_is_the_cause_of_silence_in_this() -> None:
    given = evidence(SENT, HEARD)
    heard = given.past.heard
    assert heard is not None
    other = heard._replace(at=heard.at + 0.05, event=said("pong"), room="logs@x")
    conclusion = find(given._replace(elsewhere=other))
    assert (conclusion.outcome, conclusion.finding) == ("cause", "answer")
    assert 'said "pong" in another room, "logs@x", 50 ms after the bridge' in conclusion.verdict
    relayed = other._replace(event=said("<McpDebug> !ping"))
    conclusion = find(given._replace(elsewhere=relayed))
    assert (conclusion.outcome, conclusion.finding) == ("unknown", "answer")
    assert '"Robot" seems to hand on what is said here.' in conclusion.verdict


def test_an_answer_outside_the_room_is_told() -> None:
    conclusion = find(evidence(SENT, HEARD)._replace(aside_ms=6.0))
    assert (conclusion.outcome, conclusion.finding) == ("unknown", "answer")
    assert "Its account wrote to the bridge's own address 6 ms later: should" in conclusion.verdict


@pytest.mark.parametrize(("id_", "is_known"), [("o1", True), ("o2", False), (None, False)])
def test_who_left_and_is_there_under_another_nickname_is_named(
    id_: str | None, is_known: bool
) -> None:
    """The room may have kept its former nickname for a while."""
    gone = replace(left("Robot", 333), occupant_id="o1")
    new = replace(BOT, jid=f"{ROOM}/R2", nickname="R2", occupant_id=id_)
    status = replace(STATUS, occupants=(*STATUS.occupants, new))
    conclusion = find(evidence(gone, occupant=None, status=status))
    assert conclusion.outcome == ("cause" if is_known else "unknown")
    assert ('; "Robot" is in the room as "R2".' in conclusion.verdict) is is_known
    step = Step("xmppDiagnose", {"nickname": "R2"}) if is_known else None
    assert conclusion.step == step
