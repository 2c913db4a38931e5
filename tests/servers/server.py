"""What a test needs to know of a running XMPP server."""

from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from typing import Literal, NamedTuple

Transport = Literal["starttls", "direct", "plaintext"]
"""How the stream is secured: by STARTTLS, by TLS from the first byte, or not at all."""


@dataclass(frozen=True)
class Account:
    username: str
    password: str
    domain: str

    @property
    def jid(self) -> str:
        return f"{self.username}@{self.domain}"


@dataclass(frozen=True)
class XmppServer:
    """Where a server listens, whom it knows, and the authority that vouches for it."""

    name: str
    domain: str
    host: str
    starttls_port: int | None
    direct_tls_port: int | None
    plaintext_port: int | None
    ca_file: Path | None
    """PEM of the test CA that signed the server's certificate; None where there is no TLS."""
    muc: str
    """Domain of the room service."""
    bot: Account
    witness: Account
    robot: Account
    """The account of somebody else's bot."""
    version: tuple[int, ...] = ()
    """Such as (0, 12, 3); empty for the sandbox, which is as new as we are."""

    @property
    def transports(self) -> tuple[Transport, ...]:
        """The transports this server offers, the usual one first."""
        ports: dict[Transport, int | None] = {
            "starttls": self.starttls_port,
            "direct": self.direct_tls_port,
            "plaintext": self.plaintext_port,
        }
        return tuple(transport for transport, port in ports.items() if port is not None)

    def port(self, transport: Transport) -> int:
        match transport:
            case "starttls":
                port = self.starttls_port
            case "direct":
                port = self.direct_tls_port
            case "plaintext":
                port = self.plaintext_port
        if port is None:
            raise ValueError(f"{self.name} does not offer {transport}")
        return port

    def room(self) -> str:
        """A room that nobody has been in yet: a new bare JID at each call.

        The names are so long, and of so many letters, that no two are alike by chance: no test
        finds the room of another one among those with a name like its own.
        """
        return f"room-{b32encode(token_bytes(20)).decode().lower()}@{self.muc}"

    def environment(
        self, transport: Transport | None = None, **overrides: str | None
    ) -> dict[str, str]:
        """The bridge's settings that reach this server as `bot`, in a fresh room.

        An override replaces a setting or adds one; None leaves it out.
        """
        chosen = transport or self.transports[0]
        scheme = "xmpps" if chosen == "direct" else "xmpp"
        settings: dict[str, str | None] = {
            "XMPP_SERVICE": f"{scheme}://{self.host}:{self.port(chosen)}",
            "XMPP_DOMAIN": self.domain,
            "XMPP_USERNAME": self.bot.username,
            "XMPP_PASSWORD": self.bot.password,
            "MUC_ROOM": self.room(),
            "XMPP_TLS_CA_FILE": str(self.ca_file) if self.ca_file else None,
            "XMPP_ALLOW_PLAINTEXT": "1" if chosen == "plaintext" else None,
        }
        return {name: value for name, value in (settings | overrides).items() if value is not None}


class Endpoint(NamedTuple):
    """A server together with one of the transports it offers."""

    server: XmppServer
    transport: Transport

    def environment(self, **overrides: str | None) -> dict[str, str]:
        """The bridge's settings that reach the server this way; see `XmppServer.environment`."""
        return self.server.environment(self.transport, **overrides)


def write_settings(file: Path, environment: Mapping[str, str]) -> None:
    """Write a `.env` file that says the same as `environment`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{name}='{value}'\n" for name, value in environment.items()), "utf-8")
