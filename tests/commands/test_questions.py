"""What a person at a terminal is asked, and how the wait for an answer ends."""

import os
import pty
import signal
import subprocess
import sys

WAITING = """
import ctypes, os, readline, signal
from functools import partial
from bridge.commands.exit import exit_on_termination
from bridge.commands.init import ask

exit_on_termination()
# Called when the question is shown and the reading has not begun. Python does not run a handler
# after a call of this kind.
readline.set_pre_input_hook(partial(ctypes.CDLL(None).kill, os.getpid(), signal.SIGTERM))
ask("Room")
"""


def test_a_signal_between_a_question_and_the_reading_of_its_answer_ends_the_command() -> None:
    controller, terminal = pty.openpty()
    try:
        asking = [sys.executable, "-c", WAITING]
        ended = subprocess.run(
            asking, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, timeout=30, check=False
        )
    finally:
        os.close(terminal)
        os.close(controller)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, b"")
