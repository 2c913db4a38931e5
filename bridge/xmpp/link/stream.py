"""An XML stream over a transport (RFC 6120, section 4), parsed in slices.

`connection` decides what to send, and when. We do not use slixmpp's stream: it makes a stanza
object of each element and offers it to handlers, which takes longer than the parsing.
"""

import asyncio
from collections.abc import Callable
from xml.etree.ElementTree import Element

from bridge.wire import names, xmlstream
from bridge.wire.xmlstream import DamagedElement, XmlStream
from bridge.xmpp.link import stanzas
from bridge.xmpp.link.trace import Tracer

SLICE_BYTES = 8 * 1024
"""Most bytes that we read in one iteration of the event loop. Then other tasks have their turn. A
stanza is parsed as a whole when its last byte is read: one of 250 kB may take 140 ms."""

MAX_STANZA_BYTES = 4 * 1024 * 1024
"""Most bytes of an element: servers let far less pass, and more would exhaust the memory."""

MAX_NEGOTIATION_BYTES = 512 * 1024
"""Most bytes from a stream header until `end_negotiation`: features, a challenge, an answer, and
stanzas from others who know our full JID. If more come, the connection ends. Real servers send
about 2 kB."""

MAX_DEPTH = 128
"""Most levels of nested elements: writing them recurses, and 4 MB of nested tags take 400 MB of
memory."""

MAX_UNSENT_BYTES = 16 * 1024 * 1024
"""Most bytes that may wait for a server that does not read: a burst of the longest messages
fits."""

STREAM_FOOTER = "</stream:stream>"
"""Ends a stream in good order."""


class Stream(asyncio.Protocol):
    """An XML stream to `domain`.

    `receive` gets each element, `lost` the reason of the end, `trace` everything that is sent or
    received.
    """

    def __init__(
        self,
        domain: str,
        receive: Callable[[Element], None],
        lost: Callable[[BaseException | None], None],
        trace: Tracer,
    ) -> None:
        self.account = ""
        """Our bare JID, once the server may know it (RFC 6120, section 4.7.1). Some servers offer
        SASL2 and its companions only to a client that names its account."""
        self._domain = domain
        self.transport: asyncio.Transport | None = None
        """The transport; None before it is connected and after it has ended."""
        self.received = 0
        """The number of bytes that have come."""
        self.max_bytes: int | None = None
        """The longest stanza that the server takes, in bytes (XEP-0478); None if it named no
        limit."""
        self.too_long = (0, 0.0)
        """The size of the last stanza over `max_bytes`, and when we sent it, on the loop's
        clock."""
        self.sent_at = 0.0
        """When we last sent anything, on the loop's clock."""
        self._receive = receive
        self._lost = lost
        self._trace = trace
        self._unparsed = bytearray()
        self._slicing = False
        self._over = False
        self._begin_anew()

    @property
    def stream_header(self) -> str:
        """The header with which the stream is opened."""
        account = f"from='{self.account}' " if self.account else ""
        return (
            f"<stream:stream {account}to='{self._domain}' xmlns='{names.CLIENT}' "
            f"xmlns:stream='{names.STREAMS}' xml:lang='en' version='1.0'>"
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the stream on a new transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.restart()

    def restart(self) -> None:
        """Open the stream, or open it anew after TLS and after SASL.

        Data received before is dropped: an attacker may have injected it into the old stream.
        """
        self._begin_anew()
        self._write(self.stream_header)

    def note(self, remark: str) -> None:
        """Add our own remark to the trace, as an XML comment. XMPP streams cannot have comments."""
        comment = f"<!-- {remark} -->"
        self._trace("in", comment, comment.encode())

    def end_negotiation(self) -> None:
        """Lift the limit `MAX_NEGOTIATION_BYTES`: from now on any number of elements may come."""
        self._negotiation_ended = True

    def data_received(self, data: bytes) -> None:
        """Parse the data in slices, so that a flood does not block the event loop."""
        if self._over:
            return
        self.received += len(data)
        self._unparsed += data
        if not self._slicing:
            self._parse_slice()

    def connection_lost(self, exception: BaseException | None) -> None:
        """Parse the remaining data, since it may say why the stream ended. Then report the end."""
        while self._unparsed:
            self._parse_one()
        self.transport = None
        self._lost(exception)

    def write(self, element: Element) -> bool:
        """Send `element`; return False if the stream has ended."""
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

    def abandon(self) -> None:
        """Close the socket at once, and report nothing more, not even that it has closed."""
        self._over, self._lost = True, lambda reason: None
        self._unparsed.clear()
        self.abort()

    def abort(self) -> None:
        """Close the socket at once.

        This does not call the transport's `close`. A second call of `close` makes asyncio's TLS
        transport forget the connection, which then stays open until the other side ends it.
        """
        if self.transport is not None:
            self.transport.abort()

    def _begin_anew(self) -> None:
        self._unparsed.clear()
        self._xml = XmlStream(max_bytes=MAX_STANZA_BYTES, max_depth=MAX_DEPTH)
        self._begun = False
        self._negotiation_bytes = 0
        self._negotiation_ended = False

    def _write(self, xml: Element | str) -> None:
        assert self.transport is not None
        raw = stanzas.xml_of(xml).encode()
        self._trace("out", xml, raw)
        self.transport.write(raw)
        self.sent_at = asyncio.get_running_loop().time()
        if self.max_bytes and len(raw) > self.max_bytes:
            self.too_long = len(raw), self.sent_at

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
                else:  # we trace the header: its id and version may explain what follows
                    self._begun = True
                    self._trace("in", self._xml.raw.decode(), self._xml.raw)
                if self._over:
                    return
        except xmlstream.XmlStreamError as error:
            self._give_up(error)
            return
        if self._xml.ended:
            self._give_up(None)
        elif not self._negotiation_ended:
            self._negotiation_bytes += len(piece)
            if self._negotiation_bytes > MAX_NEGOTIATION_BYTES:
                self._give_up(xmlstream.StanzaTooLongError())

    def _hand_over(self, element: Element) -> None:
        if isinstance(element, DamagedElement):
            self.note(f"the next stanza cannot be read: {element.reason}")
            # This counts only from the server itself: otherwise a stranger could cut us off.
            if not self._negotiation_ended and element.tag not in names.STANZAS:
                self._give_up(xmlstream.NotWellFormedError())
                return
        try:
            self._trace("in", element, self._xml.raw)
            self._receive(element)
        except Exception as error:  # noqa: BLE001 - asyncio would only log it, and go on
            self._give_up(error)

    def _give_up(self, reason: BaseException | None) -> None:
        """End at once, and drop all data that came afterwards."""
        self._over = True
        self._unparsed.clear()
        self._lost(reason)
        self.abort()
