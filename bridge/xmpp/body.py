"""What may be said in a room: the text that XML can carry and servers let pass. Pure."""

import re

MAX_BODY_BYTES = 60_000
"""In UTF-8. Prosody and Debian's ejabberd close the stream on stanzas over 256 kB."""

MAX_ESCAPED_BYTES = 200_000
"""Once escaped as XML, where `"` and `'` take six bytes each; leaves room for the rest."""

MAX_NAMED = 5
"""Offending positions that are named; the rest are counted."""

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0, section 2.2, does not allow: both servers close the stream on it."""

_ESCAPED = {"&": 5, "<": 4, ">": 4, '"': 6, "'": 6}


class UnsendableError(ValueError):
    """The text cannot be a message; says why."""


def check_body(text: str) -> None:
    """Raise `UnsendableError` unless `text` can be sent as it is."""
    if not text:
        raise UnsendableError("the message is empty; a room would show an empty line")
    if found := list(_FORBIDDEN.finditer(text)):
        named = ", ".join(
            f"U+{ord(match.group()):04X} at position {match.start()}" for match in found[:MAX_NAMED]
        )
        more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise UnsendableError(f"XML cannot carry {named}{more}; remove these characters")
    problems = []
    size = len(text.encode("utf-8"))
    if size > MAX_BODY_BYTES:
        problems.append(f"{size} bytes of UTF-8; the most is {MAX_BODY_BYTES}")
    escaped = size + sum(text.count(character) * (to - 1) for character, to in _ESCAPED.items())
    if escaped > MAX_ESCAPED_BYTES:
        problems.append(f"{escaped} bytes once escaped as XML; the most is {MAX_ESCAPED_BYTES}")
    if problems:
        raise UnsendableError(f"the message has {' and '.join(problems)}")
