"""A `.env` that becomes something else at the moment of opening."""

import time

import pytest

from tests.racing import at_the_moment, put
from tests.settings.folders import ACCOUNT, UNREADABLE, USED, Folders, settled, write


@pytest.mark.parametrize("kind", ["FIFO", "directory", "endless device", "link to nothing"])
@pytest.mark.parametrize("outright", [False, True], ids=["found", "named"])
def test_what_is_swapped_in_is_passed_over(kind: str, outright: bool, folders: Folders) -> None:
    path = write(folders.here, ACCOUNT)
    began = time.monotonic()
    with at_the_moment("open", path, lambda: put(path, kind, folders.elsewhere / "x")):
        found = folders.load({}, env_file=path if outright else None)
    assert time.monotonic() - began < 2
    assert found.settings is None
    reason = found.candidates[0].reason
    assert reason == "missing" or reason.startswith(f"{UNREADABLE}: ")


def test_a_file_that_grows_ahead_of_the_reading_is_read_up_to_its_bound(folders: Folders) -> None:
    path = write(folders.here, ACCOUNT)

    def grow() -> None:
        with path.open("ab") as file:
            file.truncate(1 << 40)

    with at_the_moment("open", path, grow):
        (reason, *_) = folders.reasons({})
    assert reason.startswith(f"{UNREADABLE}: more than ")


def test_a_link_to_a_trusted_file_lends_its_trust_to_nothing_else(folders: Folders) -> None:
    """Found to be the user's own file, the link is turned to a stranger's before it is opened."""
    own = write(folders.elsewhere, ACCOUNT | {"MCP_BOT_NICKNAME": "Own"})
    strangers = write(folders.elsewhere, ACCOUNT | {"MCP_BOT_NICKNAME": "Evil"}, "evil")
    here = folders.here / ".env"
    here.symlink_to(own)

    def turn() -> None:
        here.unlink()
        here.symlink_to(strangers)

    with at_the_moment("open", own, turn):
        found = folders.load({"TIA_ENV_PATH": str(own)})
    assert [one.reason for one in found.candidates][:1] == [USED]
    assert found.env_file == str(own)
    assert settled(found).nickname == "Own"


def test_a_strangers_link_to_a_file_of_ours_makes_it_no_less_a_strangers(folders: Folders) -> None:
    """A repository can hold a link to wherever it likes; what it leads to is not shown."""
    secret = write(folders.elsewhere, "-----BEGIN KEY-----\ntop secret\n", "id_rsa")
    (folders.here / ".env").symlink_to(secret)
    found = folders.load({})
    assert found.settings is None
    assert "top secret" not in repr(found)
