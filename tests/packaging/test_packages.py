"""The plugins and the bundle: made of one source, right for their judges, taken by real agents."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
from agent_plugins import Plugin

import bridge
from tests.e2e.bridge_process import COMMAND, TOOLS
from tests.support.prerequisites import agent

TOP = Path(bridge.__file__).parent.parent
PACKAGING = TOP / "packaging"
NAME = "xmpp-debug-bridge"
SKILL = "xmpp-bot-does-not-answer"
START = ["uvx", f"{NAME}@{bridge.__version__}"]


def ran(command: Sequence[str | Path], home: Path, **environ: str) -> str:
    """What a program said that ended with 0, in a home of its own."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), **environ}
    done = subprocess.run(
        command, cwd=home, env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made() -> ModuleType:
    spec = spec_from_file_location("packaging_make", PACKAGING / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_is_as_the_generator_makes_it() -> None:
    files: dict[Path, str] = made().files()
    stale = [path for path, text in files.items() if path.read_text("utf-8") != text]
    assert not stale, "run python packaging/make.py"
    kept = {path for path in PACKAGING.rglob("*") if path.is_file()}
    by_hand = {PACKAGING / name for name in ("make.py", "README.md")}
    assert {path for path in kept if "__pycache__" not in path.parts} - files.keys() == by_hand


def test_a_file_that_differs_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "bridge"):
        (tmp_path / name).symlink_to(TOP / name)
    (tmp_path / "packaging").mkdir()
    for name in ("make.py", "server.json"):
        (tmp_path / "packaging" / name).write_text((PACKAGING / name).read_text("utf-8"), "utf-8")
    check: list[str | Path] = [sys.executable, tmp_path / "packaging" / "make.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "packaging/mcpb/manifest.json" in done.stdout.splitlines()
    assert {path.name for path in (tmp_path / "packaging").iterdir()} == {"make.py", "server.json"}


def test_the_skill_is_short_and_names_tools_that_there_are() -> None:
    text = (TOP / "bridge" / "commands" / "agent.md").read_text("utf-8")
    assert len(text.encode()) < 6_000
    assert set(re.findall(r"xmpp[A-Z]\w+", text)) <= set(TOOLS)
    assert len(re.findall(r"(?m)^## \d\. ", text)) == 6
    assert ran([COMMAND, "help", "agent"], TOP) == text


@pytest.mark.parametrize("folder", ["claude-code", "codex", "agent-plugin"])
def test_the_reference_library_for_skills_takes_the_skill(folder: str, tmp_path: Path) -> None:
    path = PACKAGING / folder / "skills" / SKILL
    ran(["skills-ref", "validate", path], tmp_path, **agent("skills-ref"))


def test_claude_code_takes_plugin_and_marketplace_without_a_warning(tmp_path: Path) -> None:
    claude = agent("claude")
    for path in (TOP, PACKAGING / "claude-code"):
        ran(["claude", "plugin", "validate", "--strict", path], tmp_path, **claude)


def test_one_command_installs_it_in_claude_code(tmp_path: Path) -> None:
    claude = agent("claude")
    ran(["claude", "plugin", "install", NAME, "--marketplace", TOP, "--json"], tmp_path, **claude)
    ((listed),) = json.loads(ran(["claude", "plugin", "list", "--json"], tmp_path, **claude))
    assert (listed["id"].partition("@")[0], listed["enabled"]) == (NAME, True)
    details = ran(["claude", "plugin", "details", NAME], tmp_path, **claude)
    assert SKILL in details
    assert "xmpp" in details.partition("MCP servers")[2]


def test_codex_installs_it_and_waits_long_enough_for_its_start(tmp_path: Path) -> None:
    codex = {**agent("codex"), "CODEX_HOME": str(tmp_path / ".codex")}
    (tmp_path / ".codex").mkdir()
    ran(["codex", "plugin", "marketplace", "add", TOP], tmp_path, **codex)
    ran(["codex", "plugin", "add", f"{NAME}@{NAME}-marketplace"], tmp_path, **codex)
    assert "installed, enabled" in ran(["codex", "plugin", "list"], tmp_path, **codex)
    ((server),) = json.loads(ran(["codex", "mcp", "list", "--json"], tmp_path, **codex))
    assert server["startup_timeout_sec"] == 30
    assert [server["transport"]["command"], *server["transport"]["args"]] == START
    assert [*(tmp_path / ".codex").rglob(f"skills/{SKILL}/SKILL.md")]


def test_a_reader_of_agent_plugins_finds_the_server_and_the_skill() -> None:
    plugin = Plugin(PACKAGING / "agent-plugin")
    assert (plugin.manifest.name, plugin.manifest.version) == (NAME, bridge.__version__)
    assert [skill.name for skill in plugin.skills] == [SKILL]
    assert plugin.mcp is not None
    assert [*plugin.mcp.servers] == ["xmpp"]


def test_the_bundle_is_packed_and_starts_the_released_package(tmp_path: Path) -> None:
    mcpb = agent("mcpb")
    ran(["mcpb", "validate", PACKAGING / "mcpb" / "manifest.json"], tmp_path, **mcpb)
    ran(["mcpb", "pack", PACKAGING / "mcpb", tmp_path / "bridge.mcpb"], tmp_path, **mcpb)
    with ZipFile(tmp_path / "bridge.mcpb") as bundle:
        assert {"manifest.json", "pyproject.toml", "server.py"} <= {*bundle.namelist()}
        assert f"{NAME}=={bridge.__version__}" in bundle.read("pyproject.toml").decode()
        manifest = json.loads(bundle.read("manifest.json"))
    assert manifest["server"]["type"] == "uv"
    secrets = {name for name, asked in manifest["user_config"].items() if asked["sensitive"]}
    assert secrets == {"XMPP_PASSWORD"}
