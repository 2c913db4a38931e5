import pytest

from bridge.wire.names import MAX_JID_CHARACTERS
from bridge.wire.xmlstream import DamagedElement
from bridge.xmpp.model.events import (
    UNKNOWN,
    Event,
    NicknameChanged,
    OccupantJoined,
    OccupantLeft,
    RoomDestroyed,
    RoomError,
)
from bridge.xmpp.muc.reading import (
    MAX_PAYLOAD_CHARACTERS,
    MAX_PRESENCE_CHARACTERS,
    MAX_PRESENCE_PAYLOAD,
    read,
)
from tests.xmpp.elements import parsed
from tests.xmpp.reading import OWN, ROOM, USER, events, presence, presence_events


def test_presence_is_who_is_here_and_how() -> None:
    assert presence_events(
        f"<show>away</show><status>out</status><x {USER}>"
        "<item affiliation='owner' role='moderator' jid='w@example/home'/></x>"
    ) == [
        OccupantJoined(
            *(f"{ROOM}/Wilma", "Wilma", "moderator", "owner", "away", "out"),
            jid="w@example/home",
            sessions=1,
        )
    ]


def test_the_sessions_under_a_nickname_are_counted_by_their_addresses() -> None:
    items = "".join(f"<item jid='w@example/{name}'/>" for name in ("home", "phone", "home"))
    assert presence(OccupantJoined, f"<x {USER}>{items}<item/></x>").sessions == 2
    assert presence(OccupantJoined, f"<x {USER}><item/><item/></x>").sessions == 0


def test_of_several_status_texts_people_see_the_one_without_a_language() -> None:
    texts = "<status xml:lang='fr'>parti</status><status>out</status>"
    assert presence(OccupantJoined, f"{texts}<x {USER}><item/></x>").status == "out"


def test_the_extensions_in_presence_are_named_and_bounded() -> None:
    item = f"<x {USER}><item/></x><show>away</show><priority>1</priority>"
    avatar = "<x xmlns='vcard-temp:x:update'/><c xmlns='http://jabber.org/protocol/caps'/>"
    event = presence(OccupantJoined, f"{avatar}{item}<delay xmlns='urn:xmpp:delay'/>")
    assert event.payload == ("c (http://jabber.org/protocol/caps)", "x (vcard-temp:x:update)")
    many = "".join(f"<y xmlns='urn:{number:04}{'z' * 200}'/>" for number in range(100))
    event = presence(OccupantJoined, many + item)
    assert len(event.payload) == MAX_PRESENCE_PAYLOAD + 1
    assert event.payload[-1] == "... and 80 more"
    assert max(map(len, event.payload)) == MAX_PAYLOAD_CHARACTERS


@pytest.mark.parametrize(
    ("hats", "named"),
    [
        ("<hat title='Speaker' uri='urn:a'/><hat title='Host' uri='b'/>", ["Speaker", "Host"]),
        ("<hat name='http://example.com/hats#host' displayName='Host'/>", ["Host"]),
        ("<hat uri='http://example.com/hats#host'/><hat/>", ["http://example.com/hats#host"]),
        ("<hat title=''/>", []),
    ],
)
def test_the_titles_of_hats_are_named_whatever_their_namespace(hats: str, named: list[str]) -> None:
    for namespace in ("urn:xmpp:hats:0", "xmpp:prosody.im/protocol/hats:1"):
        event = presence(
            OccupantJoined, f"<hats xmlns='{namespace}'>{hats}</hats><x {USER}><item/></x>"
        )
        assert [*event.payload] == [*(f"hat: {each}" for each in named), f"hats ({namespace})"]
    many = "".join(f"<hat title='{number}{'z' * 200}'/>" for number in range(100))
    hats = f"<hats xmlns='urn:xmpp:hats:0'>{many}</hats>"
    event = presence(OccupantJoined, f"{hats}<x {USER}><item/></x>")
    assert len(event.payload) == MAX_PRESENCE_PAYLOAD + 1
    assert max(map(len, event.payload)) == MAX_PAYLOAD_CHARACTERS


def test_our_own_presence_is_told_by_its_status_code_whatever_the_nickname() -> None:
    item = "<item affiliation='none' role='participant'/>"
    event = presence(
        OccupantJoined,
        f"<x {USER}>{item}<status code='110'/><status code='210'/><status code='201'/></x>",
        f"{ROOM}/given",
    )
    assert event.self_
    assert event.codes == {110, 210, 201}


@pytest.mark.parametrize("code", ["", "x", "²", "٣٣٣", "1", "1100", "9" * 5000, "-10", "1.0"])
def test_a_status_code_that_is_none_is_passed_over(code: str) -> None:
    event = presence(OccupantJoined, f"<x {USER}><item/><status code='{code}'/><status/></x>")
    assert event.codes == frozenset()


def test_presence_without_what_the_room_adds_shows_no_role() -> None:
    event = presence(OccupantJoined, "<show>away</show>")
    assert (event.role, event.affiliation, event.show) == (UNKNOWN, UNKNOWN, "away")


def test_presence_of_the_room_itself_or_of_another_type_tells_nothing() -> None:
    assert presence_events(f"<x {USER}><item/></x>", ROOM) == []
    assert presence_events(f"<x {USER}><item/></x>", type_="subscribe") == []


def test_a_change_of_nickname_is_no_departure() -> None:
    changed = f"<x {USER}><item nick='a/b'/><status code='303'/></x>"
    assert presence_events(changed, type_="unavailable") == [
        NicknameChanged(f"{ROOM}/Wilma", "Wilma", "a/b")
    ]
    assert presence_events(changed, OWN, "unavailable") == [
        NicknameChanged(OWN, "Me", "a/b", self_=True)
    ]
    # A new nickname that can be none is a departure.
    for item in ("<item/>", "<item nick=''/>", f"<item nick='{'x' * (MAX_JID_CHARACTERS + 1)}'/>"):
        none = changed.replace("<item nick='a/b'/>", item)
        presence(OccupantLeft, none, type_="unavailable")


@pytest.mark.parametrize("actor", ["nick='Owner'", "jid='Owner'", "nick='Owner' jid='o@example'"])
def test_a_kick_says_who_and_why(actor: str) -> None:
    kick = (
        f"<x {USER}><item role='none'><actor {actor}/><reason>spam</reason></item>"
        "<status code='307'/></x>"
    )
    assert presence_events(kick, OWN, "unavailable") == [
        OccupantLeft(OWN, "Me", self_=True, codes=frozenset({307}), reason="spam", actor="Owner")
    ]


def test_the_end_of_the_room_names_its_venue() -> None:
    # ejabberd sends it without status code 110.
    destroy = f"<x {USER}><item/><destroy jid='new@muc'><reason>moved</reason></destroy></x>"
    assert presence_events(destroy, OWN, "unavailable") == [RoomDestroyed("moved", "new@muc")]
    (event,) = presence_events(destroy, type_="unavailable")
    assert isinstance(event, OccupantLeft)  # somebody else's copy of the same end
    assert presence_events(f"<x {USER}><destroy/></x>", OWN, "unavailable") == [RoomDestroyed()]


def test_a_refused_join_is_told_without_the_echo_that_prosody_leaves_out() -> None:
    error = (
        "<error type='cancel'><gone xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>xmpp:new@muc</gone>"
        "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>moved</text></error>"
    )
    assert presence_events(error, OWN, "error") == [RoomError("gone", "moved", "xmpp:new@muc")]
    assert presence_events("", ROOM, "error") == [RoomError("undefined-condition")]


SHORT = "x" * MAX_PRESENCE_CHARACTERS
LONG = f"{SHORT}x"


def test_the_texts_of_presence_are_cut_to_what_can_be_kept_of_everybody() -> None:
    event = presence(
        OccupantJoined,
        f"<show>{LONG}</show><status>{LONG}</status><x {USER}><item affiliation='{LONG}'"
        f" role='{LONG}'><actor nick='{LONG}'/><reason>{LONG}</reason></item></x>",
    )
    texts = (event.show, event.status, event.affiliation, event.role, event.actor, event.reason)
    assert texts == (SHORT,) * 6
    left = presence(OccupantLeft, f"<status>{SHORT}</status><x {USER}/>", type_="unavailable")
    assert left.status == SHORT


@pytest.mark.parametrize(("length", "kept"), [(MAX_JID_CHARACTERS, True), (3_072, False)])
def test_a_real_jid_that_is_too_long_for_one_is_none(length: int, kept: bool) -> None:
    jid = "j" * length
    event = presence(OccupantJoined, f"<x {USER}><item jid='{jid}'/></x>")
    assert event.jid == (jid if kept else None)
    told = events(
        f"<message from='{ROOM}'><x {USER}><item jid='{jid}' affiliation='member'/></x></message>"
    )
    assert bool(told) is kept


def test_who_comes_or_goes_by_presence_that_cannot_be_read_is_seen_all_the_same() -> None:
    def told(type_: str) -> Event:
        element = parsed(f"<presence from='{ROOM}/Eve'{type_}><status>s</status></presence>")
        damaged = DamagedElement(element, "odd", "not-well-formed")
        return list(read(damaged, room=ROOM, own=OWN))[1]

    came, went = told(""), told(" type='unavailable'")
    assert came == OccupantJoined(f"{ROOM}/Eve", "Eve", "unknown", "unknown")
    assert isinstance(went, OccupantLeft)
    assert not went.self_
