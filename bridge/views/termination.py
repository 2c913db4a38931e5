"""Ends a command, or the stay of a participant in its rooms, by a signal."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from bridge.xmpp.muc.participant import Participant


def call_on_termination(action: Callable[[int], object]) -> None:
    """Have SIGTERM call `action` with its number, and SIGHUP too unless it is ignored (`nohup`)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, action, number)


def stop_on_signal(stopped: asyncio.Event) -> None:
    """Have Ctrl-C, and each signal that terminates a command, set `stopped`."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stopped.set)
    call_on_termination(lambda number: stopped.set())


async def until_terminated(work: Awaitable[int]) -> int:
    """Return the exit code of `work`; if a signal cancels it, the code that shells have for it."""
    task = asyncio.current_task()
    assert task is not None
    call_on_termination(task.cancel)  # the message of the cancellation is the signal's number
    try:
        return await work
    except asyncio.CancelledError as error:
        if not error.args:
            raise
        return 128 + int(error.args[0])


@asynccontextmanager
async def taking_part(participant: Participant) -> AsyncIterator[asyncio.Task[None]]:
    """Run `participant` in a task; at the end it leaves its rooms, and the task is over."""
    running = asyncio.create_task(participant.run())
    try:
        yield running
    finally:
        participant.leave()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def run_until_signal(
    participant: Participant, ended: asyncio.Event, *, seconds: float | None = None
) -> bool:
    """Run `participant` until a signal comes, it ends by itself, or `ended` is set.

    Then it leaves its rooms. Return whether it ran for all the `seconds`.
    """
    stop_on_signal(ended)
    async with taking_part(participant) as running:
        running.add_done_callback(lambda task: ended.set())
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds) as limit:
                await ended.wait()
    return limit.expired()
