"""Tab in the three shells for which `xmpp-bridge completion` prints code."""

import fcntl
import os
import pty
import shutil
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from time import monotonic

import pytest

from tests.e2e.bridge_process import COMMAND, NOWHERE, run_in
from tests.servers.server import write_settings
from tests.support.prerequisites import do_without

SECONDS = 60.0
STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
READY = {
    "bash": 'eval "$(xmpp-bridge completion bash)"; echo rea""dy\n',
    "zsh": "autoload -U compinit; compinit -u; "
    'eval "$(xmpp-bridge completion zsh)"; echo rea""dy\n',
    "fish": "xmpp-bridge completion fish | source; echo rea''dy\n",
}
COMPLETED = [
    ("xmpp-bridge diagn", "xmpp-bridge diagnose "),
    ("xmpp-bridge watch --stan", "--stanzas "),
    ("xmpp-bridge watch --room ro", "room@conference.localhost"),
    ("xmpp-bridge watch --env-file lab.env --room la", "lab@conference.localhost"),
    ("xmpp-bridge --env-file lab.e", "lab.env "),
    ("xmpp-bridge --env-file lab.env send --room la", "lab@conference.localhost"),
    ("xmpp-bridge log --kind message,subj", "message,subject"),
    ("xmpp-bridge expect pi", "ping.room.toml"),
    ("xmpp-bridge completion fi", "completion fish "),
]
"""What is typed, and what stands there after Tab."""


@contextmanager
def shell(name: str, home: Path) -> Iterator[int]:
    """A shell at a terminal, with completion switched on; yields the terminal's other end."""
    if shutil.which(name) is None:
        do_without(f"{name} is not installed")
    controller, terminal = pty.openpty()
    path = os.pathsep.join((str(Path(COMMAND).parent), os.environ["PATH"]))
    process = subprocess.Popen(
        STARTS[name],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=home,
        env={"PATH": path, "HOME": str(home), "TERM": "dumb", "PS1": "$ "},
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # as a login does it
    )
    os.close(terminal)
    try:
        os.write(controller, READY[name].encode())
        until(controller, "ready")
        yield controller
    finally:
        process.kill()
        process.wait()
        os.close(controller)


def until(controller: int, text: str) -> None:
    """Read until the shell has shown this text."""
    shown, deadline = "", monotonic() + SECONDS
    while text not in shown:
        assert select([controller], [], [], max(0, deadline - monotonic()))[0], shown
        shown += os.read(controller, 4096).decode("utf-8", "replace")


@pytest.mark.parametrize("name", STARTS)
def test_tab_completes_commands_options_rooms_kinds_and_scenarios(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "ping.room.toml").touch()
    (tmp_path / "pictures.txt").touch()
    write_settings(tmp_path / ".env", NOWHERE)
    write_settings(tmp_path / "lab.env", NOWHERE | {"MUC_ROOM": "lab@conference.localhost"})
    with shell(name, tmp_path) as controller:
        for typed, completed in COMPLETED:
            os.write(controller, f"{typed}\t".encode())
            until(controller, completed.removeprefix(typed))
            os.write(controller, b"\x15")  # Ctrl-U empties the line


def test_without_the_extra_it_says_which_one_is_missing(tmp_path: Path) -> None:
    (tmp_path / "argcomplete.py").write_text("raise ImportError('no')\n")
    ran = run_in(tmp_path, COMMAND, "completion", "bash", PYTHONPATH=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "xmpp-debug-bridge[completion]" in ran.stderr
