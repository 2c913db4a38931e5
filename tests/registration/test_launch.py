import sys
from pathlib import Path

import pytest

from bridge.registration.entry import is_ours, user_arguments
from bridge.registration.errors import LaunchError
from bridge.registration.launch import check_lasting, find_env_file, flaws, own_command

GOOD = "XMPP_USERNAME=bot@localhost\nXMPP_PASSWORD=secret-pw\nMUC_ROOM=room@conference.localhost\n"


def _script(folder: Path, name: str = "xmpp-bridge") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _find(folder: Path, named: Path | None = None, **environ: str) -> Path:
    return find_env_file(environ, cwd=folder, package_root=folder / "package", named=named)


def test_the_script_that_runs_is_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, link = _script(tmp_path / "bin"), tmp_path / "xmpp-bridge"
    link.symlink_to(script)
    monkeypatch.chdir(tmp_path)
    for argument, python, registered in (
        ("bin/xmpp-bridge", "/nowhere/python", script),
        (str(link), "/nowhere/python", link),
        ("/x/bridge/__main__.py", str(tmp_path / "bin" / "python"), script),
        ("pytest", sys.executable, Path(sys.executable).with_name("xmpp-bridge")),
    ):
        assert own_command(argument, python) == (str(registered),)
    none = str(tmp_path / "none" / "python")
    serving = (none, "-P", "-m", "bridge", "serve")
    assert own_command("/x/bridge/__main__.py", none) == serving


@pytest.mark.parametrize(
    ("prefix", "lasts"),
    [
        ("/root/.cache/uv/archive-v0/kwGqYS9bVdZ4H1lA", False),
        ("/cache/builds-v0/.tmpAbCdEf", False),
        ("/home/me/.cache/pipx/9c0a7bb02a1c4f5", False),
        ("/home/me/.local/share/uv/tools/xmpp-debug-bridge", True),
        ("/home/me/xmpp-debug-bridge/.venv", True),
        ("/usr", True),
    ],
)
def test_a_bridge_in_the_cache_of_uvx_or_pipx_is_not_registered(prefix: str, lasts: bool) -> None:
    if lasts:
        check_lasting(prefix)
        return
    with pytest.raises(LaunchError) as refused:
        check_lasting(prefix)
    assert all(word in str(refused.value) for word in (prefix, "uv tool install", "pipx install"))


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"command": "/opt/venv/bin/xmpp-bridge"}, True),
        ({"command": "python3", "args": ["-P", "-m", "bridge", "serve"]}, True),
        ({"command": "python3", "args": ["-m", "http.server", "bridge"]}, False),
        ({"url": "https://example.org"}, False),
        ({"command": ["xmpp-bridge"]}, False),
        ("xmpp-bridge", False),
    ],
)
def test_an_entry_is_ours_if_it_starts_this_bridge(entry: object, ours: bool) -> None:
    assert is_ours(entry) is ours


def test_the_file_is_the_one_that_a_search_finds_as_an_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "else.env").write_text(GOOD)
    assert _find(tmp_path, TIA_ENV_PATH="else.env") == tmp_path / "else.env"
    (tmp_path / ".env").write_text(GOOD)
    assert _find(tmp_path, Path("else.env")) == tmp_path / "else.env"
    assert _find(tmp_path, Path(".env")) == _find(tmp_path, TIA_ENV_PATH=".env")
    assert find_env_file({}, cwd=tmp_path, package_root=tmp_path, named=None) == tmp_path / ".env"
    users = tmp_path / ".config/xmpp-bridge.env"
    users.parent.mkdir()
    users.write_text(GOOD)
    (tmp_path / "project").mkdir()
    assert _find(tmp_path / "project", HOME=str(tmp_path)) == users
    assert _find(tmp_path / "project", Path("../else.env")) == tmp_path / "else.env"


def test_a_file_must_be_there_and_not_merely_in_the_current_directory(tmp_path: Path) -> None:
    users = tmp_path / ".config/xmpp-bridge.env"
    for absent, told in ((None, f"{users}: missing.*--env-file"), (Path("x.env"), "x.env: miss")):
        with pytest.raises(LaunchError, match=f"(?s){told}"):
            _find(tmp_path, absent, HOME=str(tmp_path))
    (tmp_path / "else.env").write_text(GOOD)
    (tmp_path / ".env").write_text(GOOD)
    for named in ("", "else.env"):
        with pytest.raises(LaunchError, match=f"--env-file {tmp_path / '.env'}") as caught:
            _find(tmp_path, TIA_ENV_PATH=named)
        assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("args", "added"),
    [
        (None, []),
        ("--read-only", []),
        (["--env-file", "/e", "--read-only"], ["--read-only"]),
        (["serve", "--read-only", "--env-file", "/e"], ["--read-only"]),
        (["-X", "dev", "-m", "bridge", "serve", "--toolset", "llm"], ["--toolset", "llm"]),
        (["-P", "-m", "bridge", "serve", "--env-file"], []),
        (["--env-file=/e", 3, "--sandbox"], ["--sandbox"]),
    ],
)
def test_what_the_user_added_to_our_arguments_is_told_apart(args: object, added: list[str]) -> None:
    assert user_arguments(args) == added


def test_what_a_file_lacks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The client will not have what this shell has.
    monkeypatch.setenv("MUC_ROOM", "room@conference.localhost")
    path = tmp_path / ".env"
    path.write_text(GOOD)
    path.chmod(0o600)
    assert flaws(path) == []
    path.write_text(GOOD.replace("MUC_ROOM", "OTHER"))
    path.chmod(0o604)
    missing, readable = flaws(path)
    assert missing.startswith("MUC_ROOM is not set")
    assert f"chmod 600 {str(path)!r}" in readable
    assert "secret-pw" not in missing + readable
