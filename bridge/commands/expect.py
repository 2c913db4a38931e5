"""`xmpp-bridge expect`: runs scenario files by pytest, in a child process."""

import argparse
import signal
import subprocess
import sys
from importlib.util import find_spec

from bridge.commands.exit import FAILURE, INTERRUPTED, SUCCESS, USAGE, UsageError

EXIT_CODES = {0: SUCCESS, 2: USAGE, 4: USAGE, 5: USAGE}
"""Our exit code for each of pytest's: 0 if all tests passed, 2 and 4 after a mistake in a file or
an option, 5 without any test. Its other codes count as failures."""


def run(parsed: argparse.Namespace) -> int:
    """Run pytest on the files, with the options that were given."""
    if find_spec("pytest") is None:
        raise UsageError("pytest is not installed; pip install 'xmpp-debug-bridge[expect]'")
    _, words = parsed.ours.parse_known_args(parsed.more, parsed)  # pytest has other names for them
    if parsed.env_file is not None:
        words.append(f"--xmpp-env-file={parsed.env_file}")
    if parsed.report is not None:
        words.append(f"--xmpp-report={parsed.report}")
    if parsed.pseudonyms:
        words.append("--xmpp-pseudonyms")
    tests = subprocess.Popen(  # noqa: S603 - the same interpreter
        [sys.executable, "-P", "-m", "pytest", parsed.file, *words]
    )
    signal.signal(signal.SIGTERM, lambda *_: tests.terminate())
    try:
        return EXIT_CODES.get(tests.wait(), FAILURE)
    except KeyboardInterrupt:  # pytest got the signal too, and ends by itself
        tests.wait()
        return INTERRUPTED
