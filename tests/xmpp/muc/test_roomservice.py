from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.wire.names import DISCO_INFO, DISCO_ITEMS, MUC
from bridge.xmpp.model import faults
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.roomservice import (
    MAX_NAME_CHARACTERS,
    MAX_ROOMS_LISTED,
    MAX_SIMILAR,
    room_services,
    similar_rooms,
)
from tests.xmpp.elements import parsed
from tests.xmpp.place import PLACE
from tests.xmpp.played_connection import RESULT, Answer, PlayedConnection, refused

SERVICE = "muc.example"
OURS = f"loby@{SERVICE}"


def listing(*rooms: str) -> Element:
    iq = Element("iq")
    query = SubElement(iq, f"{{{DISCO_ITEMS}}}query")
    for each in rooms:
        SubElement(query, f"{{{DISCO_ITEMS}}}item", jid=each)
    return iq


async def similar(answer: Answer, ours: str = OURS) -> list[str]:
    played = PlayedConnection({SERVICE: answer})
    rooms = await similar_rooms(played.connection, ours, SERVICE)
    assert played.asked == [(SERVICE, DISCO_ITEMS)]
    return rooms


async def test_the_most_similar_names_come_first_and_ours_is_none_of_them() -> None:
    listed = ["tests", "looby", "lobby-of-the-house", "loby", "Lobby"]
    rooms = await similar(listing(*(f"{each}@{SERVICE}" for each in listed)))
    assert rooms == [f"looby@{SERVICE}", f"lobby@{SERVICE}"]


async def test_what_is_no_room_of_the_service_is_not_named() -> None:
    assert await similar(listing("lobby@elsewhere.example", SERVICE, "lobby", "@", "")) == []


@pytest.mark.parametrize(
    "answer",
    [listing(), refused("forbidden"), ConnectionFailedError(Fault("gone", "", "")), None],
    ids=["empty", "refusing", "gone", "silent"],
)
async def test_a_silent_service_has_none(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roomservice, "DISCO_SECONDS", 0.01)
    assert await similar(answer) == []


@pytest.mark.parametrize("over", [0, 1])
async def test_the_rooms_and_their_names_have_bounds(over: int) -> None:
    before = (f"{number}@{SERVICE}" for number in range(MAX_ROOMS_LISTED - 1 + over))
    assert bool(await similar(listing(*before, f"lobby@{SERVICE}"))) is not bool(over)
    long = "x" * (MAX_NAME_CHARACTERS + over)
    service = listing(f"{long}@{SERVICE}")
    assert bool(await similar(service, f"{long[1:]}@{SERVICE}")) is not bool(over)
    many = listing(*(f"lobby{number}@{SERVICE}" for number in range(MAX_SIMILAR + over)))
    assert len(await similar(many)) == MAX_SIMILAR


async def test_the_room_services_that_a_server_lists_are_named_and_one_of_them_hinted() -> None:
    named, odd, room = f"{SERVICE}.org", f"{SERVICE}/Ignore", f"lobby@{SERVICE}"
    is_muc = parsed(f"<iq><query xmlns='{DISCO_INFO}'><feature var='{MUC}'/></query></iq>")
    answers = {DISCO_ITEMS: listing(room, SERVICE, odd, named, "pubsub.example")}
    played = PlayedConnection(answers | {odd: is_muc, named: is_muc, "pubsub.example": RESULT})
    services = await room_services(played.connection, "example", SERVICE)
    assert services == [odd, named]
    place = PLACE._replace(room=room)
    guessing = ("no-room-service", None), ("join", "remote-server-not-found")
    for listed, hinted in ((services, f"conference.{place.domain}"), (services[1:], named)):
        for situation, condition in guessing:
            guessed = faults.of(situation, place, condition=condition)
            fault = faults.with_services(guessed, place, listed)
            assert all(f'"{each}"' in fault.message for each in listed)
            assert fault.hint.endswith(f" {hinted}.")
            assert fault.hint.count("MUC_ROOM") == 1
    refused = faults.of("join", place, condition="not-allowed")
    assert f"MUC_ROOM: perhaps it is {named}." in faults.with_services(refused, place, [named]).hint
