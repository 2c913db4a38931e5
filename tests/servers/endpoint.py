"""One way into one server."""

from dataclasses import dataclass

from tests.servers.server import Transport, XmppServer


@dataclass(frozen=True)
class Endpoint:
    """A server together with one of the transports it offers."""

    server: XmppServer
    transport: Transport

    def environment(self, **overrides: str | None) -> dict[str, str]:
        """The bridge's settings that reach the server this way; see `XmppServer.environment`."""
        return self.server.environment(self.transport, **overrides)
