import itertools
import json
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.mcp.framing import (
    MAX_HEADER_BYTES,
    MAX_SKIPPED_BYTES,
    Frame,
    Framer,
    Framing,
    SkippedInput,
    encode,
)

LIMIT = 40
"""Small enough for hypothesis to cross, large enough for a `Content-Length` header."""

PIECES = (
    b"{}",
    b'{"id":1}',
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"\xef\xbb\xbf",
    b"Content-Length: 2",
    b"content-length:7\r\n\r\n",
    b"Content-Length: 41\r\n\r\n",
    b"Content-Type: application/json\r\n",
    b"Content-Length: 0\n\n",
    b"Content-",
    b"X: y\n",
    b"x" * LIMIT,
    b"x" * (LIMIT + 1),
    b"\x00\xff",
)

streams = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4)), max_size=25).map(b"".join),
)
bodies = st.one_of(
    st.dictionaries(st.text(max_size=2), st.text(max_size=4), max_size=2).map(
        lambda value: json.dumps(value).encode()[:LIMIT].strip()
    ),
    st.binary(min_size=1, max_size=LIMIT).filter(
        lambda body: (
            b"\n" not in body
            and body == body.strip(b" \t\r")
            and not body.startswith((b"\xef\xbb\xbf", b"{", b"["))
            and not body.lower().startswith(b"content-")
        )
    ),
)
frames = st.builds(Frame, bodies, st.sampled_from(Framing))


def cut(stream: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    for start, end in itertools.pairwise(edges):
        yield stream[start:end]


def read(*chunks: bytes, limit: int = LIMIT) -> list[Frame | SkippedInput]:
    framer = Framer(limit)
    return [each for chunk in chunks for each in framer.feed(chunk)] + framer.end()


@given(streams, st.lists(st.integers(0, 1000), max_size=10))
def test_the_same_frames_within_the_limit_come_out_however_the_bytes_are_chunked(
    stream: bytes, places: list[int]
) -> None:
    whole = read(stream)
    assert read(*cut(stream, places)) == whole
    assert read(*(bytes([byte]) for byte in stream)) == whole
    for frame in whole:
        assert isinstance(frame, SkippedInput) or 0 < len(frame.body) <= LIMIT


@given(st.lists(frames, max_size=8), st.lists(st.integers(0, 1000), max_size=10))
def test_what_is_written_is_read_back_in_the_same_framings(
    written: list[Frame], places: list[int]
) -> None:
    assert read(*cut(b"".join(map(encode, written)), places)) == written


def test_a_line_as_long_as_the_limit_is_read_and_one_byte_more_is_not() -> None:
    too_long = SkippedInput("a line is longer than 40 bytes")
    for ending in (b"\n", b"\r\n"):
        assert read(b"x" * LIMIT + ending) == [Frame(b"x" * LIMIT)]
        assert read(b"x" * (LIMIT + 1) + ending) == [too_long]
    assert read(b"x" * LIMIT) == [Frame(b"x" * LIMIT)]


def test_an_endless_line_is_refused_once_and_not_kept_in_memory() -> None:
    framer = Framer(LIMIT)
    frames = [each for _ in range(1000) for each in framer.feed(b"x" * 1000)]
    assert frames == [SkippedInput("a line is longer than 40 bytes")]
    assert len(framer._buffer) <= LIMIT + 1  # noqa: SLF001 - memory shows nowhere else
    assert framer.feed(b'y\n{"id":1}\n') == [Frame(b'{"id":1}')]


def test_a_length_at_the_limit_is_read_and_one_more_is_passed_over_whole() -> None:
    at_limit = b"Content-Length: 40\r\n\r\n" + b"x" * 40
    over = b"Content-Length: 41\r\n\r\n" + b"x" * 41
    assert read(at_limit + over + b"{}\n") == [
        Frame(b"x" * 40, Framing.HEADERS),
        SkippedInput("Content-Length is more than 40 bytes", Framing.HEADERS),
        Frame(b"{}"),
    ]


@pytest.mark.parametrize("extra", [0, 1])
def test_a_huge_length_is_passed_over_as_announced_and_one_byte_more_is_taken_for_rubbish(
    extra: int,
) -> None:
    length = MAX_SKIPPED_BYTES + extra
    error, *rest = read(b"Content-Length: %d\r\n\r\n{}\n" % length)
    assert error == SkippedInput("Content-Length is more than 40 bytes", Framing.HEADERS)
    assert rest == ([Frame(b"{}")] if extra else [])


@pytest.mark.parametrize("length", [b"9" * 19, b"9" * 5000])
def test_a_length_beyond_all_measure_holds_nothing_up(length: bytes) -> None:
    error, frame = read(b"Content-Length: " + length + b"\r\n\r\n{}\n", limit=10**6)
    assert isinstance(error, SkippedInput)
    assert frame == Frame(b"{}")


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 2\n" + b"X: ".ljust(MAX_HEADER_BYTES - 17, b"x"),
        b"Content-Length:" + b" " * (MAX_HEADER_BYTES - 16) + b"2",
    ],
    ids=["two", "the first alone"],
)
def test_headers_may_fill_their_limit_and_not_a_byte_more(headers: bytes) -> None:
    assert read(headers + b"\n\n{}", limit=10**6) == [Frame(b"{}", Framing.HEADERS)]
    (error, *_) = read(headers + b"2\n\n{}", limit=10**6)
    assert error == SkippedInput("headers are longer than 8192 bytes", Framing.HEADERS)


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"Content-Length: 7", "input ended within headers"),
        (b"Content-Length: 7\r\n\r\n{1", "input ended 5 bytes short of its Content-Length"),
        (b"x" * 60, "a line is longer than 40 bytes"),
        (b"Content-Length: 60\r\n\r\n{}", "Content-Length is more than 40 bytes"),
    ],
)
def test_a_message_that_the_end_of_input_cuts_short_is_told_once(
    stream: bytes, reason: str
) -> None:
    assert [each.reason for each in read(stream) if isinstance(each, SkippedInput)] == [reason]


LONGEST = 5000
"""Of the messages below; some lengths are greater."""

texts = st.text(max_size=30) | st.sampled_from(
    ["Content-Length: 5", "Content-Length: 5\r\n\r\n", "}", "]", '{"id":1}', "[{}]C", "x" * 99]
)
values = st.recursive(texts | st.integers() | st.none(), lambda each: st.lists(each, max_size=3))


@given(
    st.lists(values, min_size=1, max_size=6),
    st.sampled_from([None, 2]),
    st.integers(0, 5),
    st.one_of(st.integers(-60, 300), st.sampled_from([-(10**6), 10**4, 10**8, 10**12])),
    st.sampled_from([b"Content-Length: %d\r\n\r\n", b"content-length:%d\n\n"]),
    st.lists(st.integers(min_value=0), max_size=20),
)
def test_a_wrong_length_costs_the_message_that_has_it_and_no_other(
    given: list[object], indent: int | None, which: int, by: int, header: bytes, places: list[int]
) -> None:
    bodies = [
        json.dumps({"params": each, "id": number}, indent=indent).encode()
        for number, each in enumerate(given)
    ]
    which %= len(bodies)
    lengths = [len(body) + by * (number == which) for number, body in enumerate(bodies)]
    stream = b"".join(
        header % max(0, length) + body for length, body in zip(lengths, bodies, strict=True)
    )
    frames = read(*cut(stream, places), limit=LONGEST)
    others = [Frame(each, Framing.HEADERS) for each in bodies[:which] + bodies[which + 1 :]]
    assert [each for each in frames if each in others] == others
    if which + 1 < len(bodies):
        whole = Frame(bodies[which], Framing.HEADERS)
        # What is too long ends where the next message begins.
        assert whole in frames or by < 0 or lengths[which] > LONGEST
        assert indent or all(each.framing is Framing.HEADERS for each in frames)


def test_a_length_that_counts_characters_is_told_to_count_bytes() -> None:
    header = b"Content-Length: 11\r\n\r\n"
    _, reason, *_ = read((header + '{"a":"äöü"}'.encode()) * 2)
    text = "3 bytes more than the Content-Length before them counts"
    assert reason == SkippedInput(text, Framing.HEADERS)


def test_the_header_of_the_next_message_ends_a_body_that_is_announced_too_long_at_once() -> None:
    first, second = b'{"id":1', b'{"id":2}'
    framer = Framer()
    assert framer.feed(b"Content-Length: 5000\r\n\r\n" + first) == []
    assert framer.feed(b"Content-Length: 8\r\n") == [Frame(first, Framing.HEADERS)]
    assert framer.feed(b"\r\n" + second) == [Frame(second, Framing.HEADERS)]


@given(
    st.lists(st.tuples(values, st.integers(0, 200), st.text(" \t\r\n", max_size=5)), max_size=5),
    st.sampled_from([b"Content-Length: %d\r\n\r\n", b"Content-Length: %d\n\n"]),
    st.lists(st.integers(min_value=0), max_size=20),
)
def test_a_body_that_is_whole_before_its_length_is_up_is_handed_over_with_its_last_byte(
    given: list[tuple[object, int, str]], header: bytes, places: list[int]
) -> None:
    framer = Framer(LONGEST)
    bodies = [json.dumps({"params": value}).encode() for value, _, _ in given]
    frames = []
    for body, (_, surplus, blanks) in zip(bodies, given, strict=True):
        for chunk in cut(header % (len(body) + surplus) + body, places):
            frames += framer.feed(chunk)
        assert frames[-1] == Frame(body, Framing.HEADERS)
        frames += framer.feed(blanks.encode())
    frames += framer.feed(b'{"id":1}\n')
    assert frames == [*(Frame(body, Framing.HEADERS) for body in bodies), Frame(b'{"id":1}')]


@pytest.mark.parametrize(
    ("body", "whole"),
    [
        (b'{"a":"}\\"}"}', b'{"a":"}\\"}"}'),
        (b'  [["]"],{}] ', b'  [["]"],{}]'),
        (b'{"a":"\\\\"}x', b'{"a":"\\\\"}'),
        (b"{]}", b"{]"),
        (b'"a" {}', None),
        (b"1 [] ", None),
        (b'{"a":"x}', None),
        (b"}{}", None),
    ],
)
def test_only_brackets_outside_of_texts_end_a_body(body: bytes, whole: bytes | None) -> None:
    frames = read(b"Content-Length: 39\r\n\r\n" + body)
    assert (frames[0] == Frame(whole or b"", Framing.HEADERS)) is (whole is not None)


WHOLE = {
    "headers": b'{"a":"' + b"Content-Length: 5" * (2**23 // 17) + b'"}',
    "escapes": b'["' + rb"\\" * 2**22 + b'"]',
    "short texts": b"[" + b'"a",' * 2**21 + b"1]",
    "numbers": b"[" + b"1," * 2**22 + b"1]",
    "blanks": b" " * 2**23 + b"{}",
}
"""Bodies of 8 MiB, each with what a search would have to begin anew at in each chunk."""


@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
@pytest.mark.parametrize("announced", [0, 15 * 2**20])
def test_a_large_body_is_searched_once(announced: int, body: bytes) -> None:
    framer = Framer(2**20 if announced else 2**24)
    data = b"Content-Length: %d\r\n\r\n" % (announced or len(body)) + body
    began = time.process_time()
    frames = [
        each for at in range(0, len(data), 4096) for each in framer.feed(data[at : at + 4096])
    ]
    frames += framer.feed(b"Content-Length: 2\r\n\r\n{}")
    assert len(frames) == 2
    assert frames[1] == Frame(b"{}", Framing.HEADERS)
    assert time.process_time() - began < 20  # what is searched anew in each chunk takes minutes
