"""docs/contributing.md shows whole changes: taking a diff out removes the feature."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.pages import TOP, blocks, section

SECONDS = 60.0
"""Limit for one command."""


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


def _take_out(title: str, home: Path) -> None:
    """Take out of the package in `home` what the diff under this heading adds."""
    diff, *_ = blocks(section("docs/contributing.md", title), "diff")
    for hunk in _hunks(diff.text):
        path = home / hunk.path
        text = path.read_text("utf-8")
        assert text.count(f"\n{hunk.new}") == 1, f"{hunk.path} does not have\n{hunk.new}"
        path.write_text(text.replace(f"\n{hunk.new}", f"\n{hunk.old}"), "utf-8")


def _run(home: Path, *command: str, said: str = "", module: str = "bridge") -> str:
    ran = subprocess.run(
        [sys.executable, "-m", module, *command],
        input=said,
        capture_output=True,
        text=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(home)},
        timeout=SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


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
        _take_out(title, tmp_path)
    shown = _shown(tmp_path)
    assert not any(sign in shown for sign in FEATURES.values())
    # All else works: the room is joined, and its events are kept and read.
    asked = 'send hello\n/call xmppHistory {"detail": "full"}\n'
    (said, looked) = _run(tmp_path, "client", "--sandbox", "--json", said=asked).splitlines()
    assert json.loads(said)["structuredContent"]["sent"] is True
    kinds = {one["kind"] for one in json.loads(looked)["structuredContent"]["entries"]}
    assert {"message", "join", "subject", "connection"} <= kinds


def test_a_newcomers_tool_passes_the_rules_and_is_served(tmp_path: Path) -> None:
    shutil.copytree(TOP / "bridge", tmp_path / "bridge")
    for name in ("code_lines.py", "test_layers.py", "test_structure.py"):
        (tmp_path / "tests").mkdir(exist_ok=True)
        shutil.copy(TOP / "tests" / name, tmp_path / "tests" / name)
    _, diff = blocks(section("docs/contributing.md", "### A tool"), "diff")
    for hunk in _hunks(diff.text):
        path = tmp_path / hunk.path
        if path.exists():
            text = path.read_text("utf-8")
            assert text.count(f"\n{hunk.old}") == 1, f"{hunk.path} does not have\n{hunk.old}"
            path.write_text(text.replace(f"\n{hunk.old}", f"\n{hunk.new}"), "utf-8")
        else:
            path.write_text(hunk.new, "utf-8")
    rules = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", "tests")
    _run(tmp_path, *rules, module="pytest")
    said = "/call xmppSubject\n"
    (answer,) = _run(tmp_path, "client", "--sandbox", "--json", said=said).splitlines()
    told = json.loads(answer)["structuredContent"]
    assert told["room"] == "lobby@rooms.localhost"
    assert told["subject"]
