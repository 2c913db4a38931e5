"""What we asked the client and it has not answered yet. Pure.

Requests go from server to client only where the revision has them and the client declared the
capability they are part of; their ids are ours, apart from those of the client's own requests.
"""

from collections.abc import Mapping
from itertools import count

from bridge.mcp.envelope import Envelope
from bridge.mcp.jsonrpc import Id, Json, Notification, Request, Response

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
