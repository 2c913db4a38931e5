"""Makes the packages by which agents get this server: plugins, a bundle, marketplaces.

    python packaging/make.py            writes them anew
    python packaging/make.py --check    exit code 1, and a line for each file that differs

All come from `bridge/__init__.py` (the version), `pyproject.toml` (description, license, keywords)
and `bridge/commands/agent.md` (the skill). Each starts the released package of this very version
with `uvx`, and leaves the settings to the file that `xmpp-bridge init` writes.
"""

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

from bridge import __version__  # noqa: E402 - the checkout that this file is in

PROJECT: dict[str, Any] = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
NAME: str = PROJECT["name"]
SERVER = "xmpp"
"""What the clients call the server: it begins the names of its tools there."""

MARKETPLACE = f"{NAME}-marketplace"
AUTHORS = {"name": "The xmpp-debug-bridge authors"}
TITLE = "XMPP debug bridge"
START = {"command": "uvx", "args": [f"{NAME}@{__version__}"]}

CODEX_SECONDS = 30
"""What Codex waits for the start, 10 by itself: the first start fetches the package."""

CODEX_VARIABLES = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "TIA_ENV_PATH"]
"""What Codex does not hand to a server unasked, and what leads it to the settings and the store."""

SKILL = (TOP / "bridge" / "commands" / "agent.md").read_text("utf-8")
SKILL_NAME = SKILL.partition("name: ")[2].partition("\n")[0]

ABOUT = {
    "name": NAME,
    "version": __version__,
    "description": PROJECT["description"],
    "author": AUTHORS,
    "license": PROJECT["license"],
    "keywords": PROJECT["keywords"],
}
AGENT_PLUGINS = "https://agent-plugins.org/schemas/1.0.0"

ASKED = {
    "XMPP_USERNAME": ("Account", "Its JID, such as bot@example.org", False),
    "XMPP_PASSWORD": ("Password", "The password of the account", True),
    "MUC_ROOM": ("Room", "Its JID, such as room@conference.example.org", False),
    "XMPP_SERVICE": ("Server", "xmpp://host or xmpps://host, if DNS does not say it", False),
}
"""What a host of bundles asks its user. What stays empty is read from the user's settings file."""

BUNDLE_PROJECT = f"""\
[project]
name = "{NAME}-bundle"
version = "{__version__}"
requires-python = "{PROJECT["requires-python"]}"
dependencies = ["{NAME}=={__version__}"]
"""

BUNDLE_START = '''\
"""Starts the bridge in the environment that uv made for this bundle."""

import sys

from bridge.__main__ import main

sys.exit(main())
'''


def readme(client: str, words: str) -> str:
    """Return the README of a plugin: what it brings, and what is still to do."""
    return f"""# {TITLE}, for {client}

{PROJECT["description"]} This plugin brings its tools and the skill `{SKILL_NAME}`.

{words}

It starts `{" ".join([START["command"], *START["args"]])}`, so it takes `uv` on the machine. The
settings are those that `uvx --from {NAME} xmpp-bridge init` asks for in a terminal, and writes to
`~/.config/xmpp-bridge.env`. Without them the tools are there, and say what is missing.
"""


def claude_code() -> Iterator[tuple[str, object]]:
    """Yield the files of the plugin for Claude Code, and of the marketplace that lists it."""
    folder = "packaging/claude-code"
    # Otherwise the first prompt may lack the tools.
    server = {"type": "stdio", **START, "alwaysLoad": True}
    yield f"{folder}/.claude-plugin/plugin.json", ABOUT
    yield f"{folder}/.mcp.json", {"mcpServers": {SERVER: server}}
    yield f"{folder}/skills/{SKILL_NAME}/SKILL.md", SKILL
    words = f"    /plugin install {NAME} --marketplace OWNER/{NAME}"
    yield f"{folder}/README.md", readme("Claude Code", words)
    listed = {"name": NAME, "source": f"./{folder}", "description": PROJECT["description"]}
    yield (
        ".claude-plugin/marketplace.json",
        {
            "name": MARKETPLACE,
            "owner": AUTHORS,
            "metadata": {"description": PROJECT["description"]},
            "plugins": [listed],
        },
    )


def codex() -> Iterator[tuple[str, object]]:
    """Yield the files of the plugin for Codex, and of the marketplace that lists it."""
    folder = "packaging/codex"
    server = {**START, "startup_timeout_sec": CODEX_SECONDS, "env_vars": CODEX_VARIABLES}
    yield (
        f"{folder}/.codex-plugin/plugin.json",
        {**ABOUT, "skills": "./skills/", "mcpServers": "./.mcp.json"},
    )
    yield f"{folder}/.mcp.json", {"mcpServers": {SERVER: server}}
    yield f"{folder}/skills/{SKILL_NAME}/SKILL.md", SKILL
    words = (
        f"    codex plugin marketplace add OWNER/{NAME}\n"
        f"    codex plugin add {NAME}@{MARKETPLACE}\n\n"
        "`codex exec` refuses `xmppSend` until it is approved: docs/settings.md has the line."
    )
    yield f"{folder}/README.md", readme("Codex", words)
    listed = {
        "name": NAME,
        "source": {"source": "local", "path": f"./{folder}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Developer Tools",
    }
    yield (
        ".agents/plugins/marketplace.json",
        {"name": MARKETPLACE, "interface": {"displayName": TITLE}, "plugins": [listed]},
    )


def agent_plugin() -> Iterator[tuple[str, object]]:
    """Yield the files of the plugin after the Agent Plugins Specification 1.0.0."""
    folder = "packaging/agent-plugin"
    yield f"{folder}/plugin.json", {"$schema": f"{AGENT_PLUGINS}/plugin.schema.json", **ABOUT}
    servers = {SERVER: {"type": "stdio", **START}}
    yield (
        f"{folder}/mcp.json",
        {"$schema": f"{AGENT_PLUGINS}/mcp.schema.json", "mcpServers": servers},
    )
    yield f"{folder}/skills/{SKILL_NAME}/SKILL.md", SKILL
    words = "Copy this folder to where your client looks for plugins."
    yield f"{folder}/README.md", readme("clients that know Agent Plugins 1.0.0", words)


def bundle() -> Iterator[tuple[str, object]]:
    """Yield the files of the MCP bundle, of which `mcpb pack` makes one file."""
    folder = "packaging/mcpb"
    asked = {
        name: {
            "type": "string",
            "title": title,
            "description": description,
            "sensitive": secret,
            "required": False,
            "default": "",
        }
        for name, (title, description, secret) in ASKED.items()
    }
    run = {
        "command": "uv",
        "args": ["run", "--directory", "${__dirname}", "server.py"],
        "env": {name: f"${{user_config.{name}}}" for name in ASKED},
    }
    yield (
        f"{folder}/manifest.json",
        {
            "manifest_version": "0.4",
            "display_name": TITLE,
            **ABOUT,
            "server": {"type": "uv", "entry_point": "server.py", "mcp_config": run},
            "tools_generated": True,
            "user_config": asked,
            "compatibility": {
                "platforms": ["darwin", "linux"],
                "runtimes": {"python": PROJECT["requires-python"]},
            },
        },
    )
    yield f"{folder}/pyproject.toml", BUNDLE_PROJECT
    yield f"{folder}/server.py", BUNDLE_START
    yield f"{folder}/.mcpbignore", ".venv/\nuv.lock\n__pycache__/\n"


def registry() -> Iterator[tuple[str, object]]:
    """Yield `server.json` with this version; `tests/settings/documents.py` writes its settings."""
    path = "packaging/server.json"
    server = json.loads((TOP / path).read_text("utf-8"))
    server["version"] = server["packages"][0]["version"] = __version__
    yield path, server


def files() -> dict[Path, str]:
    """Return all files with their texts."""
    made = [*claude_code(), *codex(), *agent_plugin(), *bundle(), *registry()]
    return {
        TOP / path: content
        if isinstance(content, str)
        else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        for path, content in made
    }


def main() -> int:
    """Write the files, or compare them."""
    stale = {
        path: text
        for path, text in files().items()
        if not path.is_file() or path.read_text("utf-8") != text
    }
    for path, text in stale.items():
        sys.stdout.write(f"{path.relative_to(TOP)}\n")
        if "--check" not in sys.argv:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
