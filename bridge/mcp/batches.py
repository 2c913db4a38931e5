"""Batches under way: their replies go out together once the last is there. Pure.

JSON-RPC 2.0, section 6; part of MCP in revision 2025-03-26 only.
"""

from bridge.mcp.calls import Call, Reply
from bridge.mcp.jsonrpc import Response


class _Open:
    def __init__(self, serial: int) -> None:
        self.pending = {serial}
        self.responses: list[Response] = []


class Batches:
    """The batches of one client that are not answered yet, by serial."""

    def __init__(self) -> None:
        self._open: dict[int, _Open] = {}

    def open(self, serial: int) -> None:
        """Begin a batch. It waits for itself until `close`, so that nothing settles it before."""
        self._open[serial] = _Open(serial)

    def add(self, serial: int, part: Response | Call) -> None:
        """Note an answer that is there, or a call whose answer is to come."""
        if isinstance(part, Response):
            self._open[serial].responses.append(part)
        else:
            self._open[serial].pending.add(part.serial)

    def close(self, serial: int) -> Reply | None:
        """Say that the batch is read to its end; return its reply if nothing is pending."""
        return self._settle(serial, serial)

    def hand_in(self, call: Call, response: Response | None) -> Reply | None:
        """Take the answer to `call` (None if it was cancelled), in or outside a batch.

        Return what can be sent now.
        """
        if call.batch is None:
            return None if response is None else Reply(response)
        if response is not None:
            self._open[call.batch].responses.append(response)
        return self._settle(call.batch, call.serial)

    def _settle(self, serial: int, part: int) -> Reply | None:
        batch = self._open[serial]
        batch.pending.discard(part)
        if batch.pending:
            return None
        del self._open[serial]
        return Reply(batch.responses) if batch.responses else None
