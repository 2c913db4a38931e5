import json
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.mcp.schema import render
from bridge.tools import query
from bridge.tools.entries import RESULT_BYTES
from bridge.tools.link import RoomLink
from bridge.tools.query import (
    MAX_ITEMS,
)
from bridge.xmpp.link.stanzas import DATA_FORMS, DISCO_INFO, DISCO_ITEMS, MUC, IqError, StanzaError
from bridge.xmpp.queries.disco import ROOM_INFO
from tests.tools.standing import standing
from tests.xmpp.elements import parsed

FEATURES = 40
"""That have room beside as many identities and fields as are shown."""


async def _info(
    link: RoomLink, target: str, room: str | None = None, *, features: bool = True
) -> dict[str, Any]:
    tool = query.xmpp_info
    wire = render(await query.xmpp_info(link, target=target, features=features, room=room))
    assert isinstance(wire, dict)
    assert None not in wire.values()
    Draft202012Validator(tool.output_schema).validate(wire)
    return wire


def _saying(description: str, version: str = "", last: str = "", items: str = "") -> RoomLink:
    def answer(_: str, namespace: str) -> Element | Exception:
        content = {
            DISCO_INFO: f"<query xmlns='{DISCO_INFO}'>{description}</query>",
            "jabber:iq:version": version,
            "jabber:iq:last": last,
            DISCO_ITEMS: f"<query xmlns='{DISCO_ITEMS}'>{items}</query>",
        }[namespace]
        if not content:
            return IqError(StanzaError("service-unavailable", "no\u202e"))
        return parsed(f"<iq type='result'>{content}</iq>")

    return standing(answer, "Wilma")[0]


def _feature(name: str) -> str:
    return f"<feature var={quoteattr(name)}/>"


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
        {"feature": "urn:xmpp:secret:0"},
    ]
    assert told["featureCount"] == 2
    assert told["software"] == {"name": "Prosody", "version": "1"}
    assert (told["answered"], told["uptimeSeconds"]) == (True, 60)
    assert {"room", "rooms", "self", "notes", "fields"}.isdisjoint(told)
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
    assert "moderated" not in told["room"]
    assert told["room"]["archived"] is False
    assert told["fields"] == [
        {"form": ROOM_INFO, "field": "muc#roominfo_description", "values": ["for tests"]}
    ]
    assert told["self"]["nickname"] == "McpDebug"
    assert (told["self"]["role"], told["self"]["affiliation"]) == ("participant", "none")
    assert "connection" not in told


@pytest.mark.parametrize("over", [0, 1])
async def test_so_much_is_shown_and_the_rest_counted(over: int) -> None:
    identities = "".join(
        f"<identity category='c' type='{number}'/>"
        for number in range(MAX_ITEMS["identities"] + over)
    )
    features = "".join(_feature(f"urn:x:{number}") for number in range(FEATURES - 1))
    fields = "".join(f"<field var='{number}'/>" for number in range(MAX_ITEMS["fields"] + over))
    form = f"<x xmlns='{DATA_FORMS}' type='result'>{fields}</x>"
    told = await _info(
        _saying(identities + features + _feature("urn:xmpp:ping") + form), "conference.example"
    )
    assert len(told["identities"]) == MAX_ITEMS["identities"]
    assert len(told["features"]) == FEATURES
    assert told["features"][0]["feature"] == "urn:xmpp:ping"  # what is known comes first
    assert len(told["fields"]) == MAX_ITEMS["fields"]
    assert told.get("notes", []) == [
        f"1 further {what} are not shown." for what in ("identities", "fields")
    ] * bool(over)


async def test_of_more_features_than_have_room_the_known_ones_are_shown_and_the_rest_counted() -> (
    None
):
    features = "".join(_feature(f"urn:x:{number}") for number in range(500))
    told = await _info(_saying(features + _feature("urn:xmpp:ping")), "conference.example")
    assert told["features"][0]["feature"] == "urn:xmpp:ping"
    left_out = 501 - len(told["features"])
    assert 100 < left_out < 300
    assert told["notes"] == [f"{left_out} further features are not shown."]
    assert 8_000 < len(json.dumps(told)) <= RESULT_BYTES


async def test_features_and_forms_are_listed_only_when_asked_for() -> None:
    form = f"<x xmlns='{DATA_FORMS}' type='result'><field var='a'><value>b</value></field></x>"
    link = _saying(_feature("urn:xmpp:ping") + form)
    told = await _info(link, "conference.example", features=False)
    assert told["featureCount"] == 1
    assert {"features", "fields"}.isdisjoint(told)
    told = await _info(link, "conference.example")
    assert (len(told["features"]), len(told["fields"])) == (1, 1)


def _service(rooms: int) -> RoomLink:
    described = "<identity category='conference' type='text'/>" + _feature(MUC)
    items = (f"<item jid='{number}@c.example' name='No. {number}'/>" for number in range(rooms))
    return _saying(described, items="".join(items))


@pytest.mark.parametrize("over", [0, 1])
async def test_a_room_service_lists_its_rooms_and_counts_the_rest(over: int) -> None:
    most = MAX_ITEMS["rooms"]
    told = await _info(_service(most + over), "c.example", features=False)
    assert told["rooms"][0] == {"jid": "0@c.example", "name": "No. 0"}
    assert len(told["rooms"]) == most
    assert told.get("notes", []) == ["1 further rooms are not shown."] * over
    assert "room" not in told
