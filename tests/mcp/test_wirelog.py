import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp import wirelog
from bridge.mcp.framing import Framing
from bridge.mcp.jsonrpc import (
    Id,
    Malformed,
    Message,
    Notification,
    Request,
    Response,
    RpcError,
)
from bridge.mcp.wirelog import LOGGED_CHARACTERS, Asked
from tests.mcp.client import logged

ASKED = Asked(Framing.LINES, 70, 100.0, "2025-11-25", "tools/call", 7)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            Request(7, "tools/call", {"name": "x"}),
            "<- 2025-11-25 tools/call id 7, 70 bytes: {'name': 'x'}",
        ),
        (
            Notification("tools/call"),
            "<- 2025-11-25 tools/call id 7, notification, 70 bytes: None",
        ),
        ([Notification("x")], "<- batch of 1, 70 bytes"),
        (Malformed(RpcError(-32700, "why")), "<- no message, 70 bytes: Parse error: why"),
        (Response("r", 1), "<- a response to nothing we asked, id 'r', 70 bytes"),
    ],
)
def test_what_comes_in_is_one_line(message: Message | list[Message], line: str) -> None:
    with logged(logging.DEBUG) as lines:
        wirelog.received(message, ASKED)
    assert lines == [line]


def test_what_goes_out_is_one_line_with_the_time_it_took() -> None:
    with logged(logging.DEBUG) as lines:
        wirelog.replied(Response(7, {}), ASKED, 50, 100.25)
        wirelog.replied(Response(7, error={"code": -32602}), ASKED, 60, 100.0004)
        wirelog.replied([Response(1), Response(2)], ASKED, 90, 101.0)
        wirelog.told(Notification("notifications/progress", {"a": "secret"}), 40)
        wirelog.inquired(Request("ask-1", "sampling/createMessage", {"a": "secret"}), 45)
        wirelog.received(Response("ask-1", "secret"), ASKED._replace(answers="sampling/x"))
        wirelog.cancelled(ASKED, 100.5)
    assert lines == [
        "-> 2025-11-25 tools/call id 7, result, 50 bytes, 250.0 ms",
        "-> 2025-11-25 tools/call id 7, error -32602, 60 bytes, 0.4 ms",
        "-> batch of 2, 90 bytes, 1000.0 ms",
        "-> notifications/progress, notification, 40 bytes",
        "-> sampling/createMessage, our request, id ask-1, 45 bytes",
        "<- the answer to sampling/x, id ask-1, 70 bytes",
        "-- 2025-11-25 tools/call id 7, cancelled after 500.0 ms",
    ]


@pytest.mark.parametrize("extra", [0, 1])
def test_arguments_are_cut_at_two_hundred_characters(extra: int) -> None:
    text = "x" * (LOGGED_CHARACTERS - 2 + extra)
    shown = wirelog.shown(text)
    assert LOGGED_CHARACTERS == 200
    assert shown == (f"'{text}... (201 characters)" if extra else f"'{text}'")


def test_what_is_nested_too_deeply_to_be_shown_is_told_so() -> None:
    nested: object = 1
    for _ in range(100_000):
        nested = [nested]
    assert wirelog.shown(nested) == "(nested too deeply)"


texts = st.text(st.characters(exclude_categories=[]))
anything = st.recursive(
    st.one_of(st.none(), st.integers(), texts), lambda inner: st.lists(inner, max_size=3)
)


@given(texts, st.one_of(texts, st.integers()), texts, anything)
def test_nothing_that_comes_in_can_forge_a_line(
    dialect: str, id_: Id, method: str, value: object
) -> None:
    asked = Asked(Framing.LINES, 1, 0.0, dialect[:10], method, id_)
    with logged(logging.DEBUG) as lines:
        wirelog.received(Request(id_, method, [value]), asked)
        wirelog.received(Notification(method, [value]), asked)
        wirelog.received(Malformed(RpcError(-32700, method)), asked)
        wirelog.received(Response(id_, value), asked)
        wirelog.replied(Response(id_, value), asked, 1, 0.0)
        wirelog.cancelled(asked, 0.0)
    assert len(lines) == 6
    for line in lines:
        assert len(line.splitlines()) == 1
        assert re.match("<-|->|--", line)
        line.encode()
