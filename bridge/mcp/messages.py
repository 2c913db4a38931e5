"""The frames of one connection, read as messages. Pure."""

from bridge.mcp.framing import Frame, Framing, Nesting, SkippedInput
from bridge.mcp.jsonrpc import PARSE_ERROR, Malformed, Message, RpcError, decode

SPREAD = "the message does not end on its line; write each message on one line"
"""Why we refuse a line that begins a message, but does not end it."""

MAX_LINE_BYTES = 64 * 1024
"""The longest line that counts as part of a message over several lines. Reading the brackets of a
longer line would hold up the loop."""


class MessageReader:
    """Reads frames as messages. A message over several lines is refused once, not line by line."""

    def __init__(self) -> None:
        self._begun: Nesting | None = None
        """How far we have read the message whose first line we refused; None if it has ended."""

    def read(self, frame: Frame | SkippedInput) -> Message | list[Message] | None:
        """Return the message in `frame`; None if the frame is the rest of a refused message.

        A line that is a message by itself does not belong to that rest.
        """
        if isinstance(frame, SkippedInput):
            return Malformed(RpcError(PARSE_ERROR, frame.reason))
        message = decode(frame.body)
        is_line = frame.framing is Framing.LINES
        if self._begun is not None and is_line and _is_malformed(message):
            self._follow(self._begun, frame.body)
            return None
        self._begun = None
        if isinstance(message, Malformed) and message.error.code == PARSE_ERROR and is_line:
            self._follow(Nesting(), frame.body)
        return message if self._begun is None else Malformed(RpcError(PARSE_ERROR, SPREAD))

    def _follow(self, nesting: Nesting, line: bytes) -> None:
        """Read `line` as the next line of a message; remember the message unless it ends there."""
        nesting.read = 0
        if is_short := len(line) <= MAX_LINE_BYTES:
            nesting.end_in(line, len(line))
        self._begun = nesting if is_short and nesting.depth > 0 else None


def _is_malformed(message: Message | list[Message]) -> bool:
    parts = message if isinstance(message, list) else [message]
    return all(isinstance(part, Malformed) for part in parts)
