"""The rate that holds over all runs of `send`, in a file."""

import fcntl
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bridge.commands.send_rate import CountedRate
from bridge.mcp.errors import ToolError
from bridge.tools.send import SECONDS

ACCOUNT = "bot@example.org"
ANY = 0.0
"""A time that does not matter."""
AN_INSTANT = 5.0
"""Seconds within which a test gets from one line to the next."""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "xmpp-bridge"


def take(per_minute: int = 2, account: str = ACCOUNT) -> float:
    """What a run is told: how long to wait, 0 if it may send."""
    return CountedRate(per_minute, "", account).take(ANY)


def file_in(state: Path) -> Path:
    (file,) = state.iterdir()
    return file


def test_the_runs_of_an_account_share_a_rate_and_no_other_has_a_part_in_it(state: Path) -> None:
    assert [take(), take()] == [0.0, 0.0]
    assert 30 - AN_INSTANT < take() <= 30
    assert (file_in(state).stat().st_mode & 0o777, state.stat().st_mode & 0o777) == (0o600, 0o700)
    assert take(account="other@example.org") == 0.0


def test_what_was_not_sent_may_be_taken_again(state: Path) -> None:
    rate = CountedRate(1, "", ACCOUNT)
    assert rate.take(ANY) == 0.0
    assert rate.wait(ANY) > 0.0
    rate.give_back()
    assert rate.wait(ANY) == 0.0
    assert take(1) == 0.0


@pytest.mark.parametrize(
    ("ahead", "least"),
    [(86_400.0, 30 - AN_INSTANT), (SECONDS, 30 - AN_INSTANT), (29.0, 0.0), (-86_400.0, 0.0)],
)
def test_a_clock_that_was_set_back_neither_frees_nor_blocks_for_ever(
    ahead: float, least: float, state: Path
) -> None:
    take()
    os.utime(file_in(state), times=(0, time.time() + ahead))
    assert least <= take() <= 30
    assert file_in(state).stat().st_mtime <= time.time() + SECONDS


def _link(file: Path) -> None:
    file.rename(file.with_name("other"))
    file.symlink_to("other")


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _linked_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("other"))
    file.parent.symlink_to("other")


FOREIGN: dict[str, Callable[[Path], None]] = {
    "a link": _link,
    "a second name": lambda file: file.with_name("other").hardlink_to(file),
    "a folder": _folder,
    "a folder that is a link": _linked_folder,
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_nothing_is_sent_if_it_cannot_be_counted(foreign: str, state: Path) -> None:
    take()
    file = file_in(state)
    FOREIGN[foreign](file)
    with pytest.raises(ToolError, match="cannot be counted") as refused:
        take()
    assert (str(file) in refused.value.message, "XDG_STATE_HOME" in refused.value.hint) == (1, 1)


def test_a_run_waits_until_another_one_has_taken(state: Path) -> None:
    assert take(2) == 0.0
    with file_in(state).open() as held, ThreadPoolExecutor(1) as runs:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = runs.submit(take, 2)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        os.utime(held.fileno(), (0, time.time() + SECONDS))
        fcntl.flock(held, fcntl.LOCK_UN)
        assert waiting.result(AN_INSTANT) > 0.0
