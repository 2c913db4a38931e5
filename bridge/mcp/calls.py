"""What the server wants done, and what came of it. Pure."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import Id, Notification, Response
from bridge.mcp.revisions import Envelope
from bridge.mcp.toolset import Tool, ToolError


class Succeeded(NamedTuple):
    """The tool returned `value`."""

    value: object


class Failed(NamedTuple):
    """The tool could not, and said why."""

    error: ToolError


class Crashed(NamedTuple):
    """The tool broke; `reason` is fit for the caller to see."""

    reason: str


Outcome: TypeAlias = Succeeded | Failed | Crashed


class Reply(NamedTuple):
    """Send this: an answer, or the answers to a batch."""

    response: Response | list[Response]
    cause: BaseException | None = None
    """What broke on our side, for the log; its text is not for the client."""
    framing: Framing = Framing.LINES
    """Of the message that asked for it, where that is not the one at hand."""


class Tell(NamedTuple):
    """Send this: it answers nothing."""

    notification: Notification
    framing: Framing = Framing.LINES
    """As in `Reply`."""


class Call(NamedTuple):
    """Run this tool, then hand its outcome to `Server.complete`."""

    serial: int
    """Ours, and unique: a client may use one id twice."""
    id: Id | None
    """None for a notification: the tool runs and nobody is told."""
    tool: Tool
    run: Callable[..., Any]
    arguments: Mapping[str, object]
    envelope: Envelope | None
    """None in the bare dialect: a tool's name as the method, its arguments as the params."""
    batch: int | None = None
    """The serial of the batch it came in, whose replies go out together."""


class Cancel(NamedTuple):
    """Stop working on this call; it gets no reply."""

    call: Call
    reply: Reply | None = None
    """The reply to the batch it came in, if that was waiting for nothing else."""


Action: TypeAlias = Reply | Tell | Call | Cancel | Response
"""What to do next; a `Response` is the client's answer to what we asked it (`Server.ask`)."""
