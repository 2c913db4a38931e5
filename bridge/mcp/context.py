"""What a running tool can send to the client that called it, and the client's answers. Pure.

A tool that wants it names a `Context` last before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")

Requests go from server to client only where the revision has them and the client declared the
capability they are part of; their ids are ours, apart from those of the client's own requests.
"""

from collections.abc import Awaitable, Callable
from itertools import count
from types import MappingProxyType
from typing import NamedTuple

from bridge.mcp.errors import McpError
from bridge.mcp.jsonrpc import Id, Json, Notification, Object, Request, Response
from bridge.mcp.revisions import RequestMeta

CANCEL_REASON = "The call that asked this has ended."
"""The reason given in the notification that cancels a request of ours."""


class AskError(McpError):
    """The client could not be asked, or gave no answer; the text says which, in one sentence."""


class CannotAskError(AskError):
    """The client does not accept this request, or the call is over."""


class NotAnsweredError(AskError):
    """No answer came: in time, or at all because the client went away."""


class RefusedError(AskError):
    """The client answered with an error; its message is untrusted text."""

    def __init__(self, code: int | None, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


async def _no_client(method: str, params: Object, timeout_seconds: float) -> Object:
    raise CannotAskError("nobody is there to be asked")


class Context(NamedTuple):
    """One call's way back to its caller, for progress, log messages and requests.

    Progress and log messages are sent only if the caller asked for them.
    """

    send_progress: Callable[[float, float | None, str | None], None]
    send_log: Callable[[str, Json], None]
    capabilities: Object = MappingProxyType({})
    """The client's capabilities, as it declared them."""
    accepts: Callable[[str], bool] = lambda method: False
    send_request: Callable[[str, Object, float], Awaitable[Object]] = _no_client

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; a value that does not grow is not sent (MCP, "Progress")."""
        self.send_progress(done, total, message)

    def log(self, level: str, data: Json) -> None:
        """Send a log message, if the caller wants those of `level` (RFC 5424's names)."""
        self.send_log(level, data)

    def can_ask(self, method: str) -> bool:
        """Whether the caller can be sent a request `method`, such as `sampling/createMessage`.

        Only a client that shook hands and declared the capability can; none since 2026-07-28.
        """
        return self.accepts(method)

    async def ask(self, method: str, params: Object, timeout_seconds: float) -> Object:
        """Send the caller a request and return its result.

        Raises an `AskError`: `CannotAskError`, `NotAnsweredError` after `timeout_seconds` or when
        the client is gone, `RefusedError` when it answers with an error. A call that ends
        meanwhile, by its deadline or cancelled, cancels its request.
        """
        return await self.send_request(method, params, timeout_seconds)


class ClientRequests:
    """The requests to one client that it has not answered yet."""

    def __init__(self) -> None:
        self._serials = count(1)
        self._open: dict[str, str] = {}

    def open(self, meta: RequestMeta | None, method: str, params: Object) -> Request:
        """Return the request to send; raises `CannotAskError`. `meta` is that of the call."""
        if meta is None or not meta.accepts(method):
            raise CannotAskError(f"this client takes no {method}")
        id_ = f"ask-{next(self._serials)}"
        self._open[id_] = method
        return Request(id_, method, params)

    def method(self, response: Response) -> str | None:
        """Return the method that `response` answers; None if no request of its id is open."""
        return self._open.get(response.id) if isinstance(response.id, str) else None

    def close(self, id_: Id | None) -> bool:
        """Forget the request of this id; False if none is open."""
        return isinstance(id_, str) and self._open.pop(id_, None) is not None

    def cancel(self, id_: Id) -> Notification | None:
        """Give a request up; return the notification to send, None if it is not open."""
        if not self.close(id_):
            return None
        return Notification("notifications/cancelled", {"requestId": id_, "reason": CANCEL_REASON})


def result_of(response: Response) -> Object:
    """Return the result in the client's response; raises `AskError` where there is none."""
    if response.error is not None:
        code, message = response.error.get("code"), response.error.get("message")
        raise RefusedError(
            code if isinstance(code, int) else None, message if isinstance(message, str) else ""
        )
    if not isinstance(response.result, dict):
        raise AskError("the client's answer has no result that is an object")
    return response.result
