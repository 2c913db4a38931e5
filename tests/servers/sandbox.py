"""The sandbox server, which the project brings along, running beside the tests."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from tests.servers.process import BOT, ROBOT, WITNESS
from tests.servers.server import XmppServer

_Listening = tuple[XmppServer, asyncio.AbstractEventLoop, asyncio.Event]


@contextmanager
def running_sandbox() -> Iterator[XmppServer]:
    """A sandbox in a thread with an event loop of its own, for a whole test session."""
    listening: Future[_Listening] = Future()
    with ThreadPoolExecutor(1, "sandbox") as threads:
        served = threads.submit(lambda: asyncio.run(_serve(listening)))
        outcomes: tuple[Future[Any], ...] = (listening, served)
        wait(outcomes, return_when=FIRST_COMPLETED)
        if served.done():
            served.result()  # it failed to start, and says why
        server, loop, ended = listening.result()
        try:
            yield server
        finally:
            loop.call_soon_threadsafe(ended.set)
            served.result()


async def _serve(listening: Future[_Listening]) -> None:
    # Late, so that tests of the other servers neither wait for it nor break with it.
    from bridge.sandbox.server import HOST, SERVICE, Sandbox
    from bridge.sandbox.stanza import DOMAIN

    ended = asyncio.Event()
    async with Sandbox() as address:
        for account in (BOT, WITNESS, ROBOT):
            address.add_account(account.username, account.password)
        server = XmppServer(
            name="sandbox",
            domain=DOMAIN,
            host=HOST,
            starttls_port=None,
            direct_tls_port=None,
            plaintext_port=address.port,
            ca_file=None,
            muc=SERVICE,
            bot=BOT,
            witness=WITNESS,
            robot=ROBOT,
        )
        listening.set_result((server, asyncio.get_running_loop(), ended))
        await ended.wait()
