"""The exit codes of every command, and the end of the process."""

import signal
from collections.abc import Callable

SUCCESS = 0
FAILURE = 1
"""What was checked or asked for failed."""
USAGE = 2
"""The command line or the settings are wrong."""
UNKNOWN = 3
"""A monitoring plugin cannot say how things are."""
MISTAKE = 70
"""A mistake of ours, which has nothing to do with what was asked for (`EX_SOFTWARE`)."""
INTERRUPTED = 128 + signal.SIGINT
"""Ctrl-C before it was done, as a shell has it."""


class UsageError(Exception):
    """The command line or the settings ask for what cannot be done.

    The text says what; it is empty where that was said already.
    """


def ignore_further_signals(remove_handler: Callable[[int], object] | None = None) -> None:
    """Keep a signal during the interpreter's end from making a traceback or another exit code.

    `remove_handler` is `remove_signal_handler` of the event loop that runs, if any.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    if remove_handler is not None:
        for number in numbers:  # the loop would else put the usual handlers back when it closes
            remove_handler(number)
    for number in numbers:  # the mask is this thread's; another that still ends may take them
        signal.signal(number, signal.SIG_IGN)
