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
"""The conditions whose cause is a service elsewhere, and not the caller or the settings."""


class ToolError(McpError):
    """A tool cannot do what it was asked to, for a reason that its caller can act on."""

    def __init__(self, message: str, *, condition: str, hint: str) -> None:
        self.message = message
        self.condition = condition
        """The defined condition of the standard that has one, such as `not-authorized`."""
        self.hint = hint
        super().__init__(message)

    @property
    def remote(self) -> bool:
        """Whether a service elsewhere is the cause, which people want to see in the log."""
        return self.condition in REMOTE


class ArgumentError(ToolError):
    """An argument is of the right type, and its value makes no sense."""
