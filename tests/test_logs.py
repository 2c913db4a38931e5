import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bridge.logs import PIPE_BUF, TIMED, FileHandler, StderrHandler, open_log
from bridge.text import iso

PATIENCE = 30.0
"""Seconds after which a test that waits has failed."""


class Pipe:
    """A log into a pipe that nobody reads until a test does."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        # Nobody else listens to it: pytest would keep what xdist then cannot hand over.
        self.logger = logging.Logger("test", logging.DEBUG)  # noqa: LOG001 - as said
        self.logger.addHandler(StderrHandler("[Server]", self.writing))

    def read(self) -> str:
        output = bytearray()
        with suppress(BlockingIOError):
            while data := os.read(self.reading, 1 << 20):
                output += data
        return output.decode()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    for descriptor in (made.reading, made.writing):
        with suppress(OSError):
            os.close(descriptor)


FORGED = "\n[Server] forged\r\x1b[2J\x9b2J\x85\u202e\u2028\U000e0041\ud800"
SHOWN = r"\u{A}[Server] forged\u{D}\u{1B}[2J\u{9B}2J\u{85}\u{202E}\u{2028}\u{E0041}\u{D800}"


@pytest.mark.parametrize(
    ("level", "told", "lines"),
    [
        (logging.DEBUG, ("one %s", "a"), ["one a"]),
        (logging.WARNING, ("three %s", "a"), ["WARNING: three a"]),
        (logging.ERROR, ("four %s", "a"), ["ERROR: four a"]),
        (logging.INFO, ("about %s", FORGED), [f"about {SHOWN}"]),
        (logging.WARNING, ("ü %s", f"ü{FORGED}"), [f"WARNING: ü ü{SHOWN}"]),
        (logging.INFO, ("one\ntwo\n\u2028three",), ["one", "two", "\\u{2028}three"]),
        (logging.WARNING, ("four\nfive",), ["WARNING: four", "five"]),
        (logging.INFO, ("%s", "ü" * PIPE_BUF), ["ü" * PIPE_BUF]),  # more than one write
    ],
)
def test_a_line_has_the_prefix_and_what_it_is_about_forges_no_other(
    level: int, told: tuple[str, ...], lines: list[str], pipe: Pipe
) -> None:
    pipe.logger.log(level, *told)
    assert pipe.read() == "".join(f"[Server] {line}\n" for line in lines)


def test_an_exception_is_told_below_its_line_and_its_text_forges_none(pipe: Pipe) -> None:
    pipe.logger.error("broke", exc_info=ValueError(f"why{FORGED}"))
    first, *lines, last = pipe.read().split("\n")
    assert (first, last) == ("[Server] ERROR: broke", "")
    assert "[Server] | ValueError: why" in lines
    assert all(each.startswith("[Server] | ") for each in lines)
    assert not any(each in "".join(lines) for each in "\r\x1b\x9b\x85\u202e\u2028\U000e0041")
    pipe.logger.handlers[0].setLevel(logging.INFO)  # for those who did not ask for everything
    pipe.logger.error("broke", exc_info=ValueError("why"))
    assert pipe.read() == "[Server] ERROR: broke\n"


@pytest.mark.parametrize("length", [1, PIPE_BUF - 10, PIPE_BUF - 9, 3 * PIPE_BUF])
def test_a_full_pipe_never_blocks_and_the_next_line_tells_how_many_were_dropped(
    length: int, pipe: Pipe
) -> None:
    lines = 10 + 200_000 // (length + 10)
    for _ in range(2):
        for _ in range(lines):
            pipe.logger.info("%s", "x" * length)
        dropped = lines - pipe.read().count("x" * length + "\n")
        assert dropped > 0
        pipe.logger.info("next")
        pipe.logger.info("after")
        notice, following, after = pipe.read().lstrip("\n").splitlines()
        assert notice == f"[Server] (dropped {dropped} lines: stderr was full)"
        assert (following, after) == ("[Server] next", "[Server] after")


def test_of_what_is_told_together_the_lines_that_fit_go_out_whole_and_the_others_are_counted(
    pipe: Pipe,
) -> None:
    told = [f"{number} ".ljust(100, "x") for number in range(10_000)]
    pipe.logger.info("\n".join(told))
    out = pipe.read().splitlines()
    assert 0 < len(out) < len(told)
    assert out == [f"[Server] {each}" for each in told[: len(out)]]
    pipe.logger.info("next")
    assert pipe.read().startswith(f"[Server] (dropped {len(told) - len(out)} lines: ")


def test_a_line_that_was_cut_off_does_not_join_the_next(pipe: Pipe) -> None:
    pipe.logger.info("%s", "x" * 1_000_000)
    pipe.logger.info("while it is full")
    assert re.fullmatch(r"\[Server\] x{4000,}", pipe.read())
    pipe.logger.info("next")
    dropped = "[Server] (dropped 2 lines: stderr was full)"
    assert pipe.read().splitlines() == ["", dropped, "[Server] next"]


def test_nobody_listening_is_no_error(pipe: Pipe) -> None:
    os.close(pipe.reading)
    pipe.logger.info("nobody hears")
    os.close(pipe.writing)
    pipe.logger.info("nowhere to go")


OPEN = """
import logging, sys
from bridge.logs import complain, open_log
open_log("[Server]", LEVEL)
complain("for a person")
logging.getLogger("bridge.mcp.session").debug("a detail")
logging.getLogger("bridge.xmpp").info("news")
logging.getLogger("slixmpp.xmlstream").critical("SEND: <auth>secret</auth>")
logging.getLogger("slixmpp").debug("secret")
logging.getLogger("httpcore.http11").critical("location: secret")
logging.getLogger("httpx").critical("secret")
logging.getLogger("asyncio").error("secret")
open_log("[Server]", LEVEL)
logging.getLogger("bridge").warning("bad news")
"""


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        ("DEBUG", ["[Server] a detail", "[Server] news", "[Server] WARNING: bad news"]),
        ("ERROR", []),
    ],
)
def test_the_log_is_ours_alone_on_stderr_alone_each_line_once(level: str, lines: list[str]) -> None:
    script = OPEN.replace("LEVEL", repr(level))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr.splitlines()) == ("", ["for a person", *lines])


def test_what_took_the_place_of_a_closed_stderr_is_not_written_to() -> None:
    script = (
        "import logging, os, sys; from bridge.logs import open_log\n"
        "reading, writing = os.pipe()\n"
        "os.set_blocking(reading, False)\n"
        "assert 2 in (reading, writing)\n"
        "if reading == 2: os.dup2(writing, 2)\n"
        "open_log('[Server]', 'INFO'); logging.getLogger('bridge').info('x')\n"
        "try: print(os.read(reading, 10))\n"
        "except BlockingIOError: print('nothing')\n"
    )
    done = subprocess.run(
        ["bash", "-c", 'exec "$@" 2>&- <&-', "bash", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "nothing\n"


@contextmanager
def logging_into(path: Path, max_bytes: int = 1_000_000) -> Iterator[logging.Logger]:
    logger = logging.Logger("test", logging.DEBUG)  # noqa: LOG001 - as above
    handler = FileHandler("[Server]", path, max_bytes)
    logger.addHandler(handler)
    yield logger
    handler.close()


def timeless(log: str) -> str:
    """The log without the times, which every line has."""
    time = r"(?m)^(\[Server\]) \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z "
    assert len(re.findall(time, log)) == log.rstrip("\n").count("\n") + 1
    return re.sub(time, r"\1 ", log)


def test_a_file_gets_every_line_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("[Server] before\n")
    path.chmod(0o644)
    with logging_into(path) as logger:
        logger.debug("one %s", FORGED)
        logger.warning("two\nthree", exc_info=ValueError("why"))
        logger.info("2026-01-31T12:00:00.000Z <Bob> hi\n2026-01-31T12:00:01.000Z * Al", extra=TIMED)
    first, *lines = path.read_text().splitlines()
    assert first == "[Server] before"
    assert lines[-2:] == [
        "[Server] 2026-01-31T12:00:00.000Z <Bob> hi",
        "[Server] 2026-01-31T12:00:01.000Z * Al",
    ]
    lines = timeless("\n".join(lines[:-2])).splitlines()
    assert lines[0].startswith(r"[Server] one \u{A}[Server] forged")
    assert lines[1:] == ["[Server] WARNING: two", "[Server] three", "[Server] | ValueError: why"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_full_file_that_cannot_be_put_aside_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    (tmp_path / "log.1" / "in the way").mkdir(parents=True)
    with logging_into(path, 100) as logger:
        for number in range(9):
            logger.info("%s", number)
    assert path.read_text().endswith(" 8\n")
    assert path.stat().st_size <= 100


def test_a_full_file_is_put_aside_and_one_former_is_kept(tmp_path: Path) -> None:
    path, former = tmp_path / "log", tmp_path / "log.1"
    line = f"[Server] {'x' * 30}\n"
    with logging_into(path, 2 * len(f"{iso(0)} {line}")) as logger:
        for _ in range(2):
            logger.info("%s", "x" * 30)
        assert not former.exists()
        for _ in range(3):
            logger.info("%s", "x" * 30)
    assert (timeless(path.read_text()), timeless(former.read_text())) == (line, 2 * line)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["log", "log.1"]


def test_two_processes_put_a_full_file_aside_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with logging_into(path, 160) as first, logging_into(path, 160) as other:
        first.info("%s", "a" * 80)
        first.info("%s", "b" * 80)  # puts the file of the first line aside
        other.info("c")
        assert timeless((tmp_path / "log.1").read_text()) == f"[Server] {'a' * 80}\n"
        assert timeless(path.read_text()) == f"[Server] {'b' * 80}\n[Server] c\n"


def test_a_file_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with logging_into(path) as logger:
        path.unlink()
        logger.info("after")
    assert timeless(path.read_text()) == "[Server] after\n"


@pytest.mark.parametrize("kind", ["symbolic", "hard", "folder", "pipe", "nowhere"])
def test_no_link_is_followed_and_what_is_no_file_is_not_written(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "log", tmp_path / "target"
    target.write_text("mine")
    match kind:
        case "symbolic":
            path.symlink_to(target)
        case "hard":
            path.hardlink_to(target)
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "nowhere":
            path = tmp_path / "no" / "log"
    root = logging.getLogger("bridge")
    before = root.handlers, root.level, root.propagate
    try:
        warning = open_log("[Server]", "INFO", path)
        assert len(root.handlers) == 1
    finally:
        root.handlers, root.level, root.propagate = before
    assert str(warning).startswith(f"BRIDGE_LOG_FILE leads to {str(path)!r}, which cannot be wri")
    assert target.read_text() == "mine"
