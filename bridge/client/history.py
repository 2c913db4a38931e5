"""Keeps what was typed at the prompt in a file for its owner alone, for the next session."""

import logging
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from bridge.files import make_folder, open_private
from bridge.settings.table import SECRETS, Configuration
from bridge.settings.values import Secret
from bridge.store.location import default_path

_SECRET = re.compile(r"(?i)(pass(word|wd|phrase)?|secret|token|api_?key)\W{0,3}[=:]")
"""Finds a line that sets something secret, such as an argument of a tool."""

MAX_BYTES = 1 << 20
"""A longer file begins anew: it is read at each start."""

log = logging.getLogger(__name__)


class TypedLines(FileHistory):
    """A file of what was typed, without commands that seem to have a secret in them."""

    def __init__(self, path: Path, secrets: Sequence[str]) -> None:
        """Nothing that has one of the `secrets` in it is kept."""
        super().__init__(path)
        self._path = path
        self._secrets = secrets

    def store_string(self, string: str) -> None:
        """Append a command to the file. If that fails, the history has it until the client ends."""
        if not (_SECRET.search(string) or any(secret in string for secret in self._secrets)):
            with suppress(OSError):
                _make(self._path)
                super().store_string(string)


def history_of(configuration: Configuration) -> History:
    """Return the history of the prompt; without a file if none can be used."""
    values = [configuration.loaded[name] for name in SECRETS]
    secrets = [value.reveal() for value in values if isinstance(value, Secret)]
    try:
        path = default_path(os.environ, Path.home()).with_name("history")
        make_folder(path.parent)
        _make(path)
    except (OSError, RuntimeError) as error:  # `RuntimeError`: the home folder is not known
        log.warning("what was typed is not kept: %s", error)
        return InMemoryHistory()
    return TypedLines(path, secrets)


def _make(path: Path) -> None:
    """Make the file if it is missing, and empty it if it is too long."""
    with os.fdopen(open_private(path, os.O_RDWR), "r+b") as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            file.truncate(0)
