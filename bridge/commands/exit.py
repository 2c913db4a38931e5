"""The exit codes of every command, and the end of the process."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SUCCESS = 0
FAILURE = 1
"""A check found a fault, or another command failed."""
USAGE = 2
"""The command line or the settings are wrong."""
UNDECIDED = 2
"""A diagnosis saw too little to say whether something is wrong."""
UNKNOWN = 3
"""A monitoring plugin could not find out the state of the service."""
MISTAKE = 70
"""A mistake in the bridge itself ended the command (`EX_SOFTWARE` in sysexits.h)."""
INTERRUPTED = 128 + signal.SIGINT
"""Ctrl-C ended the command before it was done. Shells use the same code."""


class UsageError(Exception):
    """The command line or the settings ask for something that cannot be done.

    The text says what; it is empty if the reason was written already. `bridge.cli.main` writes it.
    """


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Raise `UsageError` if the block lacks a library of the `extra` that `what` needs."""
    try:
        yield
    except ImportError as error:
        install = f"pip install 'xmpp-debug-bridge[{extra}]'"
        raise UsageError(f"{what} needs the extra {extra}: {install}") from error


def raise_on_interrupt() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` from here on. Before, it ended the process."""
    if callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)


def exit_on_termination() -> None:
    """Have SIGTERM and SIGHUP raise `SystemExit`, so that nothing temporary is left behind."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def ignore_further_signals(remove_handler: Callable[[int], object] | None = None) -> None:
    """Keep a signal during the interpreter's end from making a traceback or another exit code.

    `remove_handler` is `remove_signal_handler` of the event loop that runs, if any.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    while True:
        try:
            for number in numbers:
                if remove_handler is not None:
                    # Otherwise the loop restores the usual handlers when it closes.
                    remove_handler(number)
                signal.signal(number, signal.SIG_IGN)
        except KeyboardInterrupt:
            # The mask is of this thread alone. Another thread got a signal between the two calls.
            continue
        return
