"""Securing a stream: TLS from the first byte (XEP-0368) or by STARTTLS (RFC 6120, section 5)."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from bridge.settings.table import Settings
from bridge.xmpp import certificate, faults, stanzas
from bridge.xmpp.der import DerError
from bridge.xmpp.endpoint import Endpoint
from bridge.xmpp.events import Tls
from bridge.xmpp.faults import ConnectionFailedError, Place
from bridge.xmpp.negotiation import Negotiation
from bridge.xmpp.stream import Stream

PROCEED, FAILURE = (f"{{{stanzas.TLS}}}{name}" for name in ("proceed", "failure"))
"""What a server may answer when TLS is to begin."""


async def secure(
    settings: Settings,
    place: Place,
    endpoint: Endpoint,
    sock: socket.socket,
    stream: Stream,
    negotiation: Negotiation,
    context: Awaitable[ssl.SSLContext],
    on_finding: Callable[[str], None],
) -> tuple[Tls | None, Element]:
    """Begin the stream on `sock`; return what protects it, and the features offered under it.

    `context` is what `trust` gives, in the making.

    Raises `ConnectionFailedError`, or `OSError` for what sockets and OpenSSL say.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as until_a_transport_owns_it:
        until_a_transport_owns_it.callback(sock.close)
        ready = await context
        until_a_transport_owns_it.pop_all()
    domain = settings.domain.strip("[]")
    if endpoint.direct_tls:
        await loop.create_connection(lambda: stream, sock=sock, ssl=ready, server_hostname=domain)
    else:
        bare, _ = await loop.create_connection(lambda: stream, sock=sock)
        features = await negotiation.features()
        if features.find(f"{{{stanzas.TLS}}}starttls") is None:
            if settings.allow_plaintext:
                on_finding("no TLS: the server offers none, and XMPP_ALLOW_PLAINTEXT is set")
                return None, features
            raise ConnectionFailedError(faults.no_starttls(place))
        answer = await negotiation.exchange(
            Element(f"{{{stanzas.TLS}}}starttls"), expected=(PROCEED, FAILURE)
        )
        if answer.tag == FAILURE:
            raise ConnectionFailedError(faults.starttls_failed(place))
        secured = await loop.start_tls(bare, stream, ready, server_hostname=domain)
        # Whatever was slipped in before the handshake is not part of the secured stream.
        negotiation.forget()
        if secured is not None:  # else what was slipped in has ended the connection
            stream.connection_made(secured)
    _acknowledge_at_once(stream)
    tls = _protection(stream, settings, on_finding)
    return tls, await negotiation.features()


def _acknowledge_at_once(stream: Stream) -> None:
    """Do not let the server wait: what it says next may stand behind tickets not acknowledged yet.

    That took 40 ms of each way into a room. The system goes back to its own ways by itself.
    """
    quick = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
    if quick is not None and stream.transport is not None:
        with suppress(OSError):  # it is closed already
            stream.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, quick, 1)


def ssl_of(stream: Stream) -> ssl.SSLObject | None:
    """Return the TLS connection under a stream; None where there is none, or no more."""
    if stream.transport is None:
        return None
    secured: ssl.SSLObject | None = stream.transport.get_extra_info("ssl_object")
    return secured


def _protection(stream: Stream, settings: Settings, on_finding: Callable[[str], None]) -> Tls:
    secured = ssl_of(stream)
    if secured is None:
        raise ConnectionResetError
    version, cipher = secured.version() or "", secured.cipher()
    tls = Tls(version, cipher[0] if cipher else "", settings.tls_verify)
    checked = "checked" if tls.verified else "not checked"
    stream.note(f"{tls.version}, {tls.cipher}, certificate {checked}")
    on_finding(f"{tls.version}, {tls.cipher}")
    on_finding(_presented(secured))
    return tls


def _presented(secured: ssl.SSLObject) -> str:
    data = secured.getpeercert(binary_form=True)
    try:
        return certificate.describe(certificate.decode(data or b""), datetime.now(UTC))
    except DerError as error:
        return f"a certificate that cannot be read: {error}"
