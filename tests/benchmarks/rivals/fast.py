"""An echo server on FastMCP, the package that most people would pick."""

from fastmcp import FastMCP  # type: ignore[import-not-found]  # lives with the rivals

server = FastMCP("echo")


@server.tool  # type: ignore[untyped-decorator]
def echo(message: str) -> str:
    """Give back a message."""
    return f"Echo: {message}"


server.run(show_banner=False)
