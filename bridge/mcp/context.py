"""What a running tool can send to the client that called it, and ask it. Pure.

A tool that wants it names a `Context` last before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from bridge.mcp.jsonrpc import Json, Object


class Context(NamedTuple):
    """One call's way back to its caller, for progress, log messages and requests.

    Progress and log messages are sent only if the caller asked for them.
    """

    send_progress: Callable[[float, float | None, str | None], None]
    log: Callable[[str, Json], None]
    """Send a log message, if the caller wants those of this level (RFC 5424's names)."""
    can_ask: Callable[[str], bool]
    """Whether the caller can be sent a request of this method, such as `sampling/createMessage`.

    Only a client that shook hands and declared the capability can; none since 2026-07-28.
    """
    ask: Callable[[str, Object, float], Awaitable[Object]]
    """Send the caller a request, by method and params, and return its result.

    Raises `ToolError` when the caller takes no such request, refuses it, gives no answer within
    this many seconds, or is gone. A call that ends meanwhile, by its deadline or cancelled, cancels
    its request.
    """

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; a value that does not grow is not sent (MCP, "Progress")."""
        self.send_progress(done, total, message)
