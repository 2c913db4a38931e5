"""Which rooms of a service have names like ours."""

import asyncio
from typing import cast
from xml.etree.ElementTree import Element, SubElement

import pytest

from bridge.xmpp.link.connection import Connection
from bridge.xmpp.link.stanzas import DISCO_ITEMS, IqError, StanzaError
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.muc import roomservice
from bridge.xmpp.muc.roomservice import (
    MAX_NAME_CHARACTERS,
    MAX_ROOMS_COMPARED,
    MAX_SIMILAR,
    similar_rooms,
)

SERVICE = "muc.example"
OURS = f"loby@{SERVICE}"


class Service:
    """A connection to a service that lists these rooms, or fails so."""

    def __init__(self, *rooms: str, failing: Exception | None = None, silent: bool = False) -> None:
        self._rooms = rooms
        self._failing = failing
        self._silent = silent

    async def request(self, type_: str, to: str | None, payload: Element) -> Element:
        assert (type_, to, payload.tag) == ("get", SERVICE, f"{{{DISCO_ITEMS}}}query")
        if self._failing is not None:
            raise self._failing
        if self._silent:
            await asyncio.get_running_loop().create_future()
        iq = Element("iq")
        query = SubElement(iq, f"{{{DISCO_ITEMS}}}query")
        for one in self._rooms:
            SubElement(query, f"{{{DISCO_ITEMS}}}item", jid=one)
        return iq


async def similar(service: Service, ours: str = OURS) -> list[str]:
    return await similar_rooms(cast("Connection", service), ours, SERVICE)


async def test_the_most_similar_names_come_first_and_ours_is_none_of_them() -> None:
    listed = ["tests", "looby", "lobby-of-the-house", "loby", "Lobby"]
    found = await similar(Service(*(f"{one}@{SERVICE}" for one in listed)))
    assert found == [f"looby@{SERVICE}", f"lobby@{SERVICE}"]


async def test_what_is_no_room_of_the_service_is_not_named() -> None:
    assert await similar(Service("lobby@elsewhere.example", SERVICE, "lobby", "@", "")) == []


@pytest.mark.parametrize(
    "service",
    [
        Service(),
        Service(failing=IqError(StanzaError("forbidden"))),
        Service(failing=ConnectionFailedError(Fault("gone", "", ""))),
        Service(silent=True),
    ],
    ids=["empty", "refusing", "gone", "silent"],
)
async def test_a_service_that_does_not_say_has_none(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roomservice, "DISCO_SECONDS", 0.01)
    assert await similar(service) == []


@pytest.mark.parametrize("over", [0, 1])
async def test_the_rooms_and_their_names_have_bounds(over: int) -> None:
    before = (f"{number}@{SERVICE}" for number in range(MAX_ROOMS_COMPARED - 1 + over))
    assert bool(await similar(Service(*before, f"lobby@{SERVICE}"))) is not bool(over)
    long = "x" * (MAX_NAME_CHARACTERS + over)
    service = Service(f"{long}@{SERVICE}")
    assert bool(await similar(service, f"{long[1:]}@{SERVICE}")) is not bool(over)
    many = Service(*(f"lobby{number}@{SERVICE}" for number in range(MAX_SIMILAR + over)))
    assert len(await similar(many)) == MAX_SIMILAR
