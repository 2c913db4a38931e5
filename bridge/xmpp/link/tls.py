"""TLS under a stream: the SSL context, version and cipher, and channel bindings (RFC 5929)."""

import hashlib
import ssl

from bridge.settings.sources import UnusableError, check_readable
from bridge.settings.table import Settings
from bridge.wire.scram import ChannelBinding
from bridge.xmpp.link import certificate
from bridge.xmpp.link.stream import Stream
from bridge.xmpp.model import faults
from bridge.xmpp.model.events import Tls
from bridge.xmpp.model.faults import ConnectionFailedError, Place


def ssl_object(stream: Stream) -> ssl.SSLObject | None:
    """Return the TLS connection under a stream; None without TLS, and once it has ended."""
    if stream.transport is None:
        return None
    secured: ssl.SSLObject | None = stream.transport.get_extra_info("ssl_object")
    return secured


def protection(secured: ssl.SSLObject, *, verified: bool) -> Tls:
    """Return the TLS version and the cipher, and whether the certificate was `verified`."""
    cipher = secured.cipher()
    return Tls(secured.version() or "", cipher[0] if cipher else "", verified)


def make_context(settings: Settings, place: Place) -> ssl.SSLContext:
    """Make the SSL context; raises `ConnectionFailedError` for an unusable XMPP_TLS_CA_FILE."""
    context = ssl.create_default_context()
    anchors = settings.tls_ca_file
    if anchors is not None:
        try:
            check_readable(anchors)  # OpenSSL would wait for ever if it is a pipe
            context.load_verify_locations(anchors)
            # A server's own certificate is an anchor too, even if another party signed it. Python
            # 3.13 has this by default.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        except (OSError, UnusableError) as error:
            reason = getattr(error, "strerror", None) or error
            if isinstance(error, ssl.SSLError):
                reason = "no certificate in PEM can be read in it"
            fault = faults.of("anchors-unusable", place, reason=reason)
            raise ConnectionFailedError(fault) from error
    if not settings.tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def channel_bindings(secured: ssl.SSLObject, *, verified: bool) -> list[ChannelBinding]:
    """Return the channel bindings of a connection (RFC 5929), best first.

    Python's `ssl` lacks `tls-exporter`, which TLS 1.3 defines (python/cpython#95341). `tls-unique`
    is not defined for TLS 1.3. Over TLS 1.3 it comes last, and only if the certificate was not
    `verified`. ejabberd 23.01 has no other channel binding there, and nothing else reveals a man in
    the middle.
    """
    bindings = []
    tls_1_3 = secured.version() == "TLSv1.3"
    unique = secured.get_channel_binding("tls-unique")
    if unique and not tls_1_3:
        bindings.append(ChannelBinding("tls-unique", unique))
    data = secured.getpeercert(binary_form=True)
    if data and (name := certificate.signature_hash(data)):
        digest = hashlib.new(name, data).digest()
        bindings.append(ChannelBinding("tls-server-end-point", digest))
    if unique and tls_1_3 and not verified:
        bindings.append(ChannelBinding("tls-unique", unique))
    return bindings
