from pathlib import Path

import pytest

from bridge.registration.clients import client

HOME, MAC = Path("/home/me"), "Library/Application Support"


@pytest.mark.parametrize(
    ("key", "platform", "path"),
    [
        ("codex", "linux", ".codex/config.toml"),
        ("claude", "darwin", ".claude.json"),
        ("claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"),
        ("claude-desktop", "darwin", f"{MAC}/Claude/claude_desktop_config.json"),
        ("vscode", "linux", ".config/Code/User/mcp.json"),
        ("vscode", "darwin", f"{MAC}/Code/User/mcp.json"),
        ("cursor", "darwin", ".cursor/mcp.json"),
        ("gemini", "linux", ".gemini/settings.json"),
    ],
)
def test_each_client_has_its_file(key: str, platform: str, path: str) -> None:
    assert client(key, {}, HOME, platform).file == HOME / path


@pytest.mark.parametrize(
    ("key", "variable", "path"),
    [
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("claude-desktop", "XDG_CONFIG_HOME", "Claude/claude_desktop_config.json"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
    ],
)
def test_the_variable_that_moves_its_files_is_obeyed(key: str, variable: str, path: str) -> None:
    assert client(key, {variable: "/else"}, HOME, "linux").file == Path("/else", path)
    assert client(key, {variable: ""}, HOME, "linux").file.is_relative_to(HOME)


def test_the_approvals_of_claude_code_stand_in_its_settings() -> None:
    assert client("claude", {}, HOME).approvals == HOME / ".claude/settings.json"
    moved = client("claude", {"CLAUDE_CONFIG_DIR": "/else"}, HOME)
    assert moved.approvals == Path("/else/settings.json")
