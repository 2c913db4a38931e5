"""The programs that can be told of this bridge: their commands, their files, their formats."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SEND_TOOL = "xmppSend"
"""The one tool whose approval can be asked for in advance."""


@dataclass(frozen=True)
class Client:
    """One program that starts MCP servers, as far as registering with it goes."""

    key: str
    """What the user calls it on our command line."""

    title: str

    file: Path
    """Where it keeps its servers, absolute."""

    format: Literal["toml", "json", "jsonc"]
    """`jsonc` is JSON with comments and trailing commas; elsewhere they count as damage."""

    servers: str
    """The key under which the servers stand in the file."""

    approvals: Path | None = None
    """Another file of its own, where it keeps which tools need no asking."""

    no_approval: str | None = None
    """Why `xmppSend` cannot be approved in advance; None where it can."""

    required: bool = False
    """Whether an entry can say that nothing starts without its server (Codex: `required`)."""

    typed: bool = False
    """Whether an entry says `type: stdio`."""

    def adding(self, name: str, command: tuple[str, ...]) -> list[str]:
        """Arguments that make its program add the server; empty if it has none."""
        match self.key:
            case "codex":
                return ["codex", "mcp", "add", name, "--", *command]
            case "claude":
                return ["claude", "mcp", "add", "--scope", "user", name, "--", *command]
            case "vscode":
                import json

                entry = {"name": name, "command": command[0], "args": [*command[1:]]}
                return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]
            case _:
                return []

    def removing(self, name: str) -> list[str]:
        """Arguments that make its program remove the server; empty if it cannot."""
        match self.key:
            case "codex":
                return ["codex", "mcp", "remove", name]
            case "claude":
                return ["claude", "mcp", "remove", "--scope", "user", name]
            case _:
                return []


KEYS = ("codex", "claude", "claude-desktop", "vscode", "cursor")
"""What the user can ask for."""


def client(
    key: str, environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> Client:
    """Return the client that `key` means, with its files where it looks for them.

    `home` is the user's folder; the variables by which a client's files are moved are obeyed.
    """
    programs = _application_folder(environ, home, platform)
    match key:
        case "codex":
            folder = _folder(environ, "CODEX_HOME") or home / ".codex"
            file = folder / "config.toml"
            return Client(key, "Codex", file, "toml", "mcp_servers", required=True)
        case "claude":
            moved = _folder(environ, "CLAUDE_CONFIG_DIR")
            return Client(
                key,
                "Claude Code",
                (moved or home) / ".claude.json",
                "json",
                "mcpServers",
                approvals=(moved or home / ".claude") / "settings.json",
                typed=True,
            )
        case "claude-desktop":
            return Client(
                key,
                "Claude Desktop",
                programs / "Claude" / "claude_desktop_config.json",
                "json",
                "mcpServers",
                no_approval="it keeps no approvals in a file; it asks at the first use, "
                "and there you can allow the tool for good",
            )
        case "vscode":
            return Client(
                key,
                "VS Code",
                programs / "Code" / "User" / "mcp.json",
                "jsonc",
                "servers",
                no_approval="mcp.json has no such setting; it asks at the first use, "
                "and there you can allow the tool for good",
                typed=True,
            )
        case "cursor":
            return Client(
                key,
                "Cursor",
                home / ".cursor" / "mcp.json",
                "jsonc",
                "mcpServers",
                # Its permissions.json takes the place of every approval given in the program.
                no_approval="a file of approvals would take the place of those given in its "
                "settings; allow the tool there",
            )
        case _:
            raise ValueError(f"{key} is no client that we know")


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    return Path(value).absolute() if value else None


def _application_folder(environ: Mapping[str, str], home: Path, platform: str) -> Path:
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return _folder(environ, "APPDATA") or home / "AppData" / "Roaming"
    return _folder(environ, "XDG_CONFIG_HOME") or home / ".config"
