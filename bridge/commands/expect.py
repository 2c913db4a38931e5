"""`xmpp-bridge expect`: runs scenario files by pytest, in a child process."""

import argparse
import os
import signal
import subprocess
import sys
from importlib.util import find_spec

from bridge.commands.exit import FAILURE, INTERRUPTED, SUCCESS, USAGE
from bridge.logs import complain

QUIET = 'ignore:The configuration option "asyncio_default_fixture_loop_scope" is unset'
"""The warning of pytest-asyncio for whoever has no settings of pytest; a scenario needs none."""

EXIT_CODES = {0: SUCCESS, 2: USAGE, 4: USAGE, 5: USAGE}
"""Pytest ends so if all passed, after a mistake in a file or an option, and without any test. Its
other codes are failures."""


def run(parsed: argparse.Namespace) -> int:
    """Run the files and whatever else pytest is told."""
    if find_spec("pytest") is None:
        complain(
            "xmpp-bridge: pytest is not installed; pip install '/path/to/xmpp-debug-bridge[expect]'"
        )
        return USAGE
    tests = subprocess.Popen(  # noqa: S603 - the same interpreter
        [sys.executable, "-P", "-m", "pytest", parsed.file, *parsed.more],
        env={"PYTHONWARNINGS": QUIET, **os.environ},
    )
    signal.signal(signal.SIGTERM, lambda *_: tests.terminate())
    try:
        return EXIT_CODES.get(tests.wait(), FAILURE)
    except KeyboardInterrupt:  # which pytest heard, too
        tests.wait()
        return INTERRUPTED
