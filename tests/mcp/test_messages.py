import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.framing import Frame, Framer, Framing
from bridge.mcp.jsonrpc import PARSE_ERROR, Malformed, Message, Request
from bridge.mcp.messages import MAX_LINE_BYTES, SPREAD, MessageReader


def told(*lines: str, framing: Framing = Framing.LINES) -> list[object]:
    """Return the id of each message in `lines`, or why it is refused; None for what is passed."""
    reader = MessageReader()
    read = [reader.read(Frame(line.encode(), framing)) for line in lines]
    return [None if message is None else brief(message) for message in read]


def brief(message: Message | list[Message]) -> object:
    if isinstance(message, list):
        return [brief(part) for part in message]
    return message.error.data if isinstance(message, Malformed) else getattr(message, "id", "none")


def ping(id_: object, **more: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "ping", **more})


params = st.recursive(
    st.none()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["}", '"', "\\", "{", ping(1)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
styles = st.sampled_from([None, 0, 2, "\t"])


@given(
    st.lists(st.tuples(params, styles), max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.lists(st.integers(min_value=0), max_size=10),
)
def test_each_message_is_answered_once_over_however_many_lines_and_chunks_it_is_spread(
    given: list[tuple[object, Any]], ending: bytes, places: list[int]
) -> None:
    texts = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": "m", "params": {"x": value}},
                   indent=indent)
        for number, (value, indent) in enumerate(given)
    ]  # fmt: skip
    stream = b"".join(text.encode().replace(b"\n", ending) + ending for text in texts)
    framer, reader = Framer(), MessageReader()
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    received = []
    for start, end in itertools.pairwise(edges):
        received += [reader.read(frame) for frame in framer.feed(stream[start:end])]
    messages = [message for message in received if message is not None]
    assert len(messages) == len(texts)
    for number, (message, (_, indent)) in enumerate(zip(messages, given, strict=True)):
        if indent is None:
            assert isinstance(message, Request)
            assert message.id == number
        else:
            assert isinstance(message, Malformed)
            assert message.error.code == PARSE_ERROR
            assert message.error.data == SPREAD


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        (["{", '"id": 1', "}", ping(2)], [SPREAD, None, None, 2]),
        (["{", "{} {}", "NaN", "[]", '{"id": 1}', "1", ping(2)], [SPREAD, *[None] * 5, 2]),
        # What is cut short is not waited for once a message comes.
        (['{"method": "ping"', ping(2), "x"], [SPREAD, 2, "Expecting value at character 0"]),
        (["[", ping(1) + ",", ping(2), "]"], [SPREAD, None, 2, "Expecting value at character 0"]),
        (["[", f"[{ping(1)}]"], [SPREAD, [1]]),
        # A line break within a text.
        (['{"a": "one', 'two } {"}', "x"], [SPREAD, None, "Expecting value at character 0"]),
        (['{"a": "one\\', '"}', "x"], [SPREAD, None, "Expecting value at character 0"]),
        (["{", "} {", "x"], [SPREAD, None, "Expecting value at character 0"]),
        (["{}}", "x"], ["Extra data at character 2", "Expecting value at character 0"]),
        (["x {", "}"], ["Expecting value at character 0"] * 2),
    ],
)
def test_what_follows_a_line_that_ends_within_a_message_is_passed_over(
    lines: list[str], read: list[object]
) -> None:
    assert told(*lines) == read


@pytest.mark.parametrize("extra", [0, 1])
def test_a_line_beyond_its_limit_is_no_part_of_a_spread_message(extra: int) -> None:
    long = '{"a": "' + "x" * (MAX_LINE_BYTES + extra - len('{"a": "'))
    began, _, ended = told("{", long, "x")
    assert (began, ended) == (SPREAD, "Expecting value at character 0" if extra else None)
    first, after = told(long, '"}')
    assert (first == SPREAD, after is None) == ((False, False) if extra else (True, True))


def test_a_body_in_headers_is_never_the_rest_of_lines_nor_begins_them() -> None:
    reader = MessageReader()
    for framing in (Framing.LINES, Framing.HEADERS, Framing.HEADERS, Framing.LINES):
        assert isinstance(reader.read(Frame(b'{"a":', framing)), Malformed)
        assert isinstance(reader.read(Frame(b"x", Framing.HEADERS)), Malformed)
