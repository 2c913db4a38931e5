import ctypes
from weakref import ref
from xml.etree.ElementTree import Element

import pytest

from bridge.wire.xmlstream import MAX_NAMESPACE_BYTES
from bridge.xmpp.link.trace import (
    CHARACTER_WEIGHT,
    MAX_PIECE_WEIGHT,
    NAME_WEIGHT,
    Trace,
    TracedStanza,
)
from bridge.xmpp.model.events import SubjectChanged
from bridge.xmpp.model.journal import Journal, Loss, Numbering
from tests.support.memory import traced
from tests.xmpp.elements import append, parsed
from tests.xmpp.model.test_journal import since


def _kept(trace: Trace) -> list[TracedStanza]:
    return [*reversed(trace)][::-1]


def test_events_and_stanzas_share_their_cursors() -> None:
    journal = Journal("epoch")
    trace = Trace(journal.numbering)
    append(trace, "out", "1", "<a/>", 0)
    event = journal.append(SubjectChanged("b"), 0)
    append(trace, "in", "1", "<c/>", 0)
    assert journal.cursor == trace.cursor == "epoch-3"
    (after,), loss = since(trace, journal.cursor_of(event.number))
    assert (after.number, loss) == (3, None)
    assert since(journal, trace.cursor_of(1)) == ([event], None)
    assert since(journal, trace.cursor_of(3)) == ([], None)
    trace.evict()
    trace.evict()
    start = journal.cursor_of(0)  # what one forgets is no loss of the other
    assert since(journal, start) == ([event], None)
    assert since(trace, start)[1] == Loss(1, 3, "evicted")


def _weighing(weight: int) -> bytes:
    """Return what a piece without tags has to be on the wire to weigh this."""
    raw = b"\xff" * ((weight - NAME_WEIGHT) // CHARACTER_WEIGHT)
    assert NAME_WEIGHT + CHARACTER_WEIGHT * len(raw) == weight
    return raw


def test_the_oldest_makes_room_beyond_the_greatest_weight_and_not_at_it() -> None:
    least = NAME_WEIGHT + CHARACTER_WEIGHT
    trace = Trace(Numbering("epoch"), max_weight=2 * least)
    for weight, kept in ((least, [1]), (least, [1, 2]), (least + CHARACTER_WEIGHT, [3])):
        trace.append("in", "1", Element("body"), _weighing(weight), 0)
        assert [each.number for each in _kept(trace)] == kept


LONG = "n" * MAX_NAMESPACE_BYTES
HEAVY = {
    "a message": "<message from='r@s/Wilma' type='groupchat'><body>hello</body></message>",
    "wide characters": "<message><body>" + "x" * 10_000 + "\U0001f600</body></message>",
    "a wide character by its number": "<message>" + "x" * 10_000 + "&#128512;</message>",
    "a letter": "<message><body>" + "x" * 10_000 + "</body></message>",
    "empty elements": "<message>" + "<a/>" * 8_000 + "</message>",
    "elements of many names": "<message>"
    + "".join(f"<a{n}/>" for n in range(8_000))
    + "</message>",
    "attributes": "<message " + " ".join(f"a{n}=''" for n in range(8_000)) + "/>",
    "names in a long namespace": f"<a:b xmlns:a='{LONG}'>"
    + "".join(f"<a:b{n} a:c{n}=''/>" for n in range(4_000))
    + "</a:b>",
}


@pytest.mark.parametrize("xml", HEAVY.values(), ids=HEAVY)
def test_a_stanza_takes_hardly_more_memory_than_it_weighs(xml: str) -> None:
    raw = xml.encode()
    with traced() as memory:
        kept = parsed(xml)
        for text in filter(None, (part.text for part in kept.iter())):
            ctypes.pythonapi.PyUnicode_AsUTF8(ctypes.py_object(text))  # keeps it in UTF-8 as well
        taken, _ = memory()
    for limit, expected in ((taken // 2, 0), (taken - 1_000, 0), (20 * len(raw) * NAME_WEIGHT, 1)):
        trace = Trace(Numbering("epoch"), max_weight=limit)
        trace.append("in", "1", kept, raw, 0)
        assert len(trace) == expected


def test_a_heavy_piece_is_named_and_pushes_out_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(Numbering("epoch"))
    for tag, weight in (("before", 750), ("heaviest", HEAVIEST)):
        trace.append("in", "1", Element(tag), _weighing(weight), 0)
    monkeypatch.setattr("bridge.xmpp.link.trace.redacted", lambda _: pytest.fail("was searched"))
    trace.append("in", "1", Element("heavier"), _weighing(HEAVIEST + CHARACTER_WEIGHT), 0)
    *kept, third = (each.xml for each in _kept(trace))
    assert [each.tag for each in kept if isinstance(each, Element)] == ["before", "heaviest"]
    size = (HEAVIEST + CHARACTER_WEIGHT - NAME_WEIGHT) // CHARACTER_WEIGHT
    assert third == f"<!-- left out: {size} bytes are too many to keep -->"


HEAVIEST = MAX_PIECE_WEIGHT - (MAX_PIECE_WEIGHT - NAME_WEIGHT) % CHARACTER_WEIGHT


def test_nothing_holds_on_to_what_is_evicted() -> None:
    trace = Trace(Numbering("epoch"), 1)
    append(trace, "in", "1", Element("message"), 0)
    (kept,) = _kept(trace)
    assert isinstance(kept.xml, Element)
    watched = ref(kept.xml)
    del kept
    assert watched() is not None
    append(trace, "in", "1", "<a/>", 0)
    assert watched() is None


def test_the_number_of_a_stanza_is_known_as_long_as_it_is_kept_redacted_or_not() -> None:
    trace = Trace(Numbering("epoch"), 2)
    stanzas = [parsed(f"<message id='{number}'><key>s</key></message>") for number in range(3)]
    for stanza in stanzas:
        append(trace, "in", "1", stanza, 0)
    assert [trace.number_of(stanza) for stanza in stanzas] == [0, 2, 3]
