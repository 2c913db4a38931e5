"""A log whose place somebody else takes in the moment between a look at it and its opening."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bridge.xmpp.traffic import RETRY_SECONDS, TrafficLog
from tests.nobody import NOBODY, without_privileges
from tests.racing import at_the_moment, put
from tests.xmpp.traffic.logs import HEADER, Clock, earlier, lines, mask, refusal

PRECIOUS = b"precious\n"
KINDS = ["link", "link to nothing", "hard link", "FIFO", "directory", "full device"]


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """What an attacker would like to see written to; itself a log, to make it harder."""
    victim = tmp_path / "victim"
    victim.write_bytes(HEADER + PRECIOUS)
    victim.chmod(0o640)
    return victim


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder like `/tmp`, which others can reach."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


def untouched(victim: Path) -> bool:
    found = victim.stat()
    return (
        victim.read_bytes() == HEADER + PRECIOUS
        and stat.S_IMODE(found.st_mode) == 0o640
        and not victim.with_name("nothing").exists()
    )


@pytest.mark.parametrize("exists", [True, False], ids=["an old log", "a new one"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_swapped_in_ahead_of_the_opening_is_not_written_to(
    kind: str, exists: bool, path: Path, victim: Path
) -> None:
    if exists:
        path.write_bytes(HEADER)
        path.chmod(0o600)
    # An old log is opened at the second try: the first is to make a new one.
    time = 2 if exists else 1
    with at_the_moment("open", path, lambda: put(path, kind, victim), time=time):
        refusal(path)
    assert untouched(victim)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_swapped_in_between_two_lines_is_not_written_to(
    kind: str, path: Path, victim: Path, traffic: TrafficLog, clock: Clock
) -> None:
    traffic.write({"n": 1})
    mine = path.read_bytes()
    path.rename(path.with_name("mine"))
    put(path, kind, victim)
    traffic.write({"n": 2})
    assert traffic.problem is not None
    assert untouched(victim)
    assert path.with_name("mine").read_bytes() == mine
    path.rmdir() if kind == "directory" else path.unlink()
    clock.now += RETRY_SECONDS
    traffic.write({"n": 3})
    assert [one.get("events", one.get("n")) for one in lines(path)] == [1, 3]


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "directory"])
def test_what_is_swapped_in_while_a_file_is_put_aside_is_not_written_to(
    kind: str, path: Path, victim: Path, clock: Clock
) -> None:
    """It is put aside itself, as a name; what it leads to stays as it is."""
    traffic = TrafficLog(path, max_bytes=1, kept=1, clock=clock)
    traffic.write({"n": 1})
    with at_the_moment("os.rename", path, lambda: put(path, kind, victim)):
        traffic.write({"n": 2})
    assert traffic.problem is not None
    assert untouched(victim)
    earlier(path, 1).unlink()
    clock.now = RETRY_SECONDS
    traffic.write({"n": 3})
    traffic.close()
    assert [one.get("events", one.get("n")) for one in lines(path)] == [1, 3]
    assert untouched(victim)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes two users: run it as root")
def test_in_a_folder_for_everybody_nobodys_file_is_replaced(everybodys: Path, clock: Clock) -> None:
    path = everybodys / "room.jsonl"
    theirs = earlier(path, 1)

    def obstruct() -> None:
        os.seteuid(0)
        theirs.write_bytes(PRECIOUS)
        os.seteuid(NOBODY)

    traffic = TrafficLog(path, max_bytes=1, kept=1, clock=clock)
    with without_privileges():
        traffic.write({"n": 1})
        with at_the_moment("os.rename", path, obstruct):
            traffic.write({"n": 2})
        assert theirs.read_bytes() == PRECIOUS
        assert traffic.problem is not None
        assert lines(path) == [{"n": 1}]
        traffic.close()


@pytest.mark.parametrize("umask", [0, 0o022, 0o777])
def test_whatever_the_umask_all_files_are_for_their_owner_alone(umask: int, path: Path) -> None:
    with mask(umask):
        traffic = TrafficLog(path, max_bytes=1)
        for number in range(3):
            traffic.write({"n": number})
        traffic.close()
    for one in (path, earlier(path, 1), earlier(path, 2)):
        assert stat.S_IMODE(one.stat().st_mode) == 0o600
