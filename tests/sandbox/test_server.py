import asyncio
import re
import time

import pytest
from slixmpp import JID
from slixmpp.exceptions import IqError
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import StanzaPath
from slixmpp.xmlstream.stanzabase import StanzaBase

from bridge.sandbox.server import HOST, LOBBY, Sandbox
from bridge.sandbox.stream import UNREAD_LIMIT
from tests.sandbox.company import configures, enters
from tests.sandbox.wire import LIMIT, Wire, logged_in
from tests.servers.server import XmppServer
from tests.servers.witness import Witness

ROOM = "tea@rooms.localhost"
PING = "urn:xmpp:ping"
PINGS = f"<ping xmlns='{PING}'/>"
DISCOVERS = "<query xmlns='http://jabber.org/protocol/disco#info'/>"
BEGINS = "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/>"


async def test_a_client_that_does_not_read_is_cut_off(server: Sandbox) -> None:
    async with (
        Wire.to(server, receive_buffer=4096) as slow,
        logged_in(server, "busy", ROOM) as busy,
    ):
        await slow.log_in(server)
        await slow.join(ROOM, "slow")
        body = "x" * 200_000
        # The kernel holds some megabytes before the server's own buffer begins to fill.
        for _ in range(8 * UNREAD_LIMIT // len(body)):
            busy.say(body, ROOM)
            seen = await busy.until("</message>")
            if "type='unavailable'" in seen:
                break
        else:
            pytest.fail("the client that did not read was kept")
        assert f"from='{ROOM}/slow'" in seen


async def test_closing_tells_every_client_and_takes_less_than_a_second() -> None:
    sandbox = await Sandbox().__aenter__()
    async with (
        logged_in(sandbox, "polite", LOBBY) as polite,
        logged_in(sandbox),
        Wire.to(sandbox) as stranger,
    ):
        await stranger.open()
        heard = [asyncio.create_task(wire.rest()) for wire in (polite, stranger)]
        before = time.monotonic()
        await sandbox.__aexit__(None, None, None)
        assert time.monotonic() - before < 5
        for last_words in await asyncio.gather(*heard):
            assert "<stream:error><system-shutdown " in last_words
            assert last_words.endswith("</stream:stream>")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(HOST, sandbox.port)


async def test_nothing_is_left_running_afterwards() -> None:
    before = asyncio.all_tasks()
    async with Sandbox() as address:
        _, writer = await asyncio.open_connection(HOST, address.port)
    writer.close()
    await writer.wait_closed()
    assert asyncio.all_tasks() == before


def test_the_address_names_the_settings_and_its_repr_keeps_the_password(server: Sandbox) -> None:
    assert server.environment() == {
        "XMPP_SERVICE": f"xmpp://127.0.0.1:{server.port}",
        "XMPP_DOMAIN": "localhost",
        "XMPP_USERNAME": "debug",
        "XMPP_PASSWORD": server.password,
        "MUC_ROOM": "lobby@rooms.localhost",
        "XMPP_ALLOW_PLAINTEXT": "1",
    }
    assert server.password not in repr(server)
    assert len(server.password) >= 20


async def test_the_service_lists_its_rooms_but_what_is_hidden_or_over(server: Sandbox) -> None:
    async with logged_in(server) as wire:
        for name in ("over", "open", "hidden"):
            await wire.join(f"{name}@rooms.localhost", "debug")
        await wire.leave("over@rooms.localhost", "debug")
        wire.send(configures(publicroom="0").replace("{room}", "hidden@rooms.localhost"))
        query = "<query xmlns='http://jabber.org/protocol/disco#items'/>"
        wire.send(f"<iq to='rooms.localhost' type='get' id='q'>{query}</iq>")
        listed = re.findall("jid='(.*?)'", await wire.until("</query>"))
    assert set(listed) == {LOBBY, "open@rooms.localhost"}


async def test_a_client_gets_its_contacts_and_its_own_presence_as_on_any_server(
    xmpp_server: XmppServer,
) -> None:
    async with Witness(xmpp_server, xmpp_server.witness, xmpp_server.room(), "Wilma") as wilma:
        client, came = wilma.client, asyncio.Event()

        def see(presence: StanzaBase) -> None:
            if presence["from"] == client.boundjid:
                came.set()

        client.register_handler(Callback("own presence", StanzaPath("presence"), see))
        async with asyncio.timeout(LIMIT):
            for to in (None, client.boundjid.bare):
                contacts = await client.make_iq_get("jabber:iq:roster", ito=to).send()  # type: ignore[no-untyped-call]
                assert list(contacts["roster"]["items"]) == []
            client.send_presence(pshow="away")
            await came.wait()


async def test_people_write_to_each_other_and_ask_as_on_any_server(
    xmpp_server: XmppServer,
) -> None:
    room, said, came = xmpp_server.room(), list[str](), asyncio.Event()

    def hear(message: StanzaBase) -> None:
        said.append(message["body"])
        if len(said) == 4:
            came.set()

    async with (
        Witness(xmpp_server, xmpp_server.witness, room, "Wilma") as wilma,
        Witness(xmpp_server, xmpp_server.robot, room, "Robot") as robot,
    ):
        for kind in ("chat", "headline"):
            heard = StanzaPath(f"message@type={kind}")
            robot.client.register_handler(Callback(kind, heard, hear))
        async with asyncio.timeout(LIMIT):
            # A bot that never says that it is there gets nothing that goes to its account.
            early = JID(robot.client.boundjid.bare)
            wilma.client.send_message(mto=early, mbody="too early", mtype="headline")
            await wilma.client.plugin["xep_0199"].send_ping(JID(xmpp_server.domain))
            robot.client.send_presence()
            # The server has taken the presence once it answers what came after.
            await robot.client.make_iq_get("jabber:iq:roster").send()  # type: ignore[no-untyped-call]
            bare = robot.client.boundjid.bare
            addresses = [bare, robot.client.boundjid.full, f"{bare}/left", bare.upper()]
            for to in addresses:
                xml = f"<message to='{to}' type='chat'><body>{to}</body></message>"
                wilma.client.send_raw(xml)
            await came.wait()
            await wilma.client.plugin["xep_0199"].send_ping(robot.client.boundjid)
            nobody = JID(f"{robot.client.boundjid.bare}/nobody")
            with pytest.raises(IqError):
                await wilma.client.plugin["xep_0199"].send_ping(nobody)
    assert said == addresses


IN_ORDER = {
    f"<iq type='get' id='q'>{DISCOVERS}</iq>": "iq result",
    f"<iq to='{{bare}}' type='get' id='q'>{DISCOVERS}</iq>": "iq result",
    f"<iq to='{{bare}}' type='get' id='q'>{PINGS}</iq>": "iq result",
    f"<iq to='{{domain}}' type='set' id='q'>{BEGINS}</iq>": "iq result",
    f"<iq to='{{domain}}' type='get'>{PINGS}</iq>": "iq error",
    f"<iq to='{{domain}}' id='q'>{PINGS}</iq>": "iq error",
    "<iq to='{domain}' type='get' id='q'/>": "iq error",
    "<presence type='away'/>": "presence error",
    "<presence><status>back</status></presence>": "presence ",
    "<message id='q' type='chat'><body>to me</body></message>": "message chat",
    "<message id='q' to='{bare}' type='groupchat'><body>to me</body></message>": "message error",
}
"""What a client sends, and the kind and the type of what comes back."""


async def test_a_client_is_answered_as_on_any_server(xmpp_server: XmppServer) -> None:
    answers, came = list[str](), asyncio.Event()

    def see(stanza: StanzaBase) -> StanzaBase:
        xml = stanza.xml
        if xml.get("id", "q") == "q" and not xml.get("from", "").startswith(wilma.room):
            answers.append(f"{stanza.name} {xml.get('type', '')}")
            came.set()
        return stanza

    async with Witness(xmpp_server, xmpp_server.witness, xmpp_server.room(), "Wilma") as wilma:
        client = wilma.client
        client.add_filter("in", see)
        for sent in IN_ORDER:
            came.clear()
            client.send_raw(sent.format(bare=client.boundjid.bare, domain=xmpp_server.domain))
            async with asyncio.timeout(LIMIT):
                await came.wait()
        info = await client.plugin["xep_0030"].get_info(JID(xmpp_server.domain))
    assert answers == list(IN_ORDER.values())
    assert {"http://jabber.org/protocol/disco#info", PING} <= info["disco_info"]["features"]


async def test_two_bots_do_not_accept_each_other_for_ever(server: Sandbox) -> None:
    async with logged_in(server, "bob") as bob, logged_in(server) as wire:
        bob.send("<presence/>")
        await bob.until("<presence")
        to = "to='bob@localhost'"
        wire.send(f"<presence {to} type='subscribe'/><message {to}><body>Hi</body></message>")
        assert "subscribe" not in await bob.until("</message>")


async def test_a_room_has_no_name_that_other_servers_refuse(server: Sandbox) -> None:
    async with logged_in(server) as wire:
        wire.send(enters("debug").replace("{room}", "a room@rooms.localhost"))
        assert "<jid-malformed " in await wire.until("</presence>")


async def test_an_account_can_be_added_at_any_time_and_keeps_its_password() -> None:
    sandbox = Sandbox()
    sandbox.add_account("Witness", "pass, word=ü")
    assert sandbox.add_account("witness", "another") == "pass, word=ü"
    async with sandbox:
        password = sandbox.add_account("Alice")
        assert len(password) >= 20
        assert sandbox.add_account("alice") == password
        assert sandbox.add_account("robot") != password
        async with logged_in(sandbox, "ALICE"), logged_in(sandbox, "witness"):
            pass


@pytest.mark.parametrize("name", ["", "a b", "a@b", "a/b", "a<b", "a:b", "a'b", "x" * 1024])
def test_what_cannot_stand_before_the_at_sign_of_a_jid_is_no_account(name: str) -> None:
    with pytest.raises(ValueError, match="an account's name"):
        Sandbox().add_account(name)
    assert Sandbox().add_account("x" * 1023)
