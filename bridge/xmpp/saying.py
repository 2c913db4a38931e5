"""What may be said in a room, and the ways in which saying it can fail. Pure."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The events and faults are loaded after the first answer to the agent, this module before.
    from bridge.xmpp.events import SendFailed
    from bridge.xmpp.faults import Fault
    from bridge.xmpp.room import RoomStatus

MAX_BODY_BYTES = 60_000
"""In UTF-8. Prosody and Debian's ejabberd close the stream on stanzas over 256 kB."""

MAX_ESCAPED_BYTES = 200_000
"""Once escaped as XML, where `"` and `'` take six bytes each; leaves room for the rest."""

MAX_NAMED = 5
"""Offending positions that are named; the rest are counted."""

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0, section 2.2, does not allow: servers close the stream on them."""

_ESCAPED = {"&": 5, "<": 4, ">": 4, '"': 6, "'": 6}


class UnsendableError(ValueError):
    """The text cannot be a message; says why."""


class NotInRoomError(Exception):
    """Nothing can be said: we are not in the room, as `status` tells."""

    def __init__(self, status: "RoomStatus") -> None:
        self.status = status
        super().__init__(f"not in the room: {status.phase.value}")


class NotSentError(Exception):
    """The connection had just ended, and nothing was handed to the room."""

    def __init__(self, fault: "Fault") -> None:
        self.fault = fault
        super().__init__(fault.message)


class NotReflectedError(Exception):
    """The room did not send the message back: whether it was heard is not known."""

    def __init__(self, fault: "Fault") -> None:
        self.fault = fault
        super().__init__(fault.message)


class BouncedError(Exception):
    """The room, or a server on the way, returned the message."""

    def __init__(self, failure: "SendFailed", fault: "Fault") -> None:
        self.failure = failure
        self.fault = fault
        super().__init__(failure.condition)


def check_body(text: str) -> None:
    """Raise `UnsendableError` unless `text` can be sent as it is."""
    if not text:
        raise UnsendableError("the message is empty; a room would show an empty line")
    if not (text.isascii() and text.isprintable()):
        _check_characters(text)
    problems = []
    size = len(text.encode("utf-8"))
    if size > MAX_BODY_BYTES:
        problems.append(f"{size} bytes of UTF-8; the most is {MAX_BODY_BYTES}")
    escaped = size + sum(text.count(character) * (to - 1) for character, to in _ESCAPED.items())
    if escaped > MAX_ESCAPED_BYTES:
        problems.append(f"{escaped} bytes once escaped as XML; the most is {MAX_ESCAPED_BYTES}")
    if problems:
        raise UnsendableError(f"the message has {' and '.join(problems)}")


def _check_characters(text: str) -> None:
    found = [one.start() for one in NOT_XML.finditer(text)]
    if found:
        named = ", ".join(f"U+{ord(text[at]):04X} at position {at}" for at in found[:MAX_NAMED])
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise UnsendableError(f"XML cannot carry {named}{more}; remove these characters")
