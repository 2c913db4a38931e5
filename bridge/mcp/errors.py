"""The root of the exceptions that `bridge.mcp` raises, and the exceptions of tools. Pure."""


class McpError(Exception):
    """Every exception that this package raises on purpose. Each subclass says whose fault it is."""


REMOTE = frozenset(
    {
        "remote-server-timeout",
        "remote-server-not-found",
        "service-unavailable",
        "resource-constraint",
        "connection-timeout",
        "connection-refused",
        "connection-reset",
        "certificate-verify-failed",
        "redirect",
    }
)
"""The conditions whose cause is always a service elsewhere."""


class ToolError(McpError):
    """A tool cannot do its work, for a reason that its caller can act on."""

    def __init__(self, message: str, *, condition: str, hint: str, remote: bool = False) -> None:
        self.message = message
        self.condition = condition
        """What went wrong, by the name in the standard that defines it, such as
        `not-authorized`."""
        self.hint = hint
        self.remote = remote or condition in REMOTE
        """Whether a service elsewhere is the cause. People want to see such a cause in the log."""
        super().__init__(message)


class ArgumentError(ToolError):
    """The caller gave arguments that the tool cannot use."""
