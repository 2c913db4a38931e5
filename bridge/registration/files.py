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

    def check_writable(self) -> None:
        """Raise `RegistrationError` if the file's mode or the system forbids writing the file."""
        with _naming(self.path, "read"), suppress(FileNotFoundError):
            mode = self._target.stat().st_mode
            # A rename needs no permission for the file itself, and root needs none at all. But a
            # mode without permission to write says that the file is to be left alone.
            if not mode & stat.S_IWUSR or not os.access(self._target, os.W_OK):
                raise RegistrationError(
                    f"{self.path} is read-only: chmod u+w it first, or edit it yourself"
                )

    def originals(self) -> list[str]:
        """Return the texts of the backups beside the file, the first one first."""
        return [text for _, text in self._backups() if text is not None]

    def replace(self, before: str, after: str) -> Path | None:
        """Replace the text `before` by `after`, whole or not at all; return the backup's path.

        A new file has no backup. Raises `RegistrationError`, also when the file no longer holds
        `before`.
        """
        folder = self._target.parent
        with signals_held():
            with _naming(folder, "made"):
                make_folder(folder)
            with _naming(self.path, "written"), replacing(self._target) as new:
                self._write(new, after)
                self._expect(before)  # writing to the disk took a while
                return self._back_up(before)

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

    def _back_up(self, text: str) -> Path | None:
        """Return the file that keeps the former `text`; None if there is no file.

        Another name of the file is made for it, unless a backup has the text already. No file that
        is there is touched: it may be the user's, or the first original.
        """
        if not self._target.exists():
            return None
        for backup, kept in self._backups():
            if kept == text:
                return backup
        backup.hardlink_to(self._target)
        return backup

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
            new.chmod(stat.S_IMODE(old.st_mode))
            with suppress(PermissionError):  # only root may give files away
                os.chown(new, old.st_uid, old.st_gid)


@contextmanager
def _naming(path: Path, verb: str) -> Iterator[None]:
    """Turn an error of the system into a `RegistrationError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise RegistrationError(f"{path} cannot be {verb}: {error.strerror}") from error
