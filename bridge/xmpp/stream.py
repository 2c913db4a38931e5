"""slixmpp's XML stream, with its own negotiation left out and one place for all that comes.

slixmpp parses, frames and writes; what is said, and in which order, is `connection`'s.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import Element

from slixmpp.xmlstream import XMLStream
from slixmpp.xmlstream.handler import Callback
from slixmpp.xmlstream.matcher.base import MatcherBase

from bridge.xmpp import stanzas

log = logging.getLogger(__name__)


class NotWellFormedError(Exception):
    """What the server sent is not XML."""


class _Every(MatcherBase):
    def match(self, xml: Any) -> bool:
        del xml
        return True


class Stream(XMLStream):
    """One XML stream to `domain`. `receive` gets each element, `lost` the reason of the end."""

    def __init__(
        self,
        domain: str,
        receive: Callable[[Element], None],
        lost: Callable[[BaseException | None], None],
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
        self.register_handler(Callback("every element", _Every(None), self._hand_over))
        self.add_event_handler("disconnected", self._end)

    def connection_made(self, transport: asyncio.BaseTransport, send_event: bool = True) -> None:
        """Begin on a new transport; slixmpp's own version takes direct TLS for an abort."""
        del send_event
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.restart()

    def restart(self) -> None:
        """Open the stream (anew): after connecting, after TLS, after SASL."""
        self.init_parser()
        self.send_raw(self.stream_header)

    def write(self, element: Element) -> bool:
        """Send `element`; False if the stream has ended."""
        if self.transport is None:
            return False
        self.send_raw(stanzas.xml_of(element))
        return True

    def hang_up(self) -> None:
        """Close in good order, without waiting for the other side."""
        if self.transport is not None:
            self.send_raw(self.stream_footer)
            self.transport.close()

    def disconnect(self, *args: Any, **kwargs: Any) -> Any:
        """End here and now: slixmpp calls this by itself only where XML did not parse."""
        del args, kwargs
        self._lost(NotWellFormedError())
        self.abort()

    def _hand_over(self, stanza: Any) -> None:
        try:
            self._receive(stanza.xml)
        except Exception as error:  # slixmpp would swallow it
            log.error(
                "a stanza broke the bridge (%s)",
                type(error).__name__,
                exc_info=error if log.isEnabledFor(logging.DEBUG) else None,
            )
            self._lost(error)
            self.abort()

    def _end(self, reason: object) -> None:
        self._lost(reason if isinstance(reason, BaseException) else None)
