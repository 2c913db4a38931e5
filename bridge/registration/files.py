"""Reads a client's configuration file, and replaces it atomically, with a backup next to it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from bridge.files import make_folder, replacing, signals_held
from bridge.registration.errors import RegistrationError
from bridge.settings.sources import UnusableError, read_text

MAX_BYTES = 64 << 20
"""Largest file that is read; the history in `.claude.json` grows to some megabytes."""


class ConfigFile:
    """One configuration file; symbolic links are followed to the file that they lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """The path that the client uses, which may be a link."""
        self._target = Path(os.path.realpath(path))

    def read(self) -> str | None:
        """Return the text of the file, with unchanged line ends; None if there is no file.

        Raises `RegistrationError`.
        """
        try:
            return read_text(self._target, MAX_BYTES)
        except UnusableError as error:
            if str(error) == "missing":
                return None
            raise RegistrationError(f"{self.path} cannot be read: {error}") from error

    def check_writable(self, by_hand: str = "") -> None:
        """Raise `RegistrationError`, with `by_hand`, if a mode or the system forbids writing."""
        with _naming(self.path, "read"), suppress(FileNotFoundError, NotADirectoryError):
            mode = self._target.stat().st_mode
            # A rename needs no permission for the file itself, and root needs none at all. But a
            # mode without permission to write says that the file is to be left alone.
            if not mode & stat.S_IWUSR or not os.access(self._target, os.W_OK):
                raise RegistrationError(
                    f"{self.path} is read-only: chmod u+w it first, or edit it yourself", by_hand
                )
        above = next(each for each in self._target.parents if os.path.lexists(each))
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise RegistrationError(
                f"{self.path} cannot be written: in {above} no file can be made by this user",
                by_hand,
            )

    def originals(self) -> list[str]:
        """Return the texts of the backups beside the file, the first one first."""
        return [text for _, text in self._backups() if text is not None]

    def replace(self, before: str, after: str) -> Path | None:
        """Replace the text `before` by `after`, whole or not at all; return the backup's path.

        A new file has no backup. Raises `RegistrationError`, also when the file no longer holds
        `before`.
        """
        with signals_held(), _naming(self.path, "written"):
            make_folder(self._target.parent)
            with replacing(self._target) as new:
                self._write(new, after)
                backup = self._backup_of(before)
                self._expect(before)  # to write to the disk and read the backups took a while
                if not self._target.exists():
                    return None
                # Unlike a copy, a hard link keeps what another program has just written, too.
                if not os.path.lexists(backup):
                    backup.hardlink_to(self._target)
                return backup

    def remove(self, before: str) -> None:
        """Remove the file, which has to hold `before`; raises `RegistrationError`."""
        with signals_held(), _naming(self.path, "removed"):
            self._expect(before)
            self._target.unlink()

    def _expect(self, text: str) -> None:
        if (self.read() or "") != text:
            raise RegistrationError(
                f"{self.path} was changed by another program just now: try again"
            )

    def _backup_of(self, text: str) -> Path:
        """Return the backup that has `text`, or a free name for it.

        No file that is there is touched: it may be the user's, or the first original.
        """
        backups = self._backups()
        return next(path for path, kept in backups if kept == text or not os.path.lexists(path))

    def _backups(self) -> Iterator[tuple[Path, str | None]]:
        """Yield the names of backups with what they hold; the last name is free."""
        for number in count(1):
            path = self._target.with_name(f"{self._target.name}.bak{f'.{number}' * (number > 1)}")
            try:
                yield path, read_text(path, MAX_BYTES)
            except UnusableError:
                yield path, None
                if not os.path.lexists(path):
                    return

    def _write(self, new: Path, text: str) -> None:
        """Write `text` to a new file, and give it the mode and the owner of the old one.

        If there is no old file, only the owner may use the new one: it may hold keys.
        """
        with new.open("wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            old = self._target.stat()
            with suppress(PermissionError):  # only root may give files away
                os.chown(new, old.st_uid, old.st_gid)
            new.chmod(stat.S_IMODE(old.st_mode))  # last: a change of the owner clears some bits


@contextmanager
def _naming(path: Path, verb: str) -> Iterator[None]:
    """Turn an error of the system into a `RegistrationError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise RegistrationError(f"{path} cannot be {verb}: {error.strerror}") from error
