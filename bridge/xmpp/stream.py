"""slixmpp's XML stream, with its own negotiation left out and one place for all that comes.

slixmpp parses, frames and writes; what is said, and in which order, is `connection`'s.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from slixmpp.xmlstream import XMLStream
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase

from bridge.xmpp import stanzas
from bridge.xmpp.trace import Tracing

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

XML = "{http://www.w3.org/XML/1998/namespace}"
"""What ElementTree makes of the prefix `xml`."""

log = logging.getLogger(__name__)


class NotWellFormedError(Exception):
    """What the server sent is not XML as XMPP has it."""


class StanzaTooLongError(Exception):
    """An element is longer or deeper, or a negotiation longer, than its bound."""


class _Every(MatcherBase):
    def match(self, xml: Any) -> bool:
        del xml
        return True


class Stream(XMLStream):
    """One XML stream to `domain`.

    `receive` gets each element, `lost` the reason of the end, `trace` all that goes either way.
    """

    def __init__(
        self,
        domain: str,
        receive: Callable[[Element], None],
        lost: Callable[[BaseException | None], None],
        trace: Tracing,
    ) -> None:
        super().__init__(ssl_context=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        self.default_ns = stanzas.CLIENT
        self.stream_ns = stanzas.STREAMS
        self.namespace_map[self.stream_ns] = "stream"
        self.stream_header = (
            f"<stream:stream to='{domain}' xmlns='{self.default_ns}' "
            f"xmlns:stream='{self.stream_ns}' xml:lang='en' version='1.0'>"
        )
        self.stream_footer = "</stream:stream>"
        self._receive = receive
        self._lost = lost
        self._trace = trace
        self._unparsed = bytearray()
        self._slicing = False
        self._since_element = 0
        self._settled = False
        self._before = b""
        self._given_up = False
        self.register_handler(Callback("every element", _Every(None), self._hand_over))
        self.add_event_handler("disconnected", self._end)

    def connection_made(self, transport: asyncio.BaseTransport, send_event: bool = True) -> None:
        """Begin on a new transport; slixmpp's own version takes direct TLS for an abort."""
        del send_event
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.restart()

    def restart(self) -> None:
        """Open the stream (anew): after connecting, after TLS, after SASL.

        What came before belongs to the old stream, and is forgotten: it may have been slipped in.
        """
        self._unparsed.clear()
        self._since_element = 0
        self._settled = False
        self._before = b""
        self.init_parser()
        self._trace("out", self.stream_header)
        self.send_raw(self.stream_header)

    def start_stream_handler(self, xml: Any) -> None:
        """Note the head of the other side's stream: its id and version may explain what follows."""
        said = "".join(
            f" {name.replace(XML, 'xml:')}={quoteattr(value)}" for name, value in xml.attrib.items()
        )
        self._trace("in", f"<stream:stream{said}>")

    def note(self, remark: str) -> None:
        """Put a remark of ours into the trace, as a comment, which no XMPP stream has."""
        self._trace("in", f"<!-- {remark} -->")

    def settle(self) -> None:
        """Take in any number of elements from here on: there is somebody to read each."""
        self._settled = True

    def data_received(self, data: bytes | str) -> None:
        """Parse what came, a slice a turn, so that a flood leaves turns for everybody else."""
        assert isinstance(data, bytes)
        self._unparsed += data
        if not self._slicing:
            self._parse_slice()

    def connection_lost(self, exception: BaseException | None) -> None:
        """Parse what is left before the end is told: it may say why."""
        while self._unparsed and self.parser is not None:
            self._parse_one()
        super().connection_lost(exception)

    def write(self, element: Element) -> bool:
        """Send `element`; False if the stream has ended."""
        if self.transport is None or self.transport.is_closing():
            return False
        self._trace("out", element)
        self.send_raw(stanzas.xml_of(element))
        if self.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self._give_up(TimeoutError())
        return True

    def hang_up(self) -> None:
        """Close in good order, without waiting for the other side."""
        if self.transport is not None and not self.transport.is_closing():
            self._trace("out", self.stream_footer)
            self.send_raw(self.stream_footer)
            self.transport.close()

    def abort(self) -> None:
        """Let go of the socket now.

        slixmpp's own closes before it aborts; a second `close` lets asyncio's TLS transport forget
        the connection, which then lives on until the other side ends it.
        """
        if self.transport is not None:
            self.transport.abort()

    def disconnect(self, *args: Any, **kwargs: Any) -> Any:
        """End here and now: slixmpp calls this by itself only where XML did not parse."""
        del args, kwargs
        self._give_up(NotWellFormedError())

    def _parse_slice(self) -> None:
        self._slicing = False
        self._parse_one()
        if self.transport is None or self.transport.is_closing():
            return
        if self._unparsed:
            self._slicing = True
            self.transport.pause_reading()
            self.loop.call_soon(self._parse_slice)
        else:
            self.transport.resume_reading()

    def _parse_one(self) -> None:
        piece = bytes(self._unparsed[:SLICE_BYTES])
        del self._unparsed[:SLICE_BYTES]
        self._since_element += len(piece)
        if self.xml_root is None and self._declares(piece):
            self.disconnect()
            return
        try:
            super().data_received(piece)
        except (LookupError, ValueError):  # an encoding that Python, or expat, does not have
            self.disconnect()
            return
        most = MAX_STANZA_BYTES if self._settled else MAX_NEGOTIATION_BYTES
        if self._since_element > most or self.xml_depth > MAX_DEPTH + 1:  # and the root
            self._give_up(StanzaTooLongError())

    def _declares(self, piece: bytes) -> bool:
        """Whether a DTD begins here, and with it entities that grow.

        It can stand only before the root element. Its two marks may come in two pieces, and with
        NUL between them where the encoding is UTF-16, which XMPP has not (RFC 6120, section 11.6).
        """
        head = self._before + piece
        self._before = piece[-1:]
        return b"<!" in head or b"\0" in head

    def _hand_over(self, stanza: Any) -> None:
        if self._settled:
            self._since_element = 0
        if self._given_up:
            return
        if _is_deep(stanza.xml):
            self._give_up(StanzaTooLongError())
            return
        self._trace("in", stanza.xml)
        try:
            self._receive(stanza.xml)
        except Exception as error:  # slixmpp would swallow it
            log.error(
                "a stanza broke the bridge (%s)",
                type(error).__name__,
                exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
            )
            self._give_up(error)

    def _give_up(self, reason: BaseException) -> None:
        """End here and now, and believe nothing of what came behind this."""
        self._given_up = True
        self._unparsed.clear()
        self._lost(reason)
        self.abort()

    def _end(self, reason: object) -> None:
        self._lost(reason if isinstance(reason, BaseException) else None)


def _is_deep(element: Element) -> bool:
    level = [element]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in parent]
        if not level:
            return False
    return True
