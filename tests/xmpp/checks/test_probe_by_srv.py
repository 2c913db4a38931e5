"""The check of a domain that says by SRV where its servers are (RFC 6120, section 3.2.1)."""

import pytest

from tests.servers.nameserver import name_server
from tests.servers.server import XmppServer
from tests.xmpp.probing import check, detail

STARTTLS = "_xmpp-client._tcp.localhost"
DIRECT = "_xmpps-client._tcp.localhost"


async def test_records_lead_there(real_server: XmppServer, monkeypatch: pytest.MonkeyPatch) -> None:
    port = real_server.port("starttls")
    async with name_server(monkeypatch, {STARTTLS: [(0, port, "localhost")]}) as asked:
        report = await check(real_server.environment(XMPP_SERVICE=None), send=True)
    assert report.ok, report
    assert sorted(asked.asked) == [STARTTLS, DIRECT]
    assert detail(report, "resolve").startswith(f"SRV _xmpp-client: localhost:{port}")
    assert detail(report, "connect").endswith(f":{port}: connected")
    assert detail(report, "tls").startswith("TLSv1.3")


async def test_a_record_for_direct_tls_begins_with_it(
    real_server: XmppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, later = real_server.port("direct"), real_server.port("starttls")
    records = {DIRECT: [(1, port, "localhost")], STARTTLS: [(2, later, "localhost")]}
    async with name_server(monkeypatch, records):
        report = await check(real_server.environment(XMPP_SERVICE=None))
    assert report.ok, report
    told = [f"SRV _xmpps-client: localhost:{port}", f"SRV _xmpp-client: localhost:{later}"]
    assert detail(report, "resolve").startswith("; ".join(told))
    assert detail(report, "connect").endswith(f":{port}: connected")
