"""Messages that concern others: corrections, replies, reactions, retractions."""

import pytest

from bridge.xmpp.model.events import MessageReceived, Source, SubjectChanged
from bridge.xmpp.muc import reading
from tests.xmpp.reading import DELAY, ROOM, message, message_events

CORRECT = "<replace xmlns='urn:xmpp:message-correct:0' id='{}'/>"
REPLY = "<reply xmlns='urn:xmpp:reply:0' to='lobby@conference.example/Betty' id='{}'/>"
REACT = "<reactions xmlns='urn:xmpp:reactions:0' id='{}'>{}</reactions>"
REACTION = "<reaction>{}</reaction>"
RETRACT = "<retract xmlns='urn:xmpp:message-retract:1' id='{}'/>"
OLD = "<apply-to xmlns='urn:xmpp:fasten:0' id='{}'>{}</apply-to>"
OLD_RETRACT = "<retract xmlns='urn:xmpp:message-retract:0'/>"
BY = " by='lobby@conference.example/Mod'"
OLD_MODERATED = (
    f"<moderated xmlns='urn:xmpp:message-moderate:0'{BY}>"
    "<retract xmlns='urn:xmpp:message-retract:0'/><reason>spam</reason></moderated>"
)
MODERATED = (
    "<retract xmlns='urn:xmpp:message-retract:1' id='{}'>"
    f"<moderated xmlns='urn:xmpp:message-moderate:1'{BY}/>"
    "<reason>spam</reason></retract>"
)


def _about(inner: str, sender: str = f"{ROOM}/Wilma") -> dict[str, object]:
    received = [each for each in message_events(inner, sender) if isinstance(each, MessageReceived)]
    if not received:
        return {}
    (message,) = received
    names = ("replaces", "reply_to", "reacts_to", "reactions", "retracts")
    return {name: each for name in names if (each := getattr(message, name)) is not None}


@pytest.mark.parametrize(
    ("inner", "about"),
    [
        (CORRECT.format("7"), {"replaces": "7"}),
        (REPLY.format("7"), {"reply_to": "7"}),
        (REACT.format("7", REACTION.format("x")), {"reacts_to": "7", "reactions": ("x",)}),
        (REACT.format("7", ""), {"reacts_to": "7", "reactions": ()}),
        (RETRACT.format("7"), {"retracts": "7"}),
        (OLD.format("7", OLD_RETRACT), {"retracts": "7"}),
        (MODERATED.format("7"), {"retracts": "7"}),
        (REPLY.format("1") + CORRECT.format("2"), {"replaces": "2", "reply_to": "1"}),
    ],
)
@pytest.mark.parametrize("body", ["", "<body>hello</body>"])
def test_a_message_tells_what_it_concerns(inner: str, about: dict[str, object], body: str) -> None:
    assert _about(body + inner) == about
    assert _about(inner + body) == about


@pytest.mark.parametrize(
    ("by", "moderator"),
    [
        (f" by='{ROOM}/Mod'", "Mod"),
        (f" by='{ROOM.upper()}/a/b'", "a/b"),
        (" by='mod@example'", "mod@example"),
        (f" by='{ROOM}'", None),
        ("", None),
    ],
)
@pytest.mark.parametrize(("reason", "why"), [("<reason>spam</reason>", "spam"), ("", None)])
@pytest.mark.parametrize("shape", [OLD.format("7", OLD_MODERATED), MODERATED.format("7")])
def test_the_room_says_which_moderator_took_a_message_back_and_why(
    shape: str, reason: str, why: str | None, by: str, moderator: str | None
) -> None:
    inner = shape.replace(BY, by).replace("<reason>spam</reason>", reason)
    assert message_events(inner, ROOM) == [
        MessageReceived(ROOM, "", "", id="m1", retracts="7", moderated_by=moderator, reason=why)
    ]


def test_a_message_in_both_shapes_of_moderation_is_told_once() -> None:
    both = MODERATED.format("7") + OLD.format("7", OLD_MODERATED)
    (event,) = message_events(f"<body>It was moderated.</body>{both}", ROOM)
    assert isinstance(event, MessageReceived)
    assert (event.retracts, event.moderated_by, event.reason) == ("7", "Mod", "spam")


def test_the_texts_of_a_moderation_are_bounded() -> None:
    long = "x" * (reading.MAX_PRESENCE_CHARACTERS + 1)
    inner = MODERATED.format("7").replace("spam", long).replace("/Mod", f"/{long}")
    (event,) = message_events(inner, ROOM)
    assert isinstance(event, MessageReceived)
    assert event.reason == event.moderated_by == long[:-1]


def test_no_occupant_moderates_in_the_rooms_name() -> None:
    assert _about(OLD.format("7", OLD_MODERATED)) == {}
    # This one is a retraction too, and those are told as their sender's.
    event = message(MODERATED.format("7"))
    assert (event.sender, event.retracts) == ("Wilma", "7")
    assert (event.moderated_by, event.reason) == (None, None)


@pytest.mark.parametrize(
    "inner",
    [
        CORRECT.format(""),
        "<replace xmlns='urn:other' id='7'/>",
        REACT.format("", REACTION.format("x")),
        RETRACT.format(""),
        "<retract xmlns='urn:xmpp:message-retract:0' id='7'/>",
        OLD.format("7", ""),
        OLD.format("", OLD_RETRACT),
        OLD.format("7", "<external xmlns='urn:xmpp:fasten:0'/>"),
        f"<forwarded xmlns='urn:xmpp:forward:0'>{RETRACT.format('7')}</forwarded>",
        f"<x xmlns='urn:other'>{REACT.format('7', REACTION.format('x'))}</x>",
        OLD.format("7", f"<x xmlns='urn:other'>{OLD_RETRACT}</x>"),
    ],
)
def test_what_names_no_message_or_stands_elsewhere_concerns_none(inner: str) -> None:
    assert _about(inner) == {}
    assert message_events(inner, ROOM) == []
    assert _about(f"<body>hello</body>{inner}") == {}


@pytest.mark.parametrize("given", [reading.MAX_REACTIONS, reading.MAX_REACTIONS + 1])
def test_of_many_reactions_the_first_are_kept_and_none_inside_others(given: int) -> None:
    nested = f"<x xmlns='urn:other'>{REACTION.format('x')}</x>"
    many = "".join(REACTION.format(number) for number in range(given))
    event = message(REACT.format("7", nested + many) + DELAY.format(ROOM))
    assert event.reactions == tuple(str(number) for number in range(reading.MAX_REACTIONS))
    assert (event.source, event.reacts_to) == (Source.HISTORY, "7")


def test_a_subject_may_not_hide_a_message() -> None:
    events = message_events(f"<subject>tests</subject>{RETRACT.format('7')}")
    assert [type(event) for event in events] == [SubjectChanged, MessageReceived]
