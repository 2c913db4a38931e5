"""A server of somebody's own tools: by `serve --only`, and by `bridge.toolkit.serve`."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from bridge import __version__
from tests.e2e.bridge_process import COMMAND, run_in

OWN = """
from dataclasses import dataclass
from bridge.toolkit import Configuration, LlmNode, RoomLink, Toolset, serve, tool

@tool(title="Mirror", read_only=True, open_world=False)
def mirror(text: str) -> str:
    '''Write a text backwards.'''
    return text[::-1]

@tool(title="Erase")
def erase() -> str:
    '''Erase everything.'''
    return "erased"

@tool(title="Peek", read_only=True)
def peek(link: RoomLink, /) -> str:
    '''Look into the room.'''
    return "a room"

@dataclass
class Text:
    text: str

NODE = LlmNode(instruction="Judge.", input=Text, output=Text)

TOOLS = Toolset("own", (mirror, erase))
MODEL = Toolset("model", (NODE.as_tool(name="judge", title="Judge"),))
ROOM = Toolset("room", (peek,))

if __name__ == "__main__":
    serve("own", "7.1", [TOOLS, MODEL], instructions="Mirror first.")
"""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}}
METHODS = ("initialize", "tools/list", "resources/list", "erase")
ALL = [{"jsonrpc": "2.0", "id": i, "method": m, "params": HELLO} for i, m in enumerate(METHODS)]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def ran(
    home: Path,
    command: Sequence[str],
    *messages: object,
    code: int = 0,
    environ: Mapping[str, str] | None = None,
) -> tuple[dict[int, Any], str]:
    """The answers by their ids, and what was said on stderr."""
    said = "".join(json.dumps(each) + "\n" for each in messages)
    child = run_in(home, *command, said=said, PYTHONPATH=str(home), **(environ or {}))
    assert child.returncode == code, child.stderr
    assert "Traceback" not in child.stderr
    answers = [json.loads(line) for line in child.stdout.splitlines()]
    return {each["id"]: each for each in answers}, child.stderr


def only(*names: str) -> list[str]:
    return [COMMAND, "serve", *(word for name in names for word in ("--only", name))]


def names(answers: dict[int, Any]) -> list[str]:
    return [each["name"] for each in answers[1]["result"]["tools"]]


def test_only_what_is_named_is_served_and_no_room_is_spoken_of(home: Path) -> None:
    sets = {"BRIDGE_TOOLSETS": "llm,samples", "LLM_BASE_URL": "http://[::1]/", "LLM_MODEL": "m"}
    sets["BRIDGE_READ_ONLY"] = "1"
    answers, said = ran(home, only("own:TOOLS"), *ALL, environ=sets)
    assert names(answers) == ["mirror"]
    assert "withheld by --read-only or BRIDGE_READ_ONLY" in str(answers[3]["error"])
    hello = answers[0]["result"]
    assert hello["serverInfo"] == {"name": "own", "title": "own", "version": __version__}
    assert set(hello["capabilities"]) == {"tools", "logging"}
    assert "instructions" not in hello
    assert answers[2]["result"] == {"resources": []}
    assert "room" not in json.dumps(answers).lower()
    assert "MUC_ROOM" not in said
    assert "XMPP_" not in said


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (only("own:ROOM"), "cannot be served alone: it needs what only the bridge has"),
        (only("samples", "llm"), "samples+llm cannot be served alone: it needs"),
        (only("llm"), "together with the bridge, by `--toolset` instead of `--only`"),
        ([*only("samples"), "--toolset", "llm"], "not allowed with argument --only"),
    ],
)
def test_what_cannot_be_served_alone_stops_the_start(
    words: list[str], cause: str, home: Path
) -> None:
    answers, said = ran(home, words, *ALL, code=2)
    assert answers == {}
    assert cause in said
    assert "RoomLink" not in said


def test_a_program_of_its_own_is_a_server_of_its_own_name_and_version(home: Path) -> None:
    answers, said = ran(home, [sys.executable, "own.py"], *ALL)
    hello = answers[0]["result"]
    assert hello["serverInfo"] == {"name": "own", "title": "own", "version": "7.1"}
    assert hello["instructions"] == "Mirror first."
    assert names(answers) == ["mirror", "erase", "judge"]
    assert said.splitlines() == ["[Server] Ready to accept connections"]
