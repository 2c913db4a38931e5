"""Keeps the lines that were typed in a file for its owner alone, for the next session."""

import fcntl
import logging
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from bridge.files import make_folder, open_private

MAX_LINES = 1_000
"""Most lines that are kept; the oldest go first."""

MAX_BYTES = 4 << 20
"""Most bytes that are kept; the oldest go first."""

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
        return self._with([])[::-1]

    def add(self, typed: str) -> None:
        """Keep what was typed, except for lines that seem to have a secret in them."""
        self._with([line for line in typed.splitlines() if line.strip() and self._may_keep(line)])

    def _may_keep(self, line: str) -> bool:
        return not (_SECRET.search(line) or any(secret in line for secret in self._secrets))

    def _with(self, added: Sequence[str]) -> list[str]:
        """Add lines to the file, cut it to the newest `MAX_LINES`, and return these.

        Other clients wait meanwhile: none adds a line that is then lost.
        """
        try:
            make_folder(self._path.parent)
            with os.fdopen(open_private(self._path, os.O_RDWR), "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MAX_BYTES))
                held = file.read().decode("utf-8", "replace").splitlines()
                lines = [*held, *added][-MAX_LINES:]
                if lines != held:
                    file.seek(0)
                    file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
                    file.truncate()
                return lines
        except OSError as error:
            why = error.strerror or error
            log.warning("what was typed is not kept in %s: %s", self._path, why)
            return []
