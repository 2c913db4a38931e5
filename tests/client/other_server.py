"""An MCP server that is not ours: one of the official SDK, as a program of its own."""

from mcp.server import MCPServer

server = MCPServer("other")


@server.tool()
def echo(message: str) -> str:
    return f"Other: {message}"


@server.tool()
def add(first: int, second: int) -> dict[str, int]:
    return {"sum": first + second}


@server.tool()
def refuse() -> str:
    raise ValueError("never")


@server.resource("other://thing")
def thing() -> str:
    return "a thing"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}."


if __name__ == "__main__":
    server.run("stdio")
