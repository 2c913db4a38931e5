"""Connections that join no room: they try out settings, or find out more about a failure."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest

from bridge.settings.table import Settings
from bridge.xmpp.link.certificate import Certificate
from bridge.xmpp.link.connection import Connection
from bridge.xmpp.model.faults import ConnectionFailedError, Fault
from bridge.xmpp.muc.roomservice import ask, room_services, rooms_of
from bridge.xmpp.queries.disco import Item, room_configuration


@dataclass(eq=False)
class Attempt:
    """What a connection showed on its way to the list of rooms."""

    fault: Fault | None = None
    """Why the attempt failed; None if it did not."""
    findings: list[str] = field(default_factory=list)
    """What the last stage of the connection tried and found."""
    certificate: Certificate | None = None
    """The server's certificate; None if no stream was secured, or if it cannot be read."""
    services: Sequence[str] = ()
    """The room services of the account's server."""
    rooms: Sequence[Item] = ()
    """The rooms that these services list: the first of each, then the second of each, and so on."""
    needs_password: bool = False
    """Whether the room says that it needs a password."""


@contextmanager
def _attempted(settings: Settings, *, binds: bool = True) -> Iterator[tuple[Connection, Attempt]]:
    """Yield a connection, and the attempt that the block makes on it; end both after the block."""
    attempt = Attempt()
    connection = Connection(
        settings,
        resource=f"xmpp-debug-bridge.attempt.{secrets.token_hex(4)}",
        on_stage=lambda stage: attempt.findings.clear(),
        on_stanza=lambda stanza: None,
        on_finding=attempt.findings.append,
        binds=binds,
    )
    try:
        yield connection, attempt
    except ConnectionFailedError as failed:
        attempt.fault = failed.fault
    finally:
        connection.leave()
        connection.close()


async def try_out(settings: Settings, *, log_in: bool = True, room: str = "") -> Attempt:
    """Log in, and list the rooms of the server's room services; with `room`, ask only that room.

    Without `log_in` the stream is secured and ended, and no account is named.
    """
    with _attempted(settings) as (connection, attempt):
        await (connection.open() if log_in else connection.reach())
        attempt.certificate = connection.certificate
        if log_in:
            connection.start_dispatch()
        if room:
            description, _ = await ask(connection, room)
            attempt.needs_password = room_configuration(description)["password_protected"] is True
        elif log_in:
            attempt.services = await room_services(connection, settings.domain)
            listing = (rooms_of(connection, service) for service in attempt.services)
            rows = zip_longest(*await asyncio.gather(*listing))
            attempt.rooms = [room for row in rows for room in row if room is not None]
    return attempt


async def look_at_certificate(settings: Settings) -> Attempt:
    """Read the server's certificate from a stream that is secured without verifying it.

    After a failed verification OpenSSL shows no certificate. The stream is ended before any account
    is named.
    """
    return await try_out(settings._replace(tls_verify=False, tls_ca_file=None), log_in=False)


async def log_in_unbound(settings: Settings) -> Fault | None:
    """Log in as a client that knows no channel binding; return why that failed, if it did."""
    with _attempted(settings, binds=False) as (connection, attempt):
        await connection.log_in()
    return attempt.fault
