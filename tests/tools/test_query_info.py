import json
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import render
from bridge.mcp.toolset import ArgumentError, ToolError
from bridge.tools import query
from bridge.tools.entries import NOTICE, RESULT_BYTES
from bridge.tools.link import RoomLink
from bridge.tools.query import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_FIELDS,
    MAX_IDENTITIES,
    MAX_NAME_CHARACTERS,
    MAX_VALUES,
)
from bridge.xmpp.disco import ROOM_INFO
from bridge.xmpp.faults import ConnectionFailedError, Fault
from bridge.xmpp.iq import IqError
from bridge.xmpp.stanzas import DATA_FORMS, DISCO_INFO, StanzaError
from tests.tools.played import LOGS, ROOM
from tests.tools.standing import standing, standing_in
from tests.xmpp.elements import parsed

FEATURES = 40
"""That have room beside as many identities and fields as are shown."""


async def _info(link: RoomLink, target: str, room: str | None = None) -> dict[str, Any]:
    tool = query.xmpp_info
    wire = render(await query.xmpp_info(link, target=target, room=room))
    assert isinstance(wire, dict)
    Draft202012Validator(tool.output_schema).validate(wire)
    return wire


def _saying(description: str, version: str = "", last: str = "") -> RoomLink:
    def answer(_: str, namespace: str) -> Element | Exception:
        content = {
            DISCO_INFO: f"<query xmlns='{DISCO_INFO}'>{description}</query>",
            "jabber:iq:version": version,
            "jabber:iq:last": last,
        }[namespace]
        if not content:
            return IqError(StanzaError("service-unavailable", "no\u202e"))
        return parsed(f"<iq type='result'>{content}</iq>")

    return standing(answer, "Wilma")[0]


def _feature(name: str) -> str:
    return f"<feature var={quoteattr(name)}/>"


def test_it_only_reads_and_reaches_outside() -> None:
    tool = query.xmpp_info
    assert (tool.name, tool.read_only, tool.open_world) == ("xmppInfo", True, True)


async def test_a_server_tells_who_it_is_what_it_can_and_how_we_are_connected() -> None:
    told = await _info(
        _saying(
            "<identity category='server' type='im' name='Prosody'/>"
            + _feature("urn:xmpp:secret:0")
            + _feature("urn:xmpp:mam:2"),
            "<query xmlns='jabber:iq:version'><name>Prosody</name><version>1</version></query>",
            "<query xmlns='jabber:iq:last' seconds='60'/>",
        ),
        "server",
    )
    assert told["identities"] == [{"category": "server", "type": "im", "name": "Prosody"}]
    assert told["features"] == [
        {"feature": "urn:xmpp:mam:2", "xep": "XEP-0313", "name": "Message Archive Management"},
        {"feature": "urn:xmpp:secret:0", "xep": None, "name": None},
    ]
    assert told["software"] == {"name": "Prosody", "version": "1", "os": None}
    assert told["uptimeSeconds"] == 60
    assert (told["room"], told["self"], told["notes"]) == (None, None, [])
    assert told["connection"] == {
        "jid": "bot@example/r",
        "service": "xmpp://example:5222",
        "tls": {"version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "verified": True},
        "sasl": "SCRAM-SHA-256",
        "channelBinding": "tls-server-end-point",
        "streamManagement": True,
        "resumable": False,
    }


async def test_a_room_tells_how_it_is_set_up_and_what_we_are_in_it() -> None:
    told = await _info(
        _saying(
            "<identity category='conference' type='text' name='Lobby'/>"
            + _feature("muc_membersonly")
            + f"<x xmlns='{DATA_FORMS}' type='result'>"
            f"<field var='FORM_TYPE'><value>{ROOM_INFO}</value></field>"
            "<field var='muc#roominfo_description'><value>for tests</value></field></x>"
        ),
        "room",
    )
    assert told["room"]["membersOnly"] is True
    assert (told["room"]["title"], told["room"]["description"]) == ("Lobby", "for tests")
    assert told["room"]["moderated"] is None
    assert told["fields"] == [
        {"form": ROOM_INFO, "field": "muc#roominfo_description", "values": ["for tests"]}
    ]
    assert told["self"]["nickname"] == "McpDebug"
    assert (told["self"]["role"], told["self"]["affiliation"]) == ("participant", "none")
    assert told["connection"] is None


async def test_a_service_for_rooms_and_somebody_in_one_are_no_rooms() -> None:
    link = _saying("<identity category='conference' type='text'/>")
    for target in ("conference.example", "Wilma", f"{ROOM}/gone"):
        told = await _info(link, target)
        assert (told["room"], told["self"]) == (None, None)
    assert (await _info(link, "another@conference.example"))["room"] is not None


async def test_what_a_server_refuses_is_noted_and_the_rest_is_told() -> None:
    told = await _info(_saying(_feature("urn:xmpp:ping")), "server")
    assert len(told["features"]) == 1
    assert told["software"] is None
    assert len(told["notes"]) == 2
    assert "XEP-0092" in told["notes"][0]
    assert 'service-unavailable. It says: "no\\\\u{202E}".' in told["notes"][0]


async def test_an_address_that_refuses_is_a_failure_with_its_meaning() -> None:
    error = IqError(StanzaError("item-not-found", "not\u202e here"))
    link, _ = standing(lambda *_: error, "Wilma")
    with pytest.raises(ToolError) as refusal:
        await query.xmpp_info(link, target="Wilma")
    assert refusal.value.condition == "item-not-found"
    assert refusal.value.message.endswith(f' It says: "not\\\\u{{202E}} here". {NOTICE}')


async def test_the_end_of_the_connection_is_no_answer() -> None:
    fault = Fault("connection-reset", "The connection was cut.", "It tries again.")
    link, _ = standing(lambda *_: ConnectionFailedError(fault))
    with pytest.raises(ToolError) as refusal:
        await query.xmpp_info(link, target="room")
    assert refusal.value.condition == "connection-reset"


async def test_what_is_hidden_in_a_name_is_shown_and_told_wherever_it_stands() -> None:
    hidden = "a\u202eb\u200b"
    told = await _info(
        _saying(
            f"<identity category='{hidden}' type='{hidden}' name='{hidden}'/>"
            + _feature(hidden)
            + f"<x xmlns='{DATA_FORMS}' type='result'>"
            f"<field var='FORM_TYPE'><value>{hidden}</value></field>"
            f"<field var='{hidden}'><value>{hidden}</value></field></x>",
            f"<query xmlns='jabber:iq:version'><name>{hidden}</name><version>{hidden}</version>"
            f"<os>{hidden}</os></query>",
            "<query xmlns='jabber:iq:last' seconds='60'/>",
        ),
        "server",
    )
    written = json.dumps(told, ensure_ascii=False)
    assert "\u202e" not in written
    assert "\u200b" not in written
    assert written.count("a\\\\u{202E}b\\\\u{200B}") == 10
    assert told["escaped"] is True


@pytest.mark.parametrize("over", [0, 1])
async def test_so_much_is_shown_and_the_rest_counted(over: int) -> None:
    identities = "".join(
        f"<identity category='c' type='{number}'/>" for number in range(MAX_IDENTITIES + over)
    )
    features = "".join(_feature(f"urn:x:{number}") for number in range(FEATURES - 1))
    fields = "".join(f"<field var='{number}'/>" for number in range(MAX_FIELDS + over))
    form = f"<x xmlns='{DATA_FORMS}' type='result'>{fields}</x>"
    told = await _info(
        _saying(identities + features + _feature("urn:xmpp:ping") + form), "conference.example"
    )
    assert len(told["identities"]) == MAX_IDENTITIES
    assert len(told["features"]) == FEATURES
    assert told["features"][0]["feature"] == "urn:xmpp:ping"  # what is known comes first
    assert len(told["fields"]) == MAX_FIELDS
    assert told["notes"] == [
        f"1 further {what} are not shown." for what in ("identities", "form fields")
    ] * bool(over)


async def test_of_more_features_than_have_room_the_known_ones_are_shown_and_the_rest_counted() -> (
    None
):
    features = "".join(_feature(f"urn:x:{number}") for number in range(500))
    told = await _info(_saying(features + _feature("urn:xmpp:ping")), "conference.example")
    assert told["features"][0]["feature"] == "urn:xmpp:ping"
    left_out = 501 - len(told["features"])
    assert 300 < left_out < 450
    assert told["notes"] == [f"{left_out} further features are not shown."]
    assert 8_000 < len(json.dumps(told)) <= RESULT_BYTES


@pytest.mark.parametrize(
    ("length", "end"),
    [
        (MAX_NAME_CHARACTERS, "x"),
        (MAX_NAME_CHARACTERS + 1, f"... ({MAX_NAME_CHARACTERS + 1} characters)"),
    ],
)
async def test_a_name_is_cut_at_its_bound_and_says_so(length: int, end: str) -> None:
    told = await _info(_saying(_feature("x" * length)), "conference.example")
    assert told["features"][0]["feature"].endswith(end)
    assert told["features"][0]["feature"].count("x") == MAX_NAME_CHARACTERS


@pytest.mark.parametrize(("over", "end"), [(0, "x"), (2, "... and 2 more")])
async def test_so_many_values_of_a_field_are_shown_and_the_rest_counted(
    over: int, end: str
) -> None:
    values = "<value>x</value>" * (MAX_VALUES + over)
    form = f"<x xmlns='{DATA_FORMS}' type='result'><field var='a'>{values}</field></x>"
    told = await _info(_saying(form), "conference.example")
    assert told["fields"][0]["values"][:MAX_VALUES] == ["x"] * MAX_VALUES
    assert told["fields"][0]["values"][-1] == end
    assert len(told["fields"][0]["values"]) == MAX_VALUES + bool(over)


async def test_the_most_hostile_answer_stays_within_bounds() -> None:
    huge = "\u202e\U000e0041" * 5_000
    identity = f"<identity category='conference' type='{huge}' name='{huge}'/>"
    features = "".join(_feature(f"{number}{huge[:400]}") for number in range(5_000))
    fields = "".join(
        f"<field var='{number}{huge[:300]}'>{('<value>' + huge[:300] + '</value>') * 30}</field>"
        for number in range(1_000)
    )
    form = (
        f"<x xmlns='{DATA_FORMS}' type='result'>"
        f"<field var='FORM_TYPE'><value>{ROOM_INFO}</value></field>"
        f"<field var='muc#roominfo_description'><value>{huge}</value></field>{fields}</x>"
    )
    told = await _info(_saying(identity * 50 + features + form), "room")
    assert len(told["room"]["description"]) < MAX_DESCRIPTION_CHARACTERS + 50
    assert len(json.dumps(told)) <= RESULT_BYTES
    assert told["truncated"] is True


async def test_what_is_asked_is_in_the_room_that_is_named() -> None:
    link, (_, logs) = standing_in((ROOM, "Wilma"), (LOGS, "Fred"))
    for target, room in (("room", "logs"), (LOGS, None), (LOGS.lower(), ROOM)):
        told = await _info(link, target, room)
        assert (told["address"], told["self"]["nickname"]) == (LOGS.lower(), "McpDebug")
    assert {to for to, _ in logs.asked} == {LOGS.lower()}
    assert (await _info(link, f"{LOGS}/Fred"))["self"] is None
    with pytest.raises(ArgumentError, match="no room of the settings"):
        await _info(link, "room", "nowhere")
