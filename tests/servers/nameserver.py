"""A name server of the tests' own on the loopback interface."""

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import aiodns
import pytest

SRV = 33
NAME_ERROR = 3
Record = tuple[int, int, str]
"""Priority, port and target of one SRV record (RFC 2782)."""


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
        records = self._records.get(name, [])
        flags = 0x8180 | (0 if records else NAME_ERROR)
        answers = b"".join(
            b"\xc0\x0c" + struct.pack("!HHIH", SRV, 1, 60, len(data)) + data
            for data in (_srv(record) for record in records)
        )
        head = data[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
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
async def name_server(
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

    monkeypatch.setattr("slixmpp.xmlstream.resolver.default_resolver", resolver)
    try:
        yield server
    finally:
        transport.close()
