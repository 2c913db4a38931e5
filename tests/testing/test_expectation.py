import pytest

from bridge.testing import expectation
from bridge.testing.expectation import Expectation, nearest_misses
from bridge.xmpp.model.events import MessageReceived, OccupantJoined, OccupantLeft, Source, encode
from bridge.xmpp.model.formatting import format_event
from bridge.xmpp.model.journal import Record

ROOM = "room@example"
PONG = MessageReceived(f"{ROOM}/Robot", "Robot", "Pong!")
WANTED = expectation.message(None, private=False, contains="pong", from_="Robot")
DUE = 10.0


@pytest.mark.parametrize(
    ("message", "label"),
    [
        (PONG, ""),
        (PONG._replace(type="chat"), "in private"),
        (PONG._replace(body="ping"), "another text"),
        (PONG._replace(body="", payload=("composing",)), "without a text"),
        (PONG._replace(sender="Bob", from_=f"{ROOM}/Bob"), "from another sender"),
        (PONG._replace(source=Source.HISTORY), "said before the actor came"),
        (PONG._replace(source=Source.ARCHIVE), "said before the actor came"),
    ],
)
def test_a_message_meets_an_expectation_or_falls_short_in_words(
    message: MessageReceived, label: str
) -> None:
    assert WANTED.shortcomings(message) == ([label] if label else [])
    assert WANTED.is_met_by(message) is not bool(label)


@pytest.mark.parametrize(
    ("wanted", "met"),
    [
        (expectation.message("Pong!", private=False), True),
        (expectation.message("pong!", private=False), False),
        (expectation.message(None, private=False), True),
        (expectation.message(None, private=True), False),
        (expectation.message(None, private=False, pattern="^P.ng!$"), True),
        (expectation.message(None, private=False, pattern="^ong"), False),
        (expectation.message("Pong!", private=False, contains="x"), False),
        (expectation.message(None, private=False, from_=f"{ROOM}/Robot"), True),
        (Expectation(OccupantJoined, "", "Robot"), False),
    ],
)
def test_what_meets_an_expectation(
    wanted: Expectation[MessageReceived] | Expectation[OccupantJoined], met: bool
) -> None:
    assert wanted.is_met_by(PONG) is met


def test_own_words_count_only_for_who_names_the_speaker() -> None:
    own = PONG._replace(own=True)
    assert expectation.message(None, private=False).shortcomings(own) == [
        "said by the actor itself"
    ]
    assert expectation.message(None, private=False, from_="Robot").is_met_by(own)


def test_what_is_wanted_is_told_in_words() -> None:
    assert expectation.message("a\nb", private=True, from_='R"').wanted == (
        'a private message from "R\\"" that says "a\\nb"'
    )
    assert expectation.message(None, contains="x", pattern="y").wanted == (
        'a message that contains "x" that matches "y"'
    )


def _misses(*records: tuple[int, float, MessageReceived | OccupantLeft]) -> list[str]:
    kept = [Record(number, at, event) for number, at, event in records]
    misses = nearest_misses(WANTED, kept, 2, DUE)
    return [f"{differs}: {format_event(encode(record.event))}" for differs, record in misses]


def test_the_nearest_misses_come_first() -> None:
    ping, bob = PONG._replace(body="ping"), PONG._replace(sender="Bob", from_=f"{ROOM}/Bob")
    assert _misses(
        (1, 1.0, PONG),
        (2, 2.0, ping),
        (3, 3.0, OccupantLeft(f"{ROOM}/Robot", "Robot")),
        (4, 4.0, bob._replace(body="hello")),
        (5, 5.0, bob),
        (6, 6.0, ping),
        (7, 7.0, PONG._replace(type="chat")),
        (8, 8.0, bob._replace(own=True)),
        (9, 9.0, ping._replace(own=True, sender="Bob", from_=f"{ROOM}/Bob")),
        (10, 11.25, PONG),
    ) == [
        "before the actor's last expectation: <Robot> Pong!",
        "in private: <Robot> (private) Pong!",
        "said by the actor itself: <Bob> (our own) Pong!",
        "1.2 s too late: <Robot> Pong!",
        "from another sender: <Bob> Pong!",
        "another text: <Robot> ping",
        "another text, from another sender: <Bob> hello",
    ]
