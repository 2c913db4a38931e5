"""How a request is worded: the revisions of MCP, and the bare dialect. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from bridge.mcp import revisions
from bridge.mcp.envelope import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from bridge.mcp.jsonrpc import Json
from bridge.mcp.revisions import Revision


@dataclass(frozen=True)
class Dialect:
    """What the next request is spoken in."""

    revision: Revision
    bare: bool = False
    """A tool's own name is the method, and its arguments are the params."""

    def __str__(self) -> str:
        spoken = f"MCP {self.revision.date}"
        return f"bare JSON-RPC, and {spoken} for what is no tool" if self.bare else spoken

    def params(self, given: Mapping[str, Json], client: Json) -> dict[str, Json]:
        """Return what goes along with any method of MCP; `client` says who we are."""
        if self.revision.handshake:
            return dict(given)
        envelope = {
            PROTOCOL_VERSION: self.revision.date,
            CLIENT_CAPABILITIES: {},
            CLIENT_INFO: client,
        }
        return {"_meta": envelope, **given}

    def call(
        self, tool: str, arguments: Mapping[str, Json], client: Json
    ) -> tuple[str, dict[str, Json]]:
        """Return method and params that call `tool`."""
        if self.bare:
            return tool, dict(arguments)
        return "tools/call", self.params({"name": tool, "arguments": dict(arguments)}, client)


FIRST = Dialect(revisions.HANDSHAKE[0])
"""What a server that nobody has met yet is spoken to in: most know the handshake."""

STATELESS = Dialect(next(one for one in revisions.ALL if not one.handshake))
"""What it is spoken to in when it knows no handshake."""
