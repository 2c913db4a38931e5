"""The check of a domain that says by SRV where its servers are (RFC 6120, section 3.2.1)."""

import asyncio

import pytest

from bridge.xmpp.link.connection import DEADLINES
from bridge.xmpp.model.faults import Stage
from tests.servers.nameserver import name_server
from tests.servers.ports import silent_address
from tests.servers.server import XmppServer
from tests.xmpp.probing import check, detail, failed

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


async def test_a_host_that_never_answers_is_named_and_the_next_one_is_taken(
    real_server: XmppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = real_server.port("starttls")
    with silent_address() as (host, silent):
        records = {STARTTLS: [(1, silent, host), (2, port, "localhost")]}
        async with name_server(monkeypatch, records):
            report = await check(real_server.environment(XMPP_SERVICE=None))
    assert report.ok, report
    *silences, connected = detail(report, "connect").split("; ")
    assert [silence.partition(" within ")[0] for silence in silences] == [
        f"{host}:{silent}: no answer"
    ]
    assert connected.endswith(f":{port}: connected")


async def test_hosts_of_which_none_answers_are_all_named_in_time(
    real_server: XmppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with silent_address() as (host, first), silent_address() as (_, second):
        records = {STARTTLS: [(1, first, host), (2, second, host)]}
        async with name_server(monkeypatch, records):
            async with asyncio.timeout(DEADLINES[Stage.CONNECT] + 5):
                report = await check(real_server.environment(XMPP_SERVICE=None))
    *silences, _ = failed(report, "connect").detail.split("; ")
    assert [silence.partition(" within ")[0] for silence in silences] == [
        f"{host}:{port}: no answer" for port in (first, second)
    ]
