"""`--help` is the manual; each page of it has to stand on its own."""

import argparse
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

from bridge.cli import main, parser
from bridge.settings.table import VARIABLES

COMMAND = str(Path(sys.executable).parent / "xmpp-bridge")


def pages_of_commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, and that of the first page under ``."""
    page = parser()
    (commands,) = (
        action
        for action in page._actions  # noqa: SLF001 - no public way to them
        if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001 - no public name
    )
    return {"": page, **commands.choices}


PAGES = pages_of_commands()
EACH = pytest.mark.parametrize("command", PAGES)


@EACH
def test_a_page_has_what_a_manual_page_has(command: str) -> None:
    page = PAGES[command].format_help()
    usage, purpose, *_ = page.split("\n\n")
    assert usage.startswith("usage: xmpp-bridge")
    assert purpose.endswith(".")
    example = "xmpp-bridge" if command in {"", "serve"} else f"xmpp-bridge {command}"
    assert re.search(rf"^examples?:\n  .*{example}", page, re.MULTILINE)
    codes = page.partition("exit codes:")[2]
    assert re.match("\n  0  .*(\n  1  .*)?(\n .*)*\n  2  ", codes)
    # An example is to be copied, and stays in one piece.
    rest = re.sub(r"examples?:\n(  .*\n)+", "", page)
    assert max(map(len, rest.splitlines())) <= 80
    for action in PAGES[command]._actions:  # noqa: SLF001 - as above
        assert all(re.search(rf"(?m)^  .*{option}\b", page) for option in action.option_strings)
        if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            assert action.help
            assert action.help is not argparse.SUPPRESS
            assert action.help in " ".join(page.split())


def test_the_exit_codes_of_a_page_are_those_of_its_command() -> None:
    codes = {name: page.format_help().partition("exit codes:\n")[2] for name, page in PAGES.items()}
    assert len(set(codes.values())) == len(codes)
    assert "\n  70  " in codes["record"]
    assert "\n  0, 1, 2, 3  with --format nagios" in codes["check"]
    assert "\n  1  " not in codes["sandbox"] + codes["completion"]


@EACH
def test_where_settings_are_read_the_page_says_where_they_are_explained(command: str) -> None:
    page = PAGES[command].format_help()
    reads = "--env-file" in page and command != "settings"
    assert ("xmpp-bridge help settings" in page) is (reads or command == "")
    others = {"NO_COLOR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"}
    told = set(re.findall("[A-Z]+_[A-Z_]+[A-Z]", page)) - others
    assert told <= set(VARIABLES)
    assert (told == set(VARIABLES)) is (command == "settings")


def test_every_command_is_run_by_something() -> None:
    for command in PAGES.keys() - {""}:
        module = import_module(f"bridge.commands.{PAGES[command].get_default('module')}")
        assert callable(module.run)


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help"], ""),
        (["check", "-h"], " check"),
        (["help", "settings"], " settings"),
    ],
)
def test_help_goes_to_stdout_whatever_the_settings(
    words: list[str], usage: str, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [COMMAND, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "XMPP_SERVICE": "nonsense", "COLUMNS": "30", "LANG": "C"},
        check=True,
    )
    assert ran.stderr == ""
    assert ran.stdout.startswith(f"usage: xmpp-bridge{usage} [-h]")


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    written = capsys.readouterr()
    assert (ended.value.code, written.err) == (0, "")
    assert written.out == f"xmpp-bridge {version('xmpp-debug-bridge')}\n"


@pytest.mark.parametrize(("level", "code"), [("1", 0), ("2", 2)])
def test_without_docstrings_it_says_what_leaves_them_out(level: str, code: int) -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONOPTIMIZE": level}
    command = [COMMAND, "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (code, code // 2)
    assert ("unset PYTHONOPTIMIZE" in ran.stderr) is bool(code)


NO_ADDRESSES = ("5222", ":5222", "localhost", "localhost:", "localhost:65536", "[::1]:-1", "")


@pytest.mark.parametrize(
    ("words", "usage", "told"),
    [
        (["sevre"], "", "'sevre' (choose from "),
        (["chekc"], "", ": check?"),
        (["help", "setings"], "", ": settings?"),
        (["check", "--sandbx"], " check", "arguments: --sandbx: --sandbox?"),
        (["send", "--form=Robot", "hi"], " send", "arguments: --form=Robot: --from?"),
        (["watch", "--kind", "mesage"], " watch", ": message?"),
        (["--env-fil3", "x"], " serve", "arguments: --env-fil3 x: --env-file?"),
        (["check", "--room", "lab"], " check", "arguments: --room lab\n"),
        (["log", "--qqq"], " log", "arguments: --qqq\n"),
        (["check", "--repeat=1001"], " check", "is no number from 1 to 1000"),
        *((["tap", "--listen", wrong], " tap", "is no HOST:PORT") for wrong in NO_ADDRESSES),
        (["--env-file=x", "check", "--env-file", "y"], " check", "--env-file is given twice"),
        (["--env-file", "x", "--env-file", "y"], " serve", "--env-file is given twice"),
        (["--env-file", "x", "expect", "f", "-k", "a", "--env-file=y"], " expect", "given twice"),
        (["--env-file", "x", "explain"], " explain", "arguments: --env-file\n"),
        (["--env-file"], " serve", "--env-file: expected one argument"),
    ],
)
def test_a_mistake_shows_the_usage_at_hand_and_the_nearest_spelling(
    words: list[str], usage: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    assert shown.err.startswith(f"usage: xmpp-bridge{usage} [-")
    assert told in shown.err
    if words == ["sevre"]:
        assert all(repr(command) in shown.err for command in PAGES.keys() - {""})


@pytest.mark.parametrize(
    "words",
    [
        ["--env-file", "{file}", "settings"],
        ["--env-file={file}", "settings", "--env-file", "{file}"],
    ],
)
def test_the_settings_file_may_be_named_before_the_command(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.env"
    file.write_text("MCP_BOT_NICKNAME=Zed\n")
    ran = _run(tmp_path, *(word.format(file=file) for word in words))
    assert ran.returncode == 2
    assert f"MCP_BOT_NICKNAME=Zed ('{file}')" in ran.stdout
    with pytest.raises(SystemExit) as ended:
        main(["--env-file", str(file), "help", "check"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("usage: xmpp-bridge check")


@pytest.mark.parametrize("words", [["check"], ["register", "codex"]])
def test_without_settings_it_is_said_that_the_users_file_is_missing(
    words: list[str], tmp_path: Path
) -> None:
    ran = _run(tmp_path, *words)
    assert ran.returncode == 2
    assert re.search("/xmpp-bridge.env: missing", ran.stderr)
    assert "xmpp-bridge init" in ran.stderr


def _run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a developer who runs the tests would."""
    return subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, cwd=folder, check=False
    )
