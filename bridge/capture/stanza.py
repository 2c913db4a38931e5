"""The stanzas of one client's stream, each with its direction, time and place. Pure.

A capture is one XMPP stream as its client saw it. Here the tags of stanzas have no namespace, be it
the namespace of clients or of components.
"""

from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement

from bridge.wire.meaning import SIGNALS
from bridge.wire.names import EXTENSION, MUC_USER, split

FOOTER = "/stream"
"""The tag of an element that stands for the end of a stream (RFC 6120, section 4.4). With the
attribute `cut` the connection ended without it."""

HOLE = "/hole"
"""The tag of an element that stands for a stanza that the log has only in part, or not as XML. If
the stanza itself is to blame, for example for a forbidden character, the element's text is the
reason; else it is empty."""

FAILURE = "/failure"
"""The tag of an element that stands for an exception of the program, between the stanzas. Its text
is `Failure.sentence`. If the exception passes an error of the server on, that is its child."""

DISCONNECTED = "disconnected"
"""The attribute of a failure that is only a line which says that the connection has ended."""

MAX_EXCERPT = 20
"""A log of at most so many stanzas, without a login, is an excerpt, pasted because of what went
wrong: that may be the refused request in it, or a line with a warning."""

AROUND = "around"
"""The attribute of a hole with the text in which a forbidden character stands, if that is known."""

SIZE = "size"
"""The attribute of a hole with how many bytes of the stanza came, if it is too long to be read."""

SAID = "said"
"""The attribute of a hole with the line of the log in which somebody had said the entry."""

CUT = "{urn:xmpp-bridge:tap}cut"
"""The tag of an element that `tap` writes where the server ended the connection, but not the
stream. It is read as a `FOOTER` with the attribute `cut`."""

PAUSE = "{urn:xmpp-bridge:tap}pause"
"""The tag of an element that stands for a time until which no further stanza came. `tap` writes it
when it stops."""

EXITED = "{urn:xmpp-bridge:tap}exited"
"""The tag of an element that `tap` writes if the program of the client ended by a fault. Its text
says how."""

SOMEBODY = "*"
"""What `tap` keeps in place of a stranger's local part, so that the address is not taken for a
server's."""
_INVITE = f"{{{MUC_USER}}}invite"


class LogPlace(NamedTuple):
    """A position in the logs that were read."""

    file: str
    line: int
    """From 1."""
    at: str
    """The time as the log has it; empty if the log has none."""

    @property
    def words(self) -> str:
        """The place within a sentence: its line, or its time if there are no lines."""
        return f"in line {self.line}" if self.line else f"at {self.at}"


class Stanza(NamedTuple):
    """One stanza, or another element, header or end of a stream, as the client saw it."""

    sent: bool
    """Whether the client sent it; else it received it."""
    element: Element
    place: LogPlace
    seconds: float | None
    """The time in seconds; None if the log has none. Only differences of such times mean
    anything."""
    session: str = ""
    """The log's name for the stream; empty if it does not tell its streams apart."""


STANZA_TAGS = frozenset({"message", "presence", "iq"})

MAX_TEXT = 512
"""We remember at most so many characters of an address, an id or a message."""

QUOTED = 80
"""The most characters of a message that a finding quotes."""


def outline(stanza: Stanza) -> Stanza:
    """Return a stanza with as much of its content as has to be remembered.

    The outline has the stanza's tag, its type, its id, the address of the other side, the beginning
    of a message's body, or that it has a subject or a signal alone, an invitation, and the reason
    for a hole.
    """
    element = stanza.element
    names = ("type", "id", "to" if stanza.sent else "from")
    attributes = {name: value[:MAX_TEXT] for name in names if (value := element.get(name))}
    kept = Element(element.tag, attributes)
    if element.tag == "message" and (body := element.findtext("body")):
        SubElement(kept, "body").text = body[:MAX_TEXT]
    elif element.tag == "message" and element.find("subject") is not None:
        SubElement(kept, "subject")
    elif element.tag == "message" and is_signal(element):
        kept.extend(Element(f"{{{space}}}signal") for space in SIGNALS & spaces_of(element))
    elif element.tag == HOLE:
        kept.text = element.text
        kept.attrib.update(element.attrib)
    if is_invitation(element):
        SubElement(SubElement(kept, EXTENSION), _INVITE)
    return Stanza(stanza.sent, kept, *stanza[2:])


def is_invitation(message: Element) -> bool:
    """Whether a message, or an error that repeats it, asks a room to invite somebody."""
    return message.find(f"{EXTENSION}/{_INVITE}") is not None


def spaces_of(message: Element) -> set[str]:
    """Return the namespaces of the elements in a message."""
    return {child.tag.rpartition("}")[0][1:] for child in message}


def is_signal(message: Element) -> bool:
    """Whether a message, or an error that repeats it, has only `SIGNALS`."""
    content = [child for child in message if child.tag not in {"error", "thread"}]
    spaces = {split(child.tag)[0] for child in content} - {"urn:xmpp:hints"}
    return bool(spaces) and spaces <= SIGNALS
