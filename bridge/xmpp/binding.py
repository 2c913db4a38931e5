"""The channel bindings of a TLS connection (RFC 5929): what ties a login to it."""

import hashlib
import ssl

from bridge.xmpp import der
from bridge.xmpp.scram import ChannelBinding

HASH_OF_SIGNATURE = {
    "1.2.840.113549.1.1.4": "sha256",  # MD5 and SHA-1 count as SHA-256 (RFC 5929, section 4.1)
    "1.2.840.113549.1.1.5": "sha256",
    "1.2.840.113549.1.1.11": "sha256",
    "1.2.840.113549.1.1.12": "sha384",
    "1.2.840.113549.1.1.13": "sha512",
    "1.2.840.10045.4.1": "sha256",
    "1.2.840.10045.4.3.2": "sha256",
    "1.2.840.10045.4.3.3": "sha384",
    "1.2.840.10045.4.3.4": "sha512",
}
"""By the OID of a certificate's signature algorithm. Others, such as Ed25519, define none."""


def bindings_of(secured: ssl.SSLObject, *, verified: bool) -> list[ChannelBinding]:
    """Return the bindings this connection has, best first.

    `tls-exporter`, the one for TLS 1.3, is beyond Python's `ssl` (python/cpython#95341).
    `tls-unique` is not defined for that version. Where the certificate was not `verified` it is
    taken all the same: ejabberd 23.01 has no other, and nothing else tells who is in between.
    """
    found = []
    outdated = secured.version() == "TLSv1.3"
    unique = secured.get_channel_binding("tls-unique")
    if unique and not outdated:
        found.append(ChannelBinding("tls-unique", unique))
    certificate = secured.getpeercert(binary_form=True)
    if certificate and (name := hash_of(certificate)):
        digest = hashlib.new(name, certificate).digest()
        found.append(ChannelBinding("tls-server-end-point", digest))
    if unique and outdated and not verified:
        found.append(ChannelBinding("tls-unique", unique))
    return found


def hash_of(certificate: bytes) -> str | None:
    """Return the hash function that `tls-server-end-point` takes for a DER certificate."""
    try:
        _, algorithm, *_ = der.all_in(der.first(certificate, der.SEQUENCE))
        identifier = der.first(algorithm.contents, der.OID)
        return HASH_OF_SIGNATURE.get(der.dotted(identifier))
    except ValueError:  # too few elements, or no DER at all
        return None
