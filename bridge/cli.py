"""The command line: the way in, and what may come out of it. Nothing is loaded before it is needed.

Agents start `serve` as `register` writes it and wait for it, so that it goes past the parser.
"""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bridge.escaping import one_line
from bridge.log import complain

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

SUCCESS = 0
FAILURE = 1
"""The thing checked or asked for failed."""
USAGE = 2
"""The command line or the settings do not do."""
INTERRUPTED = 128 + 2
"""Ctrl-C before it was done, as a shell has it for SIGINT."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command `xmpp-bridge` and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        match words[1:] if words[:1] == ["serve"] else words:
            case []:
                return _serve(None)
            case ["--env-file", path] if path and not path.startswith("-"):
                return _serve(Path(path))
        if words[0].startswith("-") and words[0] not in {"-h", "--help", "--version"}:
            words.insert(0, "serve")
        from bridge.commandline import parser

        parsed = parser().parse_args(words)
        from bridge.commands import RUNS

        return RUNS[parsed.command](parsed)
    except KeyboardInterrupt:
        ignore_further_signals()
        return INTERRUPTED
    except ImportError as error:
        if os.environ.get("LOG_LEVEL", "").strip().upper() == "DEBUG":
            raise
        complain(
            f"xmpp-bridge: the installation is not whole ({one_line(str(error), 200)}); install "
            "xmpp-debug-bridge and what it depends on again"
        )
        return FAILURE


def _serve(env_file: Path | None) -> int:
    # Of what is made from here to the first answers nothing goes again.
    gc.disable()
    from bridge.commands import Options, serve

    return serve(Options(env_file))


def ignore_further_signals(loop: "AbstractEventLoop | None" = None) -> None:
    """Let no further signal make a traceback or a bad exit code of the interpreter's end.

    The goodbye is said by then, and nothing else is left to do. `loop` is the one that runs.
    """
    import signal

    numbers = (signal.SIGINT, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    if loop is not None:
        for number in numbers:  # which would else put the usual handlers back when it closes
            loop.remove_signal_handler(number)
    for number in numbers:  # the mask is this thread's; another that still ends may take them
        signal.signal(number, signal.SIG_IGN)
