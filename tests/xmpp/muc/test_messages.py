import pytest

from bridge.wire import names
from bridge.xmpp.model.events import (
    MessageReceived,
    OccupantError,
    SendFailed,
    Source,
    SubjectChanged,
)
from bridge.xmpp.muc import reading
from tests.xmpp.reading import DELAY, OWN, ROOM, events, message, message_events


def test_a_message_is_who_said_what_and_shares_their_address_in_memory() -> None:
    said = message("<body>hello\n&lt;&amp;</body>")
    assert said == MessageReceived(f"{ROOM}/Wilma", "Wilma", "hello\n<&", id="m1")
    other = message("<body>other</body>")
    assert said.from_ is other.from_
    assert said.sender is other.sender


def test_of_several_of_the_room_the_last_stamp_and_the_first_id_count() -> None:
    event = message(
        "<body>x</body>"
        + "".join(
            f"<delay xmlns='{names.DELAY}' from='{by}' stamp='2026-01-0{day}T00:00:00Z'/>"
            f"<stanza-id xmlns='{names.STANZA_ID}' by='{by}' id='{day}'/>"
            for day, by in ((1, "forger@localhost"), (2, ROOM), (3, ROOM))
        )
    )
    assert (event.delayed_from, event.stanza_id) == ("2026-01-03T00:00:00.000Z", "2")
    assert event.source is Source.HISTORY


@pytest.mark.parametrize(
    ("sender", "type_", "nickname", "own"),
    [
        (OWN, "groupchat", "Me", True),
        (f"{ROOM}/me", "groupchat", "me", False),
        (f"{ROOM}/a/b@c/d", "groupchat", "a/b@c/d", False),
        (f"{ROOM}/Wilma", "chat", "Wilma", False),
    ],
    ids=["ourselves", "another case", "slashes", "in private"],
)
def test_a_message_has_a_sender_and_type(sender: str, type_: str, nickname: str, own: bool) -> None:
    event = message("<body>hello</body>", sender, type_)
    assert (event.sender, event.type, event.own) == (nickname, type_, own)


WILMAS = "wilma@example/home"
NEW_YEAR, LATER = "2020-01-01T00:00:00.000Z", "2021-01-01T00:00:00.000Z"
BY_WILMA = f"<delay xmlns='urn:xmpp:delay' from='{WILMAS}' stamp='{LATER}'/>"
FORMER = "<x xmlns='jabber:x:delay' {}stamp='20210101T00:00:00'/>"


@pytest.mark.parametrize(
    ("stamps", "stamp", "foreign", "by"),
    [
        (DELAY.format(ROOM), NEW_YEAR, None, None),
        (DELAY.format(ROOM.upper()), NEW_YEAR, None, None),
        (DELAY.format(f"{ROOM}/Wilma"), NEW_YEAR, NEW_YEAR, f"{ROOM}/Wilma"),
        (DELAY.format(""), NEW_YEAR, NEW_YEAR, None),
        (BY_WILMA, LATER, LATER, WILMAS),
        (DELAY.format(ROOM) + BY_WILMA, NEW_YEAR, None, None),
        (BY_WILMA + DELAY.format(ROOM), NEW_YEAR, None, None),
        (DELAY.format("gateway.example") + BY_WILMA, LATER, LATER, WILMAS),
        (FORMER.format(f"from='{ROOM}' "), LATER, None, None),
        (FORMER.format(f"from='{WILMAS}' "), LATER, LATER, WILMAS),
        (FORMER.format(""), LATER, LATER, None),
        ("<delay xmlns='urn:xmpp:delay' stamp='soon'/>", "soon", "soon", None),
        ("<x xmlns='jabber:x:delay' stamp='soon'/>", "soon", "soon", None),
        ("<delay xmlns='urn:xmpp:delay'/>", None, None, None),
        ("<delay xmlns='urn:other' stamp='2020-01-01T00:00:00Z'/>", None, None, None),
    ],
)
def test_of_several_stamps_the_rooms_counts_before_the_last(
    stamps: str, stamp: str | None, foreign: str | None, by: str | None
) -> None:
    event = message(f"<body>old</body>{stamps}")
    assert event.source is (Source.LIVE if stamp is None else Source.HISTORY)
    assert (event.delayed_from, event.stamped_at, event.stamped_by) == (stamp, foreign, by)


def test_the_rooms_stanza_id_counts_and_a_forged_one_does_not() -> None:
    ids = "".join(
        f"<stanza-id xmlns='urn:xmpp:sid:0' by='{by}' id='{id_}'/>"
        for by, id_ in (("wilma@example", "forged"), (f"{ROOM}/Wilma", "forged"), (ROOM, "true"))
    )
    event = message(f"<body>hello</body>{ids}")
    assert event.stanza_id == "true"
    event = message(f"<body>hello</body>{ids}", type_="chat")
    assert event.stanza_id is None
    event = message(f"<body>hello</body>{ids.replace(ROOM, 'evil@example')}")
    assert event.stanza_id is None


def test_a_subject_is_no_message_with_or_without_a_delay_and_may_be_nobodys() -> None:
    for delay in ("", DELAY.format(ROOM)):
        told = message_events(f"<subject>tests</subject>{delay}")
        assert told == [SubjectChanged("tests", "Wilma")]
    assert message_events("<subject/>", ROOM) == [SubjectChanged("", None)]


PLUMBING = (
    f"{DELAY.format(ROOM)}<x xmlns='jabber:x:delay'/><stanza-id xmlns='urn:xmpp:sid:0' id='1'/>"
    "<origin-id xmlns='urn:xmpp:sid:0' id='2'/><occupant-id xmlns='urn:xmpp:occupant-id:0'/>"
    "<no-store xmlns='urn:xmpp:hints'/><x xmlns='http://jabber.org/protocol/muc#user'/>"
    "<thread>3</thread>"
)
CHAT_STATES = "http://jabber.org/protocol/chatstates"
COMPOSING = f"<composing xmlns='{CHAT_STATES}'/>"
OMEMO = "<encrypted xmlns='eu.siacs.conversations.axolotl'><header sid='1'/></encrypted>"
EME = "<encryption xmlns='urn:xmpp:eme:0' namespace='{}' {}/>"


@pytest.mark.parametrize("type_", ["groupchat", "chat"])
@pytest.mark.parametrize(
    ("inner", "payload"),
    [
        (
            "<displayed xmlns='urn:xmpp:chat-markers:0' id='1'/>" + COMPOSING,
            ["displayed (urn:xmpp:chat-markers:0)", f"composing ({CHAT_STATES})"],
        ),
        ("<x xmlns='jabber:x:oob'/>" * 2, ["x (jabber:x:oob)"]),
        ("<body xmlns='evil'>x</body>", ["body (evil)"]),
        ("<show>x</show><x xmlns=''/>", ["show", "x ()"]),
        (EME.format("", "name='?'"), ["encryption (urn:xmpp:eme:0)"]),
        (f"<x xmlns='{'n' * 5_000}'/>", [f"x ({'n' * 5_000})"[: reading.MAX_PAYLOAD_CHARACTERS]]),
    ],
)
def test_without_a_body_it_names_elements(inner: str, payload: list[str], type_: str) -> None:
    for beside in ("", PLUMBING):
        event = message(beside + inner, type_=type_)
        assert (event.body, event.encrypted, list(event.payload)) == ("", None, payload)


@pytest.mark.parametrize("inner", ["", PLUMBING, "<error/>", COMPOSING, OMEMO])
def test_plumbing_tells_nothing_nor_does_the_room_itself_without_a_body(inner: str) -> None:
    assert message_events(inner, ROOM) == []
    assert bool(message_events(inner)) is (inner in {COMPOSING, OMEMO})


@pytest.mark.parametrize("inner", [COMPOSING, OMEMO])
def test_what_stands_beside_a_subject_is_no_message(inner: str) -> None:
    assert message_events(f"<subject>tests</subject>{inner}") == [SubjectChanged("tests", "Wilma")]
    # XEP-0045, section 8.1: a subject comes without a body, and from the room to all.
    assert message(f"<subject>tests</subject>{inner}<body>hello</body>").body == "hello"
    assert "subject" in message(f"<subject>psst</subject>{COMPOSING}", type_="chat").payload


@pytest.mark.parametrize("body", ["", "<body>I sent you a message that you cannot read.</body>"])
@pytest.mark.parametrize(
    ("inner", "encrypted"),
    [
        (OMEMO, "OMEMO"),
        ("<encrypted xmlns='urn:xmpp:omemo:2'/>", "OMEMO"),
        ("<openpgp xmlns='urn:xmpp:openpgp:0'>x</openpgp>", "OpenPGP"),
        ("<x xmlns='jabber:x:encrypted'>x</x>", "Legacy OpenPGP"),
        (EME.format("eu.siacs.conversations.axolotl", "name='My own'") + OMEMO, "OMEMO"),
        (EME.format("urn:xmpp:otr:0", ""), "OTR"),
        (OMEMO + EME.format("urn:new", "name='New one'"), "New one"),
        (EME.format("urn:new", ""), "urn:new"),
        (EME.format("urn:new", f"name='{'n' * 5_000}'"), "n" * reading.MAX_PAYLOAD_CHARACTERS),
    ],
)
def test_an_encrypted_message_says_so_in_any_case(inner: str, encrypted: str, body: str) -> None:
    event = message(body + COMPOSING + inner)
    assert (event.encrypted, event.payload) == (encrypted, ())
    assert bool(event.body) is bool(body)


@pytest.mark.parametrize(
    ("body", "encrypted"),
    [
        ("?OTR:AAMDx.", "OTR"),
        ("?OTRv23? has OTR", None),
        ("-----BEGIN PGP MESSAGE-----\n\nhQE", "OpenPGP"),
        ("-----BEGIN PGP SIGNATURE-----", None),
    ],
)
def test_an_encrypted_body_may_need_no_element(body: str, encrypted: str | None) -> None:
    event = message(f"<body>{body}</body>{COMPOSING}")
    assert (event.encrypted, event.payload) == (encrypted, ())


@pytest.mark.parametrize("over", [0, 1, 5_000])
def test_of_many_elements_so_many_are_named_and_the_rest_counted(over: int) -> None:
    many = reading.MAX_PAYLOAD + over
    event = message("".join(f"<x{number} xmlns='urn:x'/>" for number in range(many)))
    named = event.payload[: reading.MAX_PAYLOAD]
    assert named == tuple(f"x{number} (urn:x)" for number in range(reading.MAX_PAYLOAD))
    more = (f"... and {over} more",) if over else ()
    assert event.payload[reading.MAX_PAYLOAD :] == more


ERROR = (
    "<body>mine</body><error type='auth'>"
    "<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
    "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no voice</text></error>"
)


def test_a_message_that_comes_back_is_a_failure_and_never_room_traffic() -> None:
    unnamed = SendFailed("m1", "undefined-condition")
    assert message_events(ERROR, ROOM, "error") == [SendFailed("m1", "forbidden", "no voice")]
    assert message_events("<body>mine</body>", ROOM, "error") == [unnamed]
    by = ERROR.replace("<error", "<error by='conference.example'")
    (told,) = message_events(by, ROOM, "error")
    assert told == SendFailed("m1", "forbidden", "no voice", "conference.example")


def test_an_error_from_an_occupant_is_theirs_and_no_message_that_the_room_returned() -> None:
    robot = f"{ROOM}/Robot"
    theirs = OccupantError(robot, "Robot", "forbidden", "no voice", "m1")
    assert message_events(ERROR, robot, "error") == [theirs]
    bare = events(f"<message from='{robot}' type='error'/>")
    assert bare == [OccupantError(robot, "Robot", "undefined-condition")]
    for sender in ("evil@example", f"{ROOM}.evil/Robot", "example", ""):
        assert message_events(ERROR, sender, "error") == []


FRENCH, PLAIN, ENGLISH, GERMAN = (
    f"<body{language}>{text}</body>"
    for language, text in (
        (" xml:lang='fr'", "Bonjour"),
        ("", "Hello"),
        (" xml:lang='en-GB'", "Good day"),
        (" xml:lang='de'", "Tag"),
    )
)


@pytest.mark.parametrize(
    ("inner", "of_stanza", "body", "languages"),
    [
        (FRENCH + PLAIN, "", "Hello", ("fr",)),
        (PLAIN + FRENCH + GERMAN, "", "Hello", ("fr", "de")),
        (FRENCH, "", "Bonjour", ()),
        (FRENCH + GERMAN, "", "Bonjour", ("de",)),
        (FRENCH + GERMAN, "de", "Tag", ("fr",)),
        (FRENCH + GERMAN + ENGLISH, "", "Good day", ("fr", "de")),
        (FRENCH + GERMAN + ENGLISH, "DE", "Tag", ("fr", "en-GB")),
        (PLAIN + GERMAN, "de", "Hello", ("de",)),
        ("<body/>" + FRENCH, "", "", ("fr",)),
        ("<body xml:lang=''>a</body>" + FRENCH, "", "a", ("fr",)),
        (PLAIN + "<body>other</body>", "", "Hello", ("und",)),
        (PLAIN + "<body>other</body>", "fr", "Hello", ("fr",)),
        (PLAIN + FRENCH + FRENCH, "", "Hello", ("fr",)),
    ],
)
def test_of_several_bodies_people_see_the_one_without_a_language(
    inner: str, of_stanza: str, body: str, languages: tuple[str, ...]
) -> None:
    attribute = f" xml:lang='{of_stanza}'" if of_stanza else ""
    start = f"<message from='{ROOM}/Wilma' type='groupchat' id='m1'{attribute}>"
    (event,) = events(f"{start}{inner}</message>")
    assert isinstance(event, MessageReceived)
    assert (event.body, event.languages) == (body, languages)


def test_the_languages_of_other_bodies_are_bounded() -> None:
    long = "x" * (reading.MAX_PAYLOAD_CHARACTERS + 1)
    many = "".join(
        f"<body xml:lang='{name}'>x</body>"
        for name in [long, *map(str, range(reading.MAX_PAYLOAD))]
    )
    languages = message(PLAIN + many).languages
    assert languages[0] == long[:-1]
    assert (languages[-1], len(languages)) == ("... and 1 more", reading.MAX_PAYLOAD + 1)


def test_a_subject_in_several_languages_is_the_one_without_a_language() -> None:
    both = "<subject xml:lang='fr'>Essais</subject><subject>tests</subject>"
    assert message_events(both) == [SubjectChanged("tests", "Wilma")]


FALLBACK = "<fallback xmlns='urn:xmpp:fallback:0' for='urn:xmpp:reply:0'><body/></fallback>"
XHTML = (
    "<html xmlns='http://jabber.org/protocol/xhtml-im'>"
    "<body xmlns='http://www.w3.org/1999/xhtml'>other</body></html>"
)


@pytest.mark.parametrize(
    ("inner", "marked"),
    [
        (PLAIN + FALLBACK, ("fallback",)),
        (PLAIN + FALLBACK.replace("urn:xmpp:", "urn:xmpp:feature-", 1), ("fallback",)),
        (PLAIN + XHTML, ("xhtml",)),
        (PLAIN + FALLBACK + XHTML + FALLBACK, ("fallback", "xhtml")),
        (PLAIN, ()),
        (PLAIN + f"<x xmlns='urn:other'>{FALLBACK}{XHTML}</x>", ()),
        (PLAIN + "<html xmlns='urn:other'/><fallback xmlns='urn:other'/>", ()),
    ],
)
def test_what_people_see_instead_of_a_body_is_marked(inner: str, marked: tuple[str, ...]) -> None:
    event = message(inner)
    assert (event.body, event.marked) == ("Hello", marked)


def test_what_people_see_of_a_message_without_a_body_is_its_payload() -> None:
    event = message(XHTML)
    assert (event.payload, event.marked) == (("html (http://jabber.org/protocol/xhtml-im)",), ())
