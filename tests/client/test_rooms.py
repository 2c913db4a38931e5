"""The rooms of a bridge, as the client follows them."""

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from bridge.client.client import Client
from bridge.client.conversation import Conversation
from bridge.client.rooms import RoomFollower, rooms_in, settled_status
from bridge.xmpp.model.events import KINDS
from bridge.xmpp.model.formatting import format_event
from tests.client import hostile_server
from tests.client.hostile_server import refusal, reply, structured
from tests.client.played import Played
from tests.client.served import SECONDS, served

ROOMS = ("lab@muc.example", "o'hara+ü@muc.example")
LAST = "bridge://room/o%27hara%2B%C3%BC@muc.example/occupants"
"""The last of the resources that are subscribed to."""

AT = "2026-11-22T03:28:12.180Z"
STATUS = {
    "phase": "joined",
    "room": ROOMS[0],
    "nickname": "McpDebug",
    "cursor": "c-1",
    "rooms": [
        *({"room": room, "phase": "joined"} for room in ROOMS),
        {"room": "a name that was cu", "phase": "joined", "truncated": True},
    ],
}
TOOLS = [{"name": name} for name in ("xmppStatus", "xmppHistory", "xmppOccupants")]
EVENTS: list[dict[str, Any]] = [
    {"at": AT, "room": room, "kind": kind, "sender": "Ann", "body": "an ERROR"}
    for kind in KINDS
    for room in ROOMS
]
AGREED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}, "resources": {"subscribe": True}},
}
SENDING = {"at": AT, "kind": "message", "direction": "out", "id": "c3", "body": "hi"}
PAGE = {"entries": [SENDING, *EVENTS], "next": "c-9", "more": False}
GREETING = 'Connected! Type a message or "help" for commands.'


class AtPrompt(Played):
    """A person at a prompt, who leaves once a line is shown."""

    interactive = True

    def __init__(self, last: str) -> None:
        super().__init__()
        self._last = last
        self._over = asyncio.Event()

    def tell(self, text: str) -> None:
        super().tell(text)
        if text == self._last:
            self._over.set()

    async def line(self) -> str:
        await self._over.wait()
        raise EOFError


def _bridge(folder: Path, changed: dict[str, str]) -> list[str]:
    """A server with the tools of a bridge, where something happens once it is subscribed to."""
    note = {"method": "notifications/resources/updated", "params": {"uri": LAST}}
    table = {
        "initialize": reply(json.dumps(AGREED)),
        "tools/list": reply(json.dumps({"tools": TOOLS})),
        "tools/call xmppStatus": structured(json.dumps(STATUS)),
        "tools/call xmppHistory": structured(json.dumps(PAGE)),
        "tools/call xmppOccupants": structured('{"occupants":[{"nickname":"Ann"}]}'),
        "resources/subscribe": reply("{}"),
        "resources/subscribe bridge://room/a%20name%20that%20was%20cu/messages": refusal("{}"),
        f"resources/subscribe {LAST}": f"{reply('{}')}\n{json.dumps({'jsonrpc': '2.0', **note})}",
    }
    return hostile_server.command(folder, table | changed)


async def test_at_an_update_every_room_and_kind_is_shown_but_not_our_own_sending(
    tmp_path: Path,
) -> None:
    events = [format_event(event) for event in EVENTS]
    person = AtPrompt(events[-1])
    async with served(*_bridge(tmp_path, {})) as server:
        client = Client(server)
        assert await Conversation(client, person, True).run() == 0
    assert [line for line in person.told if line.startswith(AT)] == events
    assert len(events) == len(ROOMS) * len(KINDS)
    assert client.catalogue.nicknames == ["Ann"]


WITHOUT = {
    "no resources": {"initialize": reply(json.dumps(AGREED | {"capabilities": {"tools": {}}}))},
    "no history": {"tools/list": reply(json.dumps({"tools": TOOLS[:1]}))},
    "no cursor": {"tools/call xmppStatus": structured('{"phase":"joined"}')},
}


@pytest.mark.parametrize("lacking", WITHOUT)
async def test_a_server_without_what_is_needed_is_not_followed(
    lacking: str, tmp_path: Path
) -> None:
    person = AtPrompt(GREETING)
    silent = {"resources/subscribe": "", "tools/call xmppHistory": ""}
    async with served(*_bridge(tmp_path, silent | WITHOUT[lacking])) as server:
        assert await Conversation(Client(server), person, True).run() == 0
    assert not [line for line in person.told if "unanswered" in line]


@pytest.mark.parametrize(
    "refused",
    [
        {"resources/subscribe": refusal('{"code":-32602,"message":"no"}')},
        {"tools/call xmppHistory": reply('{"content":[],"isError":true}')},
    ],
    ids=["the subscription", "the history"],
)
async def test_where_it_cannot_go_on_it_follows_no_more(
    refused: dict[str, str], tmp_path: Path
) -> None:
    told: list[str] = []
    async with served(*_bridge(tmp_path, refused)) as server:
        client = Client(server)
        await client.open()
        await client.read_catalogue()
        rooms = RoomFollower(client, told.append)
        server.on_unsolicited = lambda message: rooms.take_update()
        before = asyncio.all_tasks()
        await rooms.start()
        assert "subscribe" in str(refused) or rooms.is_following
        await asyncio.gather(*(asyncio.all_tasks() - before))
        assert not rooms.is_following
    assert told == []


@pytest.mark.parametrize(
    ("rooms", "settled"),
    [
        ([{"phase": "joined"}, {"phase": "joining"}], False),
        ([{"phase": "joined"}, {"phase": "joining", "lastError": {}}], True),
        ([{"phase": "waiting"}, {"phase": "unconfigured"}], True),
        ([{"phase": []}], False),
        ([{}], True),
    ],
)
async def test_the_status_is_settled_once_each_room_is(
    rooms: list[dict[str, Any]], settled: bool, tmp_path: Path
) -> None:
    status = structured(json.dumps({"phase": "joined", "rooms": rooms}))
    async with served(*_bridge(tmp_path, {"tools/call xmppStatus": status})) as server:
        client = Client(server)
        await client.open()
        looking = settled_status(client, SECONDS if settled else 0.2)
        assert rooms_in(await looking) == rooms
        with pytest.raises(TimeoutError) if not settled else nullcontext():
            async with asyncio.timeout(0.2):
                await settled_status(client, SECONDS)
