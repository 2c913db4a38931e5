"""The stanzas of one client's stream, each with its direction, time and place. Pure.

A capture is one XMPP stream as its client had it. Stanzas that servers write for components, and
the three kinds of stanzas in the namespace of clients, have tags without a namespace here.
"""

from typing import NamedTuple
from xml.etree.ElementTree import Element

from bridge.wire.names import split

FOOTER = "/stream"
"""The tag of an element that stands for the end of a stream (RFC 6120, section 4.4)."""

HOLE = "/hole"
"""The tag of an element that stands for what the log has only in part, or not as XML. Its text is
the reason if the stanza itself is to blame, such as a forbidden character; else it is empty."""


class LogPlace(NamedTuple):
    """Where something is in the logs that were read."""

    file: str
    line: int
    """From 1."""
    at: str
    """The time as the log has it; empty if the log has none."""

    @property
    def words(self) -> str:
        """The place within a sentence: its line, or where there are no lines its time."""
        return f"in line {self.line}" if self.line else f"at {self.at}"


class Stanza(NamedTuple):
    """One stanza, or another element, header or end of a stream, as the client had it."""

    sent: bool
    """Whether the client sent it; else it received it."""
    element: Element
    place: LogPlace
    seconds: float | None
    """The time in seconds, of which only differences mean anything; None if the log has none."""
    session: str = ""
    """What the log calls the stream; empty if it does not tell its streams apart."""


MAX_TEXT = 512
"""The most characters that are remembered of an address, an id or a message."""


def outline(stanza: Stanza) -> Stanza:
    """Return a stanza without its content, to be remembered.

    Its tag stays, its type, the address of the other side, and why it is a hole.
    """
    element = stanza.element
    kept = Element(element.tag)
    for name in ("type", "to" if stanza.sent else "from"):
        if value := element.get(name):
            kept.set(name, value[:MAX_TEXT])
    if element.tag == HOLE:
        kept.text = element.text
    return stanza._replace(element=kept)


def spaces_of(message: Element) -> set[str]:
    """Return the namespaces of the elements in a message."""
    return {split(child.tag)[0] for child in message}
