"""How programs conduct themselves, over plain values: each cause at the edges of its limits."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bridge.wire.speech import (
    ANSWER_SECONDS,
    COMMAND_CHARACTERS,
    LOOP_ROUNDS,
    SPREAD_SECONDS,
    THREAD_SECONDS,
    TURN_SECONDS,
)
from bridge.xmpp.checks import conduct
from bridge.xmpp.checks.diagnosis import find
from bridge.xmpp.checks.evidence import MAX_ACTS, Ping
from bridge.xmpp.checks.exchanges import ANSWERS, form_of, regulars
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    Source,
    StanzaDamaged,
)
from bridge.xmpp.model.room import Occupant
from tests.tools.played import ROOM, STATUS
from tests.xmpp.checks.watching import ALIVE, BOT, DEAD, Act, came, evidence, left, look, said


def spaced(seconds: float | Sequence[float], *events: Event, start: float = 100.0) -> list[Act]:
    """Return the events so many seconds apart, or with these times in front of each."""
    waits = [seconds] * len(events) if isinstance(seconds, float) else seconds
    acts = list[Act]()
    for wait, event in zip(waits, events, strict=True):
        start += wait
        acts.append((start, event))
    return acts


def duet(count: int, *nicknames: str, **more: object) -> list[MessageReceived]:
    names = nicknames or ("Robot", "Parrot")
    return [said(names[number % len(names)], f"word {number}", **more) for number in range(count)]


def commanded(times: int) -> list[MessageReceived]:
    return [said("Robot", "!ping"), said("Parrot", "word 0")] * times


def test_the_newest_acts_are_looked_at_up_to_a_limit() -> None:
    for more in (0, 1):
        acts = evidence(spaced(1.0, *[said("Robot", "a")] * (MAX_ACTS + more))).acts
        assert (len(acts), acts[0].number) == (MAX_ACTS, 1 + more)


def test_the_beginning_of_a_message_decides_its_form() -> None:
    (short, long, other) = evidence(
        [(float(it), said("Eve", "x" * (COMMAND_CHARACTERS + it - 1))) for it in range(3)]
    ).acts
    assert form_of(short, "Robot") != form_of(long, "Robot") == form_of(other, "Robot")


TYPING = said("Eve", "", payload=("composing (http://jabber.org/protocol/chatstates)",))
SLOW = ANSWER_SECONDS + 0.1
UNEVEN = [0.1, 0.1, 0.7 + SPREAD_SECONDS]
BOTH = {"Robot": True, "Parrot": True}
MANY = 2 * LOOP_ROUNDS
TRIO = ("Robot", "Parrot", "Eve")
assert 3 * LOOP_ROUNDS == 18
PAUSE = [0.05] * MANY + [5.0] + [0.05] * (MANY - 2)
PAIRS: dict[str, tuple[list[Act], dict[str, bool], bool]] = {
    "as few as may be": (spaced(0.05, *duet(MANY)), {}, True),
    "too few, whatever both say of themselves": (spaced(0.05, *duet(MANY - 1)), BOTH, False),
    "as slow as may be": (spaced(ANSWER_SECONDS, *duet(MANY)), {}, True),
    "each at a pace of its own": (spaced([0.1, 1.5] * 6, *duet(MANY)), {}, True),
    "too slow": (spaced(SLOW, *duet(50)), {}, False),
    "too uneven": (spaced(UNEVEN * 4, *duet(12)), {}, False),
    "slow, and both say that they are programs": (spaced(TURN_SECONDS, *duet(MANY)), BOTH, False),
    "as slow as a model, and both say so": (spaced(THREAD_SECONDS, *duet(MANY)), BOTH, False),
    "both announce something now and then": (spaced(THREAD_SECONDS + 1, *duet(20)), BOTH, False),
    "both announce the same few things": (spaced(TURN_SECONDS + 1, *duet(MANY - 1)), BOTH, False),
    "a person repeats a command in a hurry": (spaced([1.5, 0.1] * 5, *commanded(5)), {}, False),
    "a program that repeats a command": (spaced([1.5, 0.1] * 60, *commanded(60)), BOTH, False),
    "a program that mostly gives commands": (
        spaced([1.5, 0.1] * 20, *commanded(11), *[said("Robot", "so"), said("Parrot", "no")] * 9),
        BOTH,
        False,
    ),
    "a program that is commanded by its name": (
        spaced([1.5, 0.1] * 20, *[said("Robot", "Parrot: go"), said("Parrot", "gone")] * 20),
        BOTH,
        False,
    ),
    "commands whose answers begin with a name": (
        spaced([1.5, 0.1] * 20, *[said("Robot", "!go"), said("Parrot", "Robot: gone")] * 20),
        BOTH,
        False,
    ),
    "commands that only the program can read": (
        spaced(
            [1.5, 0.1] * 20, *[said("Robot", "?", encrypted="OMEMO"), said("Parrot", "so")] * 20
        ),
        BOTH,
        False,
    ),
    "each calls the other by name": (
        spaced(0.05, *[said("Robot", "Parrot: a"), said("Parrot", "Robot: b")] * (MANY // 2)),
        {},
        True,
    ),
    "one always says the same": (
        spaced(0.05, *[it for n in range(6) for it in (said("Robot", "what?"), duet(2)[1])]),
        {},
        True,
    ),
    "slow, and one says so": (spaced(SLOW, *duet(MANY)), {"Robot": True}, False),
    "as fast as no person": (spaced(0.05, *duet(MANY)), {"Robot": False, "Parrot": False}, True),
    "somebody types": (spaced(0.05, *duet(5), TYPING, *duet(7, "Parrot", "Robot")), {}, True),
    "somebody speaks": (spaced(0.05, *duet(11), said("Wilma", "oh"), *duet(11)), {}, False),
    "somebody comes": (spaced(0.05, *duet(11), came("Fred"), *duet(11)), {}, False),
    "three in turn, as few rounds as may be": (spaced(0.05, *duet(18, *TRIO)), {}, True),
    "three in turn, with bursts": (
        spaced(0.05, *[it for each in duet(18, *TRIO) for it in (each, each)]),
        {},
        True,
    ),
    "three in turn, too few": (spaced(0.05, *duet(17, *TRIO)), {}, False),
    "three in turn, of whom one is slow": (
        spaced([0.1, 0.1, SLOW] * 9, *duet(27, *TRIO)),
        {},
        False,
    ),
    "three in turn, of whom one is uneven": (
        spaced([0.1, 0.1, 0.1, 0.1, 0.1, 0.7 + SPREAD_SECONDS] * 5, *duet(30, *TRIO)),
        {},
        False,
    ),
    "three out of turn": (
        spaced(0.05, *duet(5, *TRIO), *duet(5, *TRIO[::-1]) * 3),
        {},
        False,
    ),
    "two people and a program that one commands": (
        spaced(
            [1.5, 0.1, 1.5] * 9,
            *[said("Eve", "!ping"), said("Robot", "pong"), said("Parrot", "ok")] * 9,
        ),
        {},
        False,
    ),
    "two people and a program that one calls by name": (
        spaced(
            [1.5, 0.1, 1.5] * 9,
            *[said("Eve", "robot: ping"), said("Robot", "pong"), said("Parrot", "ok")] * 9,
        ),
        {},
        False,
    ),
    "one commands two programs": (
        spaced(
            [0.5, 0.1, 0.1] * 9,
            *[said("Eve", "!ping"), said("Robot", "pong"), said("Parrot", "pong!")] * 9,
        ),
        {"Robot": True, "Parrot": True},
        False,
    ),
    "four in turn": (spaced(0.05, *duet(36, *TRIO, "Fred")), {}, False),
    "one is the bridge": (
        spaced(0.05, *(it._replace(own=it.sender == "Parrot") for it in duet(9))),
        {},
        False,
    ),
    "in private": (spaced(0.05, *duet(9, type="chat")), {}, False),
    "long, with a pause": (spaced(PAUSE, *duet(2 * MANY - 1)), {}, True),
    "short, with a pause": (spaced([0.05] * 6 + [5.0] + [0.05] * 4, *duet(11)), {}, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_programs_answer_each_other_if_both_do_it_fast_and_evenly(name: str) -> None:
    acts, programs, wrong = PAIRS[name]
    verdict, findings, *_ = find(evidence(acts, programs=programs))
    assert (findings["pair"].ok is False) is wrong
    if wrong:
        count = 18 if "three" in name else len([it for _, it in acts if getattr(it, "body", "")])
        who = '"Robot", "Parrot" and "Eve"' if "three" in name else '"Robot" and "Parrot"'
        assert verdict.startswith(f"{who} answer each other: {count} messages")
        assert '; "Robot" began at 1970-01-01T00:0' in verdict
        assert verdict.endswith(('with "word 0".', 'with "Parrot: a".', 'with "what?".'))


def test_two_who_say_that_they_are_programs_are_told_apart_from_a_loop_if_they_are_slow() -> None:
    diagnosis = find(evidence(spaced(TURN_SECONDS, *duet(MANY)), programs=BOTH))
    assert (diagnosis.outcome, diagnosis.finding) == ("unknown", "pair")
    assert diagnosis.findings["pair"].ok is None
    assert diagnosis.verdict.count('"Robot" and "Parrot" answer each other: 12 messages') == 1
    _, findings, *_ = find(evidence(spaced(TURN_SECONDS, *duet(MANY)), programs={"Robot": True}))
    assert not findings["pair"].remark


def test_another_debug_bridge_is_no_partner_in_a_loop() -> None:
    acts = spaced(0.05, *duet(20))
    assert look("pair", evidence(acts)).ok is False
    for bridge in ("Robot", "Parrot"):
        assert look("pair", evidence(acts, bridges=frozenset({bridge}))).ok is True


@pytest.mark.parametrize("nickname", TRIO)
def test_a_loop_of_three_is_named_whichever_is_asked_about(nickname: str) -> None:
    asked = replace(BOT, jid=f"{ROOM}/{nickname}", nickname=nickname, visible_nickname="")
    diagnosis = find(evidence(spaced(0.3, *duet(18, *TRIO)), occupant=asked, recorded=True))
    assert (diagnosis.outcome, diagnosis.finding) == ("cause", "pair")
    assert all(f'"{name}"' in diagnosis.verdict for name in TRIO)


def test_who_is_in_a_loop_looks_like_a_program_whatever_the_words_and_the_clients() -> None:
    assert regulars(evidence(spaced(0.3, *duet(18, *TRIO))).acts) == {*TRIO}
    assert regulars(evidence(spaced(0.3, *duet(12))).acts) == {"Robot", "Parrot"}
    assert regulars(evidence(spaced(0.3, *duet(11))).acts) == set()


def test_who_answered_first_began_even_if_it_was_asked_by_a_person() -> None:
    acts = spaced(0.05, said("Wilma", "!start"), *duet(MANY, "Parrot", "Robot"))
    assert '"Parrot" began at' in look("pair", evidence(acts)).detail
    assert conduct.partners(evidence(acts)) == {"Parrot", "Robot"}
    assert conduct.partners(evidence(spaced(0.05, *duet(5)))) == set()


def absences(*starts: float, who: str = "Robot") -> list[Act]:
    """Return that it was away for two seconds at each of these times."""
    return [act for at in starts for act in ((at, left(who, 333)), (at + 2.0, came(who)))]


EVERY = (0.0, 302.0, 604.0)
assert len(EVERY) == conduct.STAYS


@pytest.mark.parametrize(
    ("acts", "after", "words"),
    [
        (absences(*EVERY), 0.0, "3 times, every 5 min 2 s, at last at "),
        (absences(*EVERY, 906.0), 0.0, "4 times, every 5 min 2 s, at last at "),
        (absences(0.0, 20.0, 40.0), 0.0, "3 times, every 20 s, at last at "),
        (absences(*EVERY[1:]), 0.0, ""),
        (absences(*EVERY)[:-1], 0.0, ""),
        (absences(*EVERY), conduct.STAYS_SECONDS - 606, "3 times, every 5 min 2 s, at last at "),
        (absences(*EVERY), conduct.STAYS_SECONDS - 605, ""),
        (absences(0.0, 95.0, 200.0), 0.0, "3 times, every 1 min 40 s, "),
        (absences(0.0, 93.0, 200.0), 0.0, "3 times, within 3 min 20 s, "),
        ([(at, came()) for at in range(9)], 0.0, ""),
        (absences(*EVERY, who="Eve"), 0.0, ""),
    ],
)
def test_who_is_away_three_times_an_hour_comes_and_goes(
    acts: list[Act], after: float, words: str
) -> None:
    given = evidence(acts)
    finding = look("stays", given._replace(now=given.now + after))
    assert (finding.ok is False) is ("lost connection" in finding.detail) is bool(words)
    assert words in finding.detail
    assert ("idle timeout?" in finding.hint) is ("every" in words)


ASK, ANSWER = said("Wilma", "!ping", id="a"), said("Robot", "pong")
BEFORE = spaced(0.05, ASK, ANSWER)
GREETING = said("Robot", "Hello, I am back.")
ODD = StanzaDamaged(f"{ROOM}/Eve", "Eve", "odd")


def entering(*events: Event, wait: float = 0.1) -> list[Act]:
    return spaced(10.0, left(), came(), start=200.0) + spaced(wait, *events, start=220.0)


def repeating(*words: str, then: int = 0) -> list[Act]:
    """Return that it repeats what others said, after which came so many other messages."""
    said_before = [said(f"W{number}", text) for number, text in enumerate(words)]
    rest = [said("Eve", f"word {number}") for number in range(then)]
    echo = [said("Robot", f"> {text}") for text in words]
    return [*spaced(1.0, *said_before, *rest), *entering(*echo)]


def coming_after(*said_before: Event, then: Sequence[Event]) -> list[Act]:
    return [*spaced(9.0, *said_before), *entering(*then)]


def told(*said_before: MessageReceived) -> list[Act]:
    """Return that the room told us what had been said before we came."""
    return spaced(9.0, *(it._replace(source=Source.HISTORY) for it in said_before))


SHORT = "x" * (conduct.QUOTED_CHARACTERS - 1)
HELLO = ("how are you", "fine, thanks")
HISTORIES: dict[str, tuple[list[Act], bool | None]] = {
    "its earlier answer again": ([*BEFORE, *entering(ANSWER)], False),
    "after a greeting": ([*BEFORE, *entering(GREETING, ANSWER)], False),
    "late": ([*BEFORE, *entering(ANSWER, wait=conduct.HISTORY_SECONDS + 0.1)], None),
    "just in time": ([*BEFORE, *entering(ANSWER, wait=conduct.HISTORY_SECONDS)], False),
    "asked anew": ([*BEFORE, *entering(ASK, ANSWER)], None),
    "asked by what cannot be read": ([*BEFORE, *entering(ODD, ANSWER)], None),
    "a greeting": ([*BEFORE, *entering(GREETING)], True),
    "a greeting that is no answer": ([*spaced(0.05, came(), GREETING), *entering(GREETING)], True),
    "a greeting that was said between a question and its own coming": (
        [*spaced(0.05, ASK, came(), ANSWER), *entering(ANSWER)],
        True,
    ),
    "a greeting each time, like an answer that it gave once": (
        [*BEFORE, *entering(ANSWER), *[(at + 100.0, it) for at, it in entering(ANSWER)]],
        True,
    ),
    "an answer to a question, then the same at its coming": (
        [*spaced(0.05, came(), ASK, ANSWER), *entering(ANSWER)],
        False,
    ),
    "an echo of two": (repeating(*HELLO), False),
    "an echo of one": (repeating("how are you"), True),
    "an echo of what is too short": (repeating(SHORT, SHORT), True),
    "an echo of what is just long enough": (repeating(f"{SHORT}!", f"{SHORT}?"), False),
    "an echo of the oldest": (repeating(*HELLO, then=conduct.HISTORY_MESSAGES - 2), False),
    "an echo of what is older": (repeating(*HELLO, then=conduct.HISTORY_MESSAGES - 1), True),
    "two greetings with a name that was said": (
        coming_after(
            *[said("Wilma", "Robot")] * 2,
            then=[said("Robot", "Robot 1.2 is here."), said("Robot", "Robot is ready.")],
        ),
        True,
    ),
    "two replies to one": (
        coming_after(ASK, then=[said("Robot", str(it), reply_to="a") for it in range(2)]),
        True,
    ),
    "replies to two": (
        coming_after(
            ASK,
            said("Fred", "!ping", id="b"),
            then=[said("Robot", "1", reply_to="a"), said("Robot", "2", reply_to="b")],
        ),
        False,
    ),
    "as many answers as commands": (coming_after(*[ASK] * 3, then=[ANSWER] * 3), False),
    "as many as words that are no commands": (
        coming_after(*[said("Wilma", "yes")] * 2, then=[ANSWER] * 2),
        True,
    ),
    "as many answers as commands that the room told us": (
        [*told(*[ASK] * 2), *entering(*[ANSWER] * 2)],
        False,
    ),
    "as many answers as its own old commands": (
        [*told(*[ASK._replace(sender="Robot")] * 2), *entering(*[ANSWER] * 2)],
        True,
    ),
    "more greetings than commands": (coming_after(ASK, then=[GREETING] * 2), True),
    "answers with the arguments of old commands": (
        coming_after(
            said("Wilma", "!sun Rome"),
            said("Fred", "!sun Oslo"),
            then=[said("Robot", "rome: 21"), said("Robot", "Oslo: 9")],
        ),
        False,
    ),
    "what it took note of, and is due when it comes": (
        [
            *([(0.0, said("Wilma", "!note lunch")), (0.1, said("Robot", "Noted."))]),
            *([(9.0, said("Fred", "!note tea")), (9.1, said("Robot", "Noted."))]),
            *entering(said("Robot", "Wilma: lunch"), said("Robot", "Fred: tea")),
        ],
        True,
    ),
    "old commands anew, whose answers had the arguments before": (
        [
            *([(0.0, said("Wilma", "!sun Rome")), (0.1, said("Robot", "Rome: 20"))]),
            *([(9.0, said("Fred", "!sun Oslo")), (9.1, said("Robot", "Oslo: 8"))]),
            *entering(said("Robot", "Rome: 21"), said("Robot", "Oslo: 9")),
        ],
        False,
    ),
    "an answer with the arguments of one old command": (
        coming_after(said("Wilma", "!sun Rome"), then=[said("Robot", "rome: 21")]),
        True,
    ),
    "as many answers as commands, one of them for sure": (
        coming_after(
            *[said("Fred", text) for text in ("!time", "!echo so", "!ping")],
            then=[said("Robot", text) for text in ("12:00", "so it is", "pong")],
        ),
        False,
    ),
    "it was there before": (BEFORE, None),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_history_is_answered_by_what_repeats_an_answer_or_answers_several(name: str) -> None:
    acts, ok = HISTORIES[name]
    finding = look("history", evidence(acts))
    assert finding.ok is ok
    assert ("XEP-0203" in finding.hint) is (ok is False)


def test_the_answer_to_the_history_is_told_with_what_it_answered_before() -> None:
    assert look("history", evidence([*BEFORE, *entering(ANSWER, ANSWER)])).detail == (
        '"Robot" answered what had been said before it came at 1970-01-01T00:03:40.000Z: it said '
        '"pong", as to "!ping" of "Wilma" before, and more: 2 messages in all. The room shows '
        "neither accounts nor ids: others may have had the nickname."
    )


ME = f"{ROOM}/McpDebug"
OURS: list[Act] = [
    (100.0, MessageSent(ME, "McpDebug", "!ping", "m1")),
    (100.0, MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)),
]
RUNS = said("Robot", "", payload=TYPING.payload)
WILMA = Occupant(f"{ROOM}/Wilma", "Wilma", "moderator", "owner", None, real_jid="wilma@example/x")


def asking(body: str, then: Event, wait: float = 0.04, **more: object) -> list[Act]:
    return spaced([5.0, wait], said("Wilma", body, **more), then, start=105.0)


SENDERS: dict[str, tuple[list[Act], bool | None, str]] = {
    "another is answered": ([*OURS, *asking("!ping 2", ANSWER)], False, "differs: only the words."),
    "another with the same words": (
        [*OURS, *asking("!ping", ANSWER)],
        False,
        "nothing that is seen (xmppTrace has both stanzas).",
    ),
    "another command": ([*OURS, *asking("!pong", ANSWER)], False, "the command."),
    "another case": ([*OURS, *asking("!PING", ANSWER)], False, "how the command is spelt."),
    "another case, and other words": (
        [*asking("!PING", ANSWER), *asking("!pong", ANSWER), *OURS],
        False,
        "how the command is spelt.",
    ),
    "it runs": ([*asking("!ping 2", ANSWER), *OURS, (106.0, RUNS)], False, "never the bridge's"),
    "hidden characters": ([*OURS, *asking("!ping 2\u200b", ANSWER)], False, "hidden characters."),
    "a reply": ([*OURS, *asking("!ping", ANSWER, reply_to="m")], False, "is a reply."),
    "before the bridge spoke": ([*asking("!ping 2", ANSWER), *OURS], False, "only the words"),
    "too late": ([*OURS, *asking("!ping 2", ANSWER, wait=SLOW)], True, "after 2,100 ms."),
    "nobody": (OURS, None, ""),
    "the bridge is answered": ([*OURS, (100.1, ANSWER), *asking("!ping", ANSWER)], True, ""),
    "nothing is said by the bridge": (asking("!ping 2", ANSWER), True, "after 40 ms."),
}


@pytest.mark.parametrize("name", SENDERS)
def test_who_is_answered_is_compared_with_the_bridge(name: str) -> None:
    acts, ok, differs = SENDERS[name]
    finding = look("senders", evidence(acts))
    assert finding.ok is ok
    assert differs in finding.detail


@pytest.mark.parametrize("nickname", ["Zoë", "a@b", "x y"])
def test_the_characters_in_a_nickname_may_differ(nickname: str) -> None:
    left_out = spaced(12.0, *[said(nickname, "!ping")] * 2, start=50.0)
    finding = look("senders", evidence([*left_out, *spaced(0.05, said("Wilma", "!ping"), ANSWER)]))
    assert finding.ok is False
    assert "the characters in the nickname" in finding.detail


def test_what_differs_between_two_senders_is_told() -> None:
    acts = [*OURS, *asking("Robot: !ping", ANSWER)]
    programs = {"Robot": True}
    own = replace(STATUS.occupants[0], real_jid="bot@example/r")
    given = evidence(acts, programs=programs)
    status = replace(given.status, occupants=(own, BOT, WILMA))
    assert look("senders", given._replace(status=status)).detail == (
        '"Robot" answered "Robot: !ping" of "Wilma" after 40 ms, never the bridge\'s '
        '"!ping". What differs: the affiliation ("owner", the bridge\'s "none"), the role '
        '("moderator", the bridge\'s "participant"), the account ("wilma@example", the bridge\'s '
        '"bot@example"), the form of the message.'
    )
    assert look("senders", given._replace(programs={})).ok is True
    assert look("senders", given._replace(named=False)).ok is True
    verdict, *_ = find(evidence([*OURS, *asking("!ping 2", ANSWER)]))
    assert verdict.startswith('"Robot" answered "!ping 2" of "Wilma" after 40 ms, never the bridge')


REGULARS: dict[str, tuple[list[float], list[str], bool]] = {
    "three": ([0.1, 0.2, 0.3], ["!ping", "!roll", "!help 2"], True),
    "two": ([0.1, 0.2], ["!ping", "!roll"], False),
    "a slow one": ([0.1, 0.2, 0.3, SLOW], ["!ping"] * 4, False),
    "an uneven one": ([0.1, 0.2, 0.11 + SPREAD_SECONDS], ["!ping"] * 3, False),
    "to its name": ([1.8] * 3, ["Robot: a", "robot, b", "Robot c"], True),
    "to one word": ([0.1] * 3, ["ping"] * 3, True),
    "to different words": ([0.1] * 3, ["so", "well", "indeed"], False),
    "to what somebody does": ([0.1] * 3, ["/me sighs", "/me laughs", "/me goes"], False),
}


@pytest.mark.parametrize("name", REGULARS)
def test_a_program_is_known_by_three_even_answers_to_one_form(name: str) -> None:
    took, asked, program = REGULARS[name]
    assert (len(took) >= ANSWERS) is (name != "two")
    acts = [
        act
        for number, (seconds, body) in enumerate(zip(took, asked, strict=True))
        for act in spaced([0.0, seconds], said("Wilma", body), ANSWER, start=number * 99.0)
    ]
    assert regulars(evidence(acts).acts) == ({"Robot"} if program else set())
    ignored = [(900.0 + number, said("Fred", asked[0])) for number in range(len(took) + 1)]
    assert regulars(evidence([*acts, *ignored]).acts) == set()


def test_who_gives_a_command_again_after_each_answer_is_no_program() -> None:
    again = [said("Wilma", "!help"), said("Robot", "pong")] * (ANSWERS + 1)
    assert regulars(evidence(spaced([1.1, 0.05] * (ANSWERS + 1), *again)).acts) == {"Robot"}


def _other(nickname: str, account: str | None = None) -> Occupant:
    jid = account and f"{account}/x"
    return Occupant(f"{ROOM}/{nickname}", nickname, "none", "none", None, real_jid=jid)


@pytest.mark.parametrize(
    ("nickname", "account", "same"),
    [
        ("Robot-2", None, True),
        ("robot_", None, True),
        ("Robot2", None, True),
        ("Robot-3f0a99c1", None, True),
        ("Robert", None, False),
        ("Robots", None, False),
        ("Robot Wars", None, False),
        ("Robot-2", "other@example", False),
        ("Anybody", "robot@example", True),
    ],
)
def test_a_namesake_has_our_account_or_suffix(
    nickname: str, account: str | None, same: bool
) -> None:
    bot = replace(BOT, real_jid="robot@example/1" if account else None)
    status = replace(STATUS, occupants=(*STATUS.occupants, bot, _other(nickname, account)))
    assert [it.nickname for it in conduct.namesakes(status, bot)] == ([nickname] if same else [])


def test_few_namesakes_are_pinged() -> None:
    crowd = [_other(f"Robot-{number}") for number in range(conduct.MAX_NAMESAKES + 1)]
    assert conduct.namesakes(replace(STATUS, occupants=(BOT, *crowd)), BOT) == crowd[:-1]


ACCOUNT, ID, NEITHER = {"real_jid": "robot@x/1"}, {"occupant_id": "o1"}, dict[str, str]()


@pytest.mark.parametrize(
    ("own", "other", "shown", "ok", "remark"),
    [
        (DEAD, ALIVE, ACCOUNT, False, False),
        (DEAD, ALIVE, ID, False, False),
        (DEAD, ALIVE, NEITHER, None, True),
        (ALIVE, DEAD, ACCOUNT, None, True),
        (ALIVE, DEAD, NEITHER, None, True),
        (ALIVE, ALIVE, ACCOUNT, True, False),
        (DEAD, DEAD, ACCOUNT, True, False),
    ],
)
def test_a_ghost_is_silent_while_its_namesake_of_the_same_account_answers(
    own: Ping, other: Ping, shown: dict[str, str], ok: bool | None, remark: bool
) -> None:
    bot = replace(BOT, **shown)  # type: ignore[arg-type]
    namesake = replace(bot, jid=f"{ROOM}/Robot-2", nickname="Robot-2", visible_nickname="")
    given = evidence([], occupant=bot, ping=own, namesakes={"Robot-2": other})
    occupants = (*given.status.occupants, namesake)
    given = given._replace(status=replace(STATUS, occupants=occupants))
    finding = look("ghost", given)
    assert (finding.ok, finding.remark) == (ok, remark)
    dead = "Robot" if own is DEAD else "Robot-2"
    assert find(given)[0].startswith(f'"{dead}" does not answer a ping, and "Robot') is (
        ok is False
    )
    assert (f'"{dead}" may be left over' in find(given)[0]) is remark
    silent_room = DEAD._replace(alone=False)
    assert look("ghost", given._replace(ping=silent_room, namesakes={"R": ALIVE})).ok is True
    assert look("ghost", given._replace(namesakes={})).ok is None


OMEMO = said("Wilma", "")._replace(encrypted="OMEMO")
ALSO = OMEMO._replace(sender="Fred")
FRED = ASK._replace(sender="Fred")
SECRETS: dict[str, tuple[list[Event], bool | None, bool]] = {
    "the only one": ([OMEMO], None, True),
    "twice, and nobody was answered": ([OMEMO, OMEMO], None, True),
    "twice, and another was answered": ([OMEMO, FRED, ANSWER, OMEMO], False, False),
    "twice, and so was the same person in the clear": ([ASK, ANSWER, OMEMO, OMEMO], False, False),
    "once, and another was answered": ([FRED, ANSWER, OMEMO], None, True),
    "two people with each other": ([FRED, ANSWER, OMEMO, ALSO, OMEMO], True, False),
    "not any more": ([OMEMO, OMEMO, ASK], True, False),
    "it can read that": ([OMEMO._replace(sender="Robot"), OMEMO], True, False),
    "it answered that": ([OMEMO, ANSWER, FRED, ANSWER, OMEMO, OMEMO], None, True),
    "in private": ([OMEMO._replace(type="chat")], None, False),
    "none": ([ASK, ANSWER], True, False),
    "nothing": ([], None, False),
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_reaches_it_encrypted_is_a_cause_if_only_that_was_left_without_an_answer(
    name: str,
) -> None:
    events, ok, remark = SECRETS[name]
    diagnosis = find(evidence(spaced(1.0, *events)))
    finding = diagnosis.findings["encrypted"]
    assert (finding.ok, finding.remark) == (ok, remark)
    assert (diagnosis.finding == "encrypted") is (ok is False)
    assert ('"Wilma" wrote with encryption ("OMEMO") at' in diagnosis.verdict) is (
        ok is False or remark
    )


def test_a_temporary_room_goes_when_the_bridge_alone_is_in_it() -> None:
    given = evidence([])
    for persistent, ok in ((None, None), (True, True), (False, True)):
        status = replace(given.status, persistent=persistent)
        assert look("room", given._replace(status=status)).ok is ok
        assert bool(status.warnings) is (persistent is False)
    alone = replace(STATUS, persistent=False)
    finding = look("room", given._replace(status=alone))
    assert (finding.ok, "muc#roomconfig_persistentroom" in finding.hint) == (False, True)
    assert "muc#roomconfig_persistentroom" in alone.warnings[0]


def gone_and_back(
    period: float, *codes: int, status: str | None = None, jitter: float = 0.0
) -> list[Act]:
    acts = list[Act]()
    for number in range(conduct.STAYS):
        at = 100.0 + number * (period + number * jitter)
        acts += [(at, replace(left("Robot", *codes), status=status)), (at + 2.0, came())]
    return acts


@pytest.mark.parametrize(
    ("acts", "outcome", "hint"),
    [
        (gone_and_back(60.0, status="SSL error: unexpected eof"), "cause", "an idle timeout"),
        (gone_and_back(60.0, status="Connection timed out"), "cause", "an idle timeout"),
        (gone_and_back(60.0), "cause", "idle timeout? A server"),
        (gone_and_back(5.0), "cause", "by an error. Or two copies of it"),
        (gone_and_back(5.0, status="socket closed"), "unknown", "say why. Or two copies of it"),
        (gone_and_back(60.0, jitter=40.0), "cause", "started again"),
        (gone_and_back(60.0, status="bye"), "cause", "started again"),
        (gone_and_back(60.0, 307), "cause", "The room puts it out each time"),
        (gone_and_back(60.0, status="socket closed", jitter=40.0), "unknown", "its own log"),
    ],
)
def test_an_idle_timeout_is_told_from_a_restart(acts: list[Act], outcome: str, hint: str) -> None:
    diagnosis = find(evidence(acts))
    assert (diagnosis.outcome, diagnosis.finding) == (outcome, "stays")
    assert hint in diagnosis.findings["stays"].hint


@pytest.mark.parametrize(
    ("before", "after", "codes", "outcome"),
    [
        ([], ANSWER_SECONDS, (), "unknown"),
        ([], ANSWER_SECONDS, (333,), "unknown"),  # some end without a word to the server
        ([], ANSWER_SECONDS + 0.1, (), "cause"),
        ([], ANSWER_SECONDS + 0.1, (333,), "cause"),
        ([said("Wilma", "!status")], 1.0, (), "cause"),
    ],
)
def test_who_speaks_each_time_just_before_it_leaves_may_do_so_on_purpose(
    before: list[Event], after: float, codes: tuple[int, ...], outcome: str
) -> None:
    acts: list[Act] = [(0.0, came())]
    for number in range(4):
        at = 100.0 * (number + 1)
        acts += [*((at - 0.1, it) for it in before), (at, said("Robot", "backup finished"))]
        acts += [(at + after, left("Robot", *codes)), (at + after + 2.0, came())]
    conclusion = find(evidence(acts))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "stays")
    words = ", each time just after it had spoken: does it only post?"
    assert (words in conclusion.verdict) is (after == ANSWER_SECONDS)


def test_what_was_said_each_time_before_its_connection_broke_is_quoted() -> None:
    acts = gone_and_back(60.0, status="socket closed", jitter=40.0)
    links = [(at - 0.5, said("Wilma", f"https://x/{at}")) for at, _ in acts[::2]]
    detail = look("stays", evidence(sorted([*acts, *links], key=lambda act: act[0]))).detail
    assert "each time just after a message, at last" in detail
    assert '"https://x/' in detail


@pytest.mark.parametrize(("more", "outcome"), [(1, "unknown"), (5, "cause")])
def test_departures_just_after_the_few_messages_of_a_room_are_no_idle_timeout(
    more: int, outcome: str
) -> None:
    acts = gone_and_back(60.0, status="socket closed")
    for at, _ in acts[::2]:
        acts += [(at - 0.5, said("Wilma", "caf\u00e9"))]
        acts += [(at - 50.0 + it, said("Fred", "hm")) for it in range(more)]
    conclusion = find(evidence(sorted(acts, key=lambda act: act[0])))
    assert (conclusion.outcome, conclusion.finding) == (outcome, "stays")
    assert ("each time just after a message" in conclusion.verdict) is (outcome == "unknown")


AVATAR = OccupantChanged(f"{ROOM}/Wilma", "Wilma", "participant", "none")


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ([AVATAR] * 3, 'each time just after "Wilma" changed its presence'),
        ([came("Eve")] * 3, 'each time just after "Eve" came'),
        ([AVATAR, came("Eve"), AVATAR], ""),
        ([replace(AVATAR, sender=name) for name in ("Wilma", "Eve", "Fred")], ""),
        ([left("Eve")] * 3, ""),
    ],
)
def test_what_an_occupant_did_each_time_before_it_left_is_named(
    others: list[Event], words: str
) -> None:
    acts = gone_and_back(60.0, status="socket closed", jitter=40.0)
    acts += [(at - 0.5, event) for (at, _), event in zip(acts[::2], others, strict=True)]
    detail = look("stays", evidence(sorted(acts, key=lambda act: act[0]))).detail
    assert words in detail
    assert ("each time just after" in detail) is bool(words)


def test_its_own_answer_is_not_what_came_before_it_left() -> None:
    acts = gone_and_back(60.0, status="socket closed", jitter=40.0)
    for at, _ in acts[::2]:
        acts += [(at - 0.5, said("Wilma", "!ping")), (at - 0.3, said("Robot", "pong"))]
    detail = look("stays", evidence(sorted(acts, key=lambda act: act[0]))).detail
    assert 'each time just after a message, at last "!ping" of "Wilma"' in detail


SUN = said("Wilma", "!sun")
LEFT: dict[str, tuple[list[Event], bool | None, bool, str]] = {
    "one person, again": (
        [FRED, ANSWER, ASK, ASK, FRED, ANSWER],
        False,
        False,
        "without an answer 2 times",
    ),
    "one person, again, and nobody else since": (
        [FRED, ANSWER, ASK, ASK],
        False,
        True,
        'nobody since "!ping" of "Wilma" at 1970-01-01T00:02:30.000Z, though asked 2 times:',
    ),
    "one person, once": ([FRED, ANSWER, ASK], None, True, "What differs:"),
    "one person, once, and another since": ([ASK, FRED, ANSWER], True, False, "answered"),
    "the same person": ([ASK, ANSWER, ASK, ASK], False, True, "2 times: it may have stopped."),
    "another command": ([FRED, ANSWER, SUN, SUN], False, True, "What differs: the command"),
    "anybody": ([ASK, FRED], None, True, 'not seen to answer "Wilma", "Fred"'),
    "another program answers": ([ASK, said("Helper", "pong")], None, False, "was not seen"),
}


@pytest.mark.parametrize("name", LEFT)
def test_whom_it_answered_is_compared_with_whom_it_left_out(name: str) -> None:
    events, ok, symptom, words = LEFT[name]
    acts = [
        (100.0 + 20 * number + (0.1 if getattr(event, "body", "") == "pong" else 10), event)
        for number, event in enumerate(events)
    ]
    acts = [
        (acts[number - 1][0] + 0.1 if number and event.body == "pong" else at, event)  # type: ignore[union-attr]
        for number, (at, event) in enumerate(acts)
    ]
    finding = look("senders", evidence(acts, now=acts[-1][0] + 30.0))
    assert (finding.ok, finding.symptom) == (ok, symptom)
    assert words in finding.detail


def test_a_minute_of_watching_is_ground_for_well() -> None:
    acts = spaced([0.0, 0.05], FRED, ANSWER)
    for now, outcome in ((159.0, "unknown"), (161.0, "well")):
        assert find(evidence(acts, now=now)).outcome == outcome
    recorded = find(evidence(acts, now=110.0, recorded=True))
    assert (recorded.outcome, recorded.step) == ("well", None)
    assert '"Robot" answered "!ping" of "Fred" after 50 ms' in recorded.verdict


def test_a_room_is_made_anew_only_by_a_bot_that_did_not_own_it_before() -> None:
    owner = replace(BOT, affiliation="owner", occupant_id="bot")
    owned = replace(came(), affiliation="owner", occupant_id="bot")
    gone = replace(left(), occupant_id="bot")
    elsewhere = replace(owned, from_=f"{ROOM}/Bot", sender="Bot")
    nameless = replace(elsewhere, occupant_id=None)
    renamed = NicknameChanged(nameless.from_, "Bot", "Robot")
    cases: list[tuple[list[Event], bool | None]] = [
        ([replace(owned, affiliation="none"), gone, owned], False),
        ([owned, gone, owned], None),
        ([elsewhere, owned], None),
        ([nameless, renamed, owned], None),
        ([nameless, owned], False),
        ([renamed, nameless, owned], False),
    ]
    for acts, ok in cases:
        given = evidence(spaced(5.0, *acts), occupant=owner)
        diagnosis = find(given._replace(status=replace(given.status, persistent=False)))
        assert (diagnosis.findings["room"].ok, diagnosis.findings["room"].remark) == (
            ok,
            ok is None,
        )
        assert ('" made it anew' in diagnosis.verdict, diagnosis.outcome) == (
            (True, "cause") if ok is False else (False, "unknown")
        )
