"""What a tool may ask of whoever called it, while it runs. Pure.

A tool that wants it names it last before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bridge.mcp.jsonrpc import Json


@dataclass(frozen=True)
class Context:
    """One call's way back to its caller. All of it is best effort: nobody need be listening."""

    report: Callable[[float, float | None, str | None], None] = field(repr=False)
    write: Callable[[str, Json], None] = field(repr=False)
    capabilities: Mapping[str, Json] = field(default_factory=dict)
    """What the caller can do for us, as it declared."""

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is; what does not grow is not told (MCP, "Progress")."""
        self.report(done, total, message)

    def log(self, level: str, data: Json) -> None:
        """Write a log message to the caller, if it wants those of `level` (RFC 5424's names)."""
        self.write(level, data)
