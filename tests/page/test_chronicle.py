"""What a page keeps of what happened, and what it leaves out."""

import pytest

from bridge.page.chronicle import MAX_BODY_CHARACTERS, MAX_WEIGHT, Chronicle, Course
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import MAX_EVENTS, Bar, Hole, Timeline
from bridge.text import iso, memory_of

ROOM = "ops@conference.example"


def chronicle(most: int = MAX_EVENTS, *, pseudonyms: bool = False) -> tuple[Chronicle, Course]:
    return Chronicle(Pseudonyms(on=pseudonyms), most), Course("room", ROOM)


def said(body: str) -> dict[str, object]:
    return {"kind": "message", "direction": "in", "sender": "Ann", "body": body, "source": "live"}


def drawn(kept: Chronicle, course: Course) -> Timeline:
    return kept.timeline("log", [course], 9.0)


@pytest.mark.parametrize("most", [7, MAX_EVENTS, MAX_EVENTS + 5])
@pytest.mark.parametrize("more", [0, 1])
def test_the_newest_events_are_kept_and_the_older_counted(most: int, more: int) -> None:
    kept, course = chronicle(most)
    count = min(most, MAX_EVENTS)
    for number in range(count + more):
        kept.take(course, number, said(f"number {number}"))
    timeline = drawn(kept, course)
    (part,) = timeline.parts
    assert (len(part.events), timeline.left_out) == (count, more)
    assert [event.id for event in part.events] == [f"e{n + 1}" for n in range(count)]
    assert part.events[0].body == f"number {more}"
    assert part.from_ == part.events[0].at == more * 1_000


def test_long_events_are_cut() -> None:
    kept, course = chronicle()
    xml = "<message><body>" + "x" * 100_000 + "</body></message>"
    kept.take(course, 1, said("y" * MAX_BODY_CHARACTERS))
    kept.take(course, 1, said("y" * (MAX_BODY_CHARACTERS + 1)), stanzas=[xml])
    whole, cut = drawn(kept, course).parts[0].events
    assert whole.body == "y" * MAX_BODY_CHARACTERS
    assert cut.body == "y" * MAX_BODY_CHARACTERS + f"... ({MAX_BODY_CHARACTERS + 1} characters)"
    assert cut.stanzas[0] == xml[:MAX_BODY_CHARACTERS] + f"... ({len(xml)} characters)"


@pytest.mark.parametrize("last", ["z", "\N{GRINNING FACE}"])
def test_of_very_many_long_events_fewer_are_kept(last: str) -> None:
    kept, course = chronicle()
    body = "z" * (MAX_BODY_CHARACTERS - 1) + last
    for _ in range(2 * MAX_WEIGHT // memory_of(body)):
        kept.take(course, 1, said(body))
    timeline = drawn(kept, course)
    sizes = sum(memory_of(event.body) for event in timeline.parts[0].events)
    assert MAX_WEIGHT - 2 * memory_of(body) < sizes <= MAX_WEIGHT
    assert timeline.left_out > 0


def test_the_stages_of_connecting_are_bars_and_a_fault_is_why_one_failed() -> None:
    kept, course = chronicle()
    phases = ["resolving", "connecting", "waiting", "connecting", "authenticating"]
    for number, phase in enumerate(phases):
        exact = {"kind": "connection", "phase": phase}
        if phase == "waiting":
            exact |= {"condition": "connection-refused", "text": "Nothing listens.", "hint": ""}
        kept.take(course, number, exact)
    kept.take(course, 5, {"kind": "connection", "service": "xmpp://x", "tls": "none", "sasl": ""})
    (part,) = drawn(kept, course).parts
    assert part.stages == (
        Bar("resolving", 0, 1_000, ok=True),
        Bar("connecting", 1_000, 2_000, ok=False, detail="Nothing listens."),
        Bar("waiting", 2_000, 3_000, ok=True),
        Bar("connecting", 3_000, 4_000, ok=True),
        Bar("authenticating", 4_000, 5_000, ok=True),
    )
    assert [event.severity for event in part.events] == ["", "", "error", "", "", ""]


def test_a_gap_is_a_time_and_an_event_and_hidden_characters_show() -> None:
    kept, course = chronicle()
    kept.take(course, 60, {"kind": "gap", "from": iso(20), "to": iso(50)})
    kept.take(course, 61, said("a\u202eb\nc"), room=ROOM)
    (part,) = drawn(kept, course).parts
    text = f"* what was said from {iso(20)} to {iso(50)} may be missing"
    assert part.gaps == (Hole(20_000, 50_000, text),)
    assert [event.text for event in part.events] == [text, "<Ann> a\\u{202E}b\\u{A}c"]
    assert part.events[1].body == "a\\u{202E}b\nc"
    assert part.events[1].lane == 0


def test_what_a_status_code_means_is_said_in_words_and_without_words_by_its_number() -> None:
    kept, course = chronicle()
    for codes, meaning in (([307], ["kicked"]), ([399], [])):
        left = {"kind": "leave", "sender": "Ann", "codes": codes, "meaning": meaning}
        kept.take(course, 1, left)
    (part,) = drawn(kept, course).parts
    assert [event.text for event in part.events] == ["* <Ann> left [kicked]", "* <Ann> left [399]"]


def test_what_filters_leave_out_still_tells_how_connecting_went() -> None:
    kept, course = chronicle()
    kept.take(course, 1, {"kind": "connection", "phase": "joining"}, listed=False)
    kept.take(course, 2, said("hi"))
    (part,) = drawn(kept, course).parts
    assert (len(part.events), part.stages) == (1, (Bar("joining", 1_000, 2_000, ok=True),))


@pytest.mark.parametrize("pseudonyms", [False, True])
def test_the_first_line_says_whose_words_they_are_and_whether_names_are_replaced(
    pseudonyms: bool,
) -> None:
    kept, course = chronicle(pseudonyms=pseudonyms)
    kept.words.learn({}, ROOM)
    kept.take(course, 1, said("hi"))
    timeline = drawn(kept, course)
    assert (timeline.pseudonyms, timeline.title) == (
        pseudonyms,
        "room1@host1.example" if pseudonyms else ROOM,
    )
    assert timeline.title in timeline.notice
    assert f"Pseudonyms: {'on' if pseudonyms else 'off'}" in timeline.notice
