"""What a request says of itself in `_meta`: the era it belongs to, and what it asks beside.

Since 2026-07-28 each request names its revision and the client's capabilities, and nothing is
taken from earlier requests (2026-07-28, "Per-request protocol fields"). Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from bridge.mcp import revisions
from bridge.mcp.jsonrpc import INVALID_PARAMS, Id, Json, RpcError
from bridge.mcp.revisions import Revision

UNSUPPORTED_PROTOCOL_VERSION = -32022
"""The request names a revision that is not spoken here."""

MISSING_CLIENT_CAPABILITY = -32021
"""The request needs something of the client that it did not declare."""

_PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = f"{_PREFIX}protocolVersion"
CLIENT_CAPABILITIES = f"{_PREFIX}clientCapabilities"
CLIENT_INFO = f"{_PREFIX}clientInfo"
LOG_LEVEL = f"{_PREFIX}logLevel"
SERVER_INFO = f"{_PREFIX}serverInfo"

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of RFC 5424, section 6.2.1, least severe first."""


class Envelope(NamedTuple):
    """The request's own words about how to serve it."""

    revision: Revision
    capabilities: Mapping[str, Json]
    """What the client can do for us. Of handshake-era clients it is told in `initialize`."""
    progress_token: Id | None = None
    log_level: str | None = None
    """The least severe level that the request wants to see log messages of; None for none."""

    def takes(self, method: str) -> bool:
        """Whether the client may be sent a request `method`, such as `sampling/createMessage`.

        The capability that it is part of is called like the first half of its name.
        """
        declared = self.capabilities.get(method.partition("/")[0])
        return self.revision.server_requests and isinstance(declared, dict)


def open_envelope(
    params: Mapping[str, Json],
    *,
    session: Revision,
    session_capabilities: Mapping[str, Json],
    session_log_level: str | None,
    required: bool,
) -> Envelope:
    """Read `_meta`; where it names no revision, the session's holds.

    `required` says that the method exists only where the envelope does. Raises `RpcError`.
    """
    meta = params.get("_meta")
    if meta is None:
        if not required:
            return Envelope(session, session_capabilities, None, session_log_level)
        meta = {}
    if not isinstance(meta, dict):
        raise RpcError(INVALID_PARAMS, "_meta: an object is wanted")
    token = meta.get("progressToken")
    if not isinstance(token, (str, int)) or isinstance(token, bool):
        token = None
    marked = any(
        key in meta for key in (PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL)
    )
    if not (marked or required):
        return Envelope(session, session_capabilities, token, session_log_level)
    version, capabilities = meta.get(PROTOCOL_VERSION), meta.get(CLIENT_CAPABILITIES)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta: {PROTOCOL_VERSION} is missing or not a string")
    revision = revisions.find(version)
    if revision is None:
        supported = [one.date for one in revisions.ALL]
        raise RpcError(
            UNSUPPORTED_PROTOCOL_VERSION,
            {"supported": supported, "requested": version},
            "Unsupported protocol version",
        )
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta: {CLIENT_CAPABILITIES} is missing or not an object")
    level = meta.get(LOG_LEVEL)
    if level is not None and level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"_meta: {LOG_LEVEL} is none of {', '.join(LEVELS)}")
    return Envelope(revision, capabilities, token, level)
