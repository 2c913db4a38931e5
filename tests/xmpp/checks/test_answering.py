"""Whom a program answers, and how, over plain values: rooms that are broken, and healthy ones."""

from dataclasses import replace

import pytest

from bridge.xmpp.checks.answering import LATE_MS, LONG
from bridge.xmpp.checks.diagnosis import Step, find
from bridge.xmpp.checks.doubts import tells_failure
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantChanged,
    RoomConfigured,
    SubjectChanged,
)
from bridge.xmpp.model.room import Occupant
from tests.tools.played import ROOM
from tests.xmpp.checks.watching import BOT, DEAD, Act, came, evidence, left, said

AFTER = 60.0
"""Seconds between two questions."""


def asked(
    *exchanges: tuple[str, str, str], seconds: float = 0.05, reply_to: str | None = None
) -> list[Act]:
    """Return what somebody asked each minute, and what the bot answered, unless that is empty."""
    acts = list[Act]()
    for number, (who, text, answer) in enumerate(exchanges):
        acts.append((AFTER * number, said(who, text, id=f"q{number}")))
        if answer:
            reply = said("Robot", answer, reply_to=reply_to)
            acts.append((AFTER * number + seconds, reply))
    return acts


PING = ("Carl", "!ping", "pong")
WHISPER = {"how": "private", "answerMs": 20.0, "body": "help"}


@pytest.mark.parametrize(
    ("said_before", "outcome"),
    [
        ([("Carl", "!ping", "pong")], "unknown"),
        ([("Carl", "!ping", "pong"), ("Carl", "!help", "help")], "cause"),
        ([("Carl", "!ping", "")], "cause"),
    ],
)
def test_an_answer_in_private_may_be_on_purpose_if_other_commands_are_answered_in_public(
    said_before: list[tuple[str, str, str]], outcome: str
) -> None:
    us = f"{ROOM}/McpDebug"
    acts: list[Act] = [
        *asked(*said_before),
        (500.0, MessageSent(us, "McpDebug", "!help", "m1")),
        (500.0, said("McpDebug", "!help", id="m1", own=True)),
    ]
    conclusion = find(evidence(acts, answers=[WHISPER]))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "answer")
    assert (conclusion.step is not None) is (outcome == "unknown")


LATE = LATE_MS / 1000 + 0.1
TYPING = said("Carl", "", payload=("composing (http://jabber.org/protocol/chatstates)",))
RETITLED = SubjectChanged("Deploy on Friday", "Carl")
AWAY = OccupantChanged(f"{ROOM}/Carl", "Carl", "participant", "none", show="away")
BROKEN: dict[str, tuple[list[Act], str, str]] = {
    "it replies to another message": (
        asked(("Alice", "hello", ""), *[PING] * 3, reply_to="q0"),
        "cause",
        "as a reply to another message",
    ),
    "it takes one for another": (
        asked(PING, *[("Alice", "!ping", "Carl: pong")] * 3),
        "unknown",
        "by the name of another asker",
    ),
    "it always says the same": (
        asked(*[("Carl", text, "Internal error") for text in ("!ping", "!help", "!roll")]),
        "unknown",
        'with "Internal error", which it says to everything',
    ),
    "it is always late": (
        asked(*[PING] * 3, seconds=LATE),
        "unknown",
        "late, after 5,100 ms",
    ),
    "it answers no longer what it answered, and never answered to its name": (
        asked(PING, ("Alice", "!ping", ""), ("Carl", "robot: ping", "")),
        "unknown",
        'nobody since "!ping" of "Alice" at 1970-01-01T00:01:00.000Z, though asked 2 times: it',
    ),
    "it kept silent on words by which it was asked before": (
        asked(("Alice", "Robot status", "fine"), ("Carl", "Robot status", "")),
        "unknown",
        'nobody since "Robot status" of "Carl" at 1970-01-01T00:01:00.000Z: it may have stopped.',
    ),
    "it answers the command before": (
        asked(*[("Carl", f"!say {it}", f"You said {it - 1}.") for it in range(1, 5)]),
        "unknown",
        '"!say 4" of "Carl" with what the command before asked for',
    ),
    "it looks for a word anywhere": (
        asked(PING, ("Carl", "it is shipping", "pong"), ("Alice", "mapping?", "pong")),
        "unknown",
        'answered "mapping?" of "Alice" with "pong", as it answers commands.',
    ),
    "it takes a correction for a new command": (
        [
            *asked(PING, ("Alice", "!ping Rome", "pong")),
            (AFTER + 5.0, said("Alice", "!ping Paris", replaces="q1")),
            (AFTER + 5.05, said("Robot", "pong")),
        ],
        "unknown",
        'answered "!ping Paris" of "Alice" anew, which corrects "!ping Rome"',
    ),
    "it takes reactions for commands": (
        [
            *asked(PING),
            *(
                (9.0 + at, said(who, body, reactions=None if body else ("+",)))
                for at, (who, body) in enumerate([("Carl", ""), ("Robot", "what?")] * 2)
            ),
        ],
        "unknown",
        '"Robot" said "what?" 2 times, each after something without words: a reaction',
    ),
    "it passes over corrections": (
        [
            *asked(PING, ("Carl", "!pnig", "")),
            (AFTER + 1.0, said("Carl", "!ping", replaces="q1")),
        ],
        "unknown",
        "it may have stopped. What differs: whether it is a correction.",
    ),
    "it takes a new subject for a command": (
        [
            *asked(PING),
            *((9.0 + 3 * at, it) for at in range(2) for it in (RETITLED, said("Robot", "pong"))),
        ],
        "unknown",
        '"Robot" said "pong" 2 times, each after something without words: a reaction',
    ),
    "it takes typing for commands": (
        [
            *asked(PING),
            *((0.5 + at, it) for at in range(2) for it in (TYPING, said("Robot", "what?"))),
        ],
        "unknown",
        '"Robot" said "what?" 2 times, each after something without words: a reaction, a chat',
    ),
    "it greets whoever changes the status": (
        [
            *asked(PING),
            *((9.0 + 3 * at, it) for at in range(2) for it in (AWAY, said("Robot", "Welcome!"))),
        ],
        "unknown",
        '"Robot" said "Welcome!" 2 times, each after something without words',
    ),
    "it answers every other time": (
        asked(*[PING, ("Carl", "!ping", "")] * 3, PING),
        "unknown",
        '"!ping" of "Carl" after 50 ms, and left 3 of 7 such messages without an answer.',
    ),
    "it was given a command again and again in a form that it never answered": (
        asked(PING, *[("Alice", ".ping", "")] * 2),
        "unknown",
        "though asked 2 times: it may have stopped. What differs: the form of the message.",
    ),
}
WELL: dict[str, list[Act]] = {
    "clients say behind each message that nobody types any more": [
        *asked(PING),
        *(
            (AFTER * number, it)
            for number in range(1, 4)
            for it in (said("Carl", "hello"), TYPING, said("Robot", "hi!"))
        ),
    ],
    "it is late now and then": [*asked(*[PING] * 2), *asked(*[PING] * 3, seconds=LATE)[-2:]],
    "a model takes its time": asked(*[("Carl", "robot: and now?", "so")] * 3, seconds=LATE),
    "it passes on what it is told": asked(
        PING, *[("Alice", f"!tell carl {number}", f"Carl: {number}") for number in range(3)]
    ),
    "it says the same to one command in several forms": asked(
        *[("Carl", text, "pong") for text in ("!ping", "Robot: ping", "robot, ping please")]
    ),
    "it says the same to the same command": asked(*[PING] * 4),
    "it says to talk what it says to no command": asked(
        PING, ("Carl", "hello", "hi"), ("Alice", "good morning", "hi")
    ),
    "it answers what names it as it answers commands": asked(
        PING, ("Carl", "hey robot", "pong"), ("Alice", "Robot, hello", "pong")
    ),
    "its answers have what they were asked for": asked(
        *[("Carl", f"!sum {it} 1", f"{it} and 1 make {it + 1}") for it in range(1, 5)]
    ),
    "somebody speaks about it": asked(PING, ("Alice", "Robot is great", "")),
    "it missed a command once, and another program answered": [
        *asked(*[PING] * 2, ("Carl", "!ping", ""), ("Carl", "!ping", ""), PING),
        (AFTER * 3 + 0.05, said("Helper", "pong")),
    ],
    "somebody thanks it": asked(PING, ("Alice", "Robot: thanks", "")),
    "somebody writes what is no command to it": asked(PING, ("Alice", "~maybe", "")),
    "somebody tries a command that it does not know": asked(PING, ("Alice", "!tea", ""), PING),
    "it corrects its answer once the command is corrected": [
        *asked(PING, ("Alice", "!ping Rome", "pong")),
        (AFTER + 5.0, said("Alice", "!ping Paris", replaces="q1")),
        (AFTER + 5.05, said("Robot", "pong", replaces="a1")),
    ],
    "somebody reacts while it answers": [
        act
        for number in range(3)
        for act in (
            (AFTER * number, said("Carl", f"!roll {number}", id=f"q{number}")),
            (AFTER * number + 1.0, said("Alice", "", reactions=("+",))),
            (AFTER * number + 1.05, said("Robot", "You rolled: 6")),
        )
    ],
    "somebody corrects a command": [
        *asked(PING, ("Alice", "!pnig", "")),
        (AFTER + 1.0, said("Alice", "!ping", replaces="q1")),
        (AFTER + 1.05, said("Robot", "pong")),
    ],
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_with_the_answers_is_never_called_well(name: str) -> None:
    acts, outcome, words = BROKEN[name]
    conclusion = find(evidence(acts, now=acts[-1][0] + AFTER))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "senders"), conclusion.verdict
    assert words in conclusion.verdict


@pytest.mark.parametrize("name", WELL)
def test_a_bot_that_answers_as_it_should_is_well(name: str) -> None:
    acts = WELL[name]
    conclusion = find(evidence(acts, now=acts[-1][0] + AFTER))
    assert conclusion.outcome == "well", conclusion.verdict


TAKEN = OccupantChanged(
    f"{ROOM}/Robot", "Robot", "visitor", "none", actor="Carl", former_role="participant"
)
OURS = MessageSent(f"{ROOM}/McpDebug", "McpDebug", "!ping", "m1")
HEARD = said("McpDebug", "!ping", id="m1", own=True)


@pytest.mark.parametrize(
    ("happens", "occupant", "outcome", "finding"),
    [
        ([], BOT, "unknown", "senders"),
        ([left("Robot", 333)], None, "unknown", "present"),
        ([left()], None, "unknown", "present"),
        ([TAKEN], replace(BOT, role="visitor"), "cause", "voice"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_what_it_could_not_answer_is_no_sign_of_whom_it_prefers(
    happens: list[Event], occupant: Occupant | None, outcome: str, finding: str, before: bool
) -> None:
    ours: list[Act] = [(AFTER, OURS), (AFTER, HEARD)]
    moves: list[Act] = [(AFTER + (-1 if before else 1), event) for event in happens]
    acts = asked(PING) + (moves + ours if before else ours + moves)
    known = evidence(acts, occupant=occupant, now=AFTER * 2)
    status = replace(known.status, moderated=False)
    conclusion = find(known._replace(status=status))
    assert (conclusion.outcome, conclusion.finding) == (outcome, finding), conclusion.verdict


@pytest.mark.parametrize(("known", "answered"), [(True, True), (False, False)])
def test_what_a_namesake_may_have_answered_before_is_not_counted_as_its_answer(
    known: bool, answered: bool
) -> None:
    jid = "robot@x/1" if known else None
    acts: list[Act] = [
        (at, event._replace(jid=jid if event.sender == "Robot" else None))
        for at, event in asked(PING, PING, ("Carl", "!ping", ""), ("Alice", "!ping", ""))
        if isinstance(event, MessageReceived)
    ]
    acts += [(AFTER * 3.5, replace(event, jid=jid)) for event in (left(), came())]
    acts += [(AFTER * 4, OURS), (AFTER * 4, HEARD)]
    bot = replace(BOT, real_jid=jid)
    verdict = find(evidence(acts, now=AFTER * 5, occupant=bot)).verdict
    assert ('"Robot" answered "!ping" of "Carl"' in verdict) is answered, verdict
    assert ("asked 3 times" in verdict, "spoke 50 ms after" in verdict) == (answered, False)


@pytest.mark.parametrize(
    ("before", "ours", "answer", "told"),
    [
        (
            (("Carl", "!time", "It is noon."),),
            "!ping",
            "It is noon.",
            'did to "!time" of "Carl": is',
        ),
        ((("Carl", "!ping", "I am here."),), "!ping", "I am here.", ""),
        ((("Carl", "Robot: ping", "I am here."),), "!ping", "I am here.", ""),
        ((("Carl", "!start", "OK"),), "!stop", "OK", ""),
        ((("Carl", "!help", "Try !ping or !time."),), "!commands", "Try !ping or !time.", ""),
        ((("Carl", "!sun Rome", "Rome: 9"), PING), "!sun Oslo", "Rome: 9", 'to "!sun Rome" of'),
        ((("Carl", "!sun Rome", "Rome: 9"), PING), "!list", "2 to Rome", ""),
        (
            (("Carl", "so it is, then", ""),),
            "!quote",
            "so it is, then",
            'which "Carl" had said bef',
        ),
        ((("Carl", "so it is", ""),), "!quote", "so it is", ""),
    ],
)
def test_an_answer_to_something_else_is_no_answer_and_anybodys_words_are_told(
    before: tuple[tuple[str, str, str], ...], ours: str, answer: str, told: str
) -> None:
    acts: list[Act] = [*asked(*before), (AFTER * 9, replace(OURS, body=ours))]
    acts += [(AFTER * 9, HEARD._replace(body=ours)), (AFTER * 9 + 0.02, said("Robot", answer))]
    heard = [WHISPER | {"how": "public", "body": answer}]
    conclusion = find(evidence(acts, now=AFTER * 9 + 1, answers=heard))
    assert told in conclusion.verdict, conclusion.verdict
    is_doubt = bool(told) and "which" not in told  # a stranger may say it first
    assert (conclusion.outcome == "unknown") is is_doubt, conclusion.verdict


@pytest.mark.parametrize(("before", "outcome"), [("pong", "unknown"), ("", "well")])
def test_a_reaction_alone_is_an_answer_unless_others_got_words(before: str, outcome: str) -> None:
    reacts = said("Robot", "", reactions=("+",))
    acts: list[Act] = [*asked(("Carl", "!ping", before))] if before else [(0.1, reacts)]
    acts += [(AFTER, OURS), (AFTER, HEARD), (AFTER + 0.02, reacts)]
    heard = [{"how": "public", "answerMs": 20.0, "reactions": ["+"]}]
    conclusion = find(evidence(acts, now=AFTER + 1, answers=heard))
    assert conclusion.outcome == outcome, conclusion.verdict
    assert ('"!ping" of "Carl" in words: is that all?' in conclusion.verdict) is bool(before)


def test_whom_it_prefers_shows_once_it_has_answered_another_after_the_bridge() -> None:
    ours: list[Act] = [(0.0, OURS), (0.0, HEARD)]
    again: list[Act] = [
        (AFTER * 2, replace(OURS, id="m2")),
        (AFTER * 2, HEARD._replace(id="m2")),
    ]
    theirs = [(AFTER + at, event) for at, event in asked(PING)]
    for acts, outcome in (([*ours, *theirs, *again], "cause"), ([*theirs, *again], "unknown")):
        conclusion = find(evidence(acts, now=AFTER * 3))
        assert (conclusion.outcome, conclusion.finding) == (outcome, "senders")
        assert ("may have stopped" in conclusion.verdict) is (outcome == "unknown")
    hangs = find(evidence([*theirs, *again], now=AFTER * 3, ping=DEAD))
    assert (hangs.outcome, hangs.finding) == ("cause", "ping")


@pytest.mark.parametrize(
    ("reply_to", "what"), [("q0", "whether it is a reply"), (None, "whether it quotes")]
)
def test_a_message_is_read_without_what_it_quotes(reply_to: str | None, what: str) -> None:
    reply = said("Alice", "> pong\n> so\n!ping", reply_to=reply_to)
    acts: list[Act] = [*asked(PING), (AFTER, reply), (AFTER * 2, reply)]
    acts += [(AFTER * 3 + at, event) for at, event in asked(PING)]
    conclusion = find(evidence(acts, now=acts[-1][0] + AFTER))
    assert (conclusion.outcome, conclusion.finding) == ("cause", "senders")
    assert f"What differs: {what}." in conclusion.verdict


def test_in_which_form_it_answers_is_the_next_step() -> None:
    acts: list[Act] = [*asked(("Carl", ".ping", "pong")), (AFTER, OURS), (AFTER, HEARD)]
    conclusion = find(evidence(acts, now=AFTER * 2))
    asking = {"message": ".ping", "awaitSeconds": 10, "from": "Robot"}
    assert (conclusion.outcome, conclusion.step) == ("unknown", Step("xmppSend", asking))
    person = evidence(acts, now=AFTER * 2, programs={"Robot": False})
    assert find(person).step is None
    dot: list[Act] = [(AFTER, replace(OURS, body=".ping")), (AFTER, HEARD._replace(body=".ping"))]
    assert find(evidence([*acts[:2], *dot], now=AFTER * 2)).step == conclusion.step
    again: list[Act] = [
        (AFTER, replace(OURS, body=".ping", id="m2")),
        (AFTER, HEARD._replace(body=".ping", id="m2")),
    ]
    assert find(evidence([*acts[:2], *dot, *again], now=AFTER * 2)).step is None
    by_name = asked(("Carl", "@Robot: time", "noon"))
    step = find(evidence([*by_name, (AFTER, OURS), (AFTER, HEARD)], now=AFTER * 2)).step
    assert step == Step("xmppSend", asking | {"message": "@Robot: ping"})
    spaced = asked(("Carl", "! ping", "pong"))
    step = find(evidence([*spaced, (AFTER, OURS), (AFTER, HEARD)], now=AFTER * 2)).step
    assert step == Step("xmppSend", asking | {"message": "! ping"})


@pytest.mark.parametrize(
    ("words", "outcome", "told"),
    [
        ("!ping", "unknown", "nothing that is seen (xmppTrace has both stanzas)"),
        (" !ping", "unknown", "the blanks"),
        ("! ping", "well", "the form of the message"),
        ("!ping Köln", "well", "characters other than ASCII"),
        (f"!ping {'x' * (LONG**2 - 5)}", "well", "the length"),
        (f"!ping {'x' * (LONG**2 - 6)}", "well", "only the words"),
    ],
)
def test_what_the_bridge_said_before_in_vain_is_told_with_the_answer(
    words: str, outcome: str, told: str
) -> None:
    acts: list[Act] = [(0.0, OURS), (0.0, HEARD)]
    acts += [(AFTER, replace(OURS, body=words, id="m2"))]
    acts += [(AFTER, HEARD._replace(body=words, id="m2")), (AFTER, said("Robot", "pong"))]
    given = evidence(acts, now=AFTER * 2, answers=[WHISPER | {"how": "public"}])
    conclusion = find(given)
    assert conclusion.outcome == outcome, conclusion.verdict
    assert conclusion.verdict.split(". ", 1)[1].removesuffix(" The room does not show why.") == (
        'It had left the bridge\'s "!ping" at 1970-01-01T00:00:00.000Z without an answer. '
        f"What differs: {told}."
    )
    between = [(30.0, HEARD._replace(body="!roll", id="m1")), (30.5, said("Robot", "6"))]
    since = evidence([*acts[:2], *between, *acts[2:]], now=AFTER * 2, answers=given.answers)
    assert "without an answer" not in find(since).verdict


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("!ping", 'It answered the bridge\'s "!ping" after 50 ms. What differs: nothing that is'),
        (" !ping", "What differs: the blanks."),
        ("!help", 'It answered the bridge\'s "!roll" after 50 ms. What differs: the command.'),
    ],
)
def test_what_the_bridge_was_answered_before_is_told_of_who_is_silent_now(
    words: str, told: str
) -> None:
    acts = list[Act]()
    for number, (body, answer) in enumerate([("!ping", "pong"), ("!roll", "6"), (words, "")]):
        at, id_ = AFTER * number, f"m{number}"
        acts += [(at, replace(OURS, body=body, id=id_)), (at, HEARD._replace(body=body, id=id_))]
        acts += [(at + 0.05, said("Robot", answer))] * bool(answer)
    conclusion = find(evidence(acts, now=AFTER * 3))
    assert (conclusion.outcome, told in conclusion.verdict) == ("unknown", True), conclusion.verdict


@pytest.mark.parametrize(
    ("first", "outcome"), [("!ping", "unknown"), ("!roll", "cause"), ("! ping", "cause")]
)
def test_who_got_an_answer_to_the_same_before_is_not_left_out_for_who_it_is(
    first: str, outcome: str
) -> None:
    """The program may answer each only so often."""
    acts = asked(("Alice", first, "pong"), *[("Alice", "!ping", "")] * 2, PING)
    conclusion = find(evidence(acts, now=AFTER * 5))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "senders")
    told = 'It had answered "!ping" of "Alice" before: does it answer only so often?'
    assert (told in conclusion.verdict) is (outcome == "unknown")


@pytest.mark.parametrize(("words", "outcome"), [("!ping", "cause"), ("!pong", "unknown")])
def test_who_answers_neither_a_ping_nor_what_it_has_answered_before_hangs(
    words: str, outcome: str
) -> None:
    ours: list[Act] = [(9.0, replace(OURS, body=words)), (9.0, HEARD._replace(body=words))]
    conclusion = find(evidence([*asked(PING), *ours], now=20.0, ping=DEAD))
    assert conclusion.outcome == outcome
    waiting = Step("xmppWait", {"from": "Robot", "timeoutSeconds": 30})
    assert (conclusion.step == waiting) is (outcome == "cause")  # it may be busy with the message
    assert find(evidence([*asked(PING), *ours], now=99.0, ping=DEAD)).step is None


def test_whom_it_left_beside_the_bridge_shows_whom_it_prefers() -> None:
    both = asked(PING, ("Alice", "!ping", ""), ("Alice", "!ping", ""), PING, PING)
    acts: list[Act] = [*both, (AFTER * 9, OURS), (AFTER * 9, HEARD)]
    conclusion = find(evidence(acts, now=AFTER * 10))
    assert (conclusion.outcome, conclusion.finding) == ("cause", "senders"), conclusion.verdict
    assert 'never the bridge\'s "!ping", nor what "Alice" said.' in conclusion.verdict
    acts = [act for act in acts if act[0] <= AFTER * 2.5 or act[0] > AFTER * 4.5]
    conclusion = find(evidence(acts, now=AFTER * 10))
    assert (conclusion.outcome, conclusion.finding) == ("unknown", "senders"), conclusion.verdict
    assert 'nobody since "!ping" of "Alice" at' in conclusion.verdict
    assert "though asked 3 times: it may have stopped." in conclusion.verdict


def test_a_visitor_who_spoke_has_no_voice_once_the_room_has_become_moderated() -> None:
    visitor = replace(BOT, role="visitor")
    acts: list[Act] = [*asked(PING), (AFTER - 1, RoomConfigured(frozenset({104})))]
    later = [
        (AFTER * 2 + at, event) for at, event in asked(("Carl", "!ping", ""), ("Al", "!ping", ""))
    ]
    for happened, ok in (([*acts[:-1], *later], True), ([*acts, *later], False)):
        known = evidence(happened, occupant=visitor, now=AFTER * 4)
        assert find(known).findings["voice"].ok is ok


@pytest.mark.parametrize(
    ("text", "times", "after", "outcome"),
    [
        ("!ping", 3, 3.0, "unknown"),
        ("!ping", 2, 3.0, "unknown"),
        ("!ping", 2, AFTER - 3.0, "cause"),  # two answers are too few
        ("!ping", 3, AFTER - 3.0, "unknown"),
        ("!Ping", 3, 3.0, "cause"),
    ],
)
def test_who_is_left_out_only_soon_after_an_answer_is_not_called_the_reason(
    text: str, times: int, after: float, outcome: str
) -> None:
    """The program may answer once a minute, whoever asks."""
    acts = asked(*[PING] * times)
    acts += [(AFTER * number + after, said("Alice", text)) for number in range(times)]
    conclusion = find(evidence(sorted(acts, key=lambda act: act[0]), now=acts[-1][0] + 99))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "senders")
    told = f"Each time it had answered somebody at most {after - 0.05:.0f} s before: perhaps"
    assert (told in conclusion.verdict) is (outcome == "unknown")


@pytest.mark.parametrize(("reply_to", "outcome"), [("q0", "cause"), (None, "unknown")])
def test_messages_that_differ_are_not_left_out_for_a_pause_after_one_answer(
    reply_to: str | None, outcome: str
) -> None:
    left_out = [(at, said("Alice", "!ping", reply_to=reply_to)) for at in (3.0, 6.0)]
    acts = [*asked(PING), *left_out, *((AFTER + at, event) for at, event in asked(PING))]
    conclusion = find(evidence(acts, now=AFTER * 2))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "senders")


@pytest.mark.parametrize(
    ("body", "asked", "tells"),
    [
        ("Error: could not connect", "!ping", True),
        ("10 failed", "!tests", True),
        ("Access denied.", "!restart", True),
        ("You said: !ping error", "!ping error", False),
        ("error 404: the page is gone", "!explain ERROR 404", False),
        ("error 404: the lookup failed", "!explain error 404", True),
        ("no error, 0 failed, done without exception", "!tests", False),
        ("it never failed, and ended without any error", "!tests", False),
        ("no time: it failed", "!tests", True),
        ("Terror: a film", "!film", False),
        ("Fehler: Datenbank nicht erreichbar", "!ping", True),
        ("Помилка: немає зв'язку", "!ping", True),
        ("Virhe: ei yhteyttä", "!ping", True),
        ("خطأ في الاتصال", "!ping", True),
        ("Ошибка: не удалось подключиться", "!ping", True),
        ("エラーが発生しました", "!ping", True),
        ("\u274c Database is gone", "!ping", True),
        ("HTTP 503", "!ping", True),
        ("Keine Fehler, aucune erreur, Fehler: 0", "!ping", False),
        ("Nothing failed, ingen feil, без помилка", "!ping", False),
        ("\u274c\u2b55\u274c", "!move 3", False),
        ("undefined", "!ping", True),
        ("[object Object]", "!ping", True),
        ("Hello {name}", "!ping", True),
        ("Usage: !hello {name}", "!help", False),
        ("Unknown command: ping", "!ping", True),
        ("Unknown command: ping. See !help", "!ping", True),
        ("!errors shows the last error, !say {text} says it", "!help", False),
        ("KeyError: 'temp'", "!weather", True),
        ("<html><h1>No page</h1>", "!fetch", True),
        ("Sorry, try later", "!ping", True),
        ("no such user", "!whois me", True),
        ("Tom &amp; Jerry", "!ping", True),
        ("Tom & Jerry", "!ping", False),
        ("b'pong'", "!ping", True),
        ("gr\\u00fcn", "!ping", True),
        ("GrÃ¼n", "!ping", True),
        ("ÃGUA, NÃO, CAFÉ»", "!ping", False),
        ("gr\ufffdn", "!ping", True),
        ("none of them", "!who", False),
        ("You don't have permission to run this", "!restart", True),
        ("This needs bot-admin privileges", "!restart", True),
        ("This needs no permissions", "!help", False),
        ("You are rate limited", "!ping", True),
        ("Temperature: nan °C", "!weather", True),
        ("Nan bread: two", "!order", False),
        ("Only admins can do that.", "!restart", True),
        ("You must be a room owner to use this.", "!restart", True),
        ("The only one I know", "!who", False),
        ("This command is disabled here.", "!ping", True),
        ("I'm busy, come back later.", "!ping", True),
        ("Too many requests", "!ping", True),
        ("Zugriff verweigert", "!ping", True),
        ("Доступ запрещён", "!ping", True),
        ("权限不足", "!ping", True),
        ("I don't understand that.", "!ping", True),
        ("Huh? I do not know that command.", "!ping", True),
        ("I don't know who won.", "!score", False),
        ("Das habe ich nicht verstanden.", "!ping", True),
        ("Неизвестная команда", "!ping", True),
        ("未知命令", "!ping", True),
        ("[ERR] bot.lua:12: x", "!ping", True),
        ("Index x in /var/www/bot.php on line 12", "!ping", True),
        ("I run node.js 18, see main.rs", "!about", False),
        ('{"text": "pong"}', "!ping", True),
        ("('pong', 3)", "!ping", True),
        ("(that's all) [1] {so}", "!ping", True),  # a name to be replaced
        ("(that's all) [1]", "!ping", False),
        ('See <a href="x">this</a>', "!docs", True),
        ("Usage: sum <a> <b>, I <3 sums", "sum", False),
        ("{% if x %}", "!ping", True),
        ("<Response [500]>", "!ping", True),
    ],
)
def test_an_answer_tells_a_failure_in_words_that_are_not_the_questions(
    body: str, asked: str, tells: bool
) -> None:
    assert tells_failure({"body": body}, asked) is tells
