"""An MCP server that is not ours: one of the official SDK, as a program of its own."""

import asyncio
import os
import sys
from typing import Literal

from mcp.server import MCPServer

COMMAND = [sys.executable, __file__]

server = MCPServer("other")


@server.tool()
def echo(message: str) -> str:
    return f"Other: {message}"


@server.tool()
def add(first: int, second: int) -> dict[str, int]:
    return {"sum": first + second}


@server.tool()
def paint(colour: Literal["red", "green"], layers: int, glossy: bool = False) -> str:
    """Paint a wall."""
    return f"{layers} x {colour}, glossy: {glossy}"


@server.tool()
def refuse() -> str:
    raise ValueError("never")


@server.tool()
def crash() -> str:
    os._exit(3)


@server.tool()
async def sleep(seconds: int) -> None:
    print("asleep", file=sys.stderr, flush=True)  # noqa: T201 - the tests wait for it
    try:
        await asyncio.sleep(seconds)  # until somebody cancels it
    finally:
        print("awake", file=sys.stderr, flush=True)  # noqa: T201 - as above


@server.resource("other://thing")
def thing() -> str:
    return "a thing"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}."


@server.prompt()
def colour(name: str) -> str:
    return f"Say hello to {name}\x1b[31m."


if __name__ == "__main__":
    server.run("stdio")
