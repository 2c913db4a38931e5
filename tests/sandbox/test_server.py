import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from slixmpp import JID

from bridge.sandbox import server
from bridge.sandbox.server import HOST, ROOM_LIMIT, Sandbox
from bridge.sandbox.stream import UNREAD_LIMIT
from tests.sandbox.seats import Seat, seated
from tests.sandbox.wire import LIMIT, Wire

ROOM = JID("tea@rooms.localhost")
LOBBY = JID("lobby@rooms.localhost")


@pytest.fixture
async def address() -> AsyncIterator[Sandbox]:
    async with Sandbox() as address:
        yield address


@pytest.fixture
async def debug(address: Sandbox) -> AsyncIterator[Seat]:
    async with seated(address) as seat:
        yield seat


async def test_a_client_that_does_not_read_is_cut_off(address: Sandbox) -> None:
    async with Wire.to(address, receive_buffer=4096) as slow, Wire.to(address) as busy:
        await slow.log_in(address)
        await slow.join(str(ROOM), "slow")
        await busy.log_in(address)
        await busy.join(str(ROOM), "busy")
        body = "x" * 200_000
        message = f"<message to='{ROOM}' type='groupchat'><body>{body}</body></message>"
        # The kernel holds some megabytes before the server's own buffer begins to fill.
        for _ in range(8 * UNREAD_LIMIT // len(body)):
            busy.send(message)
            seen = await busy.until("</message>")
            if "type='unavailable'" in seen:
                break
        else:
            pytest.fail("the client that did not read was kept")
        assert f"from='{ROOM}/slow'" in seen


async def test_closing_tells_every_client_and_takes_less_than_a_second() -> None:
    sandbox = Sandbox()
    address = await sandbox.__aenter__()
    async with Wire.to(address) as polite, Wire.to(address) as deaf, Wire.to(address) as stranger:
        await polite.log_in(address)
        await polite.join(str(LOBBY), "polite")
        await deaf.log_in(address)
        await stranger.open()
        heard = [asyncio.create_task(wire.rest()) for wire in (polite, stranger)]
        before = time.monotonic()
        await sandbox.__aexit__(None, None, None)
        assert time.monotonic() - before < 1
        for last_words in await asyncio.gather(*heard):
            assert "<stream:error><system-shutdown " in last_words
            assert last_words.endswith("</stream:stream>")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, address.port)


async def test_nothing_is_left_running_afterwards() -> None:
    before = asyncio.all_tasks()
    async with Sandbox() as address:
        _, writer = await asyncio.open_connection(HOST, address.port)
    writer.close()
    await writer.wait_closed()
    assert asyncio.all_tasks() == before


async def test_the_address_names_the_settings_and_its_repr_keeps_the_password() -> None:
    async with Sandbox() as address:
        assert address.environment() == {
            "XMPP_SERVICE": f"xmpp://127.0.0.1:{address.port}",
            "XMPP_DOMAIN": "localhost",
            "XMPP_USERNAME": "debug",
            "XMPP_PASSWORD": address.password,
            "MUC_ROOM": "lobby@rooms.localhost",
            "XMPP_ALLOW_PLAINTEXT": "1",
        }
        assert address.password not in repr(address)
        assert len(address.password) >= 20


async def test_there_are_any_number_of_rooms_up_to_a_limit_and_what_is_over_does_not_count(
    address: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ROOM_LIMIT == 1_000
    monkeypatch.setattr(server, "ROOM_LIMIT", 10)
    async with Wire.to(address) as wire:
        await wire.log_in(address)
        for number in range(9):  # and the lobby
            await wire.join(f"room{number}@rooms.localhost", "debug")
        wire.send("<presence to='more@rooms.localhost/debug'/>")
        await wire.until("<resource-constraint ")
        wire.send("<presence to='room1@rooms.localhost/debug' type='unavailable'/>")
        await wire.until("<status code='110'/>")
        await wire.join("more@rooms.localhost", "debug")


async def test_the_service_lists_its_rooms_but_what_is_hidden_or_over(debug: Seat) -> None:
    for name in ("over", "open", "hidden"):
        await debug.join(JID(f"{name}@rooms.localhost"), "debug")
    debug.muc.leave_muc(JID("over@rooms.localhost"), "debug")
    room = JID("hidden@rooms.localhost")
    form = await debug.muc.get_room_config(room)
    form.set_values({"muc#roomconfig_publicroom": False, "muc#roomconfig_roomname": "Tea"})
    form["type"] = "submit"
    await debug.muc.set_room_config(room, form)
    disco: Any = debug.client.plugin["xep_0030"]
    items = (await disco.get_items(JID("rooms.localhost"), timeout=LIMIT))["disco_items"]["items"]
    assert {str(jid) for jid, *_ in items} == {str(LOBBY), "open@rooms.localhost"}


async def test_an_account_can_be_added_at_any_time_and_keeps_its_password() -> None:
    sandbox = Sandbox({"Witness": "pass, word=ü"})
    assert sandbox.add_account("witness", "another") == "pass, word=ü"
    async with sandbox as address:
        password = sandbox.add_account("Alice")
        assert len(password) >= 20
        assert sandbox.add_account("alice") == password
        assert sandbox.add_account("robot") != password
        async with seated(address, "alice", password), seated(address, "witness", "pass, word=ü"):
            pass
        async with Wire.to(address) as wire:
            await wire.open()
            await wire.authenticate("ALICE", password)


@pytest.mark.parametrize("name", ["", "a b", "a@b", "a/b", "a<b", "a:b", "a'b", "x" * 1024])
def test_what_cannot_stand_before_the_at_sign_of_a_jid_is_no_account(name: str) -> None:
    with pytest.raises(ValueError, match="an account's name"):
        Sandbox().add_account(name)
    assert Sandbox().add_account("x" * 1023)
