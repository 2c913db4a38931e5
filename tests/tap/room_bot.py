"""A usual bot on slixmpp: it joins its room, says `hello`, and leaves once it has heard that.

Its environment names server and account; its arguments are what else it does.
"""

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

from slixmpp import JID, ClientXMPP


class Bot(ClientXMPP):
    def __init__(self) -> None:
        account = f"{os.environ['XMPP_USERNAME']}@{os.environ['XMPP_DOMAIN']}"
        super().__init__(account, os.environ["XMPP_PASSWORD"])
        self.room = JID(os.environ["MUC_ROOM"])
        self.register_plugin("xep_0045")
        self.register_plugin("xep_0199")
        self.add_event_handler("session_start", self.join)
        self.add_event_handler("groupchat_message", self.hear)
        self.add_event_handler("message_error", lambda _: self.disconnect())

    async def join(self, _: object) -> None:
        if "never-joins" not in sys.argv:
            await self.plugin["xep_0045"].join_muc_wait(self.room, "Robot", timeout=10)
        self.send_message(mto=self.room, mbody="hello", mtype="groupchat")

    def hear(self, message: dict[str, str]) -> None:
        if "dies" in sys.argv:
            if message["mucnick"] != "Robot":
                os._exit(3)
            return
        if (message["mucnick"], message["body"]) == ("Robot", "hello"):
            sys.stdout.write("the room has heard it\n")
            sys.stdout.flush()
            if "stays" not in sys.argv:
                self.disconnect()


async def main() -> None:
    bot = Bot()
    service = urlsplit(os.environ["XMPP_SERVICE"])
    if anchors := os.environ.get("XMPP_TLS_CA_FILE"):
        bot.ca_certs = Path(anchors)
    if "tries-both" not in sys.argv:  # slixmpp's own way: TLS from the first byte, then STARTTLS
        bot.enable_direct_tls = service.scheme == "xmpps"
    if os.environ.get("XMPP_ALLOW_PLAINTEXT"):
        bot.enable_plaintext, bot.enable_starttls = True, False
        bot.plugin["feature_mechanisms"].unencrypted_scram = True
    bot.connect(service.hostname, service.port)
    await bot.disconnected


asyncio.run(main())
