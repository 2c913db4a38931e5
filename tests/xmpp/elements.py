"""Elements as a stream hands them over."""

from xml.etree.ElementTree import Element, fromstring

from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import Direction, Trace


def parsed(xml: str) -> Element:
    """The one element, in the namespace of a client's stream."""
    return fromstring(f"<stream xmlns='jabber:client'>{xml}</stream>")[0]  # noqa: S314 - ours


def append(
    trace: Trace, direction: Direction, connection: str, xml: Element | str, at: float
) -> None:
    """Trace a piece as it would be written."""
    trace.append(direction, connection, xml, xml_of(xml).encode("utf-8", "surrogatepass"), at)
