from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp import stanzas
from bridge.xmpp.events import (
    Event,
    MessageReceived,
    NicknameChanged,
    OccupantJoined,
    OccupantLeft,
    RoomDestroyed,
    RoomError,
    SendFailed,
    Source,
    SubjectChanged,
)

ROOM = "lobby@conference.example"
OWN = f"{ROOM}/Me"
USER = "xmlns='http://jabber.org/protocol/muc#user'"
DELAY = "<delay xmlns='urn:xmpp:delay' stamp='2020-01-01T00:00:00Z' from='{}'/>"


def _parsed(xml: str) -> Element:
    stream = f"<stream xmlns='jabber:client'>{xml}</stream>"
    return fromstring(stream)[0]  # noqa: S314 - it is written below


def _written(element: Element) -> Element:
    return _parsed(stanzas.xml_of(element))


def _read(xml: str) -> list[Event]:
    return list(stanzas.read(_parsed(xml), room=ROOM, own=OWN))


def _message(inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "groupchat") -> list[Event]:
    return _read(f"<message from='{sender}' type='{type_}' id='m1'>{inner}</message>")


def _presence(inner: str, sender: str = f"{ROOM}/Wilma", type_: str = "") -> list[Event]:
    attribute = f" type='{type_}'" if type_ else ""
    return _read(f"<presence from='{sender}'{attribute}>{inner}</presence>")


def test_a_message_is_who_said_what() -> None:
    assert _message("<body>hello\n&lt;&amp;</body>") == [
        MessageReceived(f"{ROOM}/Wilma", "Wilma", "hello\n<&", id="m1")
    ]


def test_our_own_reflection_is_told_by_our_occupant_jid() -> None:
    (event,) = _message("<body>hello</body>", OWN)
    assert isinstance(event, MessageReceived)
    assert event.own
    (event,) = _message("<body>hello</body>", f"{ROOM}/me")
    assert isinstance(event, MessageReceived)
    assert not event.own


def test_a_private_message_is_a_chat() -> None:
    (event,) = _message("<body>psst</body>", type_="chat")
    assert isinstance(event, MessageReceived)
    assert event.type == "chat"


def test_a_nickname_may_hold_slashes_and_at_signs() -> None:
    (event,) = _message("<body>hello</body>", f"{ROOM}/a/b@c/d")
    assert isinstance(event, MessageReceived)
    assert event.nickname == "a/b@c/d"


def test_a_delay_stamp_of_the_room_makes_it_history() -> None:
    (event,) = _message(f"<body>old</body>{DELAY.format(ROOM)}")
    assert isinstance(event, MessageReceived)
    assert (event.source, event.delayed_from) == (Source.HISTORY, "2020-01-01T00:00:00Z")


@pytest.mark.parametrize("stamper", ["wilma@example/home", f"{ROOM}/Wilma", "", "example"])
def test_anybody_elses_delay_stamp_is_ignored(stamper: str) -> None:
    (event,) = _message(f"<body>new</body>{DELAY.format(stamper)}")
    assert isinstance(event, MessageReceived)
    assert (event.source, event.delayed_from) == (Source.LIVE, None)


def test_the_rooms_stanza_id_counts_and_a_forged_one_does_not() -> None:
    ids = "".join(
        f"<stanza-id xmlns='urn:xmpp:sid:0' by='{by}' id='{id_}'/>"
        for by, id_ in (("wilma@example", "forged"), (f"{ROOM}/Wilma", "forged"), (ROOM, "true"))
    )
    (event,) = _message(f"<body>hello</body>{ids}")
    assert isinstance(event, MessageReceived)
    assert event.stanza_id == "true"
    (event,) = _message(f"<body>hello</body>{ids.replace(ROOM, 'evil@example')}")
    assert isinstance(event, MessageReceived)
    assert event.stanza_id is None


@pytest.mark.parametrize("delay", ["", DELAY.format(ROOM)])
def test_a_subject_is_no_message_with_or_without_a_delay(delay: str) -> None:
    assert _message(f"<subject>tests</subject>{delay}") == [SubjectChanged("tests", "Wilma")]


def test_an_empty_subject_of_the_room_itself_is_nobodys() -> None:
    assert _message("<subject/>", ROOM) == [SubjectChanged("", None)]


def test_a_message_with_subject_and_body_is_a_message() -> None:
    # XEP-0045, section 8.1: a subject comes without a body.
    (event,) = _message("<subject>not one</subject><body>hello</body>")
    assert isinstance(event, MessageReceived)


@pytest.mark.parametrize("inner", ["", "<x xmlns='jabber:x:oob'/>", "<body xmlns='evil'>x</body>"])
def test_a_message_without_a_body_tells_nothing(inner: str) -> None:
    assert _message(inner) == []


@pytest.mark.parametrize("sender", ["", "evil@example", "x" * 1100 + "@example", "@", ROOM + "x/a"])
def test_what_does_not_come_from_the_room_is_not_of_it(sender: str) -> None:
    assert _message("<body>hello</body>", sender) == []
    item = f"<x {USER}><item role='moderator'/><status code='110'/></x>"
    assert _presence(item, sender) == []


def test_a_message_that_comes_back_is_a_failure_and_never_room_traffic() -> None:
    error = (
        "<body>mine</body><error type='auth'>"
        "<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
        "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no voice</text></error>"
    )
    assert _message(error, ROOM, "error") == [SendFailed("m1", "forbidden", "no voice")]
    assert _message("<body>mine</body>", ROOM, "error") == [SendFailed("m1", "undefined-condition")]


def test_an_occupant_cannot_pretend_that_the_room_returned_a_message() -> None:
    assert _message("<body>mine</body>", type_="error") == []


def test_presence_is_who_is_here_and_how() -> None:
    assert _presence(
        f"<show>away</show><status>out</status><x {USER}>"
        "<item affiliation='owner' role='moderator' jid='w@example/home'/></x>"
    ) == [
        OccupantJoined(
            f"{ROOM}/Wilma",
            "Wilma",
            "moderator",
            "owner",
            show="away",
            status="out",
            jid="w@example/home",
        )
    ]


def test_our_own_presence_is_told_by_its_status_code_whatever_the_nickname() -> None:
    item = "<item affiliation='none' role='participant'/>"
    (event,) = _presence(
        f"<x {USER}>{item}<status code='110'/><status code='210'/><status code='201'/></x>",
        f"{ROOM}/given",
    )
    assert isinstance(event, OccupantJoined)
    assert event.own
    assert event.codes == {110, 210, 201}


@pytest.mark.parametrize("code", ["", "x", "²", "٣٣٣", "1", "1100", "9" * 5000, "-10", "1.0"])
def test_a_status_code_that_is_none_is_passed_over(code: str) -> None:
    (event,) = _presence(f"<x {USER}><item/><status code='{code}'/><status/></x>")
    assert isinstance(event, OccupantJoined)
    assert event.codes == frozenset()


def test_presence_that_the_room_did_not_vouch_for_tells_nothing() -> None:
    assert _presence("<show>away</show>") == []
    assert _presence(f"<x {USER}><item/></x>", ROOM) == []
    assert _presence(f"<x {USER}><item/></x>", type_="subscribe") == []


def test_a_change_of_nickname_is_no_departure() -> None:
    changed = f"<x {USER}><item nick='a/b'/><status code='303'/></x>"
    assert _presence(changed, type_="unavailable") == [
        NicknameChanged(f"{ROOM}/Wilma", "Wilma", "a/b")
    ]
    assert _presence(changed, OWN, "unavailable") == [NicknameChanged(OWN, "Me", "a/b", own=True)]


def test_a_change_to_no_nickname_is_a_departure() -> None:
    (event,) = _presence(f"<x {USER}><item/><status code='303'/></x>", type_="unavailable")
    assert isinstance(event, OccupantLeft)


@pytest.mark.parametrize("actor", ["nick='Owner'", "jid='Owner'", "nick='Owner' jid='o@example'"])
def test_a_kick_says_who_and_why(actor: str) -> None:
    kick = (
        f"<x {USER}><item role='none'><actor {actor}/><reason>spam</reason></item>"
        "<status code='307'/></x>"
    )
    assert _presence(kick, OWN, "unavailable") == [
        OccupantLeft(OWN, "Me", own=True, codes=frozenset({307}), reason="spam", actor="Owner")
    ]


def test_a_departure_has_its_parting_words() -> None:
    (event,) = _presence(f"<status>bye</status><x {USER}><item/></x>", type_="unavailable")
    assert event == OccupantLeft(f"{ROOM}/Wilma", "Wilma", status="bye")


def test_the_end_of_the_room_names_its_venue() -> None:
    # ejabberd sends it without status code 110.
    destroy = f"<x {USER}><item/><destroy jid='new@muc'><reason>moved</reason></destroy></x>"
    assert _presence(destroy, OWN, "unavailable") == [RoomDestroyed("moved", "new@muc")]
    (event,) = _presence(destroy, type_="unavailable")
    assert isinstance(event, OccupantLeft)  # somebody else's copy of the same end
    assert _presence(f"<x {USER}><destroy/></x>", OWN, "unavailable") == [RoomDestroyed()]


def test_a_refused_join_is_told_without_the_echo_that_prosody_leaves_out() -> None:
    error = (
        "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>xmpp:new@muc</gone>"
        "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>moved</text></error>"
    )
    assert _presence(error, OWN, "error") == [RoomError("gone", "moved", "xmpp:new@muc")]
    assert _presence("", ROOM, "error") == [RoomError("undefined-condition")]


def test_an_error_with_a_condition_of_its_own_keeps_the_standards_one() -> None:
    error = _parsed(
        "<iq><error><too-many xmlns='urn:example'/>"
        "<conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
    )
    assert stanzas.error_of(error) == stanzas.StanzaError("conflict")


_names = st.sampled_from(
    ["message", "presence", "iq", "body", "x", "item", "status", "error", "delay", "destroy"]
)
_namespaces = st.sampled_from(
    ["jabber:client", stanzas.MUC_USER, stanzas.DELAY, stanzas.STANZA_ERRORS, "urn:other"]
)
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_attributes = st.dictionaries(
    st.sampled_from(["from", "type", "id", "code", "jid", "nick", "role", "stamp", "by"]),
    st.sampled_from([ROOM, OWN, f"{ROOM}/Wilma", "110", "303", "error", "unavailable"]) | _texts,
)


@st.composite
def _elements(draw: st.DrawFn, depth: int = 3) -> Element:
    element = Element(f"{{{draw(_namespaces)}}}{draw(_names)}", draw(_attributes))
    element.text = draw(_texts)
    if depth:
        element.extend(draw(st.lists(_elements(depth - 1), max_size=3)))
    return element


@given(_elements())
def test_no_stanza_breaks_the_reading_of_it(stanza: Element) -> None:
    for event in stanzas.read(stanza, room=ROOM, own=OWN):
        assert not isinstance(event, MessageReceived) or event.occupant.startswith(ROOM)
    stanzas.answer_to(stanza)
    stanzas.xml_of(stanzas.answer_to(stanza))


def test_jids_are_prepared_for_comparison() -> None:
    assert stanzas.prepared("Lobby@Conference.Example/Me") == "lobby@conference.example/Me"
    assert stanzas.prepared("@example") is None
    assert stanzas.occupant_jid(ROOM, "a/b") == f"{ROOM}/a/b"
    assert stanzas.occupant_jid(ROOM, "x" * 1024) is None


def test_entering_asks_for_a_little_history_and_gives_the_password_if_there_is_one() -> None:
    entering = _written(stanzas.entering(OWN, "open <sesame>", None))
    assert entering.get("to") == OWN
    extension = entering.find(f"{{{stanzas.MUC}}}x")
    assert extension is not None
    history = extension.find(f"{{{stanzas.MUC}}}history")
    assert history is not None
    assert history.get("maxstanzas") == str(stanzas.HISTORY_ON_JOINING)
    assert extension.findtext(f"{{{stanzas.MUC}}}password") == "open <sesame>"
    assert "password" not in stanzas.xml_of(stanzas.entering(OWN, None, None))


def test_coming_back_asks_for_the_history_since_then_however_long() -> None:
    entering = _written(stanzas.entering(OWN, None, "2026-01-01T00:00:00.000Z"))
    history = entering.find(f"{{{stanzas.MUC}}}x/{{{stanzas.MUC}}}history")
    assert history is not None
    assert history.attrib == {"since": "2026-01-01T00:00:00.000Z"}


def test_leaving_is_a_presence_that_is_unavailable() -> None:
    assert _written(stanzas.leaving(OWN)).attrib == {
        "to": OWN,
        "type": "unavailable",
    }


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
    iq = _parsed(f"<iq type='{type_}' id='7' from='{ROOM}/Wilma'>{payload}</iq>")
    reply = stanzas.answer_to(iq)
    assert (reply.get("type"), reply.get("id"), reply.get("to")) == (answer, "7", f"{ROOM}/Wilma")
    if answer == "error":
        assert stanzas.error_of(reply).condition == "service-unavailable"
