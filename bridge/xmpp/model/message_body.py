"""Checks whether a text can be the body of a message. Pure."""

import re

from bridge.text import listed
from bridge.xmpp.errors import UnsendableError

MAX_BODY_BYTES = 60_000
"""Most bytes of a body in UTF-8. Prosody and Debian's ejabberd close the stream on stanzas over 256
kB."""

MAX_ESCAPED_BYTES = 200_000
"""Most bytes of a body after it is escaped as XML; servers write `"` and `'` in six bytes each."""

MAX_NAMED = 5
"""Most positions of forbidden characters that an error names; it counts the rest."""

NOT_XML = "[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
"""Characters that XML 1.0, section 2.2, does not allow: servers close the stream on them. The
pattern lists them, since its complement takes ten times as long to compile. It is compiled at its
first use."""

_ESCAPED = {"&": 5, "<": 4, ">": 4, '"': 6, "'": 6, "\r": 5}


def check_body(text: str) -> None:
    """Raise `UnsendableError` unless `text` can be sent as it is."""
    if forbidden := [match.start() for match in re.finditer(NOT_XML, text)]:
        named = listed(forbidden, MAX_NAMED, lambda at: f"U+{ord(text[at]):04X} at position {at}")
        raise UnsendableError(f"XML cannot carry {named}", "Remove these characters.")
    if not text.strip():
        raise UnsendableError(
            "the message is empty, and a room would show an empty line", "Give it some text."
        )
    problems = []
    size = len(text.encode("utf-8"))
    if size > MAX_BODY_BYTES:
        problems.append(f"{size} bytes of UTF-8; the most is {MAX_BODY_BYTES}")
    escaped = size + sum(text.count(character) * (to - 1) for character, to in _ESCAPED.items())
    if escaped > MAX_ESCAPED_BYTES:
        problems.append(f"{escaped} bytes once escaped as XML; the most is {MAX_ESCAPED_BYTES}")
    if problems:
        long = f"the message has {' and '.join(problems)}"
        raise UnsendableError(long, "Send it in several messages.")
