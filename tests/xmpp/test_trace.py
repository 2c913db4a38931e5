from gc import collect
from sys import getsizeof
from weakref import ref
from xml.etree.ElementTree import Element, SubElement, tostring

import pytest

from bridge.xmpp.events import SubjectChanged
from bridge.xmpp.journal import Journal, Numbering
from bridge.xmpp.trace import (
    ELEMENT_WEIGHT,
    MAX_PIECE_WEIGHT,
    REDACTED,
    Trace,
    TracedStanza,
)
from tests.xmpp.test_journal import since

EMPTY_WEIGHT = ELEMENT_WEIGHT + getsizeof("")
"""Of an element with a text, without the characters of that."""


def _weighing(weight: int) -> Element:
    """Return an element that weighs this."""
    element = Element("body")
    element.text = "x" * (weight - EMPTY_WEIGHT)
    return element


def _kept(trace: Trace) -> list[TracedStanza]:
    return [*reversed(trace)][::-1]


def test_a_piece_is_kept_with_its_way_its_connection_and_its_time() -> None:
    trace = Trace(Numbering("epoch"))
    element = Element("presence")
    trace.append("out", "1", "<stream:stream>", 1.5)
    trace.append("in", "2", element, 2.5)
    first, second = _kept(trace)
    assert first == TracedStanza(1, 1.5, "out", "1", "<stream:stream>")
    assert isinstance(second.xml, Element)
    assert second.xml.tag == "presence"
    assert second == TracedStanza(2, 2.5, "in", "2", second.xml)
    assert (len(trace), trace.cursor, trace.forgotten) == (2, "epoch-2", 0)


def test_events_and_stanzas_share_their_cursors() -> None:
    journal = Journal("epoch")
    trace = Trace(journal.numbering)
    trace.append("out", "1", "<a/>", 0)
    event = journal.append(SubjectChanged("b"), 0)
    trace.append("in", "1", "<c/>", 0)
    assert journal.cursor == trace.cursor == "epoch-3"
    (after,), loss = since(trace, journal.cursor_of(event.number))
    assert (after.number, loss) == (3, None)
    assert since(journal, trace.cursor_of(1)) == ([event], None)
    assert since(journal, trace.cursor_of(3)) == ([], None)


def test_what_one_forgets_is_no_loss_of_the_other() -> None:
    journal = Journal("epoch", 1)
    trace = Trace(journal.numbering, 1)
    start = journal.cursor
    for _ in range(2):
        trace.append("in", "1", "<a/>", 0)
    event = journal.append(SubjectChanged("kept"), 0)
    assert since(journal, start) == ([event], None)
    assert since(trace, start)[1] is not None


def test_the_oldest_makes_room_at_the_capacity() -> None:
    trace = Trace(Numbering("epoch"), 2)
    for _ in range(3):
        trace.append("in", "1", "<a/>", 0)
    assert [one.number for one in _kept(trace)] == [2, 3]


def test_the_oldest_makes_room_beyond_the_greatest_weight_and_not_at_it() -> None:
    trace = Trace(Numbering("epoch"), max_weight=2_000)
    trace.append("in", "1", _weighing(1_000), 0)
    trace.append("in", "1", _weighing(1_000), 0)
    assert len(trace) == 2
    trace.append("in", "1", _weighing(EMPTY_WEIGHT + 1), 0)
    assert [one.number for one in _kept(trace)] == [2, 3]


def test_attributes_weigh_too_and_wide_characters_weigh_what_they_take() -> None:
    element = Element("a", {"b": "c" * 100})
    SubElement(element, "d").tail = "\U0001f600" * 100
    weight = 2 * ELEMENT_WEIGHT + getsizeof("c" * 100) + getsizeof("\U0001f600" * 100)
    for limit, kept in ((weight, 1), (weight - 1, 0)):
        trace = Trace(Numbering("epoch"), max_weight=limit)
        trace.append("in", "1", element, 0)
        assert len(trace) == kept


def test_a_piece_that_is_too_heavy_is_named_and_pushes_out_nothing() -> None:
    trace = Trace(Numbering("epoch"))
    before, heaviest, heavier = Element("before"), *map(_weighing, _edges())
    for element in (before, heaviest, heavier):
        trace.append("in", "1", element, 0)
    first, second, third = (one.xml for one in _kept(trace))
    assert isinstance(first, Element)
    assert isinstance(second, Element)
    assert (first.tag, second.text) == ("before", heaviest.text)
    assert third == (
        f"<!-- left out: {MAX_PIECE_WEIGHT + 1} bytes in memory are too many to keep -->"
    )


def _edges() -> tuple[int, int]:
    return MAX_PIECE_WEIGHT, MAX_PIECE_WEIGHT + 1


def test_text_that_is_too_long_is_left_out_like_any_piece() -> None:
    trace = Trace(Numbering("epoch"))
    trace.append("in", "1", f"<stream:stream id='{'x' * MAX_PIECE_WEIGHT}'>", 0)
    (kept,) = _kept(trace)
    assert isinstance(kept.xml, str)
    assert kept.xml.startswith("<!-- left out: ")


def test_a_stanza_of_nothing_but_elements_does_not_wipe_out_the_rest() -> None:
    # 256 kB on the wire, which every server lets through.
    flood = Element("message")
    flood.extend(Element("a") for _ in range(64_000))
    trace = Trace(Numbering("epoch"))
    trace.append("in", "1", Element("before"), 0)
    for _ in range(10):
        trace.append("in", "1", flood, 0)
    assert len(trace) == 11


def test_secrets_are_gone_before_anything_is_kept() -> None:
    trace = Trace(Numbering("epoch"))
    element = Element("auth")
    element.text = "c2VjcmV0"
    trace.append("out", "1", element, 0)
    (kept,) = _kept(trace)
    assert isinstance(kept.xml, Element)
    assert tostring(kept.xml, "unicode") == f"<auth>{REDACTED}</auth>"
    assert element.text == "c2VjcmV0"


def test_nothing_holds_on_to_what_is_evicted() -> None:
    trace = Trace(Numbering("epoch"), 1)
    trace.append("in", "1", Element("message"), 0)
    (kept,) = _kept(trace)
    assert isinstance(kept.xml, Element)
    watched = ref(kept.xml)
    del kept
    assert watched() is not None
    trace.append("in", "1", "<a/>", 0)
    collect()
    assert watched() is None


@pytest.mark.parametrize("capacity", [0, 1, 3])
def test_a_trace_tells_what_it_forgot(capacity: int) -> None:
    trace = Trace(Numbering("epoch"), capacity)
    for _ in range(5):
        trace.append("in", "1", "<a/>", 0)
    assert trace.forgotten == 5 - capacity
