"""Which messages ask something of a program, and which message answers each."""

import pytest

from bridge.xmpp.checks.questions import is_unanswered, questions
from bridge.xmpp.model.events import Event, MessageReceived, OccupantLeft, Source
from bridge.xmpp.model.journal import Record

ROOM = "lobby@conference.example"


def played(*lines: str) -> list[Record]:
    """The events of a room, each written as `seconds nickname: body`."""
    records = []
    for number, line in enumerate(lines, 1):
        at, _, said = line.partition(" ")
        who, _, body = said.partition(": ")
        source = Source.HISTORY if who.endswith("(old)") else Source.LIVE
        event: Event = MessageReceived(f"{ROOM}/{who}", who, body, id=f"m{number}", source=source)
        if body == "LEAVES":
            event = OccupantLeft(f"{ROOM}/{who}", who)
        records.append(Record(number, float(at), event, ROOM))
    return records


def paired(*lines: str) -> list[tuple[int, int | None]]:
    """The places of each question and of its answer among the lines, from 1."""
    return [
        (it.asked.number, it.answer.number if it.answer else None)
        for it in questions(played(*lines))
    ]


PING = ("0 Ann: !ping", "0.2 Bot: pong")
CASES: dict[str, tuple[tuple[str, ...], list[tuple[int, int | None]]]] = {
    "a command and the next to speak": (PING, [(1, 2)]),
    "the asker is no answer": (("0 Ann: !ping", "1 Ann: anyone?"), [(1, None)]),
    "a slow program": (("0 Ann: !ask", "40 Bot: 42"), [(1, 2)]),
    "after a minute it is none": (("0 Ann: !ask", "61 Bot: 42"), [(1, None)]),
    "what people say is none": (("0 Ann: hello", "0.5 Bob: hello", "9 Ann: you?"), []),
    "of the history is none": (("0 Ann(old): !ping", "0.1 Bot: pong"), []),
    "only a program answers": ((*PING, "9 Ann: !ping", "20 Bob: is it dead?"), [(1, 2), (3, None)]),
    "two at once, in their order": (
        (*PING, "9 Ann: !a", "9.1 Bob: !b", "9.3 Bot: a", "9.4 Bot: b"),
        [(1, 2), (3, 5), (4, 6)],
    ),
    "an old one is not the answered one": (
        (*PING, "9 Ann: !a", "30 Bob: !b", "30.3 Bot: b"),
        [(1, 2), (3, None), (4, 5)],
    ),
    "another program's answer is none": (
        (
            *PING,
            "2 Ann: !sun",
            "2.1 Sky: 20 degrees",
            "9 Ann: !ping",
            "20 Bob: !sun",
            "20.1 Sky: 21",
        ),
        [(1, 2), (3, 4), (5, None), (6, 7)],
    ),
    "a question by name": ((*PING, "9 Ann: Bot: are you there?"), [(1, 2), (3, None)]),
    "an order by name is none": ((*PING, "9 Ann: Bot, enough"), [(1, 2)]),
    "unless it takes orders by name": (
        ("0 Ann: Bot: a", "0.1 Bot: x", "5 Ann: Bot: a", "5.1 Bot: x", "9 Ann: Bot: b"),
        [(1, 2), (3, 4), (5, None)],
    ),
    "words that it has answered": (
        ("0 Ann: ping", "0.1 Bot: pong", "5 Bob: ping", "5.1 Bot: pong", "9 Ann: ping"),
        [(1, 2), (3, 4), (5, None)],
    ),
    "it may have left": ((*PING, "5 Bot: LEAVES", "9 Ann: !ping"), [(1, 2), (4, None)]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_asked_of_programs_is_paired_with_its_answer(case: str) -> None:
    lines, expected = CASES[case]
    assert paired(*lines) == expected


def test_a_reply_is_the_answer_to_what_it_names() -> None:
    records = played(*PING, "9 Ann: !a", "9.1 Ann: !b", "9.3 Bot: b")
    reply = MessageReceived(f"{ROOM}/Bot", "Bot", "b", reply_to="m4")
    records[-1] = Record(5, 9.3, reply, ROOM)
    assert [it.answer.number if it.answer else None for it in questions(records)] == [2, None, 5]


@pytest.mark.parametrize(
    ("end", "gaps", "sure"),
    [(9.9, [], False), (10.0, [], True), (60.0, [(5.0, 7.0)], False), (60.0, [(11.0, 50.0)], True)],
)
def test_no_answer_is_sure_only_if_the_records_go_on(
    end: float, gaps: list[tuple[float, float]], sure: bool
) -> None:
    (question,) = questions(played("0 Ann: !ping"))
    assert is_unanswered(question, end, gaps) is sure


def test_in_a_crowd_chance_makes_no_program() -> None:
    lines = [
        f"{number} P{number % 50}: {'!go' if number % 5 == 0 else 'hm'}" for number in range(300)
    ]
    assert not any(it.to for it in questions(played(*lines)))


@pytest.mark.parametrize(
    ("who", "pairs"), [("Ann", [(1, 2), (4, None)]), ("Eve", [(1, 2), (3, None), (4, None)])]
)
def test_only_who_asked_corrects_a_question(who: str, pairs: list[tuple[int, int | None]]) -> None:
    records = played(*PING, "9 Ann: !a", f"9.5 {who}: !b")
    correction = MessageReceived(f"{ROOM}/{who}", who, "!b", replaces="m3")
    records[-1] = Record(4, 9.5, correction, ROOM)
    asked = questions(records)
    assert [(it.asked.number, it.answer.number if it.answer else None) for it in asked] == pairs
