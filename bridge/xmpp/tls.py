"""Secures a stream by TLS: from the first byte (XEP-0368) or by STARTTLS (RFC 6120, section 5).

The SSL context and the channel bindings of the connection (RFC 5929) are made here too.
"""

import asyncio
import hashlib
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from xml.etree.ElementTree import Element

from bridge.settings.sources import UnusableError, check_readable
from bridge.settings.table import Settings
from bridge.wire.scram import ChannelBinding
from bridge.xmpp import certificate, faults, stanzas
from bridge.xmpp.certificate import DerError
from bridge.xmpp.endpoint import Endpoint
from bridge.xmpp.events import Tls
from bridge.xmpp.faults import ConnectionFailedError, Place
from bridge.xmpp.session import Negotiation
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
    on_finding: Callable[[str], None],
    on_expiry: Callable[[datetime], None],
) -> tuple[Tls | None, Element]:
    """Begin the stream on `sock`; return its protection, and the features offered under it.

    `on_expiry` gets the time at which the server's certificate expires, if that can be read.

    Raises `ConnectionFailedError`, and `OSError` for failures of the socket and of OpenSSL.
    """
    loop = asyncio.get_running_loop()
    try:  # in a thread: to read the trust anchors takes 25 ms
        ready = await asyncio.to_thread(make_context, settings, place)
    except BaseException:  # no transport owns the socket yet
        sock.close()
        raise
    domain = settings.domain.strip("[]")
    if endpoint.service.direct_tls:
        await loop.create_connection(lambda: stream, sock=sock, ssl=ready, server_hostname=domain)
    else:
        bare, _ = await loop.create_connection(lambda: stream, sock=sock)
        features = await negotiation.features()
        if features.find(f"{{{stanzas.TLS}}}starttls") is None:
            if settings.allow_plaintext:
                on_finding("no TLS: the server offers none, and XMPP_ALLOW_PLAINTEXT is set")
                return None, features
            raise ConnectionFailedError(faults.of("no-starttls", place))
        answer = await negotiation.exchange(
            Element(f"{{{stanzas.TLS}}}starttls"), expected=(PROCEED, FAILURE)
        )
        if answer.tag == FAILURE:
            raise ConnectionFailedError(faults.of("starttls-refused", place))
        secured = await loop.start_tls(bare, stream, ready, server_hostname=domain)
        # What an attacker injected before the handshake is not part of the secured stream.
        negotiation.forget()
        if secured is not None:  # None: what was injected has ended the connection
            stream.connection_made(secured)
    _acknowledge_at_once(stream)
    tls = _protection(stream, settings, on_finding, on_expiry)
    return tls, await negotiation.features()


def _acknowledge_at_once(stream: Stream) -> None:
    """Turn delayed TCP acknowledgements off until the system turns them on again.

    The server's next data waits until its TLS session tickets are acknowledged: 40 ms.
    """
    quick = getattr(socket, "TCP_QUICKACK", None)  # Linux has it
    if quick is not None and stream.transport is not None:
        with suppress(OSError):  # it is closed already
            stream.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, quick, 1)


def ssl_object(stream: Stream) -> ssl.SSLObject | None:
    """Return the TLS connection under a stream; None without TLS, and once it has ended."""
    if stream.transport is None:
        return None
    secured: ssl.SSLObject | None = stream.transport.get_extra_info("ssl_object")
    return secured


def _protection(
    stream: Stream,
    settings: Settings,
    on_finding: Callable[[str], None],
    on_expiry: Callable[[datetime], None],
) -> Tls:
    secured = ssl_object(stream)
    if secured is None:
        raise ConnectionResetError
    version, cipher = secured.version() or "", secured.cipher()
    tls = Tls(version, cipher[0] if cipher else "", settings.tls_verify)
    checked = "checked" if tls.verified else "not checked"
    stream.note(f"{tls.version}, {tls.cipher}, certificate {checked}")
    on_finding(f"{tls.version}, {tls.cipher}")
    try:
        presented = certificate.decode(secured.getpeercert(binary_form=True) or b"")
    except DerError as error:
        on_finding(f"a certificate that cannot be read: {error}")
    else:
        on_finding(certificate.describe(presented, datetime.now(UTC)))
        on_expiry(presented.not_after)
    return tls


def make_context(settings: Settings, place: Place) -> ssl.SSLContext:
    """Make the SSL context; raises `ConnectionFailedError` for an unusable XMPP_TLS_CA_FILE."""
    context = ssl.create_default_context()
    anchors = settings.tls_ca_file
    if anchors is not None:
        try:
            check_readable(anchors)  # at a pipe, OpenSSL would wait for ever
            context.load_verify_locations(anchors)
        except (OSError, UnusableError) as error:  # OpenSSL's are among the former
            reason = getattr(error, "strerror", None) or error
            fault = faults.of("anchors-unusable", place, path=anchors, reason=reason)
            raise ConnectionFailedError(fault) from error
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def channel_bindings(secured: ssl.SSLObject, *, verified: bool) -> list[ChannelBinding]:
    """Return the channel bindings of a connection (RFC 5929), best first.

    Python's `ssl` lacks `tls-exporter`, the one of TLS 1.3 (python/cpython#95341). `tls-unique` is
    not defined for TLS 1.3, but comes last there where the certificate was not `verified`:
    ejabberd 23.01 has no other, and nothing else reveals a man in the middle.
    """
    found = []
    tls_1_3 = secured.version() == "TLSv1.3"
    unique = secured.get_channel_binding("tls-unique")
    if unique and not tls_1_3:
        found.append(ChannelBinding("tls-unique", unique))
    data = secured.getpeercert(binary_form=True)
    if data and (name := certificate.signature_hash(data)):
        digest = hashlib.new(name, data).digest()
        found.append(ChannelBinding("tls-server-end-point", digest))
    if unique and tls_1_3 and not verified:
        found.append(ChannelBinding("tls-unique", unique))
    return found
