"""An MCP server that answers as a table says, and honestly where the table is silent.

A program of its own: `python hostile_server.py TABLE`. The table is a JSON file with, for a method
or a method and what it names, what is written to stdout, `$ID` standing for the id of the request.
Where that is nothing, stderr says which request is unanswered, and when it is cancelled. What is in
the table for `stderr` is written there first.
"""

import json
import sys
from pathlib import Path
from typing import Any

HONEST: dict[str, Any] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        "serverInfo": {"name": "hostile", "version": "0"},
    },
    "tools/list": {
        "tools": [
            *(
                {"name": name, "inputSchema": {"type": "object"}}
                for name in ("echo", "odd", "xmppOccupants")
            ),
            {
                "name": "paint",
                "inputSchema": {
                    "properties": {
                        "colour": {"enum": ["red", "green"], "type": "string"},
                        "layers": {"type": "integer", "description": "one above the other"},
                        "glossy": {"type": "boolean", "default": False},
                    },
                    "required": ["colour", "layers"],
                },
            },
        ]
    },
    "resources/list": {"resources": [{"uri": "bridge://status", "name": "status"}]},
    "prompts/list": {"prompts": [{"name": "odd", "arguments": [{"name": "who"}]}]},
    "tools/call echo": {"content": [{"type": "text", "text": "Echo: there"}]},
    "tools/call xmppOccupants": {"content": [], "structuredContent": {"occupants": []}},
}


def command(folder: Path, table: dict[str, str]) -> list[str]:
    """Return what starts the server with this table, which is kept in `folder`."""
    path = folder / "table.json"
    path.write_text(json.dumps(table), encoding="utf-8")
    return [sys.executable, str(Path(__file__)), str(path)]


def reply(result: str) -> str:
    """Return the response with this text of JSON as its result."""
    return f'{{"jsonrpc":"2.0","id":$ID,"result":{result}}}'


def refusal(error: str) -> str:
    """Return the response with this text of JSON as its error."""
    return f'{{"jsonrpc":"2.0","id":$ID,"error":{error}}}'


def structured(result: str) -> str:
    """Return the response of a tool with this text of JSON as its object."""
    return reply(f'{{"content":[],"structuredContent":{result}}}')


def nested(depth: int) -> str:
    """Return JSON with arrays inside one another."""
    return "[" * depth + "]" * depth


def _answer(asked: dict[str, Any], table: dict[str, str]) -> str:
    method, params = asked["method"], asked.get("params") or {}
    named = f"{method} {params.get('name', params.get('uri'))}"
    honest = HONEST.get(named, HONEST.get(method))
    error = '{"code":-32601,"message":"Method not found"}'
    usual = refusal(error) if honest is None else reply(json.dumps(honest))
    said = table.get(named, table.get(method, usual))
    return said.replace("$ID", json.dumps(asked["id"]))


def main() -> None:
    """Answer until the input ends."""
    table = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    sys.stderr.write(table.get("stderr", ""))
    sys.stderr.flush()
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            if asked.get("method") == "notifications/cancelled":
                sys.stderr.write("cancelled\n")
        elif answer := _answer(asked, table):
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()
        else:
            sys.stderr.write(f"unanswered {asked['params'].get('name')}\n")


if __name__ == "__main__":
    main()
