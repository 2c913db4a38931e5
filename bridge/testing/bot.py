"""The program under test: a child process, listened to, and ended whatever happens."""

import base64
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

from bridge.settings.table import TABLE, VARIABLES
from bridge.testing.errors import XmppTestError
from bridge.testing.scenario import Bot
from bridge.text import one_line, visible

MAX_OUTPUT_BYTES = 1 << 16
"""Bytes of the bot's output that are kept for the report, the newest 64 kB."""

END_SECONDS = 2.0
"""How long the bot has to end after SIGTERM, before it and all that it started are killed."""

GUARD = 'read _; kill -s KILL -- "-$0"'
"""A shell that kills a process group when its stdin ends, which a killed test run brings about."""

ENCODED_OF = 3
"""The least bytes of a secret whose base64 and hex are masked: fewer are found by chance."""

CUT_OF, MAX_CUT = 6, 100
"""The least and the most characters of a secret that are masked next to the mark of a cut."""

ESCAPE = r"\\{1,8}"
"""Matches the backslashes of a character that was escaped once, twice or three times."""

LINE_END = (
    r"(?:\\?(?:[\r\n]|\\{1,8}[rn]|\\u\{[AD]\}|&(?:amp;)*#(?:1[03]|x[AaDd]);)"
    r"[ \t]*(?:E +)?(?:[+-] +)?){0,2}"
)
"""Matches nothing, or an end of a line and what precedes the next one in a report of pytest."""

BLANKS = (
    r"(?:[\s+]|%(?:25)*20|\\{1,8}(?:[rn]|(?i:u0020|u\{0*(?:20|[AD])\}|x20))"
    r"|&(?:amp;)*#(?:0*(?:32|1[03])|[Xx]0*(?:20|[AaDd]));){1,100}(?:E +(?:[+-] +)?|- +)?"
)
"""Matches blanks as they are, escaped, or as the end of a line, in one way only."""

XML_NAMES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


class Mask:
    """Masks secrets in what others wrote, in whichever form a log or a stanza has them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Mask `secrets` as they are, and as JSON, `repr`, URLs, XML, base64 and hex write them.

        They may go on in the next line, or be cut where a mark (`...`) says so.
        """
        longest_first = sorted({*secrets} - {""}, key=len, reverse=True)
        forms = "|".join(form for secret in longest_first for form in _forms(secret))
        self._secrets = re.compile(forms) if forms else None

    def __call__(self, text: str) -> str:
        """Return `text` with `***` in place of secrets."""
        return text if self._secrets is None else self._secrets.sub("***", text)


def _forms(secret: str) -> Iterator[str]:
    """Yield patterns of a secret: itself, its bytes in base64 and hex, its cut ends."""
    yield "".join(map(_part, re.findall(r"\\+| +|[^\\ ]+", secret)))
    data = secret.encode(errors="surrogatepass")
    if len(data) >= ENCODED_OF:
        yield _base64(data)
        yield f"(?i:{'[ :-]?'.join(f'{byte:02x}' for byte in data)})"
    lengths = range(min(len(secret) - 1, MAX_CUT), CUT_OF - 1, -1)
    if lengths:
        yield rf"(?:{'|'.join(re.escape(secret[:n]) for n in lengths)})(?=\.\.\.|…)"
        yield rf"(?<=\.\.\.)(?:{'|'.join(re.escape(secret[-n:]) for n in lengths)})"


def _part(text: str) -> str:
    """Return a pattern of backslashes, of blanks or of anything else, each escaped in any way."""
    # Blanks and backslashes one by one, or with line ends between them, match in too many ways.
    if " " in text:
        return BLANKS
    if "\\" in text:
        forms = r"\\(?i:u005c|x5c)?|%(?:25)*5[Cc]|&(?:amp;)*#(?:0*92|[Xx]0*5[Cc]);"
        return f"(?:{forms}){{1,{8 * len(text)}}}"
    return LINE_END.join(map(_character, text))


def _character(character: str) -> str:
    code, utf_8 = ord(character), character.encode(errors="surrogatepass")
    units = re.findall("....", character.encode("utf-16-be", "surrogatepass").hex())
    # What is escaped twice has several backslashes, `&amp;` and `%25`.
    forms = [
        "".join(rf"{ESCAPE}(?i:u{unit})" for unit in units),
        rf"{ESCAPE}(?i:u\{{0*{code:x}\}}|u{code:08x})",
        "".join(rf"{ESCAPE}(?i:x{byte:02x})" for byte in utf_8),
        "".join(rf"%(?:25)*(?i:{byte:02x})" for byte in utf_8),
        rf"&(?:amp;)*#(?:0*{code}|(?i:x0*{code:x}));",
    ]
    if code < 0x100:
        forms.append(rf"{ESCAPE}(?i:x{code:02x})")
    if (escaped := json.dumps(character)[1:-1])[1:2] not in ("", "u"):
        forms.append(rf"{ESCAPE}{re.escape(escaped[1])}")
    if character in "'/":
        forms.append(rf"{ESCAPE}{character}")
    if character in XML_NAMES:
        forms.append(rf"&(?:amp;)*{XML_NAMES[character]};")
    # In most text the next character is none of these: no other form has to be tried.
    forms = [re.escape(character), rf"(?=[\\%&])(?:{'|'.join(forms)})"]
    if character in "'\"":  # as CSV, SQL and YAML have it
        forms.append(character * 2)
    return f"(?:{'|'.join(forms)})"


def _base64(data: bytes) -> str:
    """Return a pattern of the base64 of any text that has `data` in it."""
    patterns = []
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data + bytes(2)).decode()
        # These characters have bits of the secret alone; their neighbours have some, too.
        own = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        patterns.append(r"(?:\s|\\+[rn])*".join(BASE64_SIGNS.get(sign, sign) for sign in own))
    any_ = r"(?:[\w/+-]|%2[BbFf])?"
    return f"{any_}(?:{'|'.join(patterns)}){any_}"


BASE64_SIGNS = {
    "+": f"(?:{_character('+')}|-)",
    "/": f"(?:{_character('/')}|_)",
}
"""Patterns of the characters of base64 that URLs have others for, or escape."""


class BotProcess:
    """A bot in a process group of its own, from its making to `end`."""

    def __init__(self, bot: Bot, cwd: Path, settings: Mapping[str, str]) -> None:
        """Start `bot` in the folder `cwd`; raises `XmppTestError`.

        Its environment is ours without our own settings, with `settings` and what `bot` adds. What
        is secret in either is masked in the output.
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
        self._listening.join(END_SECONDS)  # what it started elsewhere may go on writing

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
