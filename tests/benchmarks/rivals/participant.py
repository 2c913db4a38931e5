"""A bare slixmpp participant: joins the room that the bridge's settings name and does nothing.
It ends with its stdin.
"""

import asyncio
import os
import ssl
from typing import Any

from slixmpp import JID, ClientXMPP


def nothing(_: object) -> None:
    pass


def main() -> None:
    settings = os.environ
    plaintext = settings.get("XMPP_ALLOW_PLAINTEXT") == "1"
    room = settings["MUC_ROOM"]
    nickname = settings.get("MCP_BOT_NICKNAME", "McpDebug")
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

    def enter(_: object) -> None:
        client.plugin["xep_0045"].join_muc(JID(room), nickname, maxhistory="0")

    def entered(presence: Any) -> None:
        if 110 in presence["muc"]["status_codes"]:
            os.write(2, b"joined\n")

    client.add_event_handler("session_start", enter)
    client.add_event_handler(f"muc::{room}::self-presence", entered)
    client.add_event_handler("groupchat_message", nothing)

    def look() -> None:
        if not os.read(0, 65536):
            loop.stop()

    loop.add_reader(0, look)
    address = settings["XMPP_SERVICE"].partition("://")[2]
    host, _, port = address.rpartition(":")
    client.connect(host, int(port))
    loop.run_forever()
    os._exit(0)


main()
