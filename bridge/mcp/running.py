"""One session on the standard streams of this process, until the client or a signal ends it."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress

from bridge.mcp.session import Session
from bridge.mcp.stdio import Stdio

FLUSH_SECONDS = 1.0
"""How long replies on their way out may take when we stop."""

PARENT_CHECK_SECONDS = 2.0
"""The time between two looks at whether the client that started us is alive: one that was killed
can leave the pipe open in another child."""

log = logging.getLogger(__name__)


async def run_session(
    session: Session,
    stdio: Stdio,
    *beside: Coroutine[object, object, None],
    leave: Callable[[], None] = lambda: None,
) -> None:
    """Run `session`, and the coroutines `beside` it, until the client or a signal ends it.

    `leave` is called as soon as the end is known, perhaps twice. What is on its way out is sent,
    within `FLUSH_SECONDS`, and `stdio` is closed.
    """
    stopped = asyncio.Event()

    def stop() -> None:
        # A client may allow 50 ms between this signal and SIGKILL: the goodbye goes first.
        leave()
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    log.info("Ready to accept connections")
    async with asyncio.TaskGroup() as group:
        others = [group.create_task(coroutine) for coroutine in beside]
        ends = [
            group.create_task(session.run(stdio.chunks())),
            group.create_task(stopped.wait()),
            group.create_task(stdio.broken.wait()),
            group.create_task(_orphaned()),
        ]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        leave()
        for task in (*others, *ends):
            task.cancel()
    with suppress(TimeoutError):
        async with asyncio.timeout(FLUSH_SECONDS):
            await stdio.flush()
    stdio.close()


async def _orphaned() -> None:
    parent = os.getppid()
    while os.getppid() == parent:  # noqa: ASYNC110 - no event tells of this
        await asyncio.sleep(PARENT_CHECK_SECONDS)
    log.warning("the client that started this server is gone")
