"""The README's block for Codex, pasted as it stands."""

import json
import subprocess
from pathlib import Path

from tests.docs.pages import PAGES, README, blocks, section
from tests.support.prerequisites import agent

MOST_BYTES = 10_000
MOST_BYTES_OF_ALL = 165_000
"""Of the pages in docs/ together, but for the page of `tap`."""


def test_the_lines_for_codex_register_the_bridge_and_approve_one_tool(tmp_path: Path) -> None:
    (block,) = blocks(section("README.md", "## What it is"), "text")
    (tmp_path / ".codex").mkdir()
    codex = {**agent("codex"), "HOME": str(tmp_path)}
    subprocess.run(["bash", "-euc", block.text], cwd=tmp_path, env=codex, check=True)
    listed = subprocess.run(
        ["codex", "mcp", "list", "--json"], cwd=tmp_path, env=codex, check=True, capture_output=True
    )
    (server,) = json.loads(listed.stdout)
    transport = server["transport"]
    assert transport["command"] == f"{tmp_path}/.venv/bin/xmpp-bridge"
    assert transport["env"] == {"TIA_ENV_PATH": f"{tmp_path}/.config/xmpp-bridge.env"}
    config = (tmp_path / ".codex" / "config.toml").read_text()
    assert "[mcp_servers.xmpp.tools.xmppSend]" in config


def test_it_is_short_and_so_are_the_pages_to_which_it_leads() -> None:
    assert len(README.encode()) <= MOST_BYTES
    pages = [page for page in PAGES if page.startswith("docs/") and page != "docs/tap.md"]
    assert sum(len(PAGES[page].encode()) for page in pages) <= MOST_BYTES_OF_ALL
