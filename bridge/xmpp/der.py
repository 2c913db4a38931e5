"""DER (X.690), as far as certificates need it: elements in elements. Pure.

What is read comes from whoever answered, so nothing in it is believed: lengths that reach beyond
the data, and forms that DER does not have, are refused.
"""

from typing import NamedTuple

OID, SEQUENCE = 0x06, 0x30
"""Tags, in one byte with class and form, as all tags of certificates are."""

MAX_LENGTH_BYTES = 4
"""Of the length of one element: 4 GB, far more than a handshake carries."""

MAX_OID_BYTES = 64
"""Real ones have fewer than twenty; a number of a megabyte would take minutes to write."""


class DerError(ValueError):
    """The bytes are not DER, or not of the shape that was wanted."""


class Node(NamedTuple):
    """One element."""

    tag: int
    contents: bytes


def first(data: bytes, tag: int) -> bytes:
    """Return the contents of the element that `data` begins with, which must have `tag`."""
    node, _ = _read(data, 0)
    if node.tag != tag:
        raise DerError(f"an element has the tag {node.tag:#x} instead of {tag:#x}")
    return node.contents


def all_in(data: bytes) -> list[Node]:
    """Return the elements that `data` consists of."""
    found, at = [], 0
    while at < len(data):
        node, at = _read(data, at)
        found.append(node)
    return found


def _read(data: bytes, at: int) -> tuple[Node, int]:
    """Return the element at `at`, and where the next one begins."""
    head, start = data[at : at + 2], at + 2
    if len(head) < 2:
        raise DerError("it ends where an element should begin")
    if head[0] & 0x1F == 0x1F:
        raise DerError("a tag has more than one byte")
    length = head[1]
    if length & 0x80:
        size = length & 0x7F
        if not 1 <= size <= MAX_LENGTH_BYTES or len(data) < start + size:
            raise DerError("an element has no proper length")
        length = int.from_bytes(data[start : start + size], "big")
        if length < 0x80 or not data[start]:  # section 10.1: as short as can be
            raise DerError("an element has no proper length")
        start += size
    if len(data) < start + length:
        raise DerError("an element is longer than what there is")
    return Node(head[0], data[start : start + length]), start + length


def dotted(contents: bytes) -> str:
    """Return an object identifier as it is written: numbers with dots between.

    Numbers beyond `MAX_OID_BYTES` are none that anybody has registered.
    """
    if len(contents) > MAX_OID_BYTES:
        raise DerError("an object identifier is too long")
    numbers, value = [], 0
    for byte in contents:
        if not value and byte == 0x80:
            raise DerError("an object identifier is padded")
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not contents or contents[-1] & 0x80:
        raise DerError("an object identifier has no end")
    root = min(numbers[0] // 40, 2)  # the first number holds two (section 8.19.4)
    return ".".join(map(str, (root, numbers[0] - 40 * root, *numbers[1:])))
