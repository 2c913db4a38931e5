"""Whose stream it is, and how much of the stream has passed. Pure."""

from dataclasses import dataclass

from bridge.wire.names import domain_of, lower_bare


@dataclass(eq=False, slots=True)
class Entity:
    """What the rules of every concept have to know of the client and its stream."""

    account: str = ""
    """The full JID, or as much of it as is known."""
    host: str = ""
    """The domain that the client's header names."""
    bound: bool = False
    """Whether the client has a resource: a new one, or the resource of the session that it
    resumed."""
    is_anonymous: bool = False
    """Whether it logged in by ANONYMOUS, so that its account lasts as long as its stream."""
    is_component: bool = False
    """Whether it is a component (XEP-0114), which speaks for many addresses of its domain."""
    is_complete: bool = False
    """Whether the log has the stream from its beginning, without a hole."""
    has_sent: bool = False
    """Whether the log has shown anything that the client sent. If not, nothing is missing there."""
    has_received: bool = False
    """Whether the log has shown anything that the client received."""
    ended: bool = False
    """Whether the server or the client has ended the stream."""
    count: int = 0
    """How many stanzas, in both directions, have passed; the one at hand counts."""

    @property
    def domain(self) -> str:
        """The domain of the account, or else of the client's header; empty if not known.

        A component, or another server, has a domain for an account.
        """
        is_user = "@" in self.account
        return domain_of(self.account if is_user else self.host or self.account).lower()

    def other_side(self, jid: str | None) -> str:
        """Return an address in lower case; empty if it is the client's own account or server."""
        jid = (jid or "").lower()
        account = lower_bare(self.account)
        return "" if jid in {account, self.account.lower(), self.domain} else jid
