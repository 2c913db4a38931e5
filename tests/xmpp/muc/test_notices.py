import pytest

from bridge.xmpp.model import events
from tests.xmpp.reading import OWN, ROOM, USER, message, message_events


def _notice(*inner: str) -> str:
    return f"<x {USER}>{''.join(inner)}</x>"


CONFIGURED = _notice("<status code='104'/>", "<status code='172'/>")
AFFILIATED = _notice(
    "<item jid='betty@example' affiliation='member' role='none'>",
    "<actor nick='Owner'/><reason>welcome</reason></item>",
)

CAPTCHA = "<captcha xmlns='urn:xmpp:captcha'/><body>Visit https://captcha.example/1</body>"


def test_the_room_wants_a_captcha_solved() -> None:
    refused = events.RoomError("captcha-required", "Visit https://captcha.example/1")
    assert message_events(CAPTCHA, ROOM, "normal") == [refused]
    invited = CAPTCHA + _notice("<invite from='betty@example'/>")
    assert message_events(invited, ROOM, "normal") == []
    (said,) = message_events(CAPTCHA, f"{ROOM}/Wilma")
    assert isinstance(said, events.MessageReceived)


def test_the_room_tells_of_its_configuration_and_of_people_who_are_not_in_it() -> None:
    for type_ in ("groupchat", "normal"):
        told = message_events(CONFIGURED, ROOM, type_)
        assert told == [events.RoomConfigured(frozenset({104, 172}))]
    assert message_events(AFFILIATED, ROOM) == [
        events.AffiliationChanged("betty@example", "member", "welcome", "Owner")
    ]


@pytest.mark.parametrize("inner", [CONFIGURED, AFFILIATED])
def test_nobody_but_the_room_tells_of_it_and_no_error_does(inner: str) -> None:
    for sender in (f"{ROOM}/Wilma", f"{ROOM}/{ROOM}", "evil@example", f"{ROOM}.evil", OWN):
        assert message_events(inner, sender) == []
    assert message_events(inner, ROOM, "error") == [events.SendFailed("m1", "undefined-condition")]


@pytest.mark.parametrize(
    "inner",
    [
        _notice("<status/>", "<status code='x'/>"),
        _notice("<item affiliation='member'/>"),
        _notice("<item jid='betty@example'/>"),
        _notice("<invite from='betty@example'/>"),
        f"<y xmlns='urn:other'>{CONFIGURED}</y>",
    ],
)
def test_a_notice_that_says_nothing_is_none(inner: str) -> None:
    assert message_events(inner, ROOM) == []


@pytest.mark.parametrize("asked", ["<invite from='b@example'/>", "<decline from='b@example'/>"])
@pytest.mark.parametrize("type_", ["normal", "groupchat"])
def test_invitations_and_declines_are_not_the_rooms(asked: str, type_: str) -> None:
    for first in ("", CONFIGURED):
        said = f"{first}<body>the room says</body>"
        assert message_events(said + _notice(asked), ROOM, type_) == []


def test_what_a_room_says_to_us_alone_is_told() -> None:
    said = message("<body>Prove that you are human.</body>", ROOM, "normal")
    assert isinstance(said, events.MessageReceived)
    assert (said.sender, said.body) == ("", "Prove that you are human.")
