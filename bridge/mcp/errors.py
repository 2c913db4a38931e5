"""The root of the exceptions that `bridge.mcp` raises. Pure."""


class McpError(Exception):
    """Anything that this package raises on purpose: each subclass says whose fault it is."""
