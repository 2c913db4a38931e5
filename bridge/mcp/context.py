"""What a tool may ask of whoever called it, while it runs. Pure.

A tool that wants it names it last before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")
"""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from bridge.mcp.jsonrpc import Json
from bridge.mcp.questions import CannotAskError

Result: TypeAlias = Mapping[str, Json]


async def _unheard(method: str, params: Result, timeout_seconds: float) -> Result:
    raise CannotAskError("nobody is there to be asked")


class Context(NamedTuple):
    """One call's way back to its caller. All of it is best effort: nobody need be listening."""

    report: Callable[[float, float | None, str | None], None]
    write: Callable[[str, Json], None]
    capabilities: Mapping[str, Json] = MappingProxyType({})
    """What the caller can do for us, as it declared."""
    takes: Callable[[str], bool] = lambda method: False
    put: Callable[[str, Result, float], Awaitable[Result]] = _unheard

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the work is; what does not grow is not told (MCP, "Progress")."""
        self.report(done, total, message)

    def log(self, level: str, data: Json) -> None:
        """Write a log message to the caller, if it wants those of `level` (RFC 5424's names)."""
        self.write(level, data)

    def can_ask(self, method: str) -> bool:
        """Whether the caller can be sent a request `method`, such as `sampling/createMessage`.

        Only a client that shook hands and declared the capability can; none since 2026-07-28.
        """
        return self.takes(method)

    async def ask(self, method: str, params: Result, timeout_seconds: float) -> Result:
        """Send the caller a request and return its result.

        Raises an `AskError` of `bridge.mcp.questions`: `CannotAskError`, `NotAnsweredError` after
        `timeout_seconds` or when the client is gone, `RefusedError` when it answers with an
        error. A call that ends meanwhile, by its deadline or cancelled, withdraws its question.
        """
        return await self.put(method, params, timeout_seconds)
