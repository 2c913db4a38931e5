import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.mcp.jsonrpc import (
    INVALID_REQUEST,
    LOGGED_CHARACTERS,
    MAX_BATCH_MESSAGES,
    PARSE_ERROR,
    Batch,
    Malformed,
    Notification,
    Request,
    Response,
    decode,
    encode,
    objects,
    preview,
)

texts = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\x85\u2028\u2029\n"))
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=5
)
ids = st.one_of(texts, st.integers())
params = st.one_of(st.none(), st.lists(values), st.dictionaries(texts, values))
messages = st.one_of(
    st.builds(Request, ids, texts, params),
    st.builds(Notification, texts, params),
    st.builds(Response, ids, values, st.none()),
    st.builds(Response, st.one_of(st.none(), ids), st.none(), st.dictionaries(texts, values)),
    st.lists(st.builds(Response, ids, scalars, st.none()), min_size=1, max_size=3),
)


def malformed(body: bytes | str) -> Malformed:
    message = decode(body)
    assert isinstance(message, Malformed)
    return message


@settings(max_examples=30)
@given(messages)
def test_what_is_encoded_is_one_line_for_every_reader_and_is_decoded_as_it_was(
    message: Request | Notification | Response | list[Response],
) -> None:
    line = encode(message).decode()
    assert line.splitlines() == [line]
    assert decode(line) == message


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\u2028b\u2029c\x85", b"a\\u2028b\\u2029c\\u0085"),
        ("\ud800", "\ufffd".encode()),
        ("\udc00x\ud83d\udbff", "\ufffdx\ufffd\ufffd".encode()),
        ("\U0001f600", "\U0001f600".encode()),
    ],
)
def test_a_frame_has_neither_a_hidden_line_end_nor_half_a_character(
    text: str, written: bytes
) -> None:
    assert encode(Response(text, {text: [text]})).count(written) == 3


@settings(max_examples=50)
@given(st.one_of(st.binary(), st.text(st.characters(exclude_categories=[]))))
def test_no_input_makes_decoding_raise(body: bytes | str) -> None:
    decode(body)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Expecting value at character 0"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b'{"id": -Infinity}', "-Infinity is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b'{"jsonrpc":"2.0","id":%s,"method":"m"}' % (b"1" * 10_000), "Exceeds the limit"),
        (b'"a\nb"', "Invalid control character"),
        ("\ufeff{}", "Expecting value"),
    ],
)
def test_what_is_not_json_is_a_parse_error_that_says_why(body: bytes | str, reason: str) -> None:
    message = malformed(body)
    assert message.id is None
    assert message.error.code == PARSE_ERROR
    assert reason in str(message.error.data)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ('{"id":1.0,"method":"m"}', Request(1, "m")),
        ('{"id":-2e1,"method":"m"}', Request(-20, "m")),
        ('{"id":1,"method":"m","params":null,"result":null,"error":null}', Request(1, "m")),
        ('{"id":null,"method":"notifications/m"}', Notification("notifications/m")),
        ('{"id":"a","method":null,"result":{},"error":null}', Response("a", {})),
        ('{"id":1.0,"method":null,"error":{}}', Response(1, None, {})),
    ],
)
def test_a_message_is_read_whatever_wrote_its_numbers_and_what_it_lacks(
    written: str, message: object
) -> None:
    decoded = decode('{"jsonrpc":"2.0",' + written[1:])
    assert decoded == message
    assert repr(decoded) == repr(message)


@pytest.mark.parametrize(
    "written",
    [
        *(f'{{"id":{id_},"method":"m"}}' for id_ in ("null", "1.5", "1e999", "true", "[1]", "{}")),
        '{"id":1.5,"method":"notifications/m"}',
        '{"id":null,"method":"notification"}',
        '{"id":null,"method":["notifications/"]}',
        '{"id":null,"method":null}',
    ],
)
def test_a_message_with_an_id_that_no_response_can_name_is_refused(written: str) -> None:
    refused = malformed('{"jsonrpc":"2.0",' + written[1:])
    assert (refused.id, refused.error.code) == (None, INVALID_REQUEST)
    assert "id" in refused.error.message


@pytest.mark.parametrize("extra", [0, 1])
def test_a_batch_holds_as_many_messages_as_allowed_and_no_more(extra: int) -> None:
    count = MAX_BATCH_MESSAGES + extra
    message = decode(b"[" + b",".join([b"1"] * count) + b"]")
    if extra:
        assert isinstance(message, Malformed)
        assert message.error.code == INVALID_REQUEST
        assert str(MAX_BATCH_MESSAGES) in str(message.error.data)
    else:
        assert isinstance(message, list)
        assert len(message) == count


# Batches


@given(
    st.lists(st.sampled_from(["response", "call", "cancelled"])),
    st.randoms(use_true_random=False),
)
def test_a_batch_is_answered_once_with_its_last_response_and_holds_all_of_them(
    kinds: list[str], random: Random
) -> None:
    batch = Batch()
    owed = [number for number, kind in enumerate(kinds) if kind != "cancelled"]
    pending: list[Response | None] = [None]  # the batch itself, until it is read
    for number, kind in enumerate(kinds):
        if kind == "response":
            batch.responses.append(Response(number))
        else:
            batch.pending += 1
            pending.append(Response(number) if kind == "call" else None)
    random.shuffle(pending)
    *before, last = [list(batch.settle(each)) for each in pending]
    assert not any(before)
    assert sorted(each.id for each in last if isinstance(each.id, int)) == owed


# What the log shows


@pytest.mark.parametrize("extra", [0, 1])
def test_a_value_is_shown_up_to_two_hundred_characters(extra: int) -> None:
    text = "x" * (LOGGED_CHARACTERS - 2 + extra)
    assert LOGGED_CHARACTERS == 200
    assert preview(text) == (f'"{text}... (201 characters)' if extra else f'"{text}"')


@pytest.mark.parametrize("text", ["a\u202eb", "\u2028\x85\n", "\ud800", "\u3164", "\U000e0041"])
def test_hidden_characters_are_shown_as_json_escapes_them(text: str) -> None:
    shown = preview({text: [text]})
    assert shown.isascii()
    assert json.loads(shown) == {text: [text]}
    assert preview("Grüße") == '"Grüße"'


def test_what_is_nested_too_deeply_to_be_shown_is_told_so() -> None:
    nested: object = 1
    for _ in range(100_000):
        nested = [nested]
    assert preview(nested) == "(nested too deeply)"


@pytest.mark.parametrize(
    ("value", "decoded"),
    [
        ({"tools": [{"name": "echo"}, 3, None, [], {}]}, [{"name": "echo"}, {}]),
        ({"tools": {"name": "echo"}}, []),
        ({}, []),
        ([{"tools": []}], []),
        (None, []),
    ],
)
def test_the_objects_of_a_list_are_found_among_whatever_else_it_has(
    value: object, decoded: list[object]
) -> None:
    assert objects(value, "tools") == decoded
