"""What the MCP registry is told of us: by its rules, and true.

The rules are those of https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
and of https://modelcontextprotocol.io/registry/package-types, as far as we use them.
"""

import json
import re
from pathlib import Path
from typing import Any

import bridge

TOP = Path(bridge.__file__).parent.parent
SERVER: dict[str, Any] = json.loads((TOP / "packaging" / "server.json").read_text("utf-8"))
(PACKAGE,) = SERVER["packages"]


def test_it_has_the_form_that_the_registry_wants() -> None:
    assert SERVER.keys() == {"$schema", "name", "title", "description", "version", "packages"}
    assert re.fullmatch(
        r"https://static\.modelcontextprotocol\.io/schemas/[0-9-]{10}/server\.schema\.json",
        SERVER["$schema"],
    )
    assert re.fullmatch(r"[a-z0-9]+(\.[a-z0-9-]+)+/[a-z0-9][a-z0-9-]*[a-z0-9]", SERVER["name"])
    assert 3 <= len(SERVER["name"]) <= 200
    assert 1 <= len(SERVER["title"]) <= 100
    assert 1 <= len(SERVER["description"]) <= 100


def test_the_package_is_started_with_uvx_and_spoken_to_over_stdio() -> None:
    assert PACKAGE["registryType"] == "pypi"
    assert PACKAGE["registryBaseUrl"] == "https://pypi.org"  # the only one that it takes
    assert PACKAGE["identifier"] == "xmpp-debug-bridge"
    assert PACKAGE["transport"] == {"type": "stdio"}
    assert PACKAGE["runtimeHint"] == "uvx"
    # Clients put what stands there before the package's name: no place for `--from`.
    assert "runtimeArguments" not in PACKAGE


def test_the_version_is_that_of_the_bridge_and_one_release() -> None:
    assert SERVER["version"] == PACKAGE["version"] == bridge.__version__
    assert f"<!-- mcp-name: {SERVER['name']} -->" in (TOP / "README.md").read_text("utf-8")
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+([a-z0-9.+-]*)?", bridge.__version__)
