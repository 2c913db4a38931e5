"""What a machine must have for some of the tests."""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

CLIENTS = "AGENT_CLIENTS"
"""The variable that names a folder with `codex` and `claude`, where they are not in the PATH."""
PACKAGES = {
    "codex": "@openai/codex@0.169.0",
    "claude": "@anthropic-ai/claude-code@2.1.330",
    "xmpp.js": "@xmpp/client@0.14.0",
    "xmpp.js's debug log": "@xmpp/debug@0.14.0",
    "axe": "axe-core@4.14.1",
    "biome": "@biomejs/biome@2.6.8",
    "JSON with comments": "jsonc-parser@3.3.1",
    "TOML": "smol-toml@1.9.1",
    "mcpb": "@anthropic-ai/mcpb@2.1.2",
    "skills-ref": "skills-ref@0.1.5",
}
"""Agents, the libraries of bots, what checks a page, a bundle or a skill, and parsers, each with
its package of npm."""


def do_without(reason: str) -> NoReturn:
    """Skip on a laptop; fail where everything must have been tested (CI=true)."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def npm_packages() -> Path:
    """The folder that has npm's packages."""
    if (programs := os.environ.get(CLIENTS)) is None:
        do_without(f"{CLIENTS} names no folder with npm's packages")
    return Path(programs).parent


def agent(name: str) -> dict[str, str]:
    """The variables with which the real `codex` or `claude` is found, and calls nobody unasked."""
    paths = [os.environ.get(CLIENTS, ""), os.environ["PATH"]]
    path = os.pathsep.join(each for each in paths if each)
    if shutil.which(name, path=path) is None:
        package = PACKAGES[name]
        do_without(
            f"{name} is not installed: npm install {package} (and name its folder in {CLIENTS})"
        )
    quiet = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return {"PATH": path, **(quiet if name == "claude" else {})}
