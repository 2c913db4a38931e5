"""Somebody else's configuration file: read whole, replaced whole, an older state kept beside it."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_BYTES = 64 << 20
"""Largest file that is read; the history in `.claude.json` grows to some megabytes."""

NEW_MODE = 0o600
"""Of a file that did not exist: others keep keys in theirs."""


class FileError(Exception):
    """The file cannot be read, written or understood; the text names it and says why."""


class ConfigFile:
    """One file, at the end of whatever links lead there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """As the client names it."""
        self._target = Path(os.path.realpath(path))

    def read(self) -> str | None:
        """Return its text, line ends as they are; None if there is no file. Raises `FileError`."""
        try:
            self._expect_regular(self._target.stat())
            # A pipe or a device may have come into its place meanwhile.
            descriptor = os.open(self._target, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                self._expect_regular(os.fstat(descriptor))
            except FileError:
                os.close(descriptor)
                raise
            with os.fdopen(descriptor, "rb") as file:
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise FileError(f"{self.path} is larger than {MAX_BYTES >> 20} MiB")
            return content.decode("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise FileError(f"{self.path} is not UTF-8 text") from None
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error.strerror}") from error

    def check_writable(self) -> None:
        """Raise `FileError` if its owner, or the system, does not want it written."""
        try:
            mode = self._target.stat().st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error.strerror}") from error
        # A rename needs no leave of the file itself, and root none at all; ask all the same.
        if not mode & stat.S_IWUSR or not os.access(self._target, os.W_OK):
            raise FileError(f"{self.path} is read-only: chmod u+w it first, or edit it yourself")

    def back_up(self) -> Path | None:
        """Copy it beside itself under a name that is free; None if there is no file."""
        text = self.read()
        if text is None:
            return None
        mode = stat.S_IMODE(self._target.stat().st_mode)
        number = 1
        while True:
            suffix = ".bak" if number == 1 else f".bak{number}"
            backup = self._target.with_name(self._target.name + suffix)
            try:
                descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_MODE)
            except FileExistsError:
                number += 1
                continue
            except OSError as error:
                raise FileError(f"{backup} cannot be written: {error.strerror}") from error
            with _or_take_away(backup, backup), os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                os.fchmod(file.fileno(), mode)
            return backup

    def replace(self, before: str | None, after: str, *, keep: bool = True) -> Path | None:
        """Put `after` in the place of `before`, at once or not at all; return the backup.

        Without `keep` there is none: an older one has what is worth keeping. Raises `FileError`,
        also when the file no longer holds `before`.
        """
        self.check_writable()
        folder = self._target.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise FileError(f"{folder} cannot be made: {error.strerror}") from error
        self._expect(before)
        backup = self.back_up() if keep else None
        with _or_take_away(backup, self.path):
            self._write(before, after)
        return backup

    def _expect(self, text: str | None) -> None:
        if self.read() != text:
            raise FileError(f"{self.path} was changed by somebody else just now: try again")

    def _expect_regular(self, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise FileError(f"{self.path} is a directory, where a file should be")
        if not stat.S_ISREG(found.st_mode):
            raise FileError(f"{self.path} is not a regular file")

    def _write(self, before: str | None, text: str) -> None:
        old = self._target.stat() if self._target.exists() else None
        descriptor, name = tempfile.mkstemp(dir=self._target.parent, prefix=".xmpp-bridge-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), NEW_MODE if old is None else stat.S_IMODE(old.st_mode))
                if old is not None:
                    with suppress(PermissionError):  # only root may give files away
                        os.fchown(file.fileno(), old.st_uid, old.st_gid)
            self._expect(before)  # to be safe on the disk took a while
            Path(name).replace(self._target)
        except BaseException:  # whatever it was, nothing half-written is left lying
            Path(name).unlink(missing_ok=True)
            raise


@contextmanager
def _or_take_away(made: Path | None, shown: Path) -> Iterator[None]:
    """Take the file `made` away if what follows fails; raises `FileError` for the system's no."""
    try:
        yield
    except BaseException as error:  # whatever it was, no copy is left lying for nothing
        if made is not None:
            made.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(f"{shown} cannot be written: {error.strerror}") from error
        raise
