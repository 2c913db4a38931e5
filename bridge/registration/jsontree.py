"""JSON with comments, read so that every value's place in the text is known. Pure."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Containers within containers; a client's file has ten, and Python's own stack ends at 1,000."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
      | (?P<comment>//[^\r\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")
      | (?P<mark>[{}\[\]:,])
      | (?P<word>[^\s{}\[\]:,"/]+)""",
    re.VERBOSE | re.DOTALL,
)


class JsonError(Exception):
    """The text is not JSON, even with comments; says in which line."""


@dataclass(frozen=True)
class Token:
    """One piece of the text; blanks are none, comments are."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Where the next one may start."""
        return self.start + len(self.text)


@dataclass
class Node:
    """A value, and where it stands."""

    start: int
    end: int = 0
    value: object = None
    """Of a word or a string; a container's are in `children`."""
    is_object: bool = False
    children: "list[Child]" = field(default_factory=list)
    inner_end: int = 0
    """Where the last token before a container's closing bracket ends, comments included."""


@dataclass
class Child:
    """A member of an object, or an element of an array."""

    key: str | None
    start: int
    """Of the key, where there is one."""
    node: Node
    comma: int | None = None
    """Where the comma after it stands."""


def read(text: str) -> Node:
    """Read `text`; raises `JsonError`."""
    return _Reader(text).document()


def parse(text: str) -> Any:
    """Return what strict JSON holds; raises `ValueError` and `JsonError`.

    A number that Python cannot hold (5,000 digits, 1e999) stands for itself as bytes: so it is
    equal to itself alone, and nothing can write it otherwise than it was.
    """
    return json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def too_deep(value: object) -> bool:
    """Whether there are more than `MAX_DEPTH` containers within containers."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _integer(text: str) -> int | bytes:
    try:
        return int(text)
    except ValueError:  # more digits than Python converts
        return text.encode()


def _float(text: str) -> float | bytes:
    value = float(text)
    return value if math.isfinite(value) else text.encode()


def _constant(text: str) -> NoReturn:
    raise JsonError(f"{text} is no number of JSON")


def plain(node: Node) -> object:
    """Return the value itself, as `json.loads` would."""
    if node.value is not None or node.inner_end == 0:
        return node.value
    if node.is_object:
        return {str(child.key): plain(child.node) for child in node.children}
    return [plain(child.node) for child in node.children]


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan()
        self._last_end = 0
        self._before = 0
        self._next: Token | None = None
        self._advance()

    def document(self) -> Node:
        node = self._value(0)
        if self._next is not None:
            self._fail("something follows after the end", self._next.start)
        return node

    def _scan(self) -> Iterator[Token]:
        position = 1 if self._text.startswith("\ufeff") else 0
        while position < len(self._text):
            match = _TOKEN.match(self._text, position)
            if match is None:
                self._fail("something is not closed, or does not belong there", position)
            if match.lastgroup != "space":
                yield Token(str(match.lastgroup), match[0], position)
            position = match.end()

    def _advance(self) -> Token | None:
        """Step to the next token that is no comment; remember where those before it ended."""
        taken = self._next
        self._before = self._last_end if taken is None else taken.end
        for token in self._tokens:
            if token.kind != "comment":
                self._next = token
                return taken
            self._before = token.end
        self._next = None
        return taken

    def _take(self, *marks: str) -> Token:
        if self._next is None or self._next.text not in marks:
            where = len(self._text) if self._next is None else self._next.start
            self._fail(f"{' or '.join(marks)} is missing", where)
        token = self._advance()
        assert token is not None
        return token

    def _value(self, depth: int) -> Node:
        token = self._next
        if token is None:
            self._fail("it ends too early", len(self._text))
        if depth > MAX_DEPTH:
            self._fail(f"it is nested more than {MAX_DEPTH} deep", token.start)
        if token.text in ("{", "["):
            return self._container(token, depth)
        if token.kind == "mark":
            self._fail("a value is missing", token.start)
        self._advance()
        return Node(token.start, token.end, self._scalar(token))

    def _scalar(self, token: Token) -> object:
        try:
            return parse(token.text)
        except ValueError:
            self._fail("this is no value", token.start)

    def _container(self, opening: Token, depth: int) -> Node:
        node = Node(opening.start, is_object=opening.text == "{")
        closing = "}" if node.is_object else "]"
        self._advance()
        while self._next is not None and self._next.text != closing:
            node.children.append(self._child(node.is_object, depth))
            if self._next is None or self._next.text != ",":
                break
            node.children[-1].comma = self._take(",").start
        node.inner_end = self._before
        node.end = self._take(closing).end
        return node

    def _child(self, is_member: bool, depth: int) -> Child:
        assert self._next is not None
        start = self._next.start
        if not is_member:
            return Child(None, start, self._value(depth + 1))
        if self._next.kind != "string":
            self._fail("a name in quotation marks is missing", start)
        key = str(self._scalar(self._next))
        self._advance()
        self._take(":")
        return Child(key, start, self._value(depth + 1))

    def _fail(self, what: str, position: int) -> NoReturn:
        raise JsonError(f"line {self._text.count(chr(10), 0, position) + 1}: {what}")
