import asyncio
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given

from bridge.wire.names import DATA_FORMS, DISCO_INFO, DISCO_ITEMS, MUC, StanzaError
from bridge.xmpp.link.stanzas import MAX_DIGITS, IqError, whole_number
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.queries import disco
from bridge.xmpp.queries.disco import (
    ROOM_INFO,
    Description,
    Field,
    Identity,
    Item,
    Software,
    Unanswered,
    discover,
    room_configuration,
)
from tests.xmpp.elements import parsed, trees
from tests.xmpp.played_connection import Answer, PlayedConnection, refused

SOON = 30.0


INFO = f"<iq type='result'><query xmlns='{DISCO_INFO}'>{{}}</query></iq>"


def _info(inner: str) -> Element:
    return parsed(INFO.format(inner))


def _form(fields: str, kind: str = ROOM_INFO, type_: str = "result") -> str:
    hidden = f"<field var='FORM_TYPE' type='hidden'><value>{kind}</value></field>" if kind else ""
    return f"<x xmlns='{DATA_FORMS}' type='{type_}'>{hidden}{fields}</x>"


def _field(name: str, *values: str) -> str:
    return f"<field var='{name}'>{''.join(f'<value>{each}</value>' for each in values)}</field>"


def test_a_description_has_identities_features_and_fields() -> None:
    told = disco.description_in(
        _info(
            "<identity category='conference' type='text' name='Lobby'/>"
            "<identity category='directory' type='chatroom'/>"
            "<feature var='muc_open'/><feature var='muc_open'/><feature var='urn:xmpp:ping'/>"
            "<feature/>"
            + _form(_field("muc#roominfo_occupants", "2") + _field("a", "1", "2"))
            + _form("<field><value>x</value></field><field var='b'/>", kind="")
        )
    )
    assert told == Description(
        (Identity("conference", "text", "Lobby"), Identity("directory", "chatroom")),
        ("muc_open", "urn:xmpp:ping"),
        (
            Field(ROOM_INFO, "muc#roominfo_occupants", ("2",)),
            Field(ROOM_INFO, "a", ("1", "2")),
            Field("", "b", ()),
        ),
    )
    assert told.is_room


def test_what_is_not_of_the_standard_tells_nothing() -> None:
    for answer in (
        "<iq type='result'/>",
        "<iq type='result'><query xmlns='urn:evil'><feature var='x'/></query></iq>",
        INFO.format("<feature xmlns='urn:evil' var='x'/><x xmlns='urn:evil' type='result'/>"),
        INFO.format(_form(_field("a", "b"), type_="form")),
    ):
        assert disco.description_in(parsed(answer)) == Description()


def test_software_and_uptime_are_what_the_answers_say() -> None:
    version = parsed(
        "<iq><query xmlns='jabber:iq:version'><name>Prosody</name><version>1</version></query></iq>"
    )
    assert disco.software_in(version) == Software("Prosody", "1", None)
    assert disco.software_in(parsed("<iq><query xmlns='jabber:iq:version'/></iq>")) is None
    assert disco.software_in(parsed("<iq/>")) is None
    last = "<iq><query xmlns='jabber:iq:last' seconds='{}'/></iq>"
    assert disco.seconds_in(parsed(last.format("903"))) == 903
    assert disco.seconds_in(parsed(last.format("-1"))) is None
    assert disco.seconds_in(parsed("<iq/>")) is None


def test_a_number_is_one_only_up_to_its_bound() -> None:
    assert whole_number("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
    for odd in ("9" * (MAX_DIGITS + 1), "", None, "-1", "1.5", "²", "٣", "0x1", "1_0"):
        assert whole_number(odd) is None


def _room(*features: str, fields: str = "") -> Description:
    named = "".join(f"<feature var='{each}'/>" for each in features)
    return disco.description_in(_info(f"<identity category='conference'/>{named}{fields}"))


def test_a_room_is_set_up_as_its_features_and_its_form_say() -> None:
    said = {"description": "Tests", "occupants": "7", "lang": "en", "logs": "https://logs.example/"}
    fields = [_field(f"muc#roominfo_{name}", value) for name, value in said.items()]
    form = _form("".join([*fields, _field("muc#roomconfig_roomname", "Lobby")]))
    features = ["muc_hidden", "muc_nonanonymous", "urn:xmpp:mam:2", "muc_membersonly"]
    features += ["muc_moderated", "muc_persistent", "muc_passwordprotected"]
    assert room_configuration(_room(*features, fields=form)) == {
        "title": "Lobby",
        "description": "Tests",
        "occupants": 7,
        "language": "en",
        "logs": "https://logs.example/",
        "public": False,
        "moderated": True,
        "members_only": True,
        "persistent": True,
        "password_protected": True,
        "anonymity": "non-anonymous",
        "archived": True,
    }
    features = ["muc_public", "muc_unmoderated", "muc_open", "muc_temporary", "muc_unsecured"]
    other = room_configuration(_room(*features, "muc_semianonymous"))
    assert (other["public"], other["moderated"], other["members_only"]) == (True, False, False)
    assert (other["persistent"], other["password_protected"]) == (False, False)
    assert (other["anonymity"], other["archived"]) == ("semi-anonymous", False)


def test_what_a_room_does_not_say_for_certain_is_not_told() -> None:
    for features in ((), ("muc_open", "muc_membersonly")):
        told = room_configuration(_room(*features))
        assert (told["members_only"], told["anonymity"]) == (None, None)
    for count, kind in (("7", "urn:evil"), ("9" * 5000, ROOM_INFO)):
        fields = _form(_field("muc#roominfo_occupants", count), kind=kind)
        assert room_configuration(_room(fields=fields))["occupants"] is None


def _items(inner: str) -> Element:
    return parsed(f"<iq type='result'><query xmlns='{DISCO_ITEMS}'>{inner}</query></iq>")


def test_items_are_told_in_their_order_with_their_names_and_what_is_no_jid_is_left_out() -> None:
    answer = _items(
        "<item jid='B@Conference.example' name='Bees'/><item jid='a@conference.example' name=''/>"
        "<item jid='@'/><item/><x jid='c@conference.example'/>"
    )
    assert disco.items_in(answer) == (
        Item("b@conference.example", "Bees"),
        Item("a@conference.example", None),
    )
    assert disco.items_in(parsed("<iq/>")) == disco.items_in(None) == ()


ANSWERS = trees(
    ["query", "feature", "identity", "x", "field", "value", "iq", "seconds"],
    [DISCO_INFO, DISCO_ITEMS, DATA_FORMS, disco.VERSION, disco.LAST, "jabber:client", "urn:other"],
    ["var", "type", "category", "name", "seconds"],
    ["FORM_TYPE", "result", "conference", "muc#roominfo_occupants"],
)


@given(ANSWERS)
def test_no_answer_breaks_the_reading_of_it(answer: Element) -> None:
    query = _info("")
    query[0].append(answer)
    for iq in (answer, query):
        room_configuration(disco.description_in(iq))
        disco.software_in(iq)
        disco.seconds_in(iq)
        disco.items_in(iq)


async def _inform(played: PlayedConnection, address: str, *, is_server: bool) -> disco.Information:
    async with asyncio.timeout(SOON):
        return await discover(played.connection, address, is_server=is_server)


REFUSED = refused("service-unavailable", "no")
SERVICE = _info(
    "<identity category='conference' type='text'/>"
    f"<feature var='{MUC}'/><feature var='{disco.VERSION}'/>"
)
SILENT: dict[str, Answer] = dict.fromkeys((DISCO_INFO, disco.VERSION, disco.LAST))


async def test_what_a_server_does_not_answer_is_told_and_the_rest_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(disco, "ANSWER_SECONDS", 0.05)
    answers: dict[str, Answer] = {DISCO_INFO: _info("<feature var='a'/>"), disco.LAST: REFUSED}
    played = PlayedConnection(SILENT | answers)
    told = await _inform(played, "b.example", is_server=True)
    assert told.description.features == ("a",)
    assert told.unanswered == (
        Unanswered(disco.VERSION, None),
        Unanswered(disco.LAST, REFUSED.error),
    )
    told = await _inform(PlayedConnection(SILENT), "b.example", is_server=True)
    assert told.unanswered == tuple(Unanswered(question, None) for question in SILENT)
    assert (told.description, told.answered) == (Description(), False)


async def test_all_queries_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disco, "ANSWER_SECONDS", 0.5)
    played = PlayedConnection(
        {DISCO_INFO: SERVICE, DISCO_ITEMS: _items(""), disco.VERSION: _info("")}
    )
    played.seconds = 0.3
    told = await _inform(played, "conference.example", is_server=False)
    assert (told.answered, told.description.has_rooms) == (True, True)
    assert told.unanswered == (Unanswered(DISCO_ITEMS, None), Unanswered(disco.VERSION, None))


async def test_others_are_asked_for_what_they_announce_and_nobodys_idleness_is_an_uptime() -> None:
    announced = _info("<feature var='jabber:iq:version'/><feature var='jabber:iq:last'/>")
    version = parsed("<iq><query xmlns='jabber:iq:version'><name>X</name></query></iq>")
    last = parsed("<iq><query xmlns='jabber:iq:last' seconds='9'/></iq>")
    answers = {DISCO_INFO: announced, disco.VERSION: version, disco.LAST: last}
    for address, says, asked, uptime in (
        ("w@b.example/home", announced, [DISCO_INFO, disco.VERSION], None),
        ("b.example", announced, [DISCO_INFO, disco.VERSION, disco.LAST], 9),
        ("b.example", _info(""), [DISCO_INFO], None),
    ):
        played = PlayedConnection(answers | {DISCO_INFO: says})
        told = await _inform(played, address, is_server=False)
        assert [each for _, each in played.asked] == asked
        assert told.uptime_seconds == uptime
        assert (told.software == Software("X", None, None)) is (disco.VERSION in asked)


async def test_a_room_service_is_asked_for_its_rooms_and_a_room_is_not() -> None:
    answers: dict[str, Answer] = {
        DISCO_INFO: SERVICE,
        DISCO_ITEMS: _items("<item jid='a@conference.example' name='A'/>"),
        disco.VERSION: REFUSED,
        disco.LAST: REFUSED,
    }
    for is_server in (True, False):
        told = await _inform(PlayedConnection(answers), "conference.example", is_server=is_server)
        assert told.rooms == (Item("a@conference.example", "A"),)
    played = PlayedConnection(answers)
    assert (await _inform(played, "a@conference.example", is_server=False)).rooms == ()
    assert DISCO_ITEMS not in [each for _, each in played.asked]
    silent = PlayedConnection(answers | {DISCO_ITEMS: REFUSED})
    told = await _inform(silent, "conference.example", is_server=False)
    assert (told.rooms, told.unanswered[0]) == ((), Unanswered(DISCO_ITEMS, REFUSED.error))


@pytest.mark.parametrize("is_server", [True, False])
async def test_an_address_that_refuses_even_to_say_what_it_is_has_refused(is_server: bool) -> None:
    played = PlayedConnection(dict.fromkeys(SILENT, REFUSED))
    with pytest.raises(IqError):
        await _inform(played, "b.example", is_server=is_server)


@pytest.mark.parametrize("when", [DISCO_INFO, disco.LAST])
async def test_the_end_of_the_connection_is_no_answer(when: str) -> None:
    lost = ConnectionFailedError(Fault("connection-reset", "cut", "wait"))
    answers: dict[str, Answer] = dict.fromkeys(SILENT, _info(""))
    with pytest.raises(ConnectionFailedError):
        await _inform(PlayedConnection(answers | {when: lost}), "b.example", is_server=True)


@pytest.mark.parametrize(
    ("condition", "gone"),
    [
        ("service-unavailable", False),
        ("remote-server-not-found", True),
        ("remote-server-timeout", True),
        ("forbidden", False),
    ],
)
async def test_a_silent_service_is_gone_if_its_server_was_not_reached(
    condition: str, gone: bool
) -> None:
    played = PlayedConnection({})
    error = StanzaError(condition)
    assert await disco.is_gone(played.connection, "conference.b", error, 0.01) is gone
    assert [address for address, _ in played.asked] == ["conference.b"] * (condition != "forbidden")
