"""The revisions of MCP: what each has, and how a request names its revision. Pure.

Only this module has their dates. Source: the changelogs of
https://modelcontextprotocol.io/specification. Since 2026-07-28 each request names its revision and
the client's capabilities in `_meta`, and the server takes nothing from earlier requests
(2026-07-28, "Per-request protocol fields").
"""

from collections.abc import Iterable
from typing import NamedTuple

from bridge.mcp.jsonrpc import INVALID_PARAMS, Id, Object, RpcError, as_object, param, read_id

UNSUPPORTED_PROTOCOL_VERSION = -32022
"""The request names a revision that is not supported."""

MISSING_CLIENT_CAPABILITY = -32021
"""The request needs a capability that the client did not declare."""

_PREFIX = "io.modelcontextprotocol/"
PROTOCOL_VERSION = f"{_PREFIX}protocolVersion"
CLIENT_CAPABILITIES = f"{_PREFIX}clientCapabilities"
CLIENT_INFO = f"{_PREFIX}clientInfo"
LOG_LEVEL = f"{_PREFIX}logLevel"
SERVER_INFO = f"{_PREFIX}serverInfo"

CACHE_LISTS: Object = {"ttlMs": 3_600_000, "cacheScope": "public"}
"""How long a client may keep a list and who may share it (2026-07-28, "Caching"): an hour, since
lists are the same for every client and do not change while we run."""

CACHE_CONTENTS: Object = {"ttlMs": 0, "cacheScope": "private"}
"""The same for the contents of a resource. They may change at any moment, so a client may not keep
or share them."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of RFC 5424, section 6.2.1, least severe first."""


class Revision(NamedTuple):
    """What a server has to know about one dated revision of the specification.

    Revisions compare by their dates: most of what a revision added is in all later ones too.
    """

    date: str
    """The name of the revision on the wire."""
    handshake: bool = True
    """Whether a session opens with `initialize`, and the server asks the client by requests. If
    not, each request names its revision in `_meta`, and the server asks its questions in the result
    of a call."""
    batches: bool = False
    """Whether several messages may arrive in one array."""
    typed_parts: bool = False
    """Whether this is the dialect of typed parts: the result of an `Interpret` has content blocks
    of the types `json` and `interpret`, every content block has a `text`, a tool is listed with its
    `input_schema`, and the answer to `initialize` says what a client can do with tools."""
    unknown_resource: int = -32002
    """The error code for a resource that does not exist."""
    named: bool = True
    """Whether the client named this revision. If so, we serve its requests by this revision
    alone."""

    def has(self, method: str) -> bool:
        """Whether this revision has `method`. Also true for a method that no revision has."""
        return method not in (STATELESS_METHODS if self.handshake else HANDSHAKE_METHODS)


HANDSHAKE_METHODS = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""The methods that only revisions with a handshake have."""

STATELESS_METHODS = frozenset({"server/discover", "subscriptions/listen"})
"""The methods that only revisions without a handshake have."""

V2024_11_05 = Revision("2024-11-05")
V2025_03_26 = Revision("2025-03-26", batches=True)
"""Brought annotations of tools, content blocks of type `audio`, a `message` in notifications of
progress, and completion as a declared capability."""
V2025_06_18 = Revision("2025-06-18")
"""Brought a `title` for people next to the `name` for programs, an `outputSchema` of tools and the
`structuredContent` of results, and content blocks of type `resource_link`."""
V2025_11_25 = Revision("2025-11-25")
V2026_07_28 = Revision("2026-07-28", handshake=False, unknown_resource=-32602)

ALL = (V2026_07_28, V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05)
"""Every supported revision, newest first."""

HANDSHAKE = tuple(revision for revision in ALL if revision.handshake)
"""The revisions that `initialize` can agree on, newest first."""

UNNEGOTIATED = V2025_11_25._replace(named=False)
"""The revision for an MCP request that names no revision and comes before any handshake."""

UNNAMED = V2024_11_05._replace(typed_parts=True)
"""The dialect of clients that are older than any revision. It is used for an `initialize` without a
`protocolVersion`, and for a `tools/call` that comes framed by headers before any handshake."""


def find(date: str) -> Revision | None:
    """Return the supported revision of this date, if there is one."""
    return next((revision for revision in ALL if revision.date == date), None)


def negotiate(requested: str | None) -> Revision:
    """Return the revision to speak when `initialize` asks for `requested`.

    If it is not known, or has no handshake, return the newest revision with a handshake (lifecycle,
    "Version Negotiation"); the client decides whether it accepts that.
    """
    if requested is None:
        return UNNAMED
    return next((revision for revision in HANDSHAKE if revision.date == requested), HANDSHAKE[0])


class RequestMeta(NamedTuple):
    """How to serve a request, by its own `_meta` or by the session's handshake."""

    revision: Revision
    capabilities: Object
    """The client's capabilities. A client of the handshake era declares them in `initialize`."""
    progress_token: Id | None = None
    log_level: str | None = None
    """The least severe level of the log messages that the request wants; None if it wants none."""

    def accepts(self, method: str) -> bool:
        """Whether we may ask the client by `method`, such as `sampling/createMessage`.

        The part of a method's name before the `/` is the name of the capability.
        """
        declared = as_object(self.capabilities.get(method.partition("/")[0]))
        if not isinstance(declared, dict):
            return False
        # An `elicitation` capability that names no mode means forms (2025-11-25).
        return method != "elicitation/create" or "form" in declared or "url" not in declared


def check_capabilities(meta: RequestMeta, required: Iterable[str]) -> None:
    """Raise `RpcError` where a client of a revision without handshake lacks a capability."""
    missing = [name for name in required if name not in meta.capabilities]
    if missing and not meta.revision.handshake:
        raise RpcError(
            MISSING_CLIENT_CAPABILITY,
            {"requiredCapabilities": {name: {} for name in missing}},
            f"Missing required client capability: {', '.join(missing)}",
        )


def read_meta(params: Object, session: RequestMeta, *, required: bool) -> RequestMeta:
    """Read `_meta`; if it names no revision, return `session`.

    `required` says that the method exists only in requests whose `_meta` names a revision. Raises
    `RpcError`.
    """
    if params.get("_meta") is None and not required:
        return session
    meta = param(params, "_meta", dict, "an object", {})
    token = read_id(meta.get("progressToken"))
    envelope = {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL}
    if not required and not meta.keys() & envelope:
        return session._replace(progress_token=token)
    version, capabilities = meta.get(PROTOCOL_VERSION), as_object(meta.get(CLIENT_CAPABILITIES))
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"_meta: {PROTOCOL_VERSION} is missing or not a string")
    revision = find(version)
    if revision is None:
        supported = [revision.date for revision in ALL]
        raise RpcError(
            UNSUPPORTED_PROTOCOL_VERSION,
            {"supported": supported, "requested": version[:100]},
            f"Unsupported protocol version: {version[:100]!r} is none of {', '.join(supported)}",
        )
    if not isinstance(capabilities, dict):
        raise RpcError(INVALID_PARAMS, f"_meta: {CLIENT_CAPABILITIES} is missing or not an object")
    level = meta.get(LOG_LEVEL)
    if level is not None and level not in LEVELS:
        raise RpcError(INVALID_PARAMS, f"_meta: {LOG_LEVEL} is none of {', '.join(LEVELS)}")
    return RequestMeta(revision, capabilities, token, level)
