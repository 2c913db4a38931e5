"""A bot on slixmpp that does what it reads, and writes the library's debug log to stderr.

It reads lines: `login NAME PASSWORD RESOURCE OPTION`, which begins a stream; a stanza, which it
sends as it is; `close`, which ends the stream; `again`, which connects once more. When the first
stream is over it prints `closed 1`, and so on. `BOT_PRINTS` makes it log what people write, too, as
`lines`, or with everything else as `json`.
"""

import asyncio
import json
import logging
import os
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit

from slixmpp import ClientXMPP
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher import MatchXPath, StanzaPath

SERVICE = urlsplit(os.environ["XMPP_SERVICE"])
log = logging.getLogger("bot")
PRINTS = os.environ.get("BOT_PRINTS", "")
CHALLENGE = "{urn:ietf:params:xml:ns:xmpp-sasl}challenge"


class Bot(ClientXMPP):
    def __init__(self, number: int, name: str, password: str, resource: str, option: str) -> None:
        trust = ssl.create_default_context(cafile=os.environ["XMPP_TLS_CA_FILE"])
        if option in {"wrong-binding", "downgraded"}:  # tls-unique is of TLS 1.2
            trust.maximum_version = ssl.TLSVersion.TLSv1_2
        account = f"{name}@{os.environ['XMPP_DOMAIN']}/{resource}"
        super().__init__(account, password, ssl_context=trust)
        self.enable_direct_tls = False
        if option != "deaf":
            self.register_plugin("xep_0030")
            self.register_plugin("xep_0199", {"keepalive": False})
        self.add_event_handler("disconnected", lambda _: _tell(f"closed {number}"))
        if PRINTS:
            self.add_event_handler("message", _print)
            self.add_event_handler("presence", _print)
        login: Any = self.plugin["feature_mechanisms"]
        match option:
            case "no-starttls":
                self.enable_starttls, self.enable_plaintext = False, True
            case "other-mechanism":
                login.use_mech = "EXTERNAL"
            case "wrong-binding":
                login.use_mech = "SCRAM-SHA-1-PLUS"
                login.sasl_callback = lambda *wanted: {
                    **login._default_credentials(*wanted),  # noqa: SLF001 - slixmpp has no other way
                    "channel_binding": b"that of a proxy",
                }
            case "downgraded":
                login.use_mech = "SCRAM-SHA-1"
                login.security_callback = lambda wanted: {
                    **login._default_security(wanted),  # noqa: SLF001 - as above
                    "binding_proposed": False,
                }
            case "gives-up":
                login.use_mech = "SCRAM-SHA-1"
                self.remove_handler("SASL Challenge")
                gives_up = Callback("-", MatchXPath(CHALLENGE), lambda _: self.disconnect())
                self.register_handler(gives_up)
            case "resume" | "manage":
                self.register_plugin("xep_0198")
                management: Any = self.plugin["xep_0198"]
                management.sm_id = "unknown" if option == "resume" else None
            case "deaf":
                self.register_handler(Callback("-", StanzaPath("iq@type=get"), lambda _: None))
        self.connect(SERVICE.hostname, SERVICE.port)


def _print(stanza: Any) -> None:
    words = [stanza.xml.findtext(f"{{*}}{part}") for part in ("body", "subject", "status")]
    log.info("%s: %s", stanza["from"].resource, " ".join(filter(None, words)))


class AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps({"level": record.levelname, "message": record.getMessage()})


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main() -> None:
    lines = asyncio.StreamReader(limit=1 << 22)
    protocol = asyncio.StreamReaderProtocol(lines)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    bot: Any = None
    number = 0
    async for line in lines:
        text = line.decode().rstrip("\n")
        if text.startswith("login "):
            number += 1
            bot = Bot(number, *text.split(" ")[1:])
        elif text == "close":
            await bot.disconnect()
        elif text == "again":
            bot.connect(SERVICE.hostname, SERVICE.port)
        else:
            bot.send_raw(text)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(levelname)-8s %(message)s")
    if PRINTS == "json":
        logging.getLogger().handlers[0].setFormatter(AsJson())
    asyncio.run(main())
