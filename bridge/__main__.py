"""`xmpp-bridge`, also as `python -m bridge`. From here on Ctrl-C ends it without a traceback.

Before the command runs, and after it has run, Ctrl-C ends the process at once. In between it raises
`KeyboardInterrupt`, unless the command handles it.
"""

import os
import sys

INTERRUPTED = 130
"""The exit code for Ctrl-C. `bridge.commands.exit` has it too, but takes too long to import."""


def _end(*_: object) -> None:
    os._exit(INTERRUPTED)


def _end_or_report(unraisable: "sys.UnraisableHookArgs") -> None:
    """End if Ctrl-C came where Python can only report it, as in a callback of an import."""
    if unraisable.exc_type is KeyboardInterrupt:
        _end()
    sys.__unraisablehook__(unraisable)


sys.unraisablehook = _end_or_report
try:
    import signal

    # A program that a shell starts in the background ignores Ctrl-C. It goes on doing so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
except (KeyboardInterrupt, RuntimeError):  # the latter from a class that was being made
    _end()


def main() -> int:
    """Run the command `xmpp-bridge` and return its exit code."""
    # Imported here: meanwhile Ctrl-C ends the process, as set above.
    from bridge.cli import main as run

    try:
        try:
            return run()
        finally:
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, _end)
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error.__cause__ or error, KeyboardInterrupt):
            _end()
        raise


if __name__ == "__main__":
    sys.exit(main())
