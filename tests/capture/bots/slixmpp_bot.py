"""A bot on slixmpp that does one wrong after the other, each on a stream of its own.

It runs alone, and writes the library's debug log to stderr.
"""

import asyncio
import logging
import os
import ssl
import sys
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from slixmpp import ClientXMPP

ROOM = os.environ["MUC_ROOM"]
SECONDS = 20.0
"""How long a deed may take."""
ANSWER_SECONDS = 1.5
"""How long the bot waits for what comes of its deed."""
ANSWERS = ["message_error", "presence_error", "groupchat_message", "stream_error", "disconnected"]


class Bot(ClientXMPP):
    """One stream."""

    def __init__(self, password: str) -> None:
        account = f"{os.environ['XMPP_USERNAME']}@{os.environ['XMPP_DOMAIN']}"
        trust = ssl.create_default_context(cafile=os.environ["XMPP_TLS_CA_FILE"])
        super().__init__(account, password, ssl_context=trust)
        self.enable_direct_tls = False
        service = urlsplit(os.environ["XMPP_SERVICE"])
        self.started, self.answered = asyncio.Event(), asyncio.Event()
        for name in ANSWERS:
            self.add_event_handler(name, lambda _: self.answered.set())
        self.add_event_handler("session_start", lambda _: self.started.set())
        self.add_event_handler("failed_all_auth", lambda _: self.started.set())
        self.connect(service.hostname, service.port)

    async def join(self) -> None:
        """Enter the room."""
        inside = asyncio.Event()
        own = f"{ROOM}/bot"

        def look(stanza: Any) -> None:
            if stanza["from"] == own:
                inside.set()

        self.add_event_handler("presence", look)
        self.send_raw(presence(f"{ROOM}/bot"))
        await inside.wait()


def presence(to: str) -> str:
    """What asks for a seat in a room."""
    return f"<presence to='{to}'><x xmlns='http://jabber.org/protocol/muc'/></presence>"


def message(to: str, type_: str, body: str) -> str:
    """A message."""
    return f"<message to='{to}' type='{type_}' id='m1'><body>{body}</body></message>"


DEEDS: dict[str, list[str]] = {
    "healthy": [message(ROOM, "groupchat", "hello")],
    "chat to a room": [message(ROOM, "chat", "hello")],
    "groupchat to an occupant": [message(f"{ROOM}/bot", "groupchat", "hello")],
    "unknown host": [message("nobody@nowhere.invalid", "chat", "hello")],
    "negative priority": ["<presence><priority>-1</priority></presence>"],
    "forbidden character": [message(ROOM, "groupchat", "a\x0bb")],
}


async def do(deed: str) -> None:
    """Log in, do it, and leave."""
    wrong = "wrong" if deed == "wrong password" else os.environ["XMPP_PASSWORD"]
    bot: Any = Bot(wrong)
    await bot.started.wait()
    if deed == "never joined":
        bot.send_raw(message(ROOM, "groupchat", "hello"))
    elif deed == "no nickname":
        bot.send_raw(presence(ROOM))
    elif deed in DEEDS:
        await bot.join()
        for xml in DEEDS[deed]:
            bot.send_raw(xml)
    with suppress(TimeoutError):
        await asyncio.wait_for(bot.answered.wait(), ANSWER_SECONDS)
    await bot.disconnect()


async def main() -> None:
    """Do each deed that was asked for."""
    for deed in sys.argv[1:]:
        async with asyncio.timeout(SECONDS):
            await do(deed)


if __name__ == "__main__":
    logging.basicConfig(level=logging.DEBUG, format="%(asctime)s %(levelname)-8s %(message)s")
    asyncio.run(main())
