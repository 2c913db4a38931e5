"""What each revision of MCP has and how it spells it: the only place where their dates stand.

*Pure.* Source: the changelogs of https://modelcontextprotocol.io/specification.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Revision:
    """One dated revision of the specification, as far as a server of tools can tell."""

    date: str
    """Its name on the wire."""
    handshake: bool = True
    """It opens with `initialize`; later revisions carry an envelope in each request."""
    batches: bool = False
    """Several messages may arrive in one array."""
    annotations: bool = True
    """Tools say whether they only read, destroy, repeat safely, reach outside."""
    titles: bool = True
    """Tools have a `title` for people beside the `name` for programs."""
    structured: bool = True
    """Tools have an `outputSchema`, results a `structuredContent`."""


V2024_11_05 = Revision("2024-11-05", annotations=False, titles=False, structured=False)
V2025_03_26 = Revision("2025-03-26", batches=True, titles=False, structured=False)
V2025_06_18 = Revision("2025-06-18")
V2025_11_25 = Revision("2025-11-25")

HANDSHAKE = (V2025_11_25, V2025_06_18, V2025_03_26, V2024_11_05)
"""The revisions that `initialize` can agree on, newest first."""

UNNEGOTIATED = V2025_11_25
"""What an MCP request before any handshake is answered as."""

UNNAMED = V2024_11_05
"""What an `initialize` without a `protocolVersion` is answered as; only old clients do that."""


def negotiate(requested: object) -> Revision:
    """Return the revision to speak when `initialize` asks for `requested`.

    A revision we do not know is answered with the newest we do (lifecycle, "Version
    Negotiation"); the client decides whether it can live with that.
    """
    if requested is None:
        return UNNAMED
    return next((one for one in HANDSHAKE if one.date == requested), HANDSHAKE[0])
