import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.llm.chat import (
    ReplyError,
    answer_of,
    body_of,
    error_message_of,
    is_temporary,
    pause_before,
)
from bridge.llm.prompt import Prompt
from tests.llm.model_service import completion

NOW = datetime(2026, 11, 22, 3, 0, 0, tzinfo=UTC)


def test_a_request_names_the_model_and_keeps_instructions_and_message_apart() -> None:
    assert json.loads(body_of(Prompt("be brief", "count: ü\ud800"), "small")) == {
        "model": "small",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "count: ü\ud800"},
        ],
        "stream": False,
    }


def test_the_answer_is_the_content_of_the_first_choice() -> None:
    assert answer_of(json.dumps(completion("hello")).encode()) == "hello"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "not JSON"),
        (b"<html>", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"choices": [{"mess', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "no choices"),
        (b"{}", "no choices"),
        (b'{"choices": []}', "no choices"),
        (b'{"choices": {"0": 1}}', "no choices"),
        (b'{"choices": [7]}', "no choices"),
        (b'{"choices": [{"message": "hi"}]}', "no choices"),
        (json.dumps(completion(None)).encode(), "not a string"),
        (json.dumps(completion(7)).encode(), "not a string"),
        (json.dumps(completion([{"type": "text"}])).encode(), "not a string"),
        (b'{"choices":[{"message":{"content":null,"refusal":"I must not"}}]}', "I must not"),
    ],
)
def test_what_is_no_completion_is_told(body: bytes, problem: str) -> None:
    with pytest.raises(ReplyError, match=problem):
        answer_of(body)


@given(st.binary())
def test_no_bytes_do_worse_than_that(body: bytes) -> None:
    with pytest.raises(ReplyError):
        answer_of(body)
    assert isinstance(error_message_of(body), str)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"error": {"message": 7}}', ""),
        (b'{"message": "x"}', ""),
        (b"[1]", ""),
        (b"<html>", ""),
    ],
)
def test_what_a_service_complains_of_is_found(body: bytes, said: str) -> None:
    assert error_message_of(body) == said


def test_too_many_requests_and_broken_servers_pass_and_nothing_else_does() -> None:
    assert [one for one in range(100, 600) if is_temporary(one)] == [429, *range(500, 600)]


@pytest.mark.parametrize(
    ("wanted", "seconds"),
    [
        ("0", 0.0),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("Sun, 22 Nov 2026 03:00:05 GMT", 5.0),
        ("Sun, 22 Nov 2026 02:00:00 GMT", 0.0),
        ("", 2.0),
        ("-1", 2.0),
        ("soon", 2.0),
        ("Sun, 22 Nov 2026 03:00:05", 2.0),
        ("٣", 2.0),
        ("9" * 5_000, 2.0),
        ("1e999", 2.0),
        ("nan", 2.0),
        ("Sun, 22 Nov 99999999999 03:00:05 GMT", 2.0),
        ("Sun, 22 Nov 10000 03:00:05 GMT", 2.0),
        ("Sun, 99999999999 Nov 2026 03:00:05 GMT", 2.0),
        ("Sun, 22 Nov 2026 99999999999:00:05 GMT", 2.0),
        ("Sun, 22 Nov 2026 03:00:05 +99999999999", 2.0),
        ("Sun, 22 Nov -1 03:00:05 GMT", 2.0),
    ],
)
def test_the_pause_is_what_the_service_asks_for_or_grows(wanted: str, seconds: float) -> None:
    assert pause_before(3, {"retry-after": wanted}, NOW) == seconds


def test_without_a_word_of_the_service_it_doubles() -> None:
    assert [pause_before(one, {}, NOW) for one in (2, 3, 4)] == [1.0, 2.0, 4.0]


@given(st.text())
def test_no_header_breaks_it(wanted: str) -> None:
    assert pause_before(2, {"retry-after": wanted}, NOW) >= 0.0
