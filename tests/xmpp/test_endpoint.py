"""Names to addresses, by a name server of the tests' own on the loopback interface."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import aiodns
import pytest

from bridge.config import Secret, Settings
from bridge.xmpp import endpoint
from bridge.xmpp.endpoint import Endpoint, connect, resolve
from bridge.xmpp.faults import Place, Stage, of_exception
from tests.servers.ports import free_ports

DOMAIN = "chat.example"
SRV = 33
NAME_ERROR = 3
Record = tuple[int, int, str]
"""Priority, port and target of one SRV record (RFC 2782)."""

SETTINGS = Settings(
    username="bot",
    domain=DOMAIN,
    password=Secret("bot-passes-4711"),
    room="room@conference.chat.example",
)


class NameServer(asyncio.DatagramProtocol):
    """Answers SRV questions from a table; knows no other name."""

    def __init__(self, records: Mapping[str, list[Record]]) -> None:
        self._records = records
        self.asked: list[str] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(0, 12) + 5
        question = data[12:end]
        name = _spelt(question)
        self.asked.append(name)
        found = self._records.get(name, [])
        flags = 0x8180 | (0 if found else NAME_ERROR)
        answers = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", SRV, 1, 60, len(data)) + data
            for data in (_srv(record) for record in found)
        )
        head = data[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0)
        self._transport.sendto(head + question + answers, addr)


def _spelt(question: bytes) -> str:
    labels, at = [], 0
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    return ".".join(labels).lower()


def _srv(record: Record) -> bytes:
    priority, port, target = record
    labels = [label.encode() for label in target.split(".") if label]
    name = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return struct.pack("!HHH", priority, 0, port) + name


@asynccontextmanager
async def names(
    monkeypatch: pytest.MonkeyPatch, records: Mapping[str, list[Record]]
) -> AsyncIterator[NameServer]:
    """Let the bridge ask a name server with these records."""
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(
        lambda: NameServer(records), local_addr=("127.0.0.1", 0)
    )
    port = transport.get_extra_info("sockname")[1]

    def resolver(loop: asyncio.AbstractEventLoop) -> aiodns.DNSResolver:
        return aiodns.DNSResolver(
            nameservers=["127.0.0.1"], loop=loop, udp_port=port, tries=1, timeout=1.0
        )

    monkeypatch.setattr(endpoint, "default_resolver", resolver)
    try:
        yield server
    finally:
        transport.close()


async def test_the_records_of_both_kinds_are_tried_by_their_priority(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = {
        f"_xmpp-client._tcp.{DOMAIN}": [(20, 5230, "localhost"), (5, 5231, "localhost")],
        f"_xmpps-client._tcp.{DOMAIN}": [(10, 5232, "localhost")],
    }
    findings: list[str] = []
    async with names(monkeypatch, records):
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
    async with names(monkeypatch, {}) as server:
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
    async with names(monkeypatch, {f"_xmpp-client._tcp.{DOMAIN}": [(0, 0, ".")]}):
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
    async with names(monkeypatch, records):
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
