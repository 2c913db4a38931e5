"""Elements as a stream hands them over."""

from xml.etree.ElementTree import Element, fromstring


def parsed(xml: str) -> Element:
    """The one element, in the namespace of a client's stream."""
    return fromstring(f"<stream xmlns='jabber:client'>{xml}</stream>")[0]  # noqa: S314 - ours
