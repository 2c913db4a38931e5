"""The exit codes of every command, and the end of the process."""

import signal
from asyncio import AbstractEventLoop

SUCCESS = 0
FAILURE = 1
"""What was checked or asked for failed."""
USAGE = 2
"""The command line or the settings are wrong."""
INTERRUPTED = 128 + signal.SIGINT
"""Ctrl-C before it was done, as a shell has it."""


def ignore_further_signals(loop: AbstractEventLoop | None = None) -> None:
    """Keep a signal during the interpreter's end from making a traceback or another exit code.

    `loop` is the running one, if any.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    if loop is not None:
        for number in numbers:  # which would else put the usual handlers back when it closes
            loop.remove_signal_handler(number)
    for number in numbers:  # the mask is this thread's; another that still ends may take them
        signal.signal(number, signal.SIG_IGN)
