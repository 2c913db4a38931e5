"""Keeps the lines that were typed in a file for its owner alone, for the next session."""

import logging
import os
import re
from collections.abc import Collection
from pathlib import Path

from bridge.files import make_folder, open_private
from bridge.settings.sources import UnusableError, read_text

MAX_LINES = 1_000
"""Most lines that are kept; the oldest go first."""

MAX_BYTES = 4 << 20
"""Largest file that is read."""

_SECRET = re.compile(r"(?i)(pass(word|wd|phrase)?|secret|token|api_?key)\W{0,3}[=:]")
"""Finds a line that sets something secret, such as an argument of a tool."""

log = logging.getLogger(__name__)


class LineFile:
    """The lines that were typed, oldest first, in a file."""

    def __init__(self, path: Path, secrets: Collection[str]) -> None:
        """A line that has one of the `secrets` in it is not kept."""
        self._path = path
        self._secrets = secrets

    def read(self) -> list[str]:
        """Return the lines, newest first."""
        try:
            lines = read_text(self._path, MAX_BYTES).splitlines()
        except UnusableError:
            return []
        if len(lines) > MAX_LINES:
            lines = lines[-MAX_LINES:]
            self._write("".join(f"{line}\n" for line in lines), os.O_TRUNC)
        return lines[::-1]

    def add(self, typed: str) -> None:
        """Keep what was typed, except for lines that seem to have a secret in them."""
        kept = [line for line in typed.splitlines() if line.strip() and not self._is_secret(line)]
        self._write("".join(f"{line}\n" for line in kept), os.O_APPEND)

    def _is_secret(self, line: str) -> bool:
        return bool(_SECRET.search(line)) or any(secret in line for secret in self._secrets)

    def _write(self, text: str, flag: int) -> None:
        try:
            make_folder(self._path.parent)
            with os.fdopen(open_private(self._path, os.O_WRONLY | flag), "wb") as file:
                file.write(text.encode("utf-8", "replace"))
        except OSError as error:
            why = error.strerror or error
            log.warning("what was typed is not kept in %s: %s", self._path, why)
