"""The words by which the rules on a room and the rules on a client's log judge what is said."""

import pytest

from bridge.capture.rooms import Rooms
from bridge.capture.talk import Claim, Talk, key_of
from bridge.wire.speech import (
    LOOP_ROUNDS,
    SPREAD_SECONDS,
    Utterance,
    circles,
    form_of,
    is_addressed,
    is_command,
    is_named,
    is_put_to,
    odd_letter,
)
from bridge.xmpp.checks import exchanges
from tests.xmpp.checks.watching import evidence, said

COMMANDS = (
    *("!ping", ".help", "$roll 6", "#topic", "~quit", "+add x", "&go", "%load", "/metrics", "/me2"),
    *(" !ping", "!Ping", "!\u00fcnter", "!me", "/MEASURE"),
)
NO_COMMANDS = (
    *("/me waves", "/ME waves", "/me", "(brb)", "@Bob look", "-1 for that", "+1", "#1", "$5"),
    *("!", "!!!", "...", ":ping", '"ping"', "ping", "? what", "", " "),
)


@pytest.mark.parametrize(
    ("body", "is_one"), [(it, True) for it in COMMANDS] + [(it, False) for it in NO_COMMANDS]
)
def test_a_command_is_the_same_in_a_room_and_in_a_log(body: str, is_one: bool) -> None:
    assert is_command(body) is is_one
    # A log's rules expect an answer to a command after one answer, to other words after two.
    talk = Talk()
    talk.answered.add(key_of(body), 1)
    assert (talk.claim_of(Rooms(), body, "") is Claim.QUESTION) is is_one
    # In a room, commands of one sign have one form.
    (record,) = evidence([(1.0, said("Eve", body or "-"))]).acts
    assert (len(exchanges.form_of(record, "Bob")) == 1 < len(body.strip())) is is_one


@pytest.mark.parametrize(
    ("name", "text", "named", "addressed"),
    [
        ("Bob", "Bob: ping", True, True),
        ("Bob", "bob ping", True, True),
        ("Bob", "@Bob look", True, True),
        ("Bob", "Bob", True, True),
        ("Bob", "Bobby, Bob?", True, False),
        ("Bob", "ask Bob", True, False),
        ("Bob", "ask @Bob!", True, False),
        ("Bob", "Bobby: ping", False, False),
        ("Bob", "Bob2 ping", False, False),
        ("Bob", "kebob", False, False),
        ("Bob", "_Bob_", True, False),
        ("Straße", "STRASSE: ping", True, True),
        ("a.c", "abc", False, False),
        ("[bot]", "[bot] ping", True, True),
        ("", "ping", False, False),
        ("", "", False, False),
    ],
)
def test_a_name_counts_as_a_word_of_its_own(
    name: str, text: str, named: bool, addressed: bool
) -> None:
    assert (is_named(name, text), is_addressed(name, text)) == (named, addressed)


@pytest.mark.parametrize(
    ("text", "is_question"),
    [
        *[
            (text, True)
            for text in ("Bob: ping", "bob, ping", "@Bob ping", "Bob", "Bob you there?")
        ],
        *[(text, False) for text in ("Bob is late", "Bob ping", "ask Bob: now", "Bobby: ping", "")],
    ],
)
def test_what_is_put_to_somebody_is_marked_as_a_question(text: str, is_question: bool) -> None:
    assert is_put_to("Bob", text) is is_question
    assert not is_put_to("", text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("bob: ping", "bob"),
        ("@bob ping", "bob"),
        ("bob", "bob"),
        ("bobby: ping", "bobby: ping"),
        ("!ping", "!"),
        ("!pong bob", "!"),
        ("/me waves", "/me waves"),
        ("-1 for that", "-1 for that"),
        ("ping bob", "ping bob"),
    ],
)
def test_messages_of_one_form_are_alike_to_a_program(text: str, form: str) -> None:
    assert form_of(text, "bob") == form


@pytest.mark.parametrize(("parts", "apart", "turns"), [(3, 0.3, 12), (3, 0.6, 0), (1, 0.0, 12)])
def test_what_an_occupant_says_in_a_row_is_one_turn_unless_there_is_a_pause_in_it(
    parts: int, apart: float, turns: int
) -> None:
    said = [
        Utterance(who, 5.0 * turn + apart * part, "a")
        for turn, who in enumerate(("Bob", "Rob") * LOOP_ROUNDS)
        for part in range(parts)
    ]
    assert (apart < SPREAD_SECONDS) is (turns > 0)
    assert [len(circle.turns) for circle in circles(said)] == [turns] * (turns > 0)


@pytest.mark.parametrize(
    ("text", "odd"),
    [
        ("\uff01ping", "\uff01"),
        ("!\u00a0ping", "\u00a0"),
        ("\u00a0!ping", "\u00a0"),
        ("!\uff50ing", "\uff50"),
        ("!\u0440ing", "\u0440"),
        ("! ping \uff01", ""),
        ("!\u043f\u0440\u0438\u0432\u0435\u0442", ""),
        ("\uff5ehello", ""),  # a wave dash begins talk in Japanese
        ("hello\uff01", ""),
    ],
)
def test_a_character_that_only_looks_like_the_usual_one_is_found_in_a_command(
    text: str, odd: str
) -> None:
    assert odd_letter(text) == odd
