"""The durable log of the room: JSONL on disk, for its owner alone, for `jq` and for later.

Complete lines only, all of them ASCII, so that `cat` shows no character that a stranger put there
and a JSON reader gets the exact text. Whatever happens to the disk, the bridge goes on: what could
not be written is counted, told, and told in the log too once that works again.
"""

import errno
import fcntl
import json
import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from bridge.text import iso
from bridge.xmpp.errors import XmppError

MAX_BYTES = 64 * 1024 * 1024
"""Of one file; then the next is begun. Some 200,000 messages, still loaded by `jq` in seconds."""

KEPT = 4
"""Earlier files, `name.1` the newest of them; the oldest is dropped for a fifth."""

RETRY_SECONDS = 10.0
"""Between two tries at a log that fails: a full disk must cost the room nothing."""

MARK = b'{"log":"xmpp-debug-bridge","format":1,'
"""How each such log begins; what begins otherwise is somebody else's, and is left as it is."""

MODE = 0o600
"""People's words are for whoever runs the bridge."""

TAIL_BYTES = 64 * 1024
"""Read at a time from the end of an old log, to find where its last complete line ends."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What the system says of a disk, or a share of it, that is used up."""

_SAFELY = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK

_encode = json.JSONEncoder(separators=(",", ":")).encode

log = logging.getLogger(__name__)


class TrafficLogError(XmppError):
    """The log cannot be written there; a sentence that names the setting and what to change."""

    def __init__(self, path: Path, why: str, right: str) -> None:
        super().__init__(
            f"BRIDGE_TRAFFIC_LOG leads to {str(path)!r}, {why}; {right} would be right"
        )


class TrafficLog:
    """Lines of one room on their way to disk, in files of `max_bytes` at most.

    It is opened by `open`, or else by the first line. `write` never raises for what the disk does.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = MAX_BYTES,
        kept: int = KEPT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._earlier = [path.with_name(f"{path.name}.{number + 1}") for number in range(kept)]
        self._max_bytes = max_bytes
        self._clock = clock
        self._file: _File | None = None
        self._closed = False
        self._problem: TrafficLogError | None = None
        self._tried_at = 0.0
        self._lost = 0
        self._lost_since = 0.0

    @property
    def problem(self) -> str | None:
        """Why nothing is being written, in a sentence; None while all is well."""
        return None if self._problem is None else str(self._problem)

    def open(self) -> None:
        """Begin the log, or go on with it; raises `TrafficLogError`."""
        try:
            self._open()
        except TrafficLogError as error:
            self._problem, self._tried_at = error, self._clock()
            raise

    def write(self, *happened: Mapping[str, object]) -> None:
        """Append a line for each; or count it as lost, and say once that it fails."""
        lines = [_line(fields) for fields in happened]
        if self._file is None or self._file.size + sum(map(len, lines)) <= self._max_bytes:
            self._write(b"".join(lines), len(lines))
        else:
            for line in lines:
                self._write(line, 1)

    def close(self) -> None:
        """Say in the log what was lost, if that works by now, and let go of it."""
        if self._closed:
            return
        self._closed = True
        if self._lost:
            try:
                self._append(b"", self._clock())
            except TrafficLogError as error:
                log.warning("%s; %d events were lost", error, self._lost)
        self._let_go()

    def _write(self, lines: bytes, count: int) -> None:
        if self._closed:
            return
        now = self._clock()
        # A wall clock may be set back, which must not put off the next try.
        if self._problem is not None and 0 <= now - self._tried_at < RETRY_SECONDS:
            self._lose(count, now)
            return
        try:
            self._append(lines, now)
        except TrafficLogError as error:
            if self._problem is None:
                log.warning("%s; until then what happens in the room is not recorded", error)
            self._problem, self._tried_at = error, now
            self._lose(count, now)

    def _append(self, lines: bytes, now: float) -> None:
        if self._lost:
            lines = self._loss(now) + lines
        if self._file is None or not self._file.stands():
            self._open()
        assert self._file is not None
        if self._file.holds_something and self._file.size + len(lines) > self._max_bytes:
            self._rotate()
        self._file.append(lines)
        if self._problem is not None:
            log.warning(
                "BRIDGE_TRAFFIC_LOG: %r is written again; %d events were lost",
                str(self._path),
                self._lost,
            )
        self._problem, self._lost = None, 0

    def _lose(self, count: int, now: float) -> None:
        if not self._lost:
            self._lost_since = now
        self._lost += count

    def _loss(self, now: float) -> bytes:
        return _line(
            {
                "kind": "lost",
                "at": iso(now),
                "events": self._lost,
                "from": iso(self._lost_since),
                "to": iso(now),
                "reason": str(self._problem),
            }
        )

    def _open(self) -> None:
        self._let_go()
        for earlier in self._earlier:
            self._is_there(earlier)
        self._file = _File(self._path, self._clock)

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rotate(self) -> None:
        """Begin a new file; each earlier one moves on by one name, as far as there is no room."""
        names = [self._path]
        for earlier in self._earlier:
            names.append(earlier)
            if not self._is_there(earlier):
                break
        try:
            for older, newer in zip(names[:0:-1], names[-2::-1], strict=True):
                newer.rename(older)
        except OSError as error:
            raise _unusable(self._path, error) from error
        self._open()

    def _is_there(self, earlier: Path) -> bool:
        """Whether an earlier file has this name; raises for one that may not be replaced."""
        try:
            descriptor = _descriptor(earlier)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _unusable(earlier, error) from error
        os.close(descriptor)
        return True


class _File:
    """One file of the log, open, locked, and of whole lines."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        try:
            self._descriptor = _created_or_opened(path)
        except OSError as error:
            raise _unusable(path, error) from error
        try:
            self._claim()
            header = _line({"log": "xmpp-debug-bridge", "format": 1, "at": iso(clock())})
            if not self.size:
                self.append(header)
        except OSError as error:
            self.close()
            raise _unusable(path, error) from error
        except TrafficLogError:
            self.close()
            raise
        self._header = len(header)

    @property
    def holds_something(self) -> bool:
        """Whether there is more than the header: a line may be longer than a file should be."""
        return self.size > self._header

    def stands(self) -> bool:
        """Whether the file at the path is still this one, as we left it."""
        try:
            found = os.lstat(self._path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino, found.st_size) == (*self._identity, self.size)

    def append(self, data: bytes) -> None:
        """Write all of `data`, or leave the file as it was; raises `TrafficLogError`."""
        written = 0
        try:
            while written < len(data):
                # One call, unless there is no room for all: the second then tells why.
                written += os.write(self._descriptor, data[written:])
        except OSError as error:
            # Where this fails too, the file no longer `stands`, and is cut when opened again.
            with suppress(OSError):
                if written:
                    os.ftruncate(self._descriptor, self.size)
            raise _unusable(self._path, error) from error
        self.size += len(data)

    def close(self) -> None:
        """Let go of the file, and of the lock with it."""
        with suppress(OSError):  # the descriptor is gone in any case, and each line was written
            os.close(self._descriptor)

    def _claim(self) -> None:
        """Have the file to ourselves, readable by us alone, ending with a complete line."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(self._path) from None
        found = os.fstat(self._descriptor)
        self._identity = (found.st_dev, found.st_ino)
        self.size = found.st_size
        if not self.stands():  # another bridge has just begun its next file
            raise _taken(self._path)
        if stat.S_IMODE(found.st_mode) != MODE:
            os.fchmod(self._descriptor, MODE)
        complete = _complete(self._descriptor, self.size)
        if complete < self.size:
            log.warning(
                "BRIDGE_TRAFFIC_LOG: the last line of %r was incomplete, as a crash leaves it; its "
                "%d bytes were cut off",
                str(self._path),
                self.size - complete,
            )
            os.ftruncate(self._descriptor, complete)
            self.size = complete


def _line(fields: Mapping[str, object]) -> bytes:
    return _encode(fields).encode("ascii") + b"\n"


def _created_or_opened(path: Path) -> int:
    try:
        return os.open(path, _SAFELY | os.O_CREAT | os.O_EXCL, MODE)
    except FileExistsError:
        return _descriptor(path, empty=True)


def _descriptor(path: Path, *, empty: bool = False) -> int:
    """Open what is at `path` if it is such a log, or an `empty` file; else leave it untouched."""
    _check(path, os.lstat(path))  # opening alone does something to a pipe or a device
    descriptor = os.open(path, _SAFELY)
    try:
        _check(path, os.fstat(descriptor))
        beginning = os.pread(descriptor, len(MARK), 0)
        if beginning != MARK and not (empty and beginning == b""):
            raise TrafficLogError(
                path,
                "which holds something other than such a log and is left as it is",
                "the path of a new file",
            )
    except BaseException:  # whatever it was, nobody else has the descriptor to close
        os.close(descriptor)
        raise
    return descriptor


def _check(path: Path, found: os.stat_result) -> None:
    kind = found.st_mode
    if stat.S_ISLNK(kind):
        why, right = "which is a symbolic link", "the path of the file itself"
    elif stat.S_ISDIR(kind):
        why, right = "which is a directory", "the path of a file"
    elif not stat.S_ISREG(kind):
        why, right = "which is no regular file", "the path of a regular file"
    elif found.st_uid != os.geteuid():
        why, right = "which belongs to somebody else", "the path of a file of your own"
    elif found.st_nlink > 1:
        why, right = "which has another name too (a hard link)", "the path of a new file"
    else:
        return
    raise TrafficLogError(path, why, right)


def _complete(descriptor: int, size: int) -> int:
    """How many bytes are complete lines."""
    end = size
    while end:
        start = max(0, end - TAIL_BYTES)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _taken(path: Path) -> TrafficLogError:
    return TrafficLogError(
        path, "which another bridge is writing to", "a file of its own for each bridge"
    )


def _unusable(path: Path, error: OSError) -> TrafficLogError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return TrafficLogError(
            path, "whose directory does not exist", "the path of a file in one that does"
        )
    if isinstance(error, PermissionError):
        why = f"which this program may not write ({error.strerror})"
        return TrafficLogError(path, why, "the path of a file that it may write")
    why = f"which cannot be written ({error.strerror})"
    if error.errno in FULL:
        return TrafficLogError(path, why, "more room there, or a path on another disk,")
    return TrafficLogError(path, why, "another path")
