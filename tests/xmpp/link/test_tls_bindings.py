import hashlib
import ssl
from collections.abc import Callable

import trustme

from bridge.xmpp.link.tls import channel_bindings


def _handshake(version: ssl.TLSVersion) -> tuple[ssl.SSLObject, ssl.SSLObject, bytes]:
    ca = trustme.CA()
    issued = ca.issue_cert("chat.example")
    as_server, as_client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    issued.configure_cert(as_server)
    ca.configure_trust(as_client)
    as_client.minimum_version = as_client.maximum_version = version
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = as_client.wrap_bio(down, up, server_hostname="chat.example")
    server = as_server.wrap_bio(up, down, server_side=True)
    steps: list[Callable[[], None]] = [client.do_handshake, server.do_handshake]
    while steps:
        for step in list(steps):
            try:
                step()
            except ssl.SSLWantReadError:
                continue
            steps.remove(step)
    pem = issued.cert_chain_pems[0].bytes().decode()
    return client, server, ssl.PEM_cert_to_DER_cert(pem)


def test_under_tls_1_2_both_ends_see_the_same_unique_binding_and_it_comes_first() -> None:
    client, server, _ = _handshake(ssl.TLSVersion.TLSv1_2)
    first, second = channel_bindings(client, verified=True)
    assert (first.type, second.type) == ("tls-unique", "tls-server-end-point")
    assert first.data == server.get_channel_binding("tls-unique")


def test_under_tls_1_3_the_login_is_tied_to_the_servers_certificate_or_unique_too() -> None:
    client, server, certificate = _handshake(ssl.TLSVersion.TLSv1_3)
    (binding,) = channel_bindings(client, verified=True)
    assert binding.type == "tls-server-end-point"
    assert binding.data == hashlib.sha256(certificate).digest()
    first, second = channel_bindings(client, verified=False)  # of an unchecked certificate
    assert (first, second.type) == (binding, "tls-unique")
    assert second.data == server.get_channel_binding("tls-unique")
