import asyncio
import os
import signal

import pytest

from bridge.console.frontend import call_on_termination


@pytest.mark.parametrize("ignored", [False, True], ids=["usual", "nohup"])
async def test_a_hangup_is_acted_on_unless_it_is_ignored(ignored: bool) -> None:
    loop = asyncio.get_running_loop()
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    heard: asyncio.Queue[int] = asyncio.Queue()
    if ignored:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        call_on_termination(heard.put_nowait)
        assert (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN) == ignored
        for number in before if not ignored else (signal.SIGTERM,):
            os.kill(os.getpid(), number)
            async with asyncio.timeout(10):
                assert await heard.get() == number
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
