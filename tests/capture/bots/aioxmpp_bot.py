"""A bot on aioxmpp that does what it reads, as slixmpp_bot.py says. It has a Python of its own."""

import asyncio
import logging
import os
import sys
from typing import Any
from urllib.parse import urlsplit

import aioxmpp  # type: ignore[import-not-found]
from aioxmpp.connector import STARTTLSConnector  # type: ignore[import-not-found]

SERVICE = urlsplit(os.environ["XMPP_SERVICE"])


def login(number: int, name: str, password: str, resource: str, option: str) -> Any:

    def tell(*_: object) -> None:
        sys.stdout.write(f"closed {number}\n")
        sys.stdout.flush()

    del option
    bot = aioxmpp.Client(
        aioxmpp.JID(name, os.environ["XMPP_DOMAIN"], resource),
        aioxmpp.make_security_layer(password, no_verify=True),
        override_peer=[(SERVICE.hostname, SERVICE.port, STARTTLSConnector())],
        max_initial_attempts=1,
    )
    bot.on_stopped.connect(tell)
    bot.on_failure.connect(tell)
    bot.start()
    return bot


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
            bot = login(number, *text.split(" ")[1:])
        elif text == "close":
            bot.stop()
        else:
            out: Any = bot.stream._xmlstream._debug_wrapper  # noqa: SLF001 - it takes no text else
            out.write(text.encode())
            out.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG)
    asyncio.run(main())
