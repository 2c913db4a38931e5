"""A thread with an event loop of its own, in which actors and the sandbox run.

So a test may have a loop of any plugin or none, and its bot may run in the test's loop. Neither
loop waits for the other.
"""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any, TypeVar

from bridge.testing.errors import XmppTestError

__tracebackhide__ = True  # pytest shows the line of the test; `--full-trace` shows ours

Result = TypeVar("Result")

PLAIN = (XmppTestError, TypeError, ValueError)
"""Exceptions that are raised without our part of the traceback: the test gave a wrong value, or
its expectation was not met."""


class Engine:
    """The thread and its loop, until they are closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="xmpp-testing", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` in the loop, and block the calling thread until it is done."""
        running = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return running.result()
        except PLAIN as error:
            raise error.with_traceback(None) from None  # so that the test's own line comes first
        finally:
            running.cancel()  # if Ctrl-C or a time limit has ended the wait

    def call(self, function: Callable[[], Result]) -> Result:
        """Call `function` in the loop, and return what it returns."""

        async def work() -> Result:
            return function()

        return self.run(work())

    async def wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run `work` in the loop of the engine, and await it in the caller's loop."""
        try:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))
        except PLAIN as error:
            raise error.with_traceback(None) from None

    def close(self) -> None:
        """End the loop and the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
