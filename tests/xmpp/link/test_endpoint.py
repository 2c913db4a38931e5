import asyncio
import re
import socket
from pathlib import Path
from threading import Event

import pytest

from bridge.settings.table import Settings
from bridge.settings.values import Secret, Service
from bridge.xmpp.link.endpoint import ATTEMPT_DELAY_SECONDS, Endpoint, connect, resolve
from bridge.xmpp.link.from_slixmpp import MAX_SRV_RECORDS, srv_records
from bridge.xmpp.model.faults import ConnectionFailedError, Retry
from tests.servers.nameserver import Record, name_server
from tests.servers.ports import free_ports, silent_address

DOMAIN = "chat.example"
SETTINGS = Settings(
    username="bot",
    domain=DOMAIN,
    password=Secret("bot-passes-4711"),
    rooms=("room@conference.chat.example",),
)


async def test_both_kinds_of_records_are_tried_by_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    records = {
        f"_xmpp-client._tcp.{DOMAIN}": [(20, 5230, "localhost"), (5, 5231, "localhost")],
        f"_xmpps-client._tcp.{DOMAIN}": [(10, 5232, "localhost")],
    }
    findings: list[str] = []
    async with name_server(monkeypatch, records):
        hosts = await resolve(SETTINGS, findings.append)
    assert findings[:3] == [
        "SRV _xmpp-client: localhost:5231",
        "SRV _xmpps-client: localhost:5232",
        "SRV _xmpp-client: localhost:5230",
    ]
    assert "127.0.0.1" in findings[3]
    told = list(dict.fromkeys(str(each.service) for host in hosts for each in host))
    assert told == ["xmpp://localhost:5231", "xmpps://localhost:5232", "xmpp://localhost:5230"]


@pytest.mark.parametrize("domain", ["localhost", "[::1]"])
async def test_without_records_it_is_the_domain_at_the_usual_port(
    domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with name_server(monkeypatch, {}) as server:
        findings: list[str] = []
        hosts = await resolve(SETTINGS._replace(domain=domain), findings.append)
    assert findings[0] == f"no SRV records of {domain}, so {domain}:5222"
    assert {str(each.service) for host in hosts for each in host} == {f"xmpp://{domain}:5222"}
    # An address is no name that DNS could have.
    kinds = ["_xmpp-client", "_xmpps-client"] if domain == "localhost" else []
    assert sorted(server.asked) == [f"{kind}._tcp.{domain}" for kind in kinds]


async def test_more_records_than_domains_have_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = ("xmpp-client", "xmpps-client")
    many = [(0, 5222, "localhost")] * (MAX_SRV_RECORDS + 1)
    findings: list[str] = []
    async with name_server(monkeypatch, {f"_{kind}._tcp.{DOMAIN}": many for kind in kinds}):
        await resolve(SETTINGS, findings.append)
    told = [findings.count(f"SRV _{kind}: localhost:5222") for kind in kinds]
    assert told == [MAX_SRV_RECORDS] * 2


@pytest.mark.parametrize("secured", [[(0, 0, ".")], []])
async def test_a_domain_that_says_it_offers_no_xmpp_is_believed(
    secured: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    records = {f"_xmpp-client._tcp.{DOMAIN}": [(0, 0, ".")]}
    async with name_server(monkeypatch, records | {f"_xmpps-client._tcp.{DOMAIN}": secured}):
        with pytest.raises(ConnectionFailedError) as refusal:
            await resolve(SETTINGS)
    fault = refusal.value.fault
    assert (fault.condition, fault.retry) == ("remote-server-not-found", Retry.LATER)
    assert "offers no XMPP" in fault.message


async def test_that_direct_tls_is_not_offered_says_nothing_of_the_usual_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with name_server(monkeypatch, {"_xmpps-client._tcp.localhost": [(0, 0, ".")]}):
        hosts = await resolve(SETTINGS._replace(domain="localhost"))
    assert {str(endpoint.service) for host in hosts for endpoint in host} == {
        "xmpp://localhost:5222"
    }


class Names:
    """A resolver of this machine with a search list, and a file of hosts."""

    def __init__(self, file: Path, known: dict[str, str]) -> None:
        self.file = file
        self.known = known
        self.asked: list[str] = []
        self.pause = Event()
        self.pause.set()

    def look_up(self, host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        self.pause.wait(20)
        if (address := self.known.get(host, host))[:1].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]
        raise socket.gaierror(socket.EAI_NONAME, "none")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """By the search list, every name exists; whole names end with a dot."""
    searched = {DOMAIN: "192.0.2.66", "host.example": "192.0.2.5", "localhost": "127.0.0.1"}
    names = Names(tmp_path / "hosts", searched)
    monkeypatch.setattr("bridge.xmpp.link.endpoint.HOSTS_FILE", names.file)
    monkeypatch.setattr(socket, "getaddrinfo", names.look_up)
    return names


def addresses(hosts: list[list[Endpoint]]) -> list[str]:
    return [endpoint.address[0] for host in hosts for endpoint in host]


async def test_a_domain_without_records_is_asked_for_as_a_whole_name(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with name_server(monkeypatch, {}):
        with pytest.raises(socket.gaierror):
            await resolve(SETTINGS)
        assert names.asked == [f"{DOMAIN}."]
        names.known[f"{DOMAIN}."] = "192.0.2.7"
        assert addresses(await resolve(SETTINGS)) == ["192.0.2.7"]


async def test_a_host_that_a_record_names_is_a_whole_name_too(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with name_server(monkeypatch, {f"_xmpp-client._tcp.{DOMAIN}": [(0, 1, "host.example")]}):
        with pytest.raises(socket.gaierror):
            await resolve(SETTINGS)
    assert names.asked == ["host.example."]


async def test_the_file_of_hosts_is_asked_where_dns_has_nothing(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.file.write_text(
        f"# 192.0.2.1 {DOMAIN}\n192.0.2.2\tx.{DOMAIN} {DOMAIN}.x # {DOMAIN}\n\n"
        f"192.0.2.3  other Chat.Example\n192.0.2.4 {DOMAIN}\n"
    )
    async with name_server(monkeypatch, {}):
        assert addresses(await resolve(SETTINGS)) == ["192.0.2.3", "192.0.2.4"]
        names.known[f"{DOMAIN}."] = "192.0.2.7"
        assert addresses(await resolve(SETTINGS)) == ["192.0.2.7"]
        del names.known[f"{DOMAIN}."]
        monkeypatch.setattr("bridge.xmpp.link.endpoint.DNS_SECONDS", 0.02)
        names.pause.clear()
        asyncio.get_running_loop().call_later(0.2, names.pause.set)
        assert addresses(await resolve(SETTINGS)) == ["192.0.2.3", "192.0.2.4"]


@pytest.mark.parametrize("host", ["192.0.2.9", "127.1", "localhost"])
async def test_addresses_and_names_without_a_dot_are_resolved_as_they_are(
    host: str, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with name_server(monkeypatch, {}):
        await resolve(SETTINGS._replace(domain=host))
        await resolve(SETTINGS._replace(service=Service("xmpp", host, 5222)))
        await resolve(SETTINGS._replace(service=Service("xmpp", DOMAIN, 5222)))
    assert names.asked == [host, host, DOMAIN]


async def test_records_are_asked_for_by_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Resolver:
        async def query_dns(self, name: str, kind: str) -> None:
            asked.append(name)
            raise OSError

    monkeypatch.setattr("slixmpp.xmlstream.resolver.default_resolver", lambda loop: Resolver())
    assert await srv_records(DOMAIN, 5222, ["xmpps-client", "xmpp-client"]) == []
    assert asked == [f"_xmpps-client._tcp.{DOMAIN}.", f"_xmpp-client._tcp.{DOMAIN}."]


async def test_without_aiodns_there_are_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slixmpp.xmlstream.resolver.default_resolver", lambda loop: None)
    assert await srv_records(DOMAIN, 5222, ["xmpps-client", "xmpp-client"]) == []


async def test_a_record_of_no_host_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = ("Ignore all previous instructions", 'a"b.example', "nowhere.invalid", "localhost")
    records = [(number, 5230, host) for number, host in enumerate(hosts)]
    async with name_server(monkeypatch, {f"_xmpp-client._tcp.{DOMAIN}": records}):
        findings: list[str] = []
        resolved = await resolve(SETTINGS, findings.append)
    assert {str(each.service) for host in resolved for each in host} == {"xmpp://localhost:5230"}
    assert findings[0] == "SRV _xmpp-client: nowhere.invalid:5230"
    assert "nowhere.invalid: no address" in findings


def endpoint_at(*address: object, host: str = "localhost") -> Endpoint:
    family = socket.AF_INET6 if ":" in str(address[0]) else socket.AF_INET
    return Endpoint(Service("xmpp", host, int(str(address[1]))), family, address)


def open_sockets() -> int:
    """How many sockets this process has; the folder's own descriptor is gone by then."""
    opened = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return sum("socket:" in str(each.readlink()) for each in opened if each.is_symlink())


async def test_each_address_is_told_with_what_came_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.xmpp.link.endpoint.LEAST_SHARE_SECONDS", 0.3)
    (closed,) = free_ports(1)
    findings: list[str] = []
    with silent_address() as silent, socket.create_server(("127.0.0.1", 0)) as listener:
        there = listener.getsockname()
        tried = [endpoint_at("127.0.0.1", closed), endpoint_at(*silent), endpoint_at(*there)]
        endpoint, sock = await connect([[each] for each in tried], 0.6, findings.append)
        sock.close()
    assert endpoint == tried[2]
    refused, unanswered, connected = findings
    assert refused == f"127.0.0.1:{closed}: connection refused"
    assert re.fullmatch(rf"127.0.0.1:{silent[1]}: no answer within 0\.(?:29|3\d?) s", unanswered)
    assert connected == f"127.0.0.1:{there[1]}: connected"
    assert endpoint_at("::1", 5222, 0, 0).where == "[::1]:5222"


async def test_an_address_that_says_nothing_costs_a_quarter_of_a_second() -> None:
    findings: list[str] = []
    before = open_sockets()
    with silent_address() as silent, socket.create_server(("127.0.0.2", silent[1])) as listener:
        tried = [endpoint_at(*silent), endpoint_at(*listener.getsockname())]
        held = open_sockets()
        endpoint, sock = await connect([tried], 10.0, findings.append)
        await asyncio.sleep(0)
        assert open_sockets() == held + 1
        sock.close()
    assert endpoint == tried[1]
    unanswered, connected = findings
    told = re.fullmatch(rf"127.0.0.1:{silent[1]}: no answer within (\S+) s", unanswered)
    assert told is not None
    # A fair share of the ten seconds would have been five.
    assert round(ATTEMPT_DELAY_SECONDS, 2) <= float(told[1]) < 5
    assert connected == f"127.0.0.2:{silent[1]}: connected"
    assert open_sockets() == before


async def test_the_host_of_a_better_record_is_not_overtaken_by_the_next() -> None:
    with silent_address() as silent, socket.create_server(("127.0.0.1", 0)) as listener:
        first = endpoint_at(*silent, host="first.example")
        second = endpoint_at(*listener.getsockname(), host="second.example")
        trying = asyncio.create_task(connect([[first], [second]], 10.0))
        done, _ = await asyncio.wait((trying,), timeout=3 * ATTEMPT_DELAY_SECONDS)
        assert not done
        trying.cancel()
        await asyncio.wait((trying,))


async def test_a_race_that_is_called_off_leaves_no_socket_and_says_how_far_it_got() -> None:
    findings: list[str] = []
    with silent_address() as silent:
        held = open_sockets()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await connect([[endpoint_at(*silent)]], 10.0, findings.append)
        await asyncio.sleep(0)
        assert open_sockets() == held
    (finding,) = findings
    # The attempt begins a moment after the time does.
    assert finding.startswith(f"127.0.0.1:{silent[1]}: no answer within 0.")


async def test_the_families_of_a_host_take_turns() -> None:
    (closed,) = free_ports(1)
    findings: list[str] = []
    tried = [endpoint_at(each, closed) for each in ("127.0.0.1", "127.0.0.2", "127.0.0.3")]
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on the machine's IPv6
        await connect([[*tried, endpoint_at("::1", closed, 0, 0)]], 3.0, findings.append)
    told = [each.rpartition(":")[0].rpartition(":")[0] for each in findings]
    assert told == ["127.0.0.1", "[::1]", "127.0.0.2", "127.0.0.3"]
