"""A bare slixmpp participant: joins the room that the bridge's settings name and does nothing.

What comes on stdin is said in the room, a line a message, and stdout has a line for each of its
reflections. `--fast-scram` derives the key with OpenSSL instead of slixmpp's own Python,
`--managed` asks for stream management (XEP-0198), as the bridge does.
"""

import asyncio
import hashlib
import os
import ssl
import sys
from typing import Any

from slixmpp import JID, ClientXMPP
from slixmpp.util.sasl import mechanisms


def derive(self: Any, text: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(self.hash().name, bytes(text), salt, iterations)


def nothing(_: object) -> None:
    pass


class Talk:
    """What the driver says through us."""

    def __init__(self, client: ClientXMPP, room: str, nickname: str) -> None:
        self._client = client
        self._room = room
        self._own = f"{room}/{nickname}"
        self._unsaid = b""

    def say(self) -> None:
        data = os.read(0, 65536)
        if not data:
            asyncio.get_running_loop().stop()
        *lines, self._unsaid = (self._unsaid + data).split(b"\n")
        for line in lines:
            self._client.send_message(JID(self._room), line.decode(), mtype="groupchat")

    def heard(self, message: Any) -> None:
        if message["from"] == self._own:
            os.write(1, message["body"].encode() + b"\n")


def main() -> None:
    settings = os.environ
    plaintext = settings.get("XMPP_ALLOW_PLAINTEXT") == "1"
    room = settings["MUC_ROOM"]
    nickname = settings.get("MCP_BOT_NICKNAME", "McpDebug")
    if "--fast-scram" in sys.argv:
        mechanisms.SCRAM.Hi = derive  # type: ignore[method-assign, assignment]
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    context = ssl.create_default_context()  # as slixmpp makes it: with the system's anchors
    if anchors := settings.get("XMPP_TLS_CA_FILE"):
        context.load_verify_locations(anchors)
    jid = f"{settings['XMPP_USERNAME']}@{settings['XMPP_DOMAIN']}"
    client = ClientXMPP(jid, settings["XMPP_PASSWORD"], ssl_context=context)
    client.enable_plaintext = plaintext
    client.enable_direct_tls = False
    client.enable_starttls = not plaintext
    client.plugin["feature_mechanisms"].unencrypted_scram = plaintext
    client.register_plugin("xep_0045")
    if "--managed" in sys.argv:
        client.register_plugin("xep_0198")
    talk = Talk(client, room, nickname)

    def enter(_: object) -> None:
        client.plugin["xep_0045"].join_muc(JID(room), nickname, maxhistory="0")

    def entered(presence: Any) -> None:
        if 110 in presence["muc"]["status_codes"]:
            os.write(2, b"joined\n")

    client.add_event_handler("session_start", enter)
    client.add_event_handler(f"muc::{room}::self-presence", entered)
    client.add_event_handler("groupchat_message", talk.heard if "--talk" in sys.argv else nothing)
    loop.add_reader(0, talk.say)
    address = settings["XMPP_SERVICE"].partition("://")[2]
    host, _, port = address.rpartition(":")
    client.connect(host, int(port))
    loop.run_forever()
    os._exit(0)


main()
