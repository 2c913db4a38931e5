"""Finds what to register: the command that starts this bridge, and its settings file."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from bridge.registration.errors import LaunchError
from bridge.settings.load import load

SCRIPT = "xmpp-bridge"
"""The installed command."""

ENV_FILE_OPTION = "--env-file"

TEMPORARY = re.compile(r"/(?:archive|builds|environments)-v[0-9]+/[^/]+$|/[0-9a-f]{15}$")
"""Finds the path of an environment that `uvx`, `uv run` or `pipx run` makes in a cache."""


def check_lasting(prefix: str) -> None:
    """Raise `LaunchError` if `prefix`, which is `sys.prefix`, is a temporary environment."""
    if TEMPORARY.search(prefix):
        raise LaunchError(
            f"{prefix} is a temporary environment, which goes when a cache is emptied, and the "
            "registered command with it.\nInstall the bridge for good (uv tool install "
            "xmpp-debug-bridge, or pipx install xmpp-debug-bridge), and register that."
        )


def own_command(called: str, executable: str) -> tuple[str, ...]:
    """Return the command that starts the bridge which is running now; it begins with a path.

    `called` is `sys.argv[0]`, `executable` is `sys.executable`. Links are not followed: a link in
    the PATH outlives the folder that an upgrade replaces.
    """
    for script in (Path(called), Path(executable).with_name(SCRIPT)):
        if script.name == SCRIPT and script.is_file() and os.access(script, os.X_OK):
            return (os.path.abspath(script),)  # noqa: PTH100 - `resolve` would follow links
    # -P: without it, a folder called `bridge` where the client starts us would be imported.
    return (executable, "-P", "-m", "bridge", "serve")


def find_env_file(
    environ: Mapping[str, str], *, cwd: Path, package_root: Path, named: Path | None
) -> Path:
    """Return the absolute path of the settings file: the `named` one, or the one a search finds.

    Raises `LaunchError` if there is none, or if it was found only because it lies in `cwd`.
    """
    loaded = load(environ, cwd=cwd, package_root=package_root, env_file=named)
    if loaded.env_file is None:
        looked = loaded.candidates[-1]  # without a name, the user's own file is the last
        raise LaunchError(
            f"there is no settings file to register ({named or looked.path}: {looked.reason}).\n"
            f"xmpp-bridge init asks for what it holds, and writes it; {ENV_FILE_OPTION} names one."
        )
    path = Path(loaded.env_file)
    if ".." in path.parts:
        path = path.parent.resolve() / path.name
    if not loaded.trusted:
        raise LaunchError(
            f"{path} was found only because it lies in the current directory, where it may be "
            "a stranger's, and a registered file is fully trusted.\nIf it is yours, name it: "
            f"xmpp-bridge register CLIENT --env-file {shlex.quote(str(path))}"
        )
    return path


def flaws(env_file: Path) -> list[str]:
    """Return what is wrong with the settings file when a client starts the bridge with it.

    It is assumed that the client's environment has none of our variables, and that the project it
    works on has none of our files.
    """
    nowhere = Path("/")
    loaded = load({}, cwd=nowhere, package_root=nowhere, env_file=env_file)
    return [*map(str, loaded.problems), *loaded.warnings]
