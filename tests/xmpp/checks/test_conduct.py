"""How programs conduct themselves, over plain values: each cause at the edges of its limits."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from bridge.xmpp.checks.conduct import (
    HISTORY_ANSWERS,
    HISTORY_MESSAGES,
    HISTORY_SECONDS,
    MAX_NAMESAKES,
    QUOTED_CHARACTERS,
    STAYS,
    STAYS_SECONDS,
    namesakes,
    partners,
)
from bridge.xmpp.checks.diagnosis import FINDINGS, find
from bridge.xmpp.checks.evidence import MAX_ACTS, Evidence, Finding, Past, Ping
from bridge.xmpp.checks.exchanges import (
    ALTERNATIONS,
    ANSWER_SECONDS,
    ANSWERS,
    FORM_CHARACTERS,
    MANY_ALTERNATIONS,
    SPREAD_SECONDS,
    THREAD_SECONDS,
    TURN_SECONDS,
    form_of,
    is_steady,
    regulars,
)
from bridge.xmpp.model.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantJoined,
    OccupantLeft,
    StanzaDamaged,
)
from bridge.xmpp.model.journal import Journal
from bridge.xmpp.model.room import Occupant
from tests.tools.played import ROOM, STATUS

BOT = Occupant(f"{ROOM}/Robot", "Robot", "participant", "none", None)
DEAD = Ping(None, None, "The occupant alone is silent.", alone=True)
ALIVE = Ping(0.003, None, "It answers.", alone=False)
Act = tuple[float, Event]


def said(nickname: str, body: str, **more: object) -> MessageReceived:
    return replace(MessageReceived(f"{ROOM}/{nickname}", nickname, body), **more)  # type: ignore[arg-type]


def came(nickname: str = "Robot") -> OccupantJoined:
    return OccupantJoined(f"{ROOM}/{nickname}", nickname, "participant", "none")


def left(nickname: str = "Robot", *codes: int) -> OccupantLeft:
    return OccupantLeft(f"{ROOM}/{nickname}", nickname, codes=frozenset(codes))


def evidence(acts: Sequence[Act], *others: Occupant, **more: object) -> Evidence:
    """Of what happened at these times, with the bot and others in the room."""
    journal = Journal("epoch")
    for at, event in acts:
        journal.append(event, at, ROOM)
    past = Past("Robot", there=True)
    for record in reversed(journal):
        past.add(record)
    status = replace(STATUS, occupants=(*STATUS.occupants, BOT, *others))
    now = acts[-1][0] if acts else 0.0
    made = Evidence("Robot", ROOM, status, BOT, past, now, ping=ALIVE)
    return made._replace(**more)  # type: ignore[arg-type]


def look(name: str, given: Evidence) -> Finding:
    return FINDINGS[name](given)


def spaced(seconds: float | Sequence[float], *events: Event, start: float = 100.0) -> list[Act]:
    """Return the events so many seconds apart, or with these times in front of each."""
    waits = [seconds] * len(events) if isinstance(seconds, float) else seconds
    acts = list[Act]()
    for wait, event in zip(waits, events, strict=True):
        start += wait
        acts.append((start, event))
    return acts


def duet(count: int, *nicknames: str) -> list[MessageReceived]:
    names = nicknames or ("Robot", "Parrot")
    return [said(names[number % len(names)], f"word {number}") for number in range(count)]


def commanded(times: int) -> list[MessageReceived]:
    return [it for _ in range(times) for it in (said("Robot", "!ping"), said("Parrot", "word 0"))]


def test_the_limits_are_those_of_the_documents() -> None:
    assert (ANSWERS, ANSWER_SECONDS, SPREAD_SECONDS) == (3, 2.0, 0.5)
    assert (ALTERNATIONS, STAYS, STAYS_SECONDS, HISTORY_ANSWERS) == (6, 3, 3_600.0, 2)


@pytest.mark.parametrize(
    ("seconds", "steady"),
    [
        ([ANSWER_SECONDS, ANSWER_SECONDS - 0.4], True),
        ([ANSWER_SECONDS + 0.01, ANSWER_SECONDS - 0.4], False),
        ([0.5, 0.5 + SPREAD_SECONDS - 0.01], True),
        ([0.5, 0.5 + SPREAD_SECONDS], False),
    ],
)
def test_answers_are_steady_up_to_two_limits(seconds: list[float], steady: bool) -> None:
    assert is_steady(seconds) is steady


def test_the_newest_acts_are_looked_at_up_to_a_limit() -> None:
    for more in (0, 1):
        acts = evidence(spaced(1.0, *[said("Robot", "a")] * (MAX_ACTS + more))).acts
        assert (len(acts), acts[0].number) == (MAX_ACTS, 1 + more)


def test_the_beginning_of_a_message_decides_its_form() -> None:
    (short, long, other) = evidence(
        [(float(it), said("Eve", "x" * (FORM_CHARACTERS + it - 1))) for it in range(3)]
    ).acts
    assert form_of(short, "Robot") != form_of(long, "Robot") == form_of(other, "Robot")


TYPING = ("composing (http://jabber.org/protocol/chatstates)",)
INTERRUPTED = [*duet(5), said("Wilma", "oh"), *duet(5)]
SLOW = ANSWER_SECONDS + 0.1
EVEN, UNEVEN = [0.1, 1.5], [0.1, 0.1, 0.7 + SPREAD_SECONDS]
PAIRS: dict[str, tuple[list[Act], dict[str, bool], bool]] = {
    "six in turn": (spaced(0.05, *duet(ALTERNATIONS)), {}, True),
    "five in turn": (spaced(0.05, *duet(ALTERNATIONS - 1)), {}, False),
    "as slow as may be": (spaced(ANSWER_SECONDS, *duet(ALTERNATIONS)), {}, True),
    "each at a pace of its own": (spaced(EVEN * 3, *duet(6)), {}, True),
    "too slow": (spaced(SLOW, *duet(50)), {}, False),
    "too uneven": (spaced(UNEVEN * 4, *duet(12)), {}, False),
    "slow, and both say that they are programs": (
        spaced(TURN_SECONDS, *duet(6)),
        {"Robot": True, "Parrot": True},
        True,
    ),
    "as slow as a language model, and both say so": (
        spaced(THREAD_SECONDS, *duet(MANY_ALTERNATIONS)),
        {"Robot": True, "Parrot": True},
        True,
    ),
    "a person who repeats a command in a hurry": (
        spaced([1.5, 0.1] * 5, *commanded(5)),
        {},
        False,
    ),
    "a program that repeats a command": (spaced([1.5, 0.1] * 6, *commanded(6)), {}, True),
    "slow, and one says so": (spaced(SLOW, *duet(6)), {"Robot": True}, False),
    "two programs that announce something now and then": (
        spaced(THREAD_SECONDS + 0.1, *duet(20)),
        {"Robot": True, "Parrot": True},
        False,
    ),
    "two programs that announce the same few things": (
        spaced(TURN_SECONDS + 0.1, *duet(MANY_ALTERNATIONS - 1)),
        {"Robot": True, "Parrot": True},
        False,
    ),
    "a program, and a person by their client": (
        spaced(0.05, *duet(20)),
        {"Robot": True, "Parrot": False},
        False,
    ),
    "somebody types in between": (
        spaced(
            0.05, *(it for one in duet(6) for it in (replace(one, body="", payload=TYPING), one))
        ),
        {},
        True,
    ),
    "somebody speaks in between": (spaced(0.05, *INTERRUPTED), {}, False),
    "somebody comes in between": (spaced(0.05, *duet(5), came("Fred"), *duet(5)), {}, False),
    "three in turn": (spaced(0.05, *duet(30, "Robot", "Parrot", "Eve")), {}, False),
    "others": (spaced(0.05, *duet(30, "Eve", "Parrot")), {}, False),
    "one is the bridge": (
        spaced(0.05, *(replace(it, own=it.sender == "Parrot") for it in duet(9))),
        {},
        False,
    ),
    "in private": (
        spaced(0.05, *(replace(it, type="chat") for it in duet(9))),
        {},
        False,
    ),
    "long, with a pause": (
        spaced(
            [0.05] * MANY_ALTERNATIONS + [5.0] + [0.05] * (MANY_ALTERNATIONS - 2),
            *duet(2 * MANY_ALTERNATIONS - 1),
        ),
        {},
        True,
    ),
    "short, with a pause": (spaced([0.05] * 6 + [5.0] + [0.05] * 4, *duet(11)), {}, False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_programs_answer_each_other_if_both_do_it_fast_and_evenly(name: str) -> None:
    acts, programs, wrong = PAIRS[name]
    verdict, found = find(evidence(acts, programs=programs))
    assert (found["pair"].ok is False) is wrong
    assert verdict.startswith('"Robot" and "Parrot" answer each other: ') is wrong
    if wrong:
        count = sum(bool(getattr(event, "body", "")) for _, event in acts)
        assert f": {count} messages in turn until 1970-01-01T00:" in verdict
        assert '; "Robot" began at 1970-01-01T00:0' in verdict
        assert verdict.endswith(('with "word 0".', 'with "!ping".'))


def test_who_answered_first_began_even_if_it_was_asked_by_a_person() -> None:
    acts = spaced(0.05, said("Wilma", "!start"), *duet(8, "Parrot", "Robot"))
    assert '"Parrot" began at' in look("pair", evidence(acts)).detail
    assert partners(evidence(acts)) == {"Parrot", "Robot"}
    assert partners(evidence(spaced(0.05, *duet(5)))) == set()


def absences(
    count: int, every: float, away: float = 2.0, *codes: int, who: str = "Robot"
) -> list[Act]:
    return [
        act
        for number in range(count)
        for act in ((number * every, left(who, *codes)), (number * every + away, came(who)))
    ]


def later(acts: list[Act], seconds: float) -> list[Act]:
    return [(at + seconds, event) for at, event in acts]


@pytest.mark.parametrize(
    ("acts", "after", "words"),
    [
        (absences(STAYS, 302.0, 2.0, 333), 0.0, "3 times, every 5 min 2 s, at last at "),
        (absences(STAYS, 20.0), 0.0, "3 times, every 20 s, at last at "),
        (absences(9, 302.0), 0.0, "9 times, every 5 min 2 s, at last at "),
        (absences(STAYS - 1, 302.0), 0.0, ""),
        (absences(STAYS, 302.0)[:-1], 0.0, ""),
        (absences(STAYS, STAYS_SECONDS / 2), 0.0, ""),
        (
            absences(STAYS, 302.0, 2.0, 333),
            STAYS_SECONDS - 606,
            "3 times, every 5 min 2 s, at last at ",
        ),
        (absences(STAYS, 302.0), STAYS_SECONDS - 605, ""),
        (absences(1, 1.0) + later(absences(2, 105.0), 95.0), 0.0, "3 times, every 1 min 40 s, "),
        (absences(1, 1.0) + later(absences(2, 107.0), 93.0), 0.0, "3 times, within 3 min 20 s, "),
        (
            absences(1, 1.0) + later(absences(2, 900.0), 100.0),
            0.0,
            "3 times, within 16 min 40 s, at last at ",
        ),
        ([(at, came()) for at in range(9)], 0.0, ""),
        (absences(9, 60.0, who="Eve"), 0.0, ""),
    ],
)
def test_who_leaves_and_comes_back_three_times_in_an_hour_comes_and_goes(
    acts: list[Act], after: float, words: str
) -> None:
    given = evidence(acts)
    found = look("stays", given._replace(now=given.now + after))
    assert (found.ok is False) is bool(words)
    assert words in found.detail
    assert ("idle timeout?" in found.hint) is ("every" in words)
    assert ("often a lost connection" in found.detail) is (
        "every 5 min 2 s, at" in words and "3 times" in words
    )


ASK, ANSWER = said("Wilma", "!ping", id="a"), said("Robot", "pong")
BEFORE = spaced(0.05, ASK, ANSWER)
GREETING = said("Robot", "Hello, I am back.")


def entering(*events: Event, wait: float = 0.1) -> list[Act]:
    """Return that it left and came back, and then this, one after the other."""
    return spaced(10.0, left(), came(), start=200.0) + spaced(wait, *events, start=220.0)


SHORT = "ab"
assert len(SHORT) == QUOTED_CHARACTERS - 1


def echo_of_the_oldest(others: int) -> list[Act]:
    """Return that it repeats the first two messages, after which came so many others."""
    words = [said("Wilma", "how are you"), said("Fred", "fine, thanks")]
    echo = [said("Robot", f"> {it.body}") for it in words]
    rest = [said("Eve", f"word {number}") for number in range(others)]
    return [*spaced(1.0, *words, *rest), *entering(*echo)]


HISTORIES: dict[str, tuple[list[Act], bool | None]] = {
    "its earlier answer again": ([*BEFORE, *entering(ANSWER)], False),
    "after a greeting": ([*BEFORE, *entering(GREETING, ANSWER)], False),
    "late": ([*BEFORE, *entering(ANSWER, wait=HISTORY_SECONDS + 0.1)], None),
    "just in time": ([*BEFORE, *entering(ANSWER, wait=HISTORY_SECONDS)], False),
    "asked anew": ([*BEFORE, *entering(ASK, ANSWER)], None),
    "asked by what cannot be read": (
        [*BEFORE, *entering(StanzaDamaged(f"{ROOM}/Eve", "Eve", "odd"), ANSWER)],
        None,
    ),
    "a greeting": ([*BEFORE, *entering(GREETING)], True),
    "a greeting that is no answer": (
        [*spaced(0.05, came(), GREETING), *entering(GREETING)],
        True,
    ),
    "what it had said of itself": (
        [*spaced([1.0, THREAD_SECONDS + 1], ASK, ANSWER), *entering(ANSWER)],
        True,
    ),
    "an echo of two": (
        [
            *spaced(9.0, said("Wilma", "how are you"), said("Fred", "fine, thanks")),
            *entering(said("Robot", "> how are you"), said("Robot", "> fine, thanks")),
        ],
        False,
    ),
    "an echo of one": (
        [*spaced(9.0, said("Wilma", "how are you")), *entering(said("Robot", "> how are you"))],
        True,
    ),
    "an echo of what is too short": (
        [
            *spaced(9.0, said("Wilma", SHORT), said("Fred", SHORT[::-1])),
            *entering(said("Robot", f"> {SHORT}"), said("Robot", f"> {SHORT[::-1]}")),
        ],
        True,
    ),
    "an echo of what is just long enough": (
        [
            *spaced(9.0, said("Wilma", f"{SHORT}!"), said("Fred", f"{SHORT}?")),
            *entering(said("Robot", f"> {SHORT}!"), said("Robot", f"> {SHORT}?")),
        ],
        False,
    ),
    "an echo of the oldest of the history": (echo_of_the_oldest(HISTORY_MESSAGES - 2), False),
    "an echo of what is older": (echo_of_the_oldest(HISTORY_MESSAGES - 1), True),
    "two greetings with a name that was said": (
        [
            *spaced(9.0, said("Wilma", "Robot"), said("Wilma", "Robot")),
            *entering(said("Robot", "Robot 1.2 is here."), said("Robot", "Robot is ready.")),
        ],
        True,
    ),
    "two replies to one": (
        [
            *spaced(9.0, said("Wilma", "how are you", id="a")),
            *entering(*(said("Robot", f"> how are you {it}", reply_to="a") for it in range(2))),
        ],
        True,
    ),
    "replies to two": (
        [
            *spaced(9.0, ASK, said("Fred", "!ping", id="b")),
            *entering(said("Robot", "1", reply_to="a"), said("Robot", "2", reply_to="b")),
        ],
        False,
    ),
    "as many answers as commands": (
        [*spaced(9.0, ASK, ASK, ASK), *entering(ANSWER, ANSWER, ANSWER)],
        False,
    ),
    "as many as words that are no commands": (
        [*spaced(9.0, said("Wilma", "yes"), said("Eve", "yes")), *entering(ANSWER, ANSWER)],
        True,
    ),
    "more greetings than commands": ([*spaced(9.0, ASK), *entering(GREETING, GREETING)], True),
    "it was there before": (BEFORE, None),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_the_history_is_answered_by_what_repeats_an_answer_or_answers_several(name: str) -> None:
    acts, ok = HISTORIES[name]
    found = look("history", evidence(acts))
    assert found.ok is ok
    assert ("XEP-0203" in found.hint) is (ok is False)


def test_the_answer_to_the_history_is_told_with_what_it_answered_before() -> None:
    assert look("history", evidence([*BEFORE, *entering(ANSWER, ANSWER)])).detail == (
        '"Robot" answered what had been said before it came at 1970-01-01T00:03:40.000Z: it said '
        '"pong", as to "!ping" of "Wilma" before, and more: 2 messages in all.'
    )


ME = f"{ROOM}/McpDebug"
OURS: list[Act] = [
    (100.0, MessageSent(ME, "McpDebug", "!ping", "m1")),
    (100.0, MessageReceived(ME, "McpDebug", "!ping", id="m1", own=True)),
]
WILMA = Occupant(f"{ROOM}/Wilma", "Wilma", "moderator", "owner", None, real_jid="wilma@example/x")


def asking(body: str, *then: Event, nickname: str = "Wilma", wait: float = 0.04) -> list[Act]:
    return spaced([5.0, *[wait] * len(then)], said(nickname, body), *then, start=105.0)


PONG = said("Robot", "pong")
EVENLY = [act for start in range(3) for act in spaced(float(start + 1), ASK, PONG, start=50.0)]
SENDERS: dict[str, tuple[list[Act], bool | None, str]] = {
    "another is answered": ([*OURS, *asking("!ping 2", PONG)], False, "nothing that is seen"),
    "another with the same words": ([*OURS, *asking("!ping", PONG)], False, "nothing that is"),
    "another command": ([*OURS, *asking("!pong", PONG)], False, "the command."),
    "another case": ([*OURS, *asking("!PING", PONG)], False, "how the command is spelt."),
    "hidden characters": (
        [*OURS, *asking("!ping 2\u200b", said("Robot", "pong"))],
        False,
        "hidden characters.",
    ),
    "a reply": (
        [*OURS, *spaced([5.0, 0.1], said("Wilma", "!ping", reply_to="m"), said("Robot", "pong"))],
        False,
        "is a reply.",
    ),
    "before the bridge spoke": ([*asking("!ping 2", PONG), *OURS], False, "nothing that"),
    "too late": ([*OURS, *asking("!ping 2", PONG, wait=SLOW)], None, ""),
    "something else is said": ([*OURS, *asking("hello all", PONG)], None, ""),
    "nobody": (OURS, None, ""),
    "the bridge is answered": ([*OURS[:2], (100.1, PONG), *asking("!ping", PONG)], True, ""),
    "nothing is said by the bridge": (asking("!ping 2", PONG), None, ""),
    "an answer of others": ([*OURS, *asking("!ping 2", said("Eve", "pong"))], None, ""),
}


@pytest.mark.parametrize("name", SENDERS)
def test_who_is_answered_is_compared_with_the_bridge(name: str) -> None:
    acts, ok, differs = SENDERS[name]
    found = look("senders", evidence(acts))
    assert found.ok is ok
    assert differs in found.detail


def test_what_differs_between_two_senders_is_told() -> None:
    acts = [*OURS, *asking("Robot: !ping", PONG)]
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
    assert look("senders", given._replace(programs={})).ok is None
    assert look("senders", given._replace(named=False)).ok is None
    verdict, _ = find(evidence([*OURS, *asking("!ping 2", PONG)]))
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
        for act in spaced([0.0, seconds], said("Wilma", body), PONG, start=number * 99.0)
    ]
    assert regulars(evidence(acts).acts) == ({"Robot"} if program else set())
    ignored = [(900.0 + number, said("Fred", asked[0])) for number in range(len(took) + 1)]
    assert regulars(evidence([*acts, *ignored]).acts) == set()


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
def test_a_namesake_has_the_account_or_a_suffix(
    nickname: str, account: str | None, same: bool
) -> None:
    bot = replace(BOT, real_jid="robot@example/1" if account else None)
    status = replace(STATUS, occupants=(*STATUS.occupants, bot, _other(nickname, account)))
    assert [it.nickname for it in namesakes(status, bot)] == ([nickname] if same else [])


def test_few_namesakes_are_pinged() -> None:
    crowd = [_other(f"Robot-{number}") for number in range(MAX_NAMESAKES + 1)]
    status = replace(STATUS, occupants=(*STATUS.occupants, BOT, *crowd))
    assert namesakes(status, BOT) == crowd[:MAX_NAMESAKES]


@pytest.mark.parametrize(
    ("own", "other", "ok"),
    [(DEAD, ALIVE, False), (ALIVE, DEAD, False), (ALIVE, ALIVE, True), (DEAD, DEAD, True)],
)
def test_a_ghost_is_silent_while_its_namesake_answers(own: Ping, other: Ping, ok: bool) -> None:
    given = evidence([], ping=own, namesakes={"Robot-2": other})
    found = look("ghost", given)
    assert found.ok is ok
    if not ok:
        dead = "Robot" if own is DEAD else "Robot-2"
        assert find(given)[0].startswith(f'"{dead}" does not answer a ping, and "Robot')
        assert f'"{dead}" seems to be left over' in found.detail
    silent_room = DEAD._replace(alone=False)
    assert look("ghost", given._replace(ping=silent_room, namesakes={"R": ALIVE})).ok is True
    assert look("ghost", given._replace(namesakes={})).ok is None


OMEMO = replace(said("Wilma", ""), encrypted="OMEMO")
SECRETS: dict[str, tuple[list[Event], bool | None]] = {
    "the only one": ([OMEMO], False),
    "of somebody who was answered": ([ASK, PONG, OMEMO, replace(OMEMO, sender="Fred")], False),
    "of several who were not": ([OMEMO, replace(OMEMO, sender="Fred")], True),
    "not any more": ([OMEMO, ASK], True),
    "it can read that": ([replace(OMEMO, sender="Robot"), OMEMO], True),
    "in private": ([replace(OMEMO, type="chat")], None),
    "none": ([ASK, PONG], True),
    "nothing": ([], None),
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_reaches_it_encrypted_is_told_and_takes_no_verdict(name: str) -> None:
    events, ok = SECRETS[name]
    given = evidence(spaced(5.0, *events))
    verdict, found = find(given)
    assert found["encrypted"].ok is ok
    assert verdict.startswith('Nothing is found wrong with "Robot" as yet: ')
    assert ('"Wilma" wrote with encryption ("OMEMO") at' in verdict) is (ok is False)


def test_a_temporary_room_goes_when_the_bridge_alone_is_in_it() -> None:
    given = evidence([])
    for persistent, ok in ((None, None), (True, True), (False, True)):
        status = replace(given.status, persistent=persistent)
        assert look("room", given._replace(status=status)).ok is ok
        assert bool(status.warnings) is (persistent is False)
    alone = replace(STATUS, persistent=False)
    found = look("room", given._replace(status=alone))
    assert (found.ok, "muc#roomconfig_persistentroom" in found.hint) == (False, True)
    assert "muc#roomconfig_persistentroom" in alone.warnings[0]
