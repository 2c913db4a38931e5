from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.xmpp import stanzas
from bridge.xmpp.events import (
    AffiliationChanged,
    Event,
    MessageReceived,
    NicknameChanged,
    OccupantJoined,
    OccupantLeft,
    RoomConfigured,
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


def test_all_that_one_occupant_says_shares_their_address_in_memory() -> None:
    (one,), (other,) = _message("<body>one</body>"), _message("<body>other</body>")
    assert isinstance(one, MessageReceived)
    assert isinstance(other, MessageReceived)
    assert one.occupant is other.occupant
    assert one.nickname is other.nickname


def test_the_first_of_several_stamps_and_ids_of_the_room_counts() -> None:
    (message,) = _message(
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


CORRECT = "<replace xmlns='urn:xmpp:message-correct:0' id='{}'/>"
REPLY = "<reply xmlns='urn:xmpp:reply:0' to='lobby@conference.example/Betty' id='{}'/>"
REACT = "<reactions xmlns='urn:xmpp:reactions:0' id='{}'>{}</reactions>"
REACTION = "<reaction>{}</reaction>"
RETRACT = "<retract xmlns='urn:xmpp:message-retract:1' id='{}'/>"
OLD = "<apply-to xmlns='urn:xmpp:fasten:0' id='{}'>{}</apply-to>"
OLD_RETRACT = "<retract xmlns='urn:xmpp:message-retract:0'/>"
OLD_MODERATED = (
    "<moderated xmlns='urn:xmpp:message-moderate:0' by='lobby@conference.example/Mod'>"
    "<retract xmlns='urn:xmpp:message-retract:0'/><reason>spam</reason></moderated>"
)
MODERATED = (
    "<retract xmlns='urn:xmpp:message-retract:1' id='{}'>"
    "<moderated xmlns='urn:xmpp:message-moderate:1' by='lobby@conference.example/Mod'/>"
    "<reason>spam</reason></retract>"
)


def _about(inner: str, sender: str = f"{ROOM}/Wilma") -> dict[str, object]:
    """Return what one message says of others; nothing if there was no message in it."""
    found = [one for one in _message(inner, sender) if isinstance(one, MessageReceived)]
    if not found:
        return {}
    (message,) = found
    names = ("replaces", "reply_to", "reacts_to", "reactions", "retracts")
    return {name: one for name in names if (one := getattr(message, name)) not in (None, ())}


@pytest.mark.parametrize(
    ("inner", "about"),
    [
        (CORRECT.format("7"), {"replaces": "7"}),
        (REPLY.format("7"), {"reply_to": "7"}),
        (REACT.format("7", REACTION.format("x")), {"reacts_to": "7", "reactions": ("x",)}),
        (REACT.format("7", ""), {"reacts_to": "7"}),
        (RETRACT.format("7"), {"retracts": "7"}),
        (OLD.format("7", OLD_RETRACT), {"retracts": "7"}),
        (MODERATED.format("7"), {"retracts": "7"}),
        (REPLY.format("1") + CORRECT.format("2"), {"replaces": "2", "reply_to": "1"}),
    ],
)
@pytest.mark.parametrize("body", ["", "<body>hello</body>"])
def test_a_message_tells_which_other_it_concerns(
    inner: str, about: dict[str, object], body: str
) -> None:
    assert _about(body + inner) == about
    assert _about(inner + body) == about


@pytest.mark.parametrize("inner", [OLD.format("7", OLD_MODERATED), MODERATED.format("7")])
def test_a_message_that_a_moderator_took_back_is_told_by_the_room(inner: str) -> None:
    assert _message(inner, ROOM) == [MessageReceived(ROOM, "", "", id="m1", retracts="7")]


def test_no_occupant_moderates_in_the_rooms_name() -> None:
    assert _message(OLD.format("7", OLD_MODERATED)) == []
    # This one is a retraction too, and those are told as their sender's.
    (event,) = _message(MODERATED.format("7"))
    assert isinstance(event, MessageReceived)
    assert (event.nickname, event.retracts) == ("Wilma", "7")


@pytest.mark.parametrize(
    "inner",
    [
        CORRECT.format(""),
        "<replace xmlns='urn:xmpp:message-correct:0'/>",
        "<replace xmlns='urn:other' id='7'/>",
        "<replace id='7'/>",
        REPLY.format(""),
        REACT.format("", REACTION.format("x")),
        RETRACT.format(""),
        "<retract xmlns='urn:xmpp:message-retract:0' id='7'/>",
        OLD.format("7", ""),
        OLD.format("", OLD_RETRACT),
        OLD.format("7", "<retract xmlns='urn:other'/>"),
        OLD.format("7", "<external xmlns='urn:xmpp:fasten:0'/>"),
        f"<x xmlns='urn:other'>{CORRECT.format('7')}</x>",
        f"<forwarded xmlns='urn:xmpp:forward:0'>{RETRACT.format('7')}</forwarded>",
        f"<x xmlns='urn:other'>{REACT.format('7', REACTION.format('x'))}</x>",
        OLD.format("7", f"<x xmlns='urn:other'>{OLD_RETRACT}</x>"),
    ],
)
def test_what_names_no_message_or_stands_elsewhere_concerns_none(inner: str) -> None:
    assert _message(inner) == []
    assert _about(f"<body>hello</body>{inner}") == {}


@pytest.mark.parametrize(("given", "kept"), [(32, 32), (33, 32), (5_000, 32)])
def test_of_many_reactions_the_first_are_kept(given: int, kept: int) -> None:
    many = "".join(REACTION.format(number) for number in range(given))
    about = _about(REACT.format("7", many))
    assert about["reactions"] == tuple(str(number) for number in range(kept))
    assert kept <= stanzas.MAX_REACTIONS


def test_reactions_inside_others_are_none() -> None:
    nested = f"<x xmlns='urn:other'>{REACTION.format('x')}</x>"
    assert _about(REACT.format("7", nested + REACTION.format("y"))) == {
        "reacts_to": "7",
        "reactions": ("y",),
    }


def test_a_private_message_may_concern_another_one() -> None:
    (event,) = _message(f"<body>psst</body>{CORRECT.format('7')}", type_="chat")
    assert isinstance(event, MessageReceived)
    assert (event.type, event.replaces) == ("chat", "7")


def test_an_old_message_keeps_what_it_concerns() -> None:
    (event,) = _message(REACT.format("7", REACTION.format("x")) + DELAY.format(ROOM))
    assert isinstance(event, MessageReceived)
    assert (event.source, event.reacts_to) == (Source.HISTORY, "7")


def test_a_subject_may_not_hide_a_message() -> None:
    events = _message(f"<subject>tests</subject>{RETRACT.format('7')}")
    assert [type(event) for event in events] == [SubjectChanged, MessageReceived]


def _notice(*inner: str) -> str:
    return f"<x {USER}>{''.join(inner)}</x>"


CONFIGURED = _notice("<status code='104'/>", "<status code='172'/>")
AFFILIATED = _notice(
    "<item jid='betty@example' affiliation='member' role='none'>",
    "<actor nick='Owner'/><reason>welcome</reason></item>",
)


@pytest.mark.parametrize("type_", ["groupchat", "normal", "chat", "headline"])
def test_the_room_tells_that_its_configuration_changed(type_: str) -> None:
    assert _message(CONFIGURED, ROOM, type_) == [RoomConfigured(frozenset({104, 172}))]


def test_the_room_tells_of_people_who_are_not_in_it() -> None:
    assert _message(AFFILIATED, ROOM) == [
        AffiliationChanged("betty@example", "member", "welcome", "Owner")
    ]


@pytest.mark.parametrize("inner", [CONFIGURED, AFFILIATED])
@pytest.mark.parametrize(
    "sender", [f"{ROOM}/Wilma", f"{ROOM}/{ROOM}", "evil@example", f"{ROOM}.evil", "example", OWN]
)
def test_nobody_but_the_room_tells_of_it(inner: str, sender: str) -> None:
    assert _message(inner, sender) == []


@pytest.mark.parametrize("inner", [CONFIGURED, AFFILIATED])
def test_what_comes_back_as_an_error_tells_nothing_of_the_room(inner: str) -> None:
    assert _message(inner, ROOM, "error") == [SendFailed("m1", "undefined-condition")]


@pytest.mark.parametrize(
    "inner",
    [
        _notice(),
        _notice("<status/>", "<status code='x'/>"),
        _notice("<item affiliation='member'/>"),
        _notice("<item jid='' affiliation='member'/>"),
        _notice("<item jid='betty@example'/>"),
        _notice("<invite from='betty@example'/>"),
        f"<y xmlns='urn:other'>{CONFIGURED}</y>",
        "<x xmlns='urn:other'><status code='104'/></x>",
    ],
)
def test_a_notice_that_says_nothing_is_none(inner: str) -> None:
    assert _message(inner, ROOM) == []


def test_a_change_of_role_says_who_and_why() -> None:
    (event,) = _presence(
        f"<x {USER}><item role='visitor' affiliation='none'>"
        "<actor nick='Owner'/><reason>noisy</reason></item></x>"
    )
    assert isinstance(event, OccupantJoined)
    assert (event.role, event.actor, event.reason) == ("visitor", "Owner", "noisy")


def test_a_new_nickname_is_prepared_as_the_presence_under_it_will_be() -> None:
    changed = f"<x {USER}><item nick='\uff37ilma'/><status code='303'/></x>"
    (event,) = _presence(changed, type_="unavailable")
    assert isinstance(event, NicknameChanged)
    (entered,) = _presence(f"<x {USER}><item/></x>", f"{ROOM}/\uff37ilma")
    assert isinstance(entered, OccupantJoined)
    assert entered.nickname == event.new_nickname


@pytest.mark.parametrize("nickname", ["", "\u00ad", "x" * 1100])
def test_a_new_nickname_that_can_be_none_is_a_departure(nickname: str) -> None:
    changed = f"<x {USER}><item nick='{nickname}'/><status code='303'/></x>"
    (event,) = _presence(changed, type_="unavailable")
    assert isinstance(event, OccupantLeft)
