"""Prosody and ejabberd of Debian 13 on an older Debian, without root and beside its own.

`python -m pytest --newer-servers` plays the tests of real servers on them, and nothing else. The
packages come from the mirror of Debian that this machine's apt is told to use. They are unpacked
once for each version of them, into `$XDG_CACHE_HOME/xmpp-debug-bridge-newer`. A server sees that
folder's `/usr` in place of the machine's, in a namespace of its own: no mount outlives it, and none
stands inside the folder.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from time import time

import pytest

SUITE = "trixie"
"""Debian 13."""
PACKAGES = ("prosody", "ejabberd", "base-files", "coreutils", "dash", "grep", "sed")
"""The servers, and what else is in every Debian: their start scripts need it."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
FRESH_SECONDS = 7 * 86_400
"""How long a folder is used before the mirror is asked whether there are newer packages."""
SECONDS = 300
"""Limit for one run of apt; 67 MB come in some seconds from a mirror that is near."""

SWITCH = "XMPP_TEST_NEWER_SERVERS"
"""The variable by which the option of pytest reaches its workers."""
_ENTER = 'mount --bind "$0/usr" /usr && exec "$@"'


class UnavailableError(Exception):
    """The newer servers cannot be had here; the message says why."""


def inside(command: Sequence[str]) -> Sequence[str]:
    """The command as it is run: as it is, or among the newer programs if they are asked for."""
    if (root := _chosen()) is None:
        return command
    return [*_UNSHARED, "sh", "-c", _ENTER, str(root), *command]


def found(program: str, folder: str = "bin") -> Path | None:
    """Where the server's program lies, to be read; None if it is not installed."""
    if (root := _chosen()) is not None:
        return root / "usr" / folder / program
    # Debian's own `sbin` is not in the PATH of an ordinary user.
    path = os.pathsep.join((os.environ["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin"))
    place = shutil.which(program, path=path)
    return Path(place) if place else None


def version(package: str) -> tuple[int, ...]:
    """The server's version, such as (13, 0, 1), of the package that `inside` runs."""
    if (root := _chosen()) is not None:
        text = dict(line.split() for line in (root / "versions").read_text().splitlines())[package]
    else:
        asked = ["dpkg-query", "--show", "--showformat=${Version}", package]
        text = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    upstream = re.match(r"(?:\d+:)?([\d.]*)", text)
    return tuple(int(part) for part in upstream[1].split(".") if part) if upstream else ()


@cache
def _chosen() -> Path | None:
    """The folder of the newer servers, or None if the tests play on the machine's own."""
    if os.environ.get(SWITCH) != "1":
        return None
    try:
        return made()
    except UnavailableError as error:
        # In CI, too: a machine may forbid namespaces, and its own servers are tested all the same.
        pytest.skip(f"no newer servers: {error}")


_UNSHARED = ("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private")


def made() -> Path:
    """The folder with the newer servers, made if need be; several processes may ask at once."""
    _run("no namespaces for an ordinary user", *_UNSHARED, "true")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home /= "xmpp-debug-bridge-newer"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = sorted(home.glob("whole-*"), key=lambda folder: folder.stat().st_mtime)
        if whole and time() - whole[-1].stat().st_mtime < FRESH_SECONDS:
            return whole[-1]
        try:
            return _newest(home)
        except UnavailableError:
            if whole:
                return whole[-1]
            raise


def _newest(home: Path) -> Path:
    """The folder with the packages that the mirror has now."""
    apt = _apt(home / "apt")
    _run("the package lists cannot be had", *apt, "update")
    install = (*apt, "install", "--yes", *PACKAGES)
    listed = _run("the packages cannot be had", *install, "--print-uris")
    files = sorted(re.findall(r"^'\S+' (\S+\.deb) ", listed, re.MULTILINE))
    folder = home / f"whole-{sha256(' '.join(files).encode()).hexdigest()[:12]}"
    if folder.exists():
        folder.touch()
        return folder
    _run("the packages cannot be had", *install, "--download-only")
    # What was begun and not finished: no server ever ran in it.
    making = home / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    archives = home / "apt" / "cache" / "archives"
    # base-files first: its links say where /bin and /lib are.
    for file in sorted(files, key=lambda name: not name.startswith("base-files_")):
        _run("a package cannot be unpacked", "dpkg-deb", "-x", str(archives / file), str(making))
    versions = (name.split("_")[:2] for name in files)
    lines = (f"{name} {number.replace('%3a', ':')}\n" for name, number in versions)
    (making / "versions").write_text("".join(lines), "utf-8")
    making.rename(folder)
    shutil.rmtree(archives)
    return folder


def _apt(directory: Path) -> Sequence[str]:
    """The apt-get that knows only the suite, and keeps what it has in `directory`."""
    sources, status = directory / "sources.list", directory / "status"
    for name in ("lists/partial", "cache/archives/partial", "none"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    status.write_text("", "utf-8")
    lines = (f"deb [signed-by={KEYRING}] {uri} {SUITE} main\n" for uri in _mirrors())
    sources.write_text("".join(lines), "utf-8")
    options = {
        "Dir::State": directory,
        "Dir::State::lists": directory / "lists",
        "Dir::State::status": status,
        "Dir::Cache": directory / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": directory / "none",
        "Dir::Etc::preferencesparts": directory / "none",
        "APT::Install-Recommends": "0",
        # As root it would become a user who may not read the folder.
        "APT::Sandbox::User": "root",
        # Else a list that cannot be had is only a warning.
        "APT::Update::Error-Mode": "any",
    }
    return ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]


def _mirrors() -> list[str]:
    """Where this machine gets the packages of its own release of Debian."""
    wanted = ("apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)")
    listed = _run("apt-get names no sources", *wanted, "Created-By: Packages")
    release = Path("/etc/os-release").read_text("utf-8")
    codename = re.search(r"^VERSION_CODENAME=(\S+)", release, re.MULTILINE)
    own = f"{codename[1] if codename else ''} main "
    mirrors = [line.removeprefix(own) for line in listed.splitlines() if line.startswith(own)]
    if not mirrors:
        raise UnavailableError("apt has no source for the packages of this machine's own release")
    return mirrors


def _run(trouble: str, *command: str) -> str:
    """What the command prints; if it fails, the trouble with its last words."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS,
            env=os.environ | {"LC_ALL": "C"},
        )
    except FileNotFoundError:
        raise UnavailableError(f"{trouble}: there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{trouble}: no end after {SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"it ended with {error.returncode}"])[-1]
        raise UnavailableError(f"{trouble}: {last}") from None
    return done.stdout


if __name__ == "__main__":
    try:
        print(made())  # noqa: T201
    except UnavailableError as unavailable:
        sys.exit(f"no newer servers: {unavailable}")
