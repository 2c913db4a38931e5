"""The program under test: a child process, listened to, and ended whatever happens."""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from threading import Thread

from bridge.settings.table import TABLE, VARIABLES
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import Bot
from bridge.text import one_line, visible

MAX_OUTPUT_BYTES = 1 << 16
"""Of what the bot writes: the newest 64 kB are kept for the report."""

END_SECONDS = 2.0
"""How long the bot has to end after SIGTERM, before it and all that it started are killed."""

GUARD = 'read _; kill -s KILL -- "-$0"'
"""A shell that kills a process group when its stdin ends, which a killed test run brings about."""


class BotProcess:
    """A bot in a process group of its own, from its making to `end`."""

    def __init__(self, bot: Bot, cwd: Path, settings: Mapping[str, str]) -> None:
        """Start `bot` in the folder `cwd`; raises `XmppTestError`.

        Its environment is ours without our own settings, with `settings` and what `bot` adds. What
        is secret in `settings` is masked in the output.
        """
        environ = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        added = {k: Template(v).safe_substitute(settings) for k, v in bot.environment.items()}
        self._secrets = [settings[one.name] for one in TABLE if one.secret and one.name in settings]
        # As SASL PLAIN sends them, which many a bot logs.
        accounts = (f"\0{settings.get('XMPP_USERNAME')}\0{one}" for one in self._secrets)
        self._secrets += [base64.b64encode(one.encode()).decode() for one in accounts]
        self._written = b""
        program = sys.executable if bot.command[0] == "python" else bot.command[0]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - what the tester wrote
                [program, *bot.command[1:]],
                cwd=cwd,
                env={**environ, "PYTHONUNBUFFERED": "1", **settings, **added},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise XmppTestError(f"the bot does not start: {one_line(str(error))}") from None
        self._guard = subprocess.Popen(  # noqa: S603 - a program of ours
            ["/bin/sh", "-c", GUARD, str(self._process.pid)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._listening = Thread(target=self._listen, daemon=True)
        self._listening.start()

    def wait(self, seconds: float | None = None) -> int:
        """Return the exit code, once there is one; raises `subprocess.TimeoutExpired`."""
        return self._process.wait(seconds)

    def end(self) -> None:
        """End the bot and all that it started, by SIGTERM and then by SIGKILL."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.wait(END_SECONDS)
        self._guard.communicate()
        self.wait()
        self._listening.join(END_SECONDS)  # what it started elsewhere may go on writing

    def output(self) -> str:
        """Return what it wrote at last, without secrets and hidden characters."""
        written = self._written
        if len(written) == MAX_OUTPUT_BYTES:  # the first line is cut, and so may be a secret in it
            written = written.partition(b"\n")[2]
        text = written.decode("utf-8", "replace")
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return visible(text)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while piece := os.read(pipe.fileno(), MAX_OUTPUT_BYTES):
                self._written = (self._written + piece)[-MAX_OUTPUT_BYTES:]
