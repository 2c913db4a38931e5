import pytest

from bridge.xmpp import stanzas
from bridge.xmpp.events import MessageReceived, SendFailed, Source, SubjectChanged
from tests.xmpp.reading import DELAY, OWN, ROOM, message_events


def test_a_message_is_who_said_what() -> None:
    assert message_events("<body>hello\n&lt;&amp;</body>") == [
        MessageReceived(f"{ROOM}/Wilma", "Wilma", "hello\n<&", id="m1")
    ]


def test_all_that_one_occupant_says_shares_their_address_in_memory() -> None:
    (one,), (other,) = message_events("<body>one</body>"), message_events("<body>other</body>")
    assert isinstance(one, MessageReceived)
    assert isinstance(other, MessageReceived)
    assert one.occupant is other.occupant
    assert one.nickname is other.nickname


def test_the_first_of_several_stamps_and_ids_of_the_room_counts() -> None:
    (message,) = message_events(
        "<body>x</body>"
        + "".join(
            f"<delay xmlns='{stanzas.DELAY}' from='{by}' stamp='2026-01-0{day}T00:00:00Z'/>"
            f"<stanza-id xmlns='{stanzas.STANZA_ID}' by='{by}' id='{day}'/>"
            for day, by in ((1, "forger@localhost"), (2, ROOM), (3, ROOM))
        )
    )
    assert isinstance(message, MessageReceived)
    assert (message.delayed_from, message.stanza_id) == ("2026-01-02T00:00:00Z", "2")


def test_our_own_reflection_is_told_by_our_occupant_jid() -> None:
    (event,) = message_events("<body>hello</body>", OWN)
    assert isinstance(event, MessageReceived)
    assert event.own
    (event,) = message_events("<body>hello</body>", f"{ROOM}/me")
    assert isinstance(event, MessageReceived)
    assert not event.own


def test_a_private_message_is_a_chat() -> None:
    (event,) = message_events("<body>psst</body>", type_="chat")
    assert isinstance(event, MessageReceived)
    assert event.type == "chat"


def test_a_nickname_may_hold_slashes_and_at_signs() -> None:
    (event,) = message_events("<body>hello</body>", f"{ROOM}/a/b@c/d")
    assert isinstance(event, MessageReceived)
    assert event.nickname == "a/b@c/d"


def test_a_delay_stamp_of_the_room_makes_it_history() -> None:
    (event,) = message_events(f"<body>old</body>{DELAY.format(ROOM)}")
    assert isinstance(event, MessageReceived)
    assert (event.source, event.delayed_from) == (Source.HISTORY, "2020-01-01T00:00:00Z")


@pytest.mark.parametrize("stamper", ["wilma@example/home", f"{ROOM}/Wilma", "", "example"])
def test_anybody_elses_delay_stamp_is_ignored(stamper: str) -> None:
    (event,) = message_events(f"<body>new</body>{DELAY.format(stamper)}")
    assert isinstance(event, MessageReceived)
    assert (event.source, event.delayed_from) == (Source.LIVE, None)


def test_the_rooms_stanza_id_counts_and_a_forged_one_does_not() -> None:
    ids = "".join(
        f"<stanza-id xmlns='urn:xmpp:sid:0' by='{by}' id='{id_}'/>"
        for by, id_ in (("wilma@example", "forged"), (f"{ROOM}/Wilma", "forged"), (ROOM, "true"))
    )
    (event,) = message_events(f"<body>hello</body>{ids}")
    assert isinstance(event, MessageReceived)
    assert event.stanza_id == "true"
    (event,) = message_events(f"<body>hello</body>{ids.replace(ROOM, 'evil@example')}")
    assert isinstance(event, MessageReceived)
    assert event.stanza_id is None


@pytest.mark.parametrize("delay", ["", DELAY.format(ROOM)])
def test_a_subject_is_no_message_with_or_without_a_delay(delay: str) -> None:
    assert message_events(f"<subject>tests</subject>{delay}") == [SubjectChanged("tests", "Wilma")]


def test_an_empty_subject_of_the_room_itself_is_nobodys() -> None:
    assert message_events("<subject/>", ROOM) == [SubjectChanged("", None)]


def test_a_message_with_subject_and_body_is_a_message() -> None:
    # XEP-0045, section 8.1: a subject comes without a body.
    (event,) = message_events("<subject>not one</subject><body>hello</body>")
    assert isinstance(event, MessageReceived)


@pytest.mark.parametrize("inner", ["", "<x xmlns='jabber:x:oob'/>", "<body xmlns='evil'>x</body>"])
def test_a_message_without_a_body_tells_nothing(inner: str) -> None:
    assert message_events(inner) == []


def test_a_message_that_comes_back_is_a_failure_and_never_room_traffic() -> None:
    error = (
        "<body>mine</body><error type='auth'>"
        "<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
        "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no voice</text></error>"
    )
    assert message_events(error, ROOM, "error") == [SendFailed("m1", "forbidden", "no voice")]
    assert message_events("<body>mine</body>", ROOM, "error") == [
        SendFailed("m1", "undefined-condition")
    ]


def test_an_occupant_cannot_pretend_that_the_room_returned_a_message() -> None:
    assert message_events("<body>mine</body>", type_="error") == []
