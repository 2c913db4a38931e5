"""The program under test: a child process. Its output is read, and it is ended in any case."""

import base64
import html
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from string import Template
from threading import Thread
from urllib.parse import quote, quote_plus

from bridge.settings.table import TABLE, VARIABLES
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import Bot
from bridge.text import one_line, visible
from bridge.wire.xmlwriter import escaped

MAX_OUTPUT_BYTES = 1 << 16
"""Bytes of the bot's output that are kept for the report, the newest 64 kB."""

END_SECONDS = 2.0
"""How long the bot has to end after SIGTERM, before it and all that it started are killed."""

GUARD = 'read _; kill -s KILL -- "-$0"'
"""A shell command that kills a process group when its stdin is closed. The system closes it even if
the test run is killed."""

MIN_ENCODED_BYTES = 3
"""The least bytes of a secret whose base64 and hex are masked: shorter ones occur by chance."""

MIN_CUT, MAX_CUT = 6, 100
"""The least and the most characters of a part of a secret that is masked. Only parts next to `...`
are masked: there a text was cut."""


class Mask:
    """Masks secrets in texts, in all forms that logs and stanzas write them in."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Mask `secrets`, plain or escaped, in base64 or hex, and parts of them beside a `...`."""
        longest_first = sorted({*secrets} - {""}, key=len, reverse=True)
        forms = "|".join(form for secret in longest_first for form in _forms(secret))
        self._secrets = re.compile(forms) if forms else None

    def __call__(self, text: str) -> str:
        """Return `text` with `***` in place of secrets."""
        return text if self._secrets is None else self._secrets.sub("***", text)


def _forms(secret: str) -> Iterator[str]:
    """Yield patterns of a secret: its written forms, base64, hex, and its beginnings and ends."""
    yield "".join(map(_written, secret))
    data = secret.encode(errors="surrogatepass")
    if len(data) >= MIN_ENCODED_BYTES:
        yield _base64(data)
        yield f"(?i:{data.hex()})"
    lengths = range(min(len(secret) - 1, MAX_CUT), MIN_CUT - 1, -1)
    if lengths:
        yield rf"(?:{'|'.join(re.escape(secret[:n]) for n in lengths)})(?=\.\.\.|…)"
        yield rf"(?<=\.\.\.)(?:{'|'.join(re.escape(secret[-n:]) for n in lengths)})"


def _written(character: str) -> str:
    """Return a pattern of a character, as it is or as XML, URLs, JSON and Python write it."""
    data = character.encode(errors="surrogatepass")
    literals = json.dumps(character), repr(character), ascii(character), repr(data)[1:]
    forms = {character, *(literal[1:-1] for literal in literals), visible(character)}
    forms |= {html.escape(character), escaped(character), f"&#{ord(character)};"}
    forms |= {quote(data, safe=""), quote_plus(data)}
    if not character.isalnum():
        forms.add(f"\\{character}")
    return f"(?:{'|'.join(map(re.escape, sorted(forms, key=len, reverse=True)))})"


def _base64(data: bytes) -> str:
    """Return a pattern of the base64 of any text that has `data` in it."""
    patterns = []
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data + bytes(2)).decode()
        # These characters encode bits of the secret only. The one before and the one after may
        # also have bits of other text.
        own = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        patterns.append(r"\s*".join(BASE64_SIGNS.get(sign, sign) for sign in own))
    any_ = r"(?:[\w/+-]|%2[BbFf])?"
    return f"{any_}(?:{'|'.join(patterns)}){any_}"


BASE64_SIGNS = {"+": r"(?:[+-]|%2[Bb])", "/": r"(?:\\?/|_|%2[Ff])"}
"""Patterns of characters that URLs replace or escape in base64; JSON may also escape `/`."""


class BotProcess:
    """A bot that runs in a process group of its own."""

    def __init__(self, bot: Bot, cwd: Path, settings: Mapping[str, str]) -> None:
        """Start `bot` in the folder `cwd`; raises `XmppTestError`.

        Its environment is ours without the bridge's settings; `settings` and the variables of `bot`
        are added. Secrets among the added variables are masked in the output.
        """
        environ = {k: v for k, v in os.environ.items() if k not in VARIABLES}
        added = {k: Template(v).safe_substitute(settings) for k, v in bot.environment.items()}
        names = [variable.name for variable in TABLE if variable.secret]
        self.mask = Mask(given.get(name, "") for given in (settings, added) for name in names)
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
        self._listening.join(END_SECONDS)  # a program in another group may go on writing

    def output(self) -> str:
        """Return the newest of the bot's output, without secrets and hidden characters."""
        written = self._written
        if len(written) == MAX_OUTPUT_BYTES:  # the first line is cut, and so may be a secret in it
            written = written.partition(b"\n")[2]
        return visible(self.mask(written.decode("utf-8", "replace")))

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            while piece := os.read(pipe.fileno(), MAX_OUTPUT_BYTES):
                self._written = (self._written + piece)[-MAX_OUTPUT_BYTES:]
