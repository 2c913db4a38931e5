"""One XML stream over a transport (RFC 6120, section 4): read a slice a turn, and written.

What is said, and in which order, is `connection`'s. slixmpp's own stream makes a stanza object of
each element and offers it to handlers, which takes longer than parsing it.
"""

import asyncio
import logging
from collections.abc import Callable
from xml.etree.ElementTree import Element

from slixmpp.xmlstream.tostring import escape

from bridge.wire.xmlstream import StanzaTooLongError, XmlStream, XmlStreamError
from bridge.xmpp import stanzas
from bridge.xmpp.trace import Tracer

SLICE_BYTES = 8 * 1024
"""The most that is parsed in one turn of the loop: about 10 ms, then others have theirs."""

MAX_STANZA_BYTES = 4 * 1024 * 1024
"""The longest element that is taken in: servers let far less pass; more would eat the memory."""

MAX_NEGOTIATION_BYTES = 512 * 1024
"""The most that is taken in between two beginnings of a stream until `settle`: features, a
challenge, an answer. Real servers send about 2 kB, and nobody reads what comes beyond that."""

MAX_DEPTH = 128
"""Elements inside one another: whoever writes them again calls itself for each, and four million
bytes of nothing but depth are four hundred in memory."""

MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""What may wait for a server that asks, or is told, and does not read: a whole burst of the
longest messages."""

STREAM_FOOTER = "</stream:stream>"
"""What ends a stream in good order."""

XML = "{http://www.w3.org/XML/1998/namespace}"
"""What ElementTree makes of the prefix `xml`."""

log = logging.getLogger(__name__)


class Stream(asyncio.Protocol):
    """One XML stream to `domain`.

    `receive` gets each element, `lost` the reason of the end, `trace` all that goes either way.
    """

    def __init__(
        self,
        domain: str,
        receive: Callable[[Element], None],
        lost: Callable[[BaseException | None], None],
        trace: Tracer,
    ) -> None:
        self.stream_header = (
            f"<stream:stream to='{domain}' xmlns='{stanzas.CLIENT}' "
            f"xmlns:stream='{stanzas.STREAMS}' xml:lang='en' version='1.0'>"
        )
        self.transport: asyncio.Transport | None = None
        """Where it goes; None before, and once that has ended."""
        self._receive = receive
        self._lost = lost
        self._trace = trace
        self._xml = _xml_stream()
        self._begun = False
        self._unparsed = bytearray()
        self._slicing = False
        self._negotiated = 0
        self._settled = False
        self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin on a new transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.restart()

    def restart(self) -> None:
        """Open the stream (anew): after connecting, after TLS, after SASL.

        What came before belongs to the old stream, and is forgotten: it may have been slipped in.
        """
        self._unparsed.clear()
        self._negotiated = 0
        self._settled = False
        self._xml = _xml_stream()
        self._begun = False
        self._write(self.stream_header)

    def note(self, remark: str) -> None:
        """Put a remark of ours into the trace, as a comment, which no XMPP stream has."""
        self._trace("in", f"<!-- {remark} -->")

    def settle(self) -> None:
        """Take in any number of elements from here on: there is somebody to read each."""
        self._settled = True

    def data_received(self, data: bytes) -> None:
        """Parse what came, a slice a turn, so that a flood leaves turns for everybody else."""
        if self._over:
            return
        self._unparsed += data
        if not self._slicing:
            self._parse_slice()

    def connection_lost(self, exception: BaseException | None) -> None:
        """Parse what is left before the end is told: it may say why."""
        while self._unparsed:
            self._parse_one()
        self.transport = None
        self._lost(exception)

    def write(self, element: Element) -> bool:
        """Send `element`; False if the stream has ended."""
        if self.transport is None or self.transport.is_closing():
            return False
        self._write(element)
        if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._give_up(TimeoutError())
        return True

    def hang_up(self) -> None:
        """Close in good order, without waiting for the other side."""
        if self.transport is not None and not self.transport.is_closing():
            self._write(STREAM_FOOTER)
            self.transport.close()

    def abort(self) -> None:
        """Let go of the socket now.

        Nothing closes it before: a second `close` lets asyncio's TLS transport forget the
        connection, which then lives on until the other side ends it.
        """
        if self.transport is not None:
            self.transport.abort()

    def _write(self, xml: Element | str) -> None:
        assert self.transport is not None
        self._trace("out", xml)
        self.transport.write(stanzas.xml_of(xml).encode())

    def _parse_slice(self) -> None:
        self._slicing = False
        self._parse_one()
        if self.transport is None or self.transport.is_closing():
            return
        if self._unparsed:
            self._slicing = True
            self.transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._parse_slice)
        else:
            self.transport.resume_reading()

    def _parse_one(self) -> None:
        piece = bytes(self._unparsed[:SLICE_BYTES])
        del self._unparsed[:SLICE_BYTES]
        try:
            for element in self._xml.feed(piece):
                if self._begun:
                    self._hand_over(element)
                else:
                    self._begin(element)
                if self._over:
                    return
        except XmlStreamError as error:
            self._give_up(error)
            return
        if self._xml.ended:
            self._give_up(None)
        elif not self._settled:
            self._negotiated += len(piece)
            if self._negotiated > MAX_NEGOTIATION_BYTES:
                self._give_up(StanzaTooLongError())

    def _begin(self, root: Element) -> None:
        """Note the head of the other side's stream: its id and version may explain what follows."""
        self._begun = True
        said = "".join(
            f' {name.replace(XML, "xml:")}="{escape(value)}"' for name, value in root.attrib.items()
        )
        self._trace("in", f"<stream:stream{said}>")

    def _hand_over(self, element: Element) -> None:
        try:
            self._trace("in", element)
            self._receive(element)
        except Exception as error:  # asyncio would put it where nobody looks
            log.error(
                "a stanza broke the bridge (%s)",
                type(error).__name__,
                exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
            )
            self._give_up(error)

    def _give_up(self, reason: BaseException | None) -> None:
        """End here and now, and believe nothing of what came behind this."""
        self._over = True
        self._unparsed.clear()
        self._lost(reason)
        self.abort()


def _xml_stream() -> XmlStream:
    return XmlStream(max_bytes=MAX_STANZA_BYTES, max_depth=MAX_DEPTH)
