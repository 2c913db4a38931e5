from xml.etree.ElementTree import Element

import pytest
from hypothesis import given

from bridge.wire import names
from bridge.wire.names import MAX_JID_CHARACTERS
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.from_slixmpp import prepared
from bridge.xmpp.model.events import MessageReceived
from bridge.xmpp.muc import reading
from tests.xmpp.elements import parsed, trees
from tests.xmpp.reading import OWN, ROOM, USER, message_events, presence_events


def _written(element: Element) -> Element:
    return parsed(stanzas.xml_of(element))


@pytest.mark.parametrize(
    "sender", ["", "evil@example", "x" * 1100 + "@example", "@", ROOM + "x/a", ROOM + "/"]
)
def test_what_does_not_come_from_the_room_is_not_of_it(sender: str) -> None:
    assert message_events("<body>hello</body>", sender) == []
    item = f"<x {USER}><item role='moderator'/><status code='110'/></x>"
    assert presence_events(item, sender) == []


def test_what_is_too_long_for_a_jid_is_none_even_if_preparing_would_shorten_it() -> None:
    # A soft hyphen is mapped to nothing.
    nickname = "n" + "\u00ad" * (MAX_JID_CHARACTERS - len(f"{ROOM}/n"))
    assert prepared(f"{ROOM}/{nickname}") == f"{ROOM}/n"
    assert prepared(f"{ROOM}/{nickname}\u00ad") is None


STANZAS = trees(
    ["message", "presence", "iq", "body", "x", "item", "status", "error", "delay", "destroy"],
    ["jabber:client", names.MUC_USER, names.DELAY, names.STANZA_ERRORS, "urn:other"],
    ["from", "type", "id", "code", "jid", "nick", "role", "stamp", "by"],
    [ROOM, OWN, f"{ROOM}/Wilma", "110", "303", "error", "unavailable"],
)


@given(STANZAS)
def test_no_stanza_breaks_the_reading_of_it(stanza: Element) -> None:
    for event in reading.read(stanza, room=ROOM, own=OWN):
        assert not isinstance(event, MessageReceived) or event.from_.startswith(ROOM)
    stanzas.reply_to(stanza)
    stanzas.xml_of(stanzas.reply_to(stanza))


def test_jids_are_prepared_for_comparison() -> None:
    assert prepared("Lobby@Conference.Example/Me") == "lobby@conference.example/Me"
    assert prepared("@example") is None
    assert stanzas.occupant_jid(ROOM, "a/b") == f"{ROOM}/a/b"
    assert stanzas.occupant_jid(ROOM, "x" * 1024) is None


def test_entering_asks_for_the_history_and_gives_the_password_if_there_is_one() -> None:
    entering = _written(stanzas.join_presence(OWN, "open <sesame>", None))
    assert entering.get("to") == OWN
    extension = entering.find(f"{{{names.MUC}}}x")
    assert extension is not None
    history = extension.find(f"{{{names.MUC}}}history")
    assert history is not None
    assert history.get("maxstanzas") == str(stanzas.HISTORY_ON_JOINING)
    assert extension.findtext(f"{{{names.MUC}}}password") == "open <sesame>"
    back = _written(stanzas.join_presence(OWN, None, "2026-01-01T00:00:00.000Z"))
    history = back.find(f"{{{names.MUC}}}x/{{{names.MUC}}}history")
    assert history is not None
    assert history.attrib == {"since": "2026-01-01T00:00:00.000Z"}
    assert "password" not in stanzas.xml_of(back)


@pytest.mark.parametrize(
    ("type_", "payload", "answer"),
    [
        ("get", "<ping xmlns='urn:xmpp:ping'/>", "result"),
        ("get", "<query xmlns='http://jabber.org/protocol/disco#info'/>", "result"),
        ("set", "<ping xmlns='urn:xmpp:ping'/>", "error"),
        ("get", "<query xmlns='jabber:iq:version'/>", "error"),
        ("get", "", "error"),
    ],
)
def test_requests_from_outside_are_answered(type_: str, payload: str, answer: str) -> None:
    iq = parsed(f"<iq type='{type_}' id='7' from='{ROOM}/Wilma'>{payload}</iq>")
    reply = stanzas.reply_to(iq)
    assert (reply.get("type"), reply.get("id"), reply.get("to")) == (answer, "7", f"{ROOM}/Wilma")
    if answer == "error":
        assert names.error_of(reply).condition == "service-unavailable"
