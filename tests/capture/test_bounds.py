"""What is learned from a log is kept within bounds, however many shapes the log has."""

import tracemalloc
from xml.etree.ElementTree import XML

import pytest

from bridge.capture import fragments
from bridge.capture import reader as reading
from bridge.capture.directions import MAX_HEAD, MAX_SHAPES, Directions, shape_of
from bridge.capture.fragments import MAX_BEHIND_TAG, Fragments, Line
from tests.capture.test_reader import read

MESSAGE = "<message from='ann@example.org/a' type='chat'><body>hi {}</body></message>"
TAG = "<message from='ann@example.org/a' type='chat'>"


@pytest.mark.parametrize(("places", "times"), [(MAX_SHAPES - 1, 1), (MAX_SHAPES, 0)])
def test_a_place_beyond_the_most_counts_as_never_met(places: int, times: int) -> None:
    learned = Directions()
    for number in range(places):
        learned.is_own(f"place {number}")
    learned.is_own("last")
    assert learned.times_met("last") == times


def test_shapes_beyond_the_most_take_no_memory() -> None:
    learned, element = Directions(), XML(MESSAGE)

    def meet(numbers: range) -> None:
        for number in numbers:
            shape = f"{chr(number)} recv {'x' * 300}: "
            learned.learn(shape, "", [element])
            learned.place_of(shape)

    tracemalloc.start()
    try:
        meet(range(0x4E00, 0x4E00 + 3 * MAX_SHAPES))
        before, _ = tracemalloc.get_traced_memory()
        meet(range(0x4E00 + 3 * MAX_SHAPES, 0x4E00 + 4 * MAX_SHAPES))
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < MAX_SHAPES * 10


@pytest.mark.parametrize("length", [MAX_HEAD, MAX_HEAD + 1, 100 * MAX_HEAD])
def test_of_a_long_text_before_the_xml_only_the_beginning_and_the_end_count(length: int) -> None:
    head = f"INFO {'x' * (length - len('INFO ') - len(' RECV: '))} RECV: "
    shape, _ = shape_of(head)
    assert (shape == head, len(shape)) == (length <= MAX_HEAD, MAX_HEAD)
    assert (shape[:5], shape[-7:]) == ("INFO ", " RECV: ")


@pytest.mark.parametrize(("most", "stanzas"), [(2, 6), (1, 10)])
def test_a_logger_that_repeats_stanzas_is_known_among_so_many_shapes(
    monkeypatch: pytest.MonkeyPatch, most: int, stanzas: int
) -> None:
    monkeypatch.setattr(reading, "MAX_SHAPES", most)
    written = [MESSAGE.format(number) for number in range(5)]
    lines = [line for xml in written for line in (f"first RECV: {xml}", f"again RECV: {xml}")]
    assert len(read(lines)) == stanzas


@pytest.mark.parametrize(("most", "waits"), [(2, False), (1, True)])
def test_a_logger_that_prints_first_tags_is_known_among_so_many_shapes(
    monkeypatch: pytest.MonkeyPatch, most: int, waits: bool
) -> None:
    monkeypatch.setattr(fragments, "MAX_SHAPES", most)
    assert _waits([f"a RECV: {TAG}", f"b RECV: {TAG}"] * 3) is waits


@pytest.mark.parametrize(("most", "waits"), [(2, True), (1, False)])
def test_a_logger_that_prints_whole_stanzas_is_known_among_so_many_shapes(
    monkeypatch: pytest.MonkeyPatch, most: int, waits: bool
) -> None:
    monkeypatch.setattr(fragments, "MAX_SHAPES", most)
    whole = [f"{name} RECV: {MESSAGE}" for name in "ab"]
    assert _waits([*whole, *[f"a RECV: {TAG}"] * 3]) is waits


@pytest.mark.parametrize(
    ("begin", "entries", "waits"),
    [
        (TAG, MAX_BEHIND_TAG, True),
        (TAG, MAX_BEHIND_TAG + 1, False),
        (f"{TAG}<body>", 2 * MAX_BEHIND_TAG, True),
    ],
)
def test_behind_a_first_tag_its_stanza_is_awaited_for_so_many_lines(
    begin: str, entries: int, waits: bool
) -> None:
    read_so_far = Fragments("log")
    for number, text in enumerate([f"a RECV: {begin}", *[f"b RECV: {MESSAGE}"] * entries]):
        read_so_far.feed(Line(text, number))
    assert read_so_far.is_open is waits


def _waits(lines: list[str]) -> bool:
    """Whether the last line, which has a first tag, is taken for the beginning of a stanza."""
    read_so_far = Fragments("log")
    for number, text in enumerate(lines):
        read_so_far.cut_off()
        read_so_far.feed(Line(text, number))
    return read_so_far.is_open
