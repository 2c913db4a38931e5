"""Ctrl-C at any moment of a command, from the first line of `bridge/__main__` on."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
INTERRUPTED = 130

PROGRAM = """
import os, runpy, signal, sys
moment, begun = int(sys.argv.pop(1)), False

def hook(event, arguments):
    global moment, begun
    moment -= begun
    if begun and moment == 0:
        os.kill(os.getpid(), signal.SIGINT)
    begun = begun or event == "exec" and "bridge/__main__" in arguments[0].co_filename

sys.addaudithook(hook)
sys.argv[0] = "xmpp-bridge"
runpy.run_module("bridge", run_name="__main__")
"""
"""Runs a command, and sends SIGINT as Python announces the import, opening or running of something
for the so many-th time, counted from the first line on."""

MOMENTS = [1, 2, 3, 5, 9, 17, 40, 90, 170, 290, 480, 720, 1_000, 1_400, 1_900]


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(
    "words",
    [["check", "--sandbox"], ["watch", "--sandbox", "--timeout", "1"], ["explain", os.devnull]],
    ids=lambda words: words[0],
)
def test_it_ends_without_a_traceback_and_with_130_or_as_the_command_ends(
    words: list[str], moment: int, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, str(moment), *words],
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Traceback" not in ran.stderr
    assert "Exception ignored" not in ran.stderr
    # `explain` has nothing to read, and may be over before the later moments.
    usual = {2} if words[0] == "explain" and moment > 300 else set()
    assert ran.returncode in {INTERRUPTED} | usual


@pytest.mark.parametrize("module", ["bridge", "bridge.cli", "bridge.service", "bridge.toolkit"])
def test_importing_it_sets_no_handler(module: str) -> None:
    look = "[signal.getsignal(number) for number in signal.valid_signals()], sys.unraisablehook"
    program = f"import signal, sys; before = {look}; import {module}; assert before == ({look})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_ignored_from_the_start_stays_so() -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    program = (
        "import os, signal\nfrom bridge.__main__ import main\nos.kill(os.getpid(), signal.SIGINT)\n"
        "import sys; sys.argv = ['xmpp-bridge', '--version']; main()"
    )
    ran = subprocess.run([sys.executable, "-c", program], preexec_fn=ignore)
    assert ran.returncode == 0


def test_the_console_scripts_begin_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts.values()) == {"bridge.__main__:main"}
