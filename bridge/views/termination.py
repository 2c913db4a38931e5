"""Ends a command, or the stay of a participant in its rooms, by a signal."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from bridge.xmpp.muc.participant import Participant


def call_on_termination(action: Callable[[int], object]) -> None:
    """Have SIGTERM call `action` with its number, and SIGHUP too unless it is ignored (`nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, action, number)


async def run_until_signal(
    participant: Participant, ended: asyncio.Event, *, seconds: float | None = None
) -> bool:
    """Run `participant` until a signal comes, it ends by itself, or `ended` is set.

    Then it leaves its rooms. Return whether `seconds` went by before any of that.
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    call_on_termination(lambda number: ended.set())
    running = asyncio.create_task(participant.run())
    running.add_done_callback(lambda task: ended.set())
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds) as limit:
            await ended.wait()
    participant.leave()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return limit.expired()
