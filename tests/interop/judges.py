"""Runs the official judges from npm and holds what they find against the tables in README.md.

Those tables are the list of what is known: a cell that differs from what is found, either way,
is a failure. `tests/interop/run` starts this.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TypeAlias

HERE = Path(__file__).resolve().parent
BRIDGE = (str(Path(sys.executable).parent / "xmpp-bridge"), "--sandbox")
EVERYTHING = (sys.executable, str(HERE / "everything.py"))

NODE = "node@24.21.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
RELEASED = "@modelcontextprotocol/conformance@0.1.16"
COMING = "@modelcontextprotocol/conformance@0.2.0-alpha.12"

ERAS = ("legacy", "auto", "modern")
REQUESTS: Mapping[str, tuple[str, ...]] = {
    "tools/list --strict": ("--method", "tools/list", "--strict"),
    "tools/call --load": (
        *("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hi"),
        *("--load", "--load-requests", "2000", "--load-concurrency", "20"),
    ),
    "resources/list": ("--method", "resources/list"),
    "resources/templates/list": ("--method", "resources/templates/list"),
    "resources/read": ("--method", "resources/read", "--uri", "bridge://status"),
    "prompts/list": ("--method", "prompts/list"),
    "prompts/get": ("--method", "prompts/get", "--prompt-name", "diagnose-room"),
    "logging/setLevel": ("--method", "logging/setLevel", "--log-level", "info"),
}
"""What the inspector is asked to do, by the name of its row."""
NEGOTIATED = ("tools/list --strict", "logging/setLevel")
"""What it is asked in the era `auto`, which only shows how an era is found: what then answers is
one of the other two."""

SUITES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "0.1.16": (RELEASED, ("--suite", "all")),
    "2025-11-25": (COMING, ("--requirements", "2025-11-25")),
    "2026-07-28": (COMING, ("--requirements", "2026-07-28")),
}
"""The runs of the conformance suite, by the name of their column."""

JUDGE_SECONDS = 150.0
"""For one run of one judge; the longest takes 17 s on idle cores."""
INSTALL_SECONDS = 180.0
RUNS = 3
"""The judges have limits of their own in time, which a busy machine may miss. The first run plays
both judges beside each other, the next ones one after the other."""
OUT_OF_REACH = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH"
)
"""npm's words for a registry that is not there."""

_SUMMARY = re.compile(r"^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed", re.MULTILINE)
_ROW = re.compile(r"^\| `([^`]+)` \|(.*)\|$", re.MULTILINE)

Table: TypeAlias = dict[str, dict[str, str]]
"""Row, column, cell."""


class JudgeError(Exception):
    """A judge could not be installed or did not say what it found."""


class UnreachableError(JudgeError):
    """The registry cannot be reached."""


Judges: TypeAlias = Mapping[str, Path]
"""Where each package lies, by name and version."""


def started_by(judges: Judges, package: str, program: str) -> tuple[str, ...]:
    """The words that start a program of a package."""
    node, ours = (judges[each] / "node_modules" / ".bin" for each in (NODE, package))
    return str(node / "node"), str(ours / program)


def installed(package: str, cache: Path) -> Path:
    """Return the folder where npm put `package`; fetched once, and then kept."""
    folder = cache / re.sub(r"[^\w.-]+", "_", package)
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        words = ["npm", "install", "--prefix", made, "--no-audit", "--no-fund"]
        # Only the package of Node itself is a script that fetches the binary.
        words += ["--fetch-retries", "1", *([] if package == NODE else ["--ignore-scripts"])]
        done = _run([*words, package], INSTALL_SECONDS)
        if done.returncode:
            kind = UnreachableError if OUT_OF_REACH.search(done.stderr) else JudgeError
            raise kind(f"npm install {package}: {done.stderr.strip()}")
        if not folder.is_dir():
            Path(made).rename(folder)
            Path(made).mkdir()
    return folder


def inspect(judges: Judges, home: Path) -> Table:
    table: Table = {row: {} for row in REQUESTS}
    command = (*started_by(judges, INSPECTOR, "mcp-inspector"), "--cli", "--format", "json")
    for era in ERAS:
        for row in NEGOTIATED if era == "auto" else REQUESTS:
            request = REQUESTS[row]
            words = [*command, "--protocol-era", era, *request, "--", *BRIDGE]
            done = _run(words, JUDGE_SECONDS, home)
            clean = '"errors":0' in done.stdout if "--load" in request else True
            table[row][era] = "ok" if done.returncode == 0 and clean else f"exit {done.returncode}"
            if table[row][era] != "ok":
                _say(f"   {era} {row}: {done.stderr.strip()[-500:]}")
    return table


def conform(judges: Judges, home: Path) -> Table:
    table: Table = {}
    for column, (package, which) in SUITES.items():
        with relayed(EVERYTHING) as url:
            command = started_by(judges, package, "conformance")
            words = [*command, "server", "--url", url, *which, "--output-dir", str(home / column)]
            done = _run(words, JUDGE_SECONDS, home)
        summary = _SUMMARY.findall(done.stdout)
        if not summary:
            raise JudgeError(f"{package} has no summary: {done.stdout[-500:]}{done.stderr[-500:]}")
        for row, passed, failed in summary:
            total = int(passed) + int(failed)
            verdict = f"{passed} of {total}" if int(failed) else "ok" if total else "no check"
            table.setdefault(row, {})[column] = verdict
    return table


@contextmanager
def relayed(command: Sequence[str]) -> Iterator[str]:
    """The address at which HTTP reaches a server on stdio."""
    words = [sys.executable, str(HERE / "relay.py"), *command]
    # What a server says on stderr at each start would hide the differences.
    environ = os.environ | {"LOG_LEVEL": "WARNING"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ) as relay:
        assert relay.stdout is not None
        try:
            yield relay.stdout.readline().strip()
        finally:
            relay.terminate()


def known() -> Table:
    text = (HERE / "README.md").read_text(encoding="utf-8")
    table: Table = {}
    for row, rest in _ROW.findall(text):
        columns = ERAS if row in REQUESTS else tuple(SUITES)
        cells = [cell.strip() for cell in rest.split("|")]
        told = dict(zip(columns, cells, strict=False))
        table[row] = {column: cell for column, cell in told.items() if cell}
    return table


def differences(table: Table, told: Table) -> list[str]:
    """Say where the tables differ, cell by cell."""
    differing = []
    for row in dict.fromkeys((*table, *told)):
        here, there = table.get(row, {}), told.get(row, {})
        for column in dict.fromkeys((*here, *there)):
            was, is_ = there.get(column, "nothing"), here.get(column, "nothing")
            if was != is_:
                differing.append(f"{row}, {column}: README.md says {was}; found {is_}")
    return differing


def main() -> int:
    started = monotonic()
    strict = os.environ.get("CI") == "true"
    if shutil.which("npm") is None or shutil.which("node") is None:
        _say("interop: skipped, since node and npm are not both installed")
        return int(strict)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        cache /= "xmpp-debug-bridge-interop"
        judges = {each: installed(each, cache) for each in (NODE, INSPECTOR, RELEASED, COMING)}
    except UnreachableError as error:
        _say(f"interop: skipped, since the npm registry cannot be reached ({error})")
        return int(strict)
    except JudgeError as error:
        _say(f"interop: {error}")
        return 1
    for run in range(RUNS):
        # Each of the two starts one program after the other.
        with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(1) as beside:
            conformance = beside.submit(conform, judges, Path(home))
            if run:
                wait([conformance])
            table = inspect(judges, Path(home)) | conformance.result()
        if not (differing := differences(table, known())):
            break
    for difference in differing:
        _say(f"interop: {difference}")
    verdict = "not as README.md says" if differing else "as README.md says"
    _say(f"\ninterop: {verdict}, after {monotonic() - started:.0f} s")
    return int(bool(differing))


def _run(
    words: Sequence[str], seconds: float, home: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program; with `home`, nothing it keeps for next time reaches the person's own."""
    environ = dict(os.environ) if home is None else {**os.environ, "HOME": str(home)}
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environ,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise JudgeError(f"{words[0]} was still running after {seconds:g} s") from error


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
