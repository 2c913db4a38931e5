"""A bot of somebody else's, on slixmpp: it answers `!ping` with `pong`, unless `FAULT` says not to.

It runs alone, as a program under test.
"""

import asyncio
import os
import ssl
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from slixmpp import JID, ClientXMPP

FAULT = os.environ.get("FAULT", "")
NICKNAME = "Robot"


class Robot(ClientXMPP):
    def __init__(self, environ: Mapping[str, str]) -> None:
        account = f"{environ['XMPP_USERNAME']}@{environ['XMPP_DOMAIN']}"
        trust = ssl.create_default_context(cafile=environ.get("XMPP_TLS_CA_FILE"))
        password = "wrong" if FAULT == "locked-out" else environ["XMPP_PASSWORD"]
        super().__init__(account, password, ssl_context=trust)
        plaintext = "XMPP_ALLOW_PLAINTEXT" in environ
        self.room = JID(environ["MUC_ROOM"])
        self.enable_starttls, self.enable_plaintext = not plaintext, plaintext
        self.enable_direct_tls = False
        self.plugin["feature_mechanisms"].unencrypted_scram = plaintext
        self.register_plugin("xep_0045")
        self.add_event_handler("session_start", self.on_start)
        self.add_event_handler("groupchat_message", self.on_message)
        service = urlsplit(environ["XMPP_SERVICE"])
        self.connect(service.hostname, service.port)

    def on_start(self, _: object) -> None:
        self.plugin["xep_0045"].make_join_stanza(self.room, NICKNAME, maxstanzas=0).send()
        sys.stderr.write(f"{NICKNAME} logged in with {self.password}\n")

    def on_message(self, message: Any) -> None:
        if message["body"] == "!ping" and message["mucnick"] != NICKNAME:
            self.answer()

    def answer(self) -> None:
        match FAULT:
            case "untyped":
                self.send_message(self.room, "pong")
            case "crashing":
                sys.stderr.write("Oops\n")
                os._exit(3)
            case _:
                self.send_message(self.room, "pong", mtype="groupchat")


async def _main() -> None:
    await Robot(os.environ).disconnected


if __name__ == "__main__":
    asyncio.run(_main())
