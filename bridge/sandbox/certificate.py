"""The certificate of a sandbox or a tap; each makes its own (extras `[expect]` and `[tap]`)."""

import ipaddress
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import NamedTemporaryFile

from bridge.sandbox.server import HOST
from bridge.sandbox.stanza import DOMAIN
from bridge.sandbox.stream import TlsIdentity

VALID = timedelta(days=30)
"""How long a certificate is valid: longer than a sandbox or a tap runs."""


@contextmanager
def self_signed(domain: str = DOMAIN, program: str = "sandbox") -> Iterator[TlsIdentity]:
    """Make a key and a certificate that is its own authority; the file is deleted at the end.

    The certificate names the domain, and the host too: some clients check the host instead. Raises
    `ImportError` without the library of the extras.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    domain = domain.strip("[]").encode("idna").decode()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{domain[:40]} ({program})")])
    now = datetime.now(UTC)
    names: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(HOST))]
    try:
        names.append(x509.IPAddress(ipaddress.ip_address(domain)))
    except ValueError:
        names.append(x509.DNSName(domain))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks of containers may be behind
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    pem = certificate.public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Only their owner can read these files. The one with the key is deleted at once.
    with NamedTemporaryFile(suffix=".pem") as both:
        both.write(private + pem)
        both.flush()
        context.load_cert_chain(both.name)
    with NamedTemporaryFile(prefix=f"xmpp-bridge-{program}-", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        yield TlsIdentity(context, Path(file.name))
