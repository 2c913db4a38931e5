"""CONTRIBUTING.md shows whole changes: taking a diff out removes the feature."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import TOP, Block, blocks, section
from tests.e2e.bridge_process import run_in


@dataclass(frozen=True)
class Hunk:
    """One place of a diff: the lines in a file, and what stood there without the feature."""

    path: str
    new: str
    old: str


def _hunks(diff: str) -> Iterator[Hunk]:
    for part in re.split(r"^\+\+\+ ", diff, flags=re.MULTILINE)[1:]:
        path, _, rest = part.partition("\n")
        for hunk in re.split(r"^@@.*\n", rest, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines()
            assert all(line[0] in "+-" for line in lines), hunk
            new, old = (
                "".join(f"{line[1:]}\n" for line in lines if line[0] == sign) for sign in "+-"
            )
            yield Hunk(path, new, old)


def _change(home: Path, diff: Block, *, is_taken_out: bool) -> None:
    """Add to the package in `home` what a diff adds, or take it out."""
    for hunk in _hunks(diff.text):
        path = home / hunk.path
        old, new = (hunk.new, hunk.old) if is_taken_out else (hunk.old, hunk.new)
        text = path.read_text("utf-8") if path.exists() else "\n"
        assert text.count(f"\n{old}") == 1, f"{hunk.path} does not have\n{old}"
        path.write_text(text.replace(f"\n{old}", f"\n{new}").removeprefix("\n"), "utf-8")


def _run(home: Path, *command: str, said: str = "", module: str = "bridge") -> str:
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(home)}
    ran = run_in(home, sys.executable, "-m", module, *command, said=said, **environ)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


RULES = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tests")
FEATURES = {
    "### A setting": "BRIDGE_HISTORY",
    "### An event kind": '"config"',
    "### A tool": '"Echo"',
}
"""What each adds to the manual of the settings or to the list of tools."""


def _shown(home: Path) -> str:
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) + "\n"
    return _run(home, "help", "settings") + _run(home, said=listing)


def test_a_diff_is_all_that_its_feature_took(tmp_path: Path) -> None:
    shutil.copytree(TOP / "bridge", tmp_path / "bridge")
    shown = _shown(tmp_path)
    assert all(sign in shown for sign in FEATURES.values())
    for title in FEATURES:
        diff, *_ = blocks(section("CONTRIBUTING.md", title), "diff")
        _change(tmp_path, diff, is_taken_out=True)
    shown = _shown(tmp_path)
    assert not any(sign in shown for sign in FEATURES.values())
    # All else works: the room is joined, and its events are kept and read.
    asked = 'send hello\n/call xmppHistory {"detail": "full"}\n'
    (said, looked) = _run(tmp_path, "client", "--sandbox", "--json", said=asked).splitlines()
    assert json.loads(said)["structuredContent"]["sent"] is True
    kinds = {each["kind"] for each in json.loads(looked)["structuredContent"]["entries"]}
    assert {"message", "join", "subject", "connection"} <= kinds


def test_a_newcomers_tool_passes_the_rules_and_is_served(tmp_path: Path) -> None:
    shutil.copytree(TOP / "bridge", tmp_path / "bridge")
    (tmp_path / "tests").mkdir()
    shutil.copy(TOP / "tests" / "test_layers.py", tmp_path / "tests")
    _, diff = blocks(section("CONTRIBUTING.md", "### A tool"), "diff")
    _change(tmp_path, diff, is_taken_out=False)
    _run(tmp_path, *RULES, module="pytest")
    said = "/call xmppSubject\n"
    (answer,) = _run(tmp_path, "client", "--sandbox", "--json", said=said).splitlines()
    told = json.loads(answer)["structuredContent"]
    assert told["room"] == "lobby@rooms.localhost"
    assert told["subject"]
