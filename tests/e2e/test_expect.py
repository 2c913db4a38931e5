"""`xmpp-bridge expect`: what it runs, what it says, and how it ends."""

import json
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.bridge_process import COMMAND, run_in
from tests.servers.server import XmppServer, write_settings

SECONDS = 60.0

PASSES = '[[step]]\nsay = "hello"\n'
FAILS = '[[step]]\nactor = "Alice"\nexpect = { text = "hello", within = 0 }\n'
WRONG = '[[step]]\nexpect = { txt = "hello" }\n'
SILENT = """
[bot]
command = ["python", "bot.py"]
joins_as = "Robot"

[[step]]
wait = 1
"""

FILES = {"good": PASSES, "bad": FAILS, "wrong": WRONG, "silent": SILENT}


def _expect(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_in(folder, COMMAND, "expect", *words)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of each sort."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.room.toml").write_text(text, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["good.room.toml", "bad.room.toml"], 1, "bad.room.toml, line 3, expect: Alice waited 0 s"),
        (["good.room.toml", "wrong.room.toml"], 2, "wrong.room.toml: line 2: step 1.expect.txt: "),
        (["wrong.room.toml", "--report=p.html"], 2, "no page is written: no test was in a room"),
        (["good.room.toml", "-k", "bad"], 2, "1 deselected"),
        (["good.room.toml", "--env-file=none.env"], 2, "--xmpp-env-file none.env"),
        (["good.room.toml", "--report=good.room.toml"], 2, "is the name of a test"),
        ([], 2, "the following arguments are required: FILE\n"),
    ],
)
def test_the_exit_code_says_whether_all_passed(
    folder: Path, words: list[str], code: int, told: str
) -> None:
    ran = _expect(folder, *words)
    assert told in ran.stdout + ran.stderr
    assert ran.returncode == code, ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    assert "Warning" not in ran.stdout + ran.stderr


def test_all_passed_with_no_code_of_the_current_directory_in_place_of_pytest(
    folder: Path, prosody: XmppServer
) -> None:
    (folder / "pytest.py").write_text("print('mine')\n", "utf-8")
    write_settings(folder / "my.env", prosody.environment())
    ran = _expect(folder, "good.room.toml", "--env-file", "my.env")
    assert (ran.returncode, "1 passed" in ran.stdout, "mine" in ran.stdout) == (0, True, False)


def test_the_report_has_every_test_of_every_process_failed_ones_first(folder: Path) -> None:
    (folder / "test_mine.py").write_text(
        "def test_it(xmpp_actor_sync):\n    xmpp_actor_sync('Wilma').say('psst')\n", "utf-8"
    )
    files = ("good.room.toml", "bad.room.toml", "test_mine.py")
    ran = _expect(folder, *files, "--report", "page.json", "--pseudonyms", "-n", "2")
    assert ran.returncode == 1
    text = (folder / "page.json").read_text()
    page = json.loads(text)
    verdict = "1 of 3 tests failed. file1, line 3, expect: "
    assert (page["source"], page["verdict"][: len(verdict)]) == ("expect", verdict)
    assert [part["outcome"] for part in page["parts"]] == ["failed", "passed", "passed"]
    bad = page["parts"][0]
    assert bad["verdict"].partition(": ")[2].endswith('that says "[5 characters]", in vain.')
    assert [step["ok"] for step in bad["stages"] if ": " in step["name"]] == [False]
    assert all(part["lanes"] for part in page["parts"])
    said = [[event["kind"] for event in part["events"]].count("message") for part in page["parts"]]
    assert said == [0, 1, 1]  # what the room sent back is there once
    assert not [word for word in ("Alice", "Wilma", "Observer", "psst", "hello") if word in text]


def test_a_report_that_cannot_be_written_fails_the_run(folder: Path) -> None:
    unwritable = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    (folder / "conftest.py").write_text(
        "import signal\n"
        "def pytest_sessionfinish():\n"
        f"    signal.signal(signal.SIGXFSZ, signal.SIG_IGN); {unwritable}",
        "utf-8",
    )
    ran = _expect(folder, "good.room.toml", "--report=page.html", "-p", "no:cacheprovider")
    assert ran.returncode == 1
    assert "--report: 'page.html' cannot be written: File too large" in ran.stdout
    assert not (folder / "page.html").exists()


def test_without_pytest_it_says_what_to_install(folder: Path) -> None:
    program = """if True:
        import sys
        sys.modules["pytest"] = None
        from bridge.cli import main
        sys.exit(main(["expect", "good.room.toml"]))
    """
    ran = run_in(folder, sys.executable, "-c", program)
    assert ran.returncode == 2
    assert "pip install 'xmpp-debug-bridge[expect]'" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 1), (signal.SIGKILL, -9)]
)
def test_the_bot_ends_with_the_command(folder: Path, number: signal.Signals, code: int) -> None:
    pids = folder / "pids"
    os.mkfifo(pids)
    (folder / "bot.py").write_text(
        f"import os, time\nopen({str(pids)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)",
        "utf-8",
    )
    with subprocess.Popen(
        [COMMAND, "expect", "silent.room.toml"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as command:
        bot = int(pids.read_text("utf-8"))
        if number is signal.SIGTERM:
            command.send_signal(number)
        else:  # as Ctrl-C does, and as a service that is stopped
            os.killpg(command.pid, number)
        assert command.wait(SECONDS) == code
    with suppress(ProcessLookupError):
        assert select.select([os.pidfd_open(bot)], [], [], SECONDS)[0]
