"""`xmpp-bridge sandbox`: a small local XMPP server, until it is stopped."""

import argparse
import asyncio
import signal
import sys

from bridge.commands.exit import SUCCESS
from bridge.logs import complain
from bridge.sandbox.server import HOST, Sandbox


def run(_parsed: argparse.Namespace) -> int:
    """Run the server and print the settings that reach it."""
    return asyncio.run(_serve())


async def _serve() -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Sandbox() as address:
        sys.stdout.write("".join(f"{k}={v}\n" for k, v in address.environment().items()))
        sys.stdout.flush()
        complain(
            f"[Server] A server for trying out listens at {HOST}:{address.port}; the lines "
            "above are the .env that reaches it. Ctrl-C ends it. For anything else use Prosody or "
            "ejabberd."
        )
        await stopped.wait()
    return SUCCESS
