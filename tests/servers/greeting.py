"""Whether an XMPP server answers at a port, and whose certificate it presents."""

import socket
import ssl

from tests.servers.server import Transport

_STARTTLS = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"


def presented_certificate(
    host: str, port: int, domain: str, transport: Transport, *, seconds: float
) -> bytes:
    """Open a stream as far as its features and return the server's certificate (DER).

    Raises OSError while nobody serves XMPP there.
    """
    # Any certificate will do: tests also run servers with bad ones, and the caller compares.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    header = (
        f"<stream:stream to='{domain}' version='1.0' xmlns='jabber:client'"
        " xmlns:stream='http://etherx.jabber.org/streams'>"
    )
    with socket.create_connection((host, port), timeout=seconds) as plain:
        if transport == "starttls":
            _exchange(plain, header, until=b"</stream:features>")
            _exchange(plain, _STARTTLS, until=b"<proceed")
        with context.wrap_socket(plain, server_hostname=domain) as secured:
            _exchange(secured, header, until=b"</stream:features>")
            certificate = secured.getpeercert(binary_form=True)
    if certificate is None:
        raise ConnectionError(f"{host}:{port} presented no certificate")
    return certificate


def _exchange(connection: socket.socket, text: str, *, until: bytes) -> None:
    connection.sendall(text.encode())
    received = b""
    while until not in received:
        chunk = connection.recv(4096)
        if not chunk:
            raise ConnectionError(f"the stream ended before {until.decode()}: {received!r}")
        received += chunk
