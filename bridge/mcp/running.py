"""Runs a session on the standard streams of this process, until the client or a signal ends it."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress

from bridge.mcp.session import Session
from bridge.mcp.stdio import Stdio

FLUSH_SECONDS = 1.0
"""How long we wait for the client to read the last replies when we stop."""

PARENT_CHECK_SECONDS = 2.0
"""Seconds between two checks whether the client that started us is alive. If the client was killed,
our input may not end, since another child of the client may have the pipe open."""

log = logging.getLogger(__name__)


async def run_session(
    session: Session,
    stdio: Stdio,
    *further: Coroutine[object, object, None],
    leave: Callable[[], None] = lambda: None,
) -> None:
    """Run `session`, and the `further` coroutines with it, until the client or a signal ends it.

    `leave` is called as soon as the end is known, perhaps twice. Then the last output is sent, for
    `FLUSH_SECONDS` at most, and `stdio` is closed.
    """
    stopped = asyncio.Event()

    def stop() -> None:
        # A client may allow only 50 ms between this signal and SIGKILL, so we leave at once.
        leave()
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # Under `nohup`, SIGHUP is ignored from the start, and stays so.
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, stop)
    log.info("Ready to accept connections")
    async with asyncio.TaskGroup() as group:
        others = [group.create_task(coroutine) for coroutine in further]
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
    while os.getppid() == parent:  # noqa: ASYNC110 - there is no event for this
        await asyncio.sleep(PARENT_CHECK_SECONDS)
    log.warning("the client that started this server is gone")
