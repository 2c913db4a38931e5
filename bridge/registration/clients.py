"""The clients that this bridge can be registered with: their files and their formats."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bridge.registration import KEYS
from bridge.registration.formats import Format

SEND_TOOL = "xmppSend"
"""The only tool whose approval can be asked for in advance."""


class Agent(NamedTuple):
    """A program that starts MCP servers, and where they are registered with it."""

    key: str
    """One of `bridge.registration.KEYS`."""

    title: str

    file: Path
    """The absolute path of the file that lists its servers."""

    format: Format
    servers: str
    """The key of the table of servers in the file."""

    approvals: Path | None = None
    """Another file of the client, which lists the tools that it runs without asking."""


def client(key: str, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Agent:
    """Return the client called `key`, with the paths at which it looks for its files.

    `home` is the user's folder. Variables of `environ` that move a client's files are respected.
    """
    programs = _folder(environ, "XDG_CONFIG_HOME") or home / ".config"
    if platform == "darwin":
        programs = home / "Library" / "Application Support"
    codex = _folder(environ, "CODEX_HOME") or home / ".codex"
    moved = _folder(environ, "CLAUDE_CONFIG_DIR")
    claude = (moved or home) / ".claude.json"
    approvals = (moved or home / ".claude") / "settings.json"
    gemini = (_folder(environ, "GEMINI_CLI_HOME") or home) / ".gemini"
    desktop = programs / "Claude" / "claude_desktop_config.json"
    known = (
        Agent("codex", "Codex", codex / "config.toml", "toml", "mcp_servers"),
        Agent("claude", "Claude Code", claude, "json", "mcpServers", approvals),
        Agent("claude-desktop", "Claude Desktop", desktop, "json", "mcpServers"),
        Agent("vscode", "VS Code", programs / "Code" / "User" / "mcp.json", "json", "servers"),
        # Cursor's permissions.json would replace all approvals that were given in the program.
        Agent("cursor", "Cursor", home / ".cursor" / "mcp.json", "json", "mcpServers"),
        # Gemini's `trust` would approve all tools of this server, and not only one.
        Agent("gemini", "Gemini CLI", gemini / "settings.json", "json", "mcpServers"),
    )
    return next(client for client in known if client.key == key)


def installed(environ: Mapping[str, str], home: Path) -> list[Agent]:
    """Return the clients whose file is there, or the folder that they made for it."""
    known = (client(key, environ, home) for key in KEYS)
    return [
        each
        for each in known
        if each.file.is_file() or (each.file.parent != home and each.file.parent.is_dir())
    ]


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    return Path(value).absolute() if value else None
