"""What each revision of MCP has and how it spells it: the only place where their dates stand.

Pure. Source: the changelogs of https://modelcontextprotocol.io/specification.
"""

from typing import NamedTuple


class Revision(NamedTuple):
    """One dated revision of the specification, as far as a server can tell."""

    date: str
    """Its name on the wire."""
    handshake: bool = True
    """It opens with `initialize`; without, each request carries its own envelope."""
    batches: bool = False
    """Several messages may arrive in one array."""
    annotations: bool = True
    """Tools say whether they only read, destroy, repeat safely, reach outside."""
    completions: bool = True
    """Completion is a capability that is declared."""
    progress_message: bool = True
    """A progress notification may say in words how far things are."""
    titles: bool = True
    """Things have a `title` for people beside the `name` for programs."""
    structured: bool = True
    """Tools have an `outputSchema`, results a `structuredContent`."""
    typed_parts: bool = False
    """Data and what to make of it come as parts of the types `json` and `interpret`."""
    server_requests: bool = True
    """The server may send requests of its own, as far as the client declared them."""
    unknown_resource: int = -32002
    """The error code for a resource that does not exist."""

    def has(self, method: str) -> bool:
        """Whether `method` is part of it; methods of no revision are."""
        return method not in (STATELESS_METHODS if self.handshake else HANDSHAKE_METHODS)


HANDSHAKE_METHODS = frozenset(
    {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}
)
"""What ended with the handshake."""

STATELESS_METHODS = frozenset({"server/discover", "subscriptions/listen"})
"""What came in its place."""

V2024_11_05 = Revision(
    "2024-11-05",
    annotations=False,
    completions=False,
    progress_message=False,
    titles=False,
    structured=False,
)
V2025_03_26 = Revision("2025-03-26", batches=True, titles=False, structured=False)
V2025_06_18 = Revision("2025-06-18")
V2025_11_25 = Revision("2025-11-25")
V2026_07_28 = Revision(
    "2026-07-28", handshake=False, server_requests=False, unknown_resource=-32602
)

ALL = (V2026_07_28, V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05)
"""Every revision that is spoken here, newest first."""

HANDSHAKE = tuple(one for one in ALL if one.handshake)
"""The revisions that `initialize` can agree on, newest first."""

UNNEGOTIATED = V2025_11_25
"""What an MCP request before any handshake, and without an envelope, is answered as."""

UNNAMED = V2024_11_05._replace(typed_parts=True)
"""What an `initialize` without a `protocolVersion` is answered as: the dialect of clients that are
older than any revision."""


def find(date: str) -> Revision | None:
    """Return the revision of this name, if it is spoken here."""
    return next((one for one in ALL if one.date == date), None)


def negotiate(requested: str | None) -> Revision:
    """Return the revision to speak when `initialize` asks for `requested`.

    A revision we do not know is answered with the newest we do (lifecycle, "Version
    Negotiation"); the client decides whether it can live with that.
    """
    if requested is None:
        return UNNAMED
    return next((one for one in HANDSHAKE if one.date == requested), HANDSHAKE[0])
