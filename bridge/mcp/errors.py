"""The root of the exceptions that `bridge.mcp` raises, and those that tools raise. Pure."""


class McpError(Exception):
    """Anything that this package raises on purpose: each subclass says whose fault it is."""


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
"""The conditions whose cause is a service elsewhere, whoever raises the error."""


class ToolError(McpError):
    """A tool cannot do what it was asked to, for a reason that its caller can act on."""

    def __init__(self, message: str, *, condition: str, hint: str, remote: bool = False) -> None:
        self.message = message
        self.condition = condition
        """The defined condition of the standard that has one, such as `not-authorized`."""
        self.hint = hint
        self.remote = remote or condition in REMOTE
        """Whether a service elsewhere is the cause, which people want to see in the log."""
        super().__init__(message)


class ArgumentError(ToolError):
    """An argument is of the right type, and its value makes no sense."""
