"""Reads a client's configuration file and replaces it at once, keeping a backup beside it."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bridge.registration.errors import RegistrationError

MAX_BYTES = 64 << 20
"""Largest file that is read; the history in `.claude.json` grows to some megabytes."""

NEW_MODE = 0o600
"""Of a file that did not exist: a client's file may hold keys."""


class ConfigFile:
    """One configuration file; symbolic links are followed to the file that they lead to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        """As the client names it."""
        self._target = Path(os.path.realpath(path))

    def read(self) -> str | None:
        """Return its text, line ends as they are; None if there is no file.

        Raises `RegistrationError`.
        """
        with _naming(self.path, "read"):
            try:
                self._expect_regular(self._target.stat())
                # A pipe or a device may come into its place meanwhile.
                with open(self._target, "rb", opener=_open_at_once) as file:
                    self._expect_regular(os.fstat(file.fileno()))
                    content = file.read(MAX_BYTES + 1)
            except FileNotFoundError:
                return None
        if len(content) > MAX_BYTES:
            raise RegistrationError(f"{self.path} is larger than {MAX_BYTES >> 20} MiB")
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError:
            raise RegistrationError(f"{self.path} is not UTF-8 text") from None

    def check_writable(self) -> None:
        """Raise `RegistrationError` if its mode or the system forbids writing it."""
        with _naming(self.path, "read"):
            try:
                mode = self._target.stat().st_mode
            except FileNotFoundError:
                return
        # A rename needs no permission on the file itself, and root none at all; ask all the same.
        if not mode & stat.S_IWUSR or not os.access(self._target, os.W_OK):
            raise RegistrationError(
                f"{self.path} is read-only: chmod u+w it first, or edit it yourself"
            )

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
            with _naming(backup, "written"):
                try:
                    descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_MODE)
                except FileExistsError:
                    number += 1
                    continue
                with _or_removed(backup), os.fdopen(descriptor, "wb") as file:
                    file.write(text.encode("utf-8"))
                    os.fchmod(file.fileno(), mode)
            return backup

    def replace(self, before: str | None, after: str, *, keep: bool = True) -> Path | None:
        """Replace the text `before` by `after`, at once or not at all; return the backup.

        Without `keep` there is none: an older one has what is worth keeping. Raises
        `RegistrationError`, also when the file no longer holds `before`.
        """
        self.check_writable()
        folder = self._target.parent
        with _naming(folder, "made"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._expect(before)
        backup = self.back_up() if keep else None
        with _or_removed(backup), _naming(self.path, "written"):
            self._write(before, after)
        return backup

    def _expect(self, text: str | None) -> None:
        if self.read() != text:
            raise RegistrationError(
                f"{self.path} was changed by another program just now: try again"
            )

    def _expect_regular(self, found: os.stat_result) -> None:
        if stat.S_ISDIR(found.st_mode):
            raise RegistrationError(f"{self.path} is a directory, where a file should be")
        if not stat.S_ISREG(found.st_mode):
            raise RegistrationError(f"{self.path} is not a regular file")

    def _write(self, before: str | None, text: str) -> None:
        old = self._target.stat() if self._target.exists() else None
        descriptor, name = tempfile.mkstemp(dir=self._target.parent, prefix=".xmpp-bridge-")
        with _or_removed(Path(name)):
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
                os.fchmod(file.fileno(), NEW_MODE if old is None else stat.S_IMODE(old.st_mode))
                if old is not None:
                    with suppress(PermissionError):  # only root may give files away
                        os.fchown(file.fileno(), old.st_uid, old.st_gid)
            self._expect(before)  # writing to the disk took a while
            Path(name).replace(self._target)


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe that nobody writes to is opened too, rather than waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


@contextmanager
def _naming(path: Path, verb: str) -> Iterator[None]:
    """Turn an error of the system into a `RegistrationError` that names `path`."""
    try:
        yield
    except OSError as error:
        raise RegistrationError(f"{path} cannot be {verb}: {error.strerror}") from error


@contextmanager
def _or_removed(made: Path | None) -> Iterator[None]:
    """Remove the file `made` if what follows raises anything."""
    try:
        yield
    except BaseException:
        if made is not None:
            made.unlink(missing_ok=True)
        raise
