"""A bot on SleekXMPP that does what it reads, as slixmpp_bot.py says; it has its own Python."""

import logging
import os
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit

# With it, SleekXMPP reads certificates, in a way that newer ones do not fit.
sys.modules["pyasn1"] = None  # type: ignore[assignment]

from sleekxmpp import ClientXMPP  # type: ignore[import-not-found]  # noqa: E402 - as said

SERVICE = urlsplit(os.environ["XMPP_SERVICE"])


def login(number: int, name: str, password: str, resource: str, option: str) -> Any:

    def tell(_: object) -> None:
        sys.stdout.write(f"closed {number}\n")
        sys.stdout.flush()

    bot: Any = ClientXMPP(f"{name}@{os.environ['XMPP_DOMAIN']}/{resource}", password)
    bot.ssl_version = ssl.PROTOCOL_TLS
    bot.ca_certs = os.environ["XMPP_TLS_CA_FILE"]
    bot.auto_reconnect = False
    if option != "deaf":
        bot.register_plugin("xep_0030")
        bot.register_plugin("xep_0199", {"keepalive": False})
    bot.add_event_handler("disconnected", tell)
    if bot.connect(
        (SERVICE.hostname, SERVICE.port), reattempt=False, use_tls=option != "no-starttls"
    ):
        bot.process()
    return bot


def main() -> None:
    bot: Any = None
    number = 0
    for line in sys.stdin:
        text = line.rstrip("\n")
        if text.startswith("login "):
            number += 1
            bot = login(number, *text.split(" ")[1:])
        elif text == "close":
            bot.disconnect()
        else:
            bot.send_raw(text, now=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(levelname)-8s %(message)s")
    main()
