"""The clients that this bridge can be registered with: their files, formats and commands."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

SEND_TOOL = "xmppSend"
"""The only tool whose approval can be asked for in advance."""

ASKS = "it asks at the first use, and there you can allow the tool for good"
"""Where a tool is approved in a client that keeps no approvals in a file."""

KEYS = ("codex", "claude", "claude-desktop", "vscode", "cursor")
"""What the user calls the clients on our command line."""


class Client(NamedTuple):
    """A program that starts MCP servers, and how it is told of them."""

    key: str
    """One of `KEYS`."""

    title: str

    file: Path
    """Where it keeps its servers, absolute."""

    format: Literal["toml", "json", "jsonc"]
    """`jsonc` is JSON with comments and trailing commas; in `json` they are errors."""

    servers: str
    """The key under which the servers stand in the file."""

    approvals: Path | None = None
    """Another file of the client, which lists the tools that need no asking."""

    no_approval: str | None = None
    """Why `xmppSend` cannot be approved in advance; None where it can."""

    required: bool = False
    """Whether an entry can say that no session starts without its server (Codex: `required`)."""

    typed: bool = False
    """Whether an entry says `type: stdio`."""

    own_command: tuple[str, ...] = ()
    """The client's own command for its servers, which knows `add` and `remove`."""

    scope: tuple[str, ...] = ()
    """The options of that command that make an entry one for all projects."""

    def add_command(self, name: str, command: tuple[str, ...]) -> list[str]:
        """Return the arguments that make the client add the server; empty if it has none."""
        if self.own_command:
            return [*self.own_command, "add", *self.scope, name, "--", *command]
        if self.key == "vscode":
            entry = {"name": name, "command": command[0], "args": [*command[1:]]}
            return ["code", "--add-mcp", json.dumps(entry, ensure_ascii=False)]
        return []

    def remove_command(self, name: str) -> list[str]:
        """Return the arguments that make the client remove the server; empty if it has none."""
        return [*self.own_command, "remove", *self.scope, name] if self.own_command else []


def client(
    key: str, environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> Client:
    """Return the client called `key`, with its files where it looks for them.

    `home` is the user's folder; the variables that move a client's files are obeyed. Raises
    `ValueError` for a key that is not in `KEYS`.
    """
    programs = _programs(environ, home, platform)
    match key:
        case "codex":
            file = (_folder(environ, "CODEX_HOME") or home / ".codex") / "config.toml"
            own = ("codex", "mcp")
            return Client(key, "Codex", file, "toml", "mcp_servers", required=True, own_command=own)
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
                own_command=("claude", "mcp"),
                scope=("--scope", "user"),
            )
        case "claude-desktop":
            file = programs / "Claude" / "claude_desktop_config.json"
            why = f"it keeps no approvals in a file; {ASKS}"
            return Client(key, "Claude Desktop", file, "json", "mcpServers", no_approval=why)
        case "vscode":
            file = programs / "Code" / "User" / "mcp.json"
            why = f"mcp.json has no such setting; {ASKS}"
            return Client(key, "VS Code", file, "jsonc", "servers", no_approval=why, typed=True)
        case "cursor":
            file = home / ".cursor" / "mcp.json"
            # Its permissions.json takes the place of every approval given in the program.
            why = (
                "a file of approvals would take the place of those given in its settings; allow "
                "the tool there"
            )
            return Client(key, "Cursor", file, "jsonc", "mcpServers", no_approval=why)
        case _:
            raise ValueError(f"{key} is not a client that can be registered with")


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    return Path(value).absolute() if value else None


def _programs(environ: Mapping[str, str], home: Path, platform: str) -> Path:
    """Return the folder in which programs keep their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return _folder(environ, "APPDATA") or home / "AppData" / "Roaming"
    return _folder(environ, "XDG_CONFIG_HOME") or home / ".config"
