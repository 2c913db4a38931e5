from pathlib import Path

import pytest

from bridge.registration.clients import client

HOME, MAC = Path("/home/me"), "Library/Application Support"


@pytest.mark.parametrize(
    ("key", "platform", "variable", "path"),
    [
        ("codex", "linux", "", ".codex/config.toml"),
        ("codex", "linux", "CODEX_HOME", "/else/config.toml"),
        ("claude", "darwin", "", ".claude.json"),
        ("claude", "linux", "CLAUDE_CONFIG_DIR", "/else/.claude.json"),
        ("claude-desktop", "linux", "", ".config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", "", f"{MAC}/Claude/claude_desktop_config.json"),
        ("claude-desktop", "linux", "XDG_CONFIG_HOME", "/else/Claude/claude_desktop_config.json"),
        ("vscode", "linux", "", ".config/Code/User/mcp.json"),
        ("vscode", "darwin", "", f"{MAC}/Code/User/mcp.json"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "/else/Code/User/mcp.json"),
        ("cursor", "darwin", "", ".cursor/mcp.json"),
        ("gemini", "linux", "", ".gemini/settings.json"),
        ("gemini", "linux", "GEMINI_CLI_HOME", "/else/.gemini/settings.json"),
    ],
)
def test_each_client_has_its_file_which_a_variable_may_move(
    key: str, platform: str, variable: str, path: str
) -> None:
    assert client(key, {variable: "/else"}, HOME, platform).file == HOME / path
    assert client(key, {variable: ""}, HOME, platform).file.is_relative_to(HOME)


def test_the_approvals_of_claude_code_stand_in_its_settings() -> None:
    assert client("claude", {}, HOME).approvals == HOME / ".claude/settings.json"
    moved = client("claude", {"CLAUDE_CONFIG_DIR": "/else"}, HOME)
    assert moved.approvals == Path("/else/settings.json")
