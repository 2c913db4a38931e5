"""Clients of the sandbox by slixmpp, and what they are told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from slixmpp import JID, ClientXMPP

from bridge.sandbox.server import HOST, Sandbox
from bridge.sandbox.stanza import DOMAIN
from tests.sandbox.wire import LIMIT


class Seat:
    """A slixmpp client, everything that it is told, and the part of slixmpp that knows rooms."""

    def __init__(self, client: ClientXMPP) -> None:
        self.client = client
        self.muc: Any = client.plugin["xep_0045"]
        self._stanzas: asyncio.Queue[Any] = asyncio.Queue()
        client.add_event_handler("message", self._stanzas.put_nowait)
        client.add_event_handler("message_error", self._stanzas.put_nowait)
        client.add_event_handler("groupchat_presence", self._stanzas.put_nowait)
        client.add_event_handler("groupchat_subject", self._stanzas.put_nowait)

    async def join(self, room: JID, nick: str) -> Any:
        return await self.muc.join_muc_wait(room, nick, timeout=LIMIT)

    def say(
        self, body: str, to: str | JID, kind: Literal["groupchat", "chat"] = "groupchat"
    ) -> None:
        self.client.send_message(mto=JID(to), mbody=body, mtype=kind)

    async def sees(self, wanted: Callable[[Any], bool]) -> Any:
        async with asyncio.timeout(LIMIT):
            while not wanted(stanza := await self._stanzas.get()):
                pass
        return stanza

    async def hears(self, body: str) -> Any:
        return await self.sees(lambda s: s.name == "message" and s["body"] == body)

    async def sees_leaving(self, nick: str) -> Any:
        return await self.sees(lambda s: s["type"] == "unavailable" and s["from"].resource == nick)


def client_of(address: Sandbox, username: str, password: str) -> ClientXMPP:
    client = ClientXMPP(f"{username}@{DOMAIN}", password)
    for plugin in ("xep_0004", "xep_0030", "xep_0045", "xep_0199"):
        client.register_plugin(plugin)
    client.enable_plaintext = True
    client.enable_starttls = client.enable_direct_tls = False
    client.plugin["feature_mechanisms"].unencrypted_scram = True
    return client


@asynccontextmanager
async def seated(
    address: Sandbox, username: str = "debug", password: str = ""
) -> AsyncIterator[Seat]:
    client = client_of(address, username, password or address.password)
    client.connect(HOST, address.port)
    await client.wait_until("session_start", LIMIT)
    try:
        yield Seat(client)
    finally:
        await client.disconnect(wait=LIMIT)
