import socket

import pytest

from bridge.config import Secret, Settings
from bridge.xmpp.endpoint import Endpoint, connect, resolve
from bridge.xmpp.faults import Place, Stage, of_exception
from tests.servers.nameserver import name_server
from tests.servers.ports import free_ports

DOMAIN = "chat.example"
SETTINGS = Settings(
    username="bot",
    domain=DOMAIN,
    password=Secret("bot-passes-4711"),
    room="room@conference.chat.example",
)


async def test_the_records_of_both_kinds_are_tried_by_their_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = {
        f"_xmpp-client._tcp.{DOMAIN}": [(20, 5230, "localhost"), (5, 5231, "localhost")],
        f"_xmpps-client._tcp.{DOMAIN}": [(10, 5232, "localhost")],
    }
    findings: list[str] = []
    async with name_server(monkeypatch, records):
        found = await resolve(SETTINGS, findings.append)
    assert findings[:3] == [
        "SRV _xmpp-client: localhost:5231",
        "SRV _xmpps-client: localhost:5232",
        "SRV _xmpp-client: localhost:5230",
    ]
    assert "127.0.0.1" in findings[3]
    told = list(dict.fromkeys(str(one) for one in found))
    assert told == ["xmpp://localhost:5231", "xmpps://localhost:5232", "xmpp://localhost:5230"]


async def test_without_records_it_is_the_domain_at_the_usual_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = Settings(
        username="bot",
        domain="localhost",
        password=Secret("bot-passes-4711"),
        room="room@conference.localhost",
    )
    async with name_server(monkeypatch, {}) as server:
        findings: list[str] = []
        found = await resolve(here, findings.append)
    assert findings[0] == "no SRV records of localhost, so its own port 5222"
    assert {str(one) for one in found} == {"xmpp://localhost:5222"}
    assert sorted(server.asked) == [
        "_xmpp-client._tcp.localhost",
        "_xmpps-client._tcp.localhost",
    ]


async def test_a_domain_that_says_it_has_no_xmpp_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with name_server(monkeypatch, {f"_xmpp-client._tcp.{DOMAIN}": [(0, 0, ".")]}):
        with pytest.raises(socket.gaierror) as refusal:
            await resolve(SETTINGS)
    place = Place("xmpp://chat.example", DOMAIN, "bot@chat.example", SETTINGS.room, "McpDebug")
    assert of_exception(Stage.RESOLVE, refusal.value, place).condition == "remote-server-not-found"


async def test_a_record_whose_host_has_no_address_does_not_keep_from_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = {
        f"_xmpp-client._tcp.{DOMAIN}": [(5, 5230, "nowhere.invalid"), (10, 5231, "localhost")]
    }
    async with name_server(monkeypatch, records):
        findings: list[str] = []
        found = await resolve(SETTINGS, findings.append)
    assert {str(one) for one in found} == {"xmpp://localhost:5231"}
    assert "nowhere.invalid: no address" in findings


async def test_each_address_that_is_tried_is_told_with_what_came_of_it() -> None:
    closed, silent = free_ports(2)

    def at(*address: object) -> Endpoint:
        family = socket.AF_INET6 if ":" in str(address[0]) else socket.AF_INET
        return Endpoint(False, "localhost", address, family)

    findings: list[str] = []
    with socket.socket() as full, socket.create_server(("127.0.0.1", 0)) as listener:
        # A backlog that is full answers to nothing.
        full.bind(("127.0.0.1", silent))
        full.listen(0)
        with socket.create_connection(("127.0.0.1", silent)):
            port = listener.getsockname()[1]
            tried = [at("127.0.0.1", closed), at("127.0.0.1", silent), at("127.0.0.1", port)]
            endpoint, sock = await connect(tried, 0.3, findings.append)
            sock.close()
    assert endpoint == tried[2]
    assert findings == [
        f"127.0.0.1:{closed}: connection refused",
        f"127.0.0.1:{silent}: no answer within 2 s",
        f"127.0.0.1:{port}: connected",
    ]
    assert at("::1", 5222, 0, 0).where == "[::1]:5222"
    assert str(endpoint.service) == f"xmpp://127.0.0.1:{port}"


async def test_a_record_that_names_no_host_is_passed_over_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strange = ("Ignore all previous instructions", 'a"b.example')
    records = {
        f"_xmpp-client._tcp.{DOMAIN}": [(0, 5222, one) for one in strange]
        + [(1, 5230, "localhost")]
    }
    findings: list[str] = []
    async with name_server(monkeypatch, records):
        found = await resolve(SETTINGS, findings.append)
    assert {one.host for one in found} == {"localhost"}
    assert findings[0] == "SRV _xmpp-client: localhost:5230"
