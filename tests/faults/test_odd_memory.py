"""What is read of hostile stanzas is given back, but for what the trace weighs and keeps."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.wire.xmlstream import XmlStream
from bridge.xmpp.link.stream import MAX_DEPTH, MAX_STANZA_BYTES
from bridge.xmpp.link.trace import Trace
from bridge.xmpp.model.journal import Numbering
from tests.faults.odd_xml import CLASSICS

HEADER = b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
WARM, ALL = 100_000, 400_000
"""Stanzas until the trace is full, and altogether."""
TOGETHER = 500
GROWN_MB = 10


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def hostile(first: int) -> Iterator[bytes]:
    """Yield a group of stanzas whose names and namespaces are new, and one that is odd."""
    for number in range(first, first + TOGETHER - 1):
        yield b"<message a%d=''><n%d xmlns='u%d'/></message>" % ((number,) * 3)
    odd = CLASSICS[first // TOGETHER % len(CLASSICS)] if first % 10_000 == 0 else "<xml:y/>"
    yield b"<presence>%b</presence>" % odd.encode()


@pytest.mark.soak
def test_hostile_stanzas_without_number_leave_no_memory_behind() -> None:
    xml = XmlStream(max_bytes=MAX_STANZA_BYTES, max_depth=MAX_DEPTH)
    list(xml.feed(HEADER))
    trace = Trace(Numbering("epoch"))

    def take(stanzas: range) -> None:
        for first in stanzas:
            for element in xml.feed(b"".join(hostile(first))):
                trace.append("in", "1", element, xml.raw, 0.0)

    take(range(0, WARM, TOGETHER))
    before = resident_mb()
    take(range(WARM, ALL, TOGETHER))
    assert resident_mb() - before < GROWN_MB
