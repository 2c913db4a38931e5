"""What a bridge that runs may be moved to when its settings are read again."""

import pytest

from tests.settings.folders import (
    ACCOUNT,
    MISSING,
    NAMED,
    NOT_NEEDED,
    USED,
    Folders,
    reasons,
    write,
)

APPEARED = "appeared since the start: restart the bridge to use it"


def _account(name: str) -> dict[str, str]:
    return ACCOUNT | {"XMPP_USERNAME": f"{name}@example.org"}


@pytest.fixture
def environ(folders: Folders) -> dict[str, str]:
    return {"TIA_ENV_PATH": str(folders.elsewhere / ".env")}


@pytest.mark.parametrize("before", [None, "", "DATABASE_URL=x\n", b"\xff", "MUC_ROOM=\n"])
def test_a_file_that_appeared_in_the_current_directory_is_not_used(
    folders: Folders, environ: dict[str, str], before: str | bytes | None
) -> None:
    ours = write(folders.elsewhere, _account("elsewhere"))
    if before is not None:
        write(folders.here, before)
    start = folders.load(environ)
    write(folders.here, _account("here"))
    anew = folders.load(environ, at_start=start)
    assert (anew.env_file, anew.settings) == (str(ours), start.settings)
    assert reasons(anew) == [APPEARED, USED, MISSING]
    assert reasons(folders.load(environ)) == [USED, NOT_NEEDED, MISSING]


def test_it_is_not_used_either_where_no_file_was_used_before(folders: Folders) -> None:
    for environ in ({}, ACCOUNT):
        start = folders.load(environ)
        path = write(folders.here, _account("here"))
        anew = folders.load(environ, at_start=start)
        assert (anew.env_file, anew.settings) == (None, start.settings)
        assert reasons(anew) == [APPEARED, MISSING]
        path.unlink()


def test_it_does_not_replace_a_deleted_file(folders: Folders, environ: dict[str, str]) -> None:
    ours = write(folders.elsewhere, _account("elsewhere"))
    start = folders.load(environ)
    ours.unlink()
    write(folders.here, _account("here"))
    anew = folders.load(environ, at_start=start)
    assert (anew.env_file, anew.settings) == (None, None)
    assert reasons(anew) == [APPEARED, MISSING, MISSING]
    package = write(folders.package, _account("package"))
    assert folders.load(environ, at_start=start).env_file == str(package)


def test_a_file_that_was_used_at_the_start_stays(folders: Folders, environ: dict[str, str]) -> None:
    here = write(folders.here, _account("here"))
    start = folders.load(environ)
    write(folders.here, _account("other"))
    write(folders.elsewhere, _account("elsewhere"))
    anew = folders.load(environ, at_start=start)
    assert anew.env_file == str(here)
    assert anew.settings is not None
    assert anew.settings.username == "other"


@pytest.mark.parametrize("how", NAMED)
def test_a_file_that_is_ours_may_appear_at_any_time(folders: Folders, how: str) -> None:
    start = folders.load_named(how, {})
    assert start.settings is None
    write(folders.here, ACCOUNT)
    anew = folders.load_named(how, {}, start)
    assert anew.settings is not None
    assert anew.trusted
