"""Stream management (XEP-0198): a session that outlives its connection for a minute. Pure.

Only what helps to stay in the room: stanzas from the server are counted and acknowledged, and a
session whose connection was cut is taken up again where it stopped. What we say ourselves is
confirmed by the room's reflection, and never sent twice.
"""

from dataclasses import dataclass

MAX_RESUMPTION_SECONDS = 60
"""Asked of the server: longer, and a bridge that was killed would haunt the room."""

RESUMABLE = frozenset({"connection-reset", "connection-timeout"})
"""The conditions after which a session is worth taking up; after others it may be the cause."""

_WRAP = 2**32
"""XEP-0198, section 4: the count starts over."""


@dataclass(frozen=True)
class ConnectionFeatures:
    """What the server and we use on one stream, beyond the plain protocol."""

    stream_management: bool
    """Stanzas are counted and acknowledged (XEP-0198)."""
    resumable: bool
    """A session whose connection was cut can be taken up again."""
    channel_binding: str | None
    """The type that ties the login to the TLS connection (RFC 5929); None if nothing does."""


@dataclass(frozen=True)
class Former:
    """A session whose connection was lost."""

    id: str
    handled: int
    jid: str


@dataclass
class Management:
    """What the server and we agreed on for one stream."""

    id: str | None
    """For taking it up again; None if the server would not."""
    handled: int = 0
    """Stanzas that came and were dealt with."""

    def count(self) -> None:
        """Note one more stanza."""
        self.handled = (self.handled + 1) % _WRAP
