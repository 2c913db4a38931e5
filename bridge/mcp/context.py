"""What a tool may ask of whoever called it, while it runs. Pure.

A tool that wants it names it last before the `/`::

    async def fetch(room: RoomLink, context: Context, /, since: str) -> Page:
        context.progress(1, 3, "asked the server")
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from bridge.mcp.jsonrpc import Id, Json, Notification, Request, Response
from bridge.mcp.revisions import Envelope

NOT_WANTED = "The call that asked this has ended."
"""The reason that a withdrawn question gives."""


class AskError(Exception):
    """The client could not be asked, or gave no answer; the text says which, in one sentence."""


class CannotAskError(AskError):
    """The client is not one that can be asked this, or the call is over."""


class NotAnsweredError(AskError):
    """No answer came: in time, or at all because the client went away."""


class RefusedError(AskError):
    """The client answered with an error; its words are a stranger's."""

    def __init__(self, code: int | None, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


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


class Questions:
    """The open questions to one client."""

    def __init__(self) -> None:
        self._serials = count(1)
        self._open: dict[str, str] = {}

    def ask(self, envelope: Envelope | None, method: str, params: Mapping[str, Json]) -> Request:
        """Return the request to send; raises `CannotAskError`. `envelope` is the call's."""
        if envelope is None or not envelope.takes(method):
            raise CannotAskError(f"this client takes no {method}")
        id_ = f"ask-{next(self._serials)}"
        self._open[id_] = method
        return Request(id_, method, params)

    def method(self, id_: Id | None) -> str | None:
        """Return what was asked under `id_`; None if nothing is open there."""
        return self._open.get(id_) if isinstance(id_, str) else None

    def answered(self, response: Response) -> bool:
        """Take the client's answer; False if it answers nothing that is open."""
        return isinstance(response.id, str) and self._open.pop(response.id, None) is not None

    def withdraw(self, id_: Id) -> Notification | None:
        """Give a question up; return what to tell the client, unless it has answered."""
        if not isinstance(id_, str) or self._open.pop(id_, None) is None:
            return None
        return Notification("notifications/cancelled", {"requestId": id_, "reason": NOT_WANTED})


def answer_in(response: Response) -> Mapping[str, Json]:
    """Return the result in the client's answer; raises `AskError` for any other answer."""
    if response.error is not None:
        code, message = response.error.get("code"), response.error.get("message")
        raise RefusedError(
            code if isinstance(code, int) else None, message if isinstance(message, str) else ""
        )
    if not isinstance(response.result, dict):
        raise AskError("the client's answer has no result that is an object")
    return response.result
