"""What `register` writes is read back by the parsers that the clients have themselves."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bridge.registration.clients import client
from bridge.registration.entry import EntryLocation
from bridge.registration.formats import Format, edited
from bridge.registration.json_text import MISSING
from tests.registration.written import BOM, JSON_FILES, TOML_FILES
from tests.support.prerequisites import PACKAGES, agent, do_without, npm_packages

ENTRY = {"command": "/opt/\U0001f600\"\\'\x7f\t#", "args": ["//", "/*", ",]"], "env": {"é.b": "#"}}
PARSER = Path(__file__).with_name("parse.mjs")


def _parsed(texts: list[tuple[Format, str]]) -> list[Any]:
    packages = npm_packages()
    for name in ("JSON with comments", "TOML"):
        if not (packages / PACKAGES[name].rpartition("@")[0]).is_dir():
            do_without(f"npm's {PACKAGES[name]} is not installed")
    ran = subprocess.run(
        ["node", str(PARSER), str(packages)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


def test_the_parsers_of_npm_find_the_entry_and_everything_else_as_it_was() -> None:
    files: list[tuple[Format, str]] = [
        ("json", text) for text in JSON_FILES.values() if text.strip(f"{BOM} \n")
    ]
    files += [("toml", text) for text in TOML_FILES.values()]
    path = ("mcpServers", "xmpp")
    added = [(form, edited(text, form, [(path, ENTRY)])) for form, text in files]
    gone = [(form, edited(text, form, [(path, MISSING)])) for form, text in added]
    before, after, restored = (_parsed(texts) for texts in (files, added, gone))
    assert len(after) == len(files) > 30
    for held, with_ours, without in zip(before, after, restored, strict=True):
        assert with_ours["mcpServers"].pop("xmpp") == ENTRY
        for document in (held, with_ours, without):
            document.setdefault("mcpServers", {})
        assert with_ours == without == held


@pytest.mark.parametrize("name", TOML_FILES)
def test_the_real_codex_lists_the_entry_that_was_added(name: str, tmp_path: Path) -> None:
    environment = agent("codex") | {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path)}
    location = EntryLocation(client("codex", environment, tmp_path), "xmpp")
    text = TOML_FILES[name].replace("mcpServers", "mcp_servers")
    text = text.replace("c = 1", "command = 'c'").replace("e = 1", "command = 'e'")
    text = text.replace(
        "[mcp_servers.other.env]", "[mcp_servers.other]\ncommand = 'x'\nenv.X = 'y'"
    )
    wanted = ENTRY | {"required": True}
    location.client.file.write_bytes(edited(text, "toml", location.changes(None, wanted)).encode())
    ran = subprocess.run(
        ["codex", "mcp", "list", "--json"], env=environment, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    servers = {server["name"]: server for server in json.loads(ran.stdout)}
    transport = servers["xmpp"]["transport"]
    assert {key: transport[key] for key in ENTRY} == ENTRY
    assert ("other" in servers) is ("mcp_servers.other" in text)
