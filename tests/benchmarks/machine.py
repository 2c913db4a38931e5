"""The machine that was measured on, and what ran on it."""

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks.bench import Environments

PACKAGES = ("xmpp-debug-bridge", "slixmpp", "mcp", "pydantic")
"""Those whose versions matter."""
ASK = (
    "import json, importlib.metadata as m\n"
    f"names = {{d.name: d.version for d in m.distributions() if d.name in {PACKAGES!r}}}\n"
    "print(json.dumps(names))"
)


def described(environments: Environments) -> Mapping[str, str]:
    """What a reader needs to know to compare."""
    versions: dict[str, str] = {}
    for python in (environments.rivals, environments.bridge):
        versions |= json.loads(_said(str(python), "-c", ASK))
    load = " ".join(f"{each:.2f}" for each in os.getloadavg())
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "load average at the start": load,
        "Prosody": _prosody(),
        **{name: versions[name] for name in PACKAGES if name in versions},
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _prosody() -> str:
    if shutil.which("prosodyctl") is None:
        return "not installed"
    for line in _said("prosodyctl", "about").splitlines():
        if line.startswith("Prosody ") and line[8:9].isdigit():
            return line.removeprefix("Prosody ").strip()
    return "unknown"


def _said(*command: str) -> str:
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return ran.stdout.decode("utf-8", "replace")
