"""How the newer servers are made, with stand-ins for what needs a network and namespaces."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.servers import newer

APT = """#!/bin/sh
echo "$@" >>"{log}"
case "$*" in
*indextargets*) . /etc/os-release; echo "$VERSION_CODENAME main https://mirror.example/debian/" ;;
*update) [ -z "$OFFLINE" ] || {{ echo "W: no" >&2; echo "E: no way" >&2; exit 100; }} ;;
*--print-uris*)
    echo "'https://mirror.example/p' prosody_${{VERSION:-13.0.1-1}}_amd64.deb 1 SHA256:0"
    echo "'https://mirror.example/e' ejabberd_1%3a24.12-3_amd64.deb 1 SHA256:0"
    echo "'https://mirror.example/b' base-files_13_amd64.deb 1 SHA256:0" ;;
esac
"""
DPKG_DEB = """#!/bin/sh
echo "unpack $2" >>"{log}"
[ -z "$BROKEN" ] || exit 1
echo "$2" >>"$3/unpacked"
"""
UNSHARE = """#!/bin/sh
[ -z "$FORBIDDEN" ] || { echo "unshare: Operation not permitted" >&2; exit 1; }
"""


@dataclass
class Machine:
    """A machine with stand-ins for three programs, and what they were asked for."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = {"apt-get": APT, "dpkg-deb": DPKG_DEB}
        texts = {name: text.format(log=self.folder / "log") for name, text in programs.items()}
        for name, text in (texts | {"unshare": UNSHARE}).items():
            (self.folder / name).write_text(text, "utf-8")
            (self.folder / name).chmod(0o755)
        path = os.pathsep.join((str(self.folder), os.environ["PATH"]))
        self.environment = {"PATH": path, "XDG_CACHE_HOME": str(self.folder / "cache")}

    def begin(self, **variables: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tests.servers.newer"],
            env=os.environ | self.environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def make(self, **variables: str) -> Path:
        with self.begin(**variables) as process:
            told, wrong = process.communicate()
        assert process.returncode == 0, wrong
        return Path(told.strip())

    def reason(self, **variables: str) -> str:
        with self.begin(**variables) as process:
            told, wrong = process.communicate()
        assert (process.returncode, told) == (1, "")
        return wrong

    def asked(self, what: str) -> int:
        return (self.folder / "log").read_text("utf-8").count(what)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_two_that_ask_at_once_get_the_same_servers_which_are_made_once(machine: Machine) -> None:
    both = [machine.begin(), machine.begin()]
    told = [process.communicate()[0] for process in both]
    assert told[0] == told[1]
    folder = Path(told[0].strip())
    assert machine.asked("--download-only") == 1
    assert machine.asked("unpack") == 3
    unpacked = (folder / "unpacked").read_text("utf-8").splitlines()
    # It says where /bin and /lib are.
    assert Path(unpacked[0]).name.startswith("base-files_")
    versions = (folder / "versions").read_text("utf-8").splitlines()
    assert versions == ["base-files 13", "ejabberd 1:24.12-3", "prosody 13.0.1-1"]
    # From the machine's own mirror alone, and beside the machine's own packages.
    sources = (folder.parent / "apt" / "sources.list").read_text("utf-8")
    assert (
        sources == f"deb [signed-by={newer.KEYRING}] https://mirror.example/debian/ trixie main\n"
    )
    assert machine.asked("-oDir::State=") == machine.asked("-oDir::Cache=") == 3


def test_a_week_later_newer_packages_get_a_folder_of_their_own(machine: Machine) -> None:
    first = machine.make()
    assert machine.make(VERSION="13.0.2-1") == first
    os.utime(first, (0, 0))
    second = machine.make(VERSION="13.0.2-1")
    assert second != first
    # A server of another run may still use it.
    assert (first / "versions").exists()
    os.utime(second, (1, 1))
    assert machine.make(VERSION="13.0.2-1", OFFLINE="1") == second


@pytest.mark.parametrize(
    ("variable", "reason"),
    [
        ("FORBIDDEN", "no namespaces for an ordinary user: unshare: Operation not permitted"),
        ("OFFLINE", "the package lists cannot be had: E: no way"),
        ("BROKEN", "a package cannot be unpacked: it ended with 1"),
    ],
)
def test_where_they_cannot_be_had_the_reason_is_told_and_nothing_half_made_is_used(
    variable: str, reason: str, machine: Machine
) -> None:
    assert machine.reason(**{variable: "1"}) == f"no newer servers: {reason}\n"
    assert machine.make().is_dir()


def test_the_tests_on_them_are_skipped_with_the_reason_in_ci_too(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = machine.environment | {"FORBIDDEN": "1", "CI": "true", newer.SWITCH: "1"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    newer._chosen.cache_clear()  # noqa: SLF001 - as in a run of its own
    with pytest.raises(pytest.skip.Exception, match="no newer servers: no namespaces"):
        newer.inside(["prosody"])
    monkeypatch.delenv(newer.SWITCH)
    newer._chosen.cache_clear()  # noqa: SLF001
    assert newer.inside(["prosody"]) == ["prosody"]
    newer._chosen.cache_clear()  # noqa: SLF001
