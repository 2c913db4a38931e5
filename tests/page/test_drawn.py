"""A page in Chromium: what it shows, how it is found, and by whom it can be used."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bridge.page.timeline import encode
from docs.page_picture import incident as recorded
from tests.page.chromium import SETTLED, Window, showing
from tests.page.samples import START, crowd, incident
from tests.support.prerequisites import npm_packages

INCIDENT = encode(incident())
CROWD = encode(crowd(200, 500))
REFUSED = INCIDENT["parts"][0]["findings"][0]["event"]
"""The event of the incident that explains the others."""

Show = Callable[..., AbstractContextManager[Window]]


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Show:
    return partial(showing, browser, tmp_path)


def room(*events: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A page of one room, with events at so many seconds, of the kind "message" if none is said."""
    defaults = {"kind": "message", "text": "hello"}
    told = [
        {"id": f"e{number}", **defaults, **event, "at": START + round(1_000 * event["at"])}
        for number, event in enumerate(events, 1)
    ]
    part = {"id": "p1", "kind": "room", "title": "a@b", "from": START, "to": told[-1]["at"]}
    page = {**INCIDENT, "parts": [{**part, "events": told}]}
    for name, value in fields.items():
        (page if name in {"zone", "leftOut", "verdict"} else page["parts"][0])[name] = value
    return page


def options(page: Page) -> Locator:
    return page.get_by_role("option").and_(page.locator("[role=option]:visible"))


def texts(page: Page) -> str:
    return str(
        page.evaluate(
            "[...document.querySelectorAll('.drawing span:not(.mark)')]"
            ".filter(it => it.checkVisibility()).map(it => it.firstChild?.data).join('\\n')"
        )
    )


def test_it_says_first_whose_words_it_has_and_then_what_went_wrong(show: Show) -> None:
    with show(room({"at": 0}, leftOut=123_456, verdict="Nothing went wrong.")) as window:
        lines = [it for it in window.page.inner_text("body").splitlines() if it]
    assert lines[0] == INCIDENT["notice"]
    assert lines[1] == INCIDENT["title"]
    assert "Nothing went wrong." in lines
    assert [each for each in lines if "Older events that are left out: 123,456." in each]


def test_it_opens_at_the_event_that_explains_the_others(show: Show) -> None:
    with show(INCIDENT) as window:
        details = window.page.get_by_role("complementary", name="The selected event")
        assert window.selected() == REFUSED
        expect(options(window.page).and_(window.page.locator(f"#{REFUSED}"))).to_be_in_viewport()
        said = details.inner_text()
    for words in ("forbidden", "Robot has no voice", "2026-11-18", "XEP-0045", "id='r17'"):
        assert words in said


def test_without_any_trouble_it_opens_at_what_happened_last(show: Show) -> None:
    with show(room({"at": 0}, {"at": 1}, {"at": 2})) as window:
        assert window.selected() == "e3"


@pytest.mark.parametrize("width", [360, 2_560])
@pytest.mark.parametrize("page", [INCIDENT, CROWD], ids=["incident", "crowd"])
def test_it_fits_into_every_window_and_no_texts_overlap(
    show: Show, page: dict[str, Any], width: int
) -> None:
    with show(page, width=width) as window:
        assert window.overflow() <= 0
        assert window.overlaps() == []


def test_everybody_in_a_crowd_has_a_lane_and_those_who_spoke_come_first(show: Show) -> None:
    page = encode(crowd(200, 3))
    with show(page) as window:
        names = [each for each in texts(window.page).splitlines() if each.startswith("Occupant")]
    assert len(names) == 200
    assert names[1:3] == ["Occupant 7", "Occupant 14"]


def test_roles_reasons_findings_and_gaps_stand_in_the_drawing(show: Show) -> None:
    with show(INCIDENT) as window:
        said = texts(window.page)
        marks = window.page.locator(".visitor, .gap, .mark.error")
        assert marks.count() >= 5
    for words in (
        "visitor, no voice, member",
        'kicked by Alice: "flooding"',
        "the bridge, participant",
        "Silent for",
        "7 min 7 s",
        "Not recorded",
        "3 min 5 s",
        "Findings",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("kind", "ourselves", "others"),
    [
        ("room", "the bridge", "The room"),
        ("stream", "this client", "The stream"),
        ("scenario", "this view", "The room"),
    ],
)
def test_a_lane_says_whose_view_it_is_and_who_was_there_before(
    show: Show, kind: str, ourselves: str, others: str
) -> None:
    lanes = [
        {"name": "Bot", "self": True, "spans": [{"from": START}]},
        {"name": "Wilma", "spans": [{"from": START - 9_000, "before": True}]},
    ]
    with show(room({"at": 0}, {"at": 9}, kind=kind, lanes=lanes)) as window:
        said = [line for line in texts(window.page).splitlines() if line]
        assert said[-4:] == [others, "Bot", ourselves, "Wilma"]
        assert window.page.locator(".stay.before").count() == 1


SILENT = [
    ([0, 59.9], {}, []),
    ([0, 60], {}, ["1 min"]),
    ([0, 93_600], {}, ["1 d 2 h"]),
    ([0, 3_605], {}, ["1 h 5 s"]),
    ([0, 10, 300], {"gaps": [(100, 120)]}, ["1 min 30 s", "3 min"]),
    ([0], {"to": START + 300_000}, ["5 min"]),
    ([0, 300], {"zone": "none"}, []),
]
"""Seconds at which something was said, and what is said of the times between."""


@pytest.mark.parametrize(("said", "fields", "told"), SILENT)
def test_a_long_silence_is_named_with_its_length_and_what_was_not_recorded_is_none(
    show: Show, said: list[float], fields: dict[str, Any], told: list[str]
) -> None:
    gaps = [
        {"from": START + first * 1_000, "to": START + last * 1_000, "text": "a gap"}
        for first, last in fields.get("gaps", [])
    ]
    page = room(*({"at": each} for each in said), **{**fields, "gaps": gaps})
    with show(page, width=2_560) as window:
        silences = window.page.locator(".lane").filter(has_text="Silent for").locator(".silence")
        assert silences.all_inner_texts() == told


def test_the_stages_of_each_connection_are_bars_and_a_failure_is_said(show: Show) -> None:
    with show(INCIDENT, at="#p2") as window:
        lists = window.page.locator("#p2 .stages:visible")
        assert lists.count() == 1  # what went well is folded
        window.page.get_by_label("connecting that went well").check()
        first = lists.nth(0).locator(".bar")
        assert lists.count() == 3
        assert first.all_inner_texts()[0].strip() == "resolving 20 ms"
        widths = [box["width"] for each in first.all() if (box := each.bounding_box())]
        assert widths[0] < widths[3]
        assert "✕ connecting 10 s no answer in 10 s" in lists.nth(1).inner_text()


LAID_OUT = {
    "<a><b x='1'>t</b><c/></a>": ["<a>", "  <b x='1'>t</b>", "  <c/>", "</a>"],
    "<a></a>": ["<a></a>"],
    "no xml": ["no xml"],
    "<a": ["<a"],
    "</a></b>": ["</a>", "</b>"],
}


def test_a_stanza_is_written_an_element_a_line(show: Show) -> None:
    with show(room({"at": 0, "stanzas": [*LAID_OUT]}), at="#e1") as window:
        shown = window.page.locator(".stanzas pre").all_inner_texts()
    assert [each.splitlines() for each in shown] == [*LAID_OUT.values()]


ANSWERS = {
    "what is the matter": ("#verdict", '"Robot" left the room at 21:54:07: kicked by "Alice"'),
    "what is to be done": ("#verdict", "The room put it out: see why, then let it join again."),
    "why was it put out": (".beside", "kicked by <Alice>: flooding"),
    "which stanza says so": ("pre", "<reason>flooding</reason>"),
    "what got no answer": ("[role=option]", "21:54:12 message<Bob> !status api? no answer"),
}
"""Five questions about a session of Prosody, a bot and `record`, and where the answers stand."""


def test_five_questions_about_an_incident_are_answered_by_what_is_seen_first(show: Show) -> None:
    with show(recorded(), timezone_id="UTC") as window:
        for question, (where, answer) in ANSWERS.items():
            matches = window.page.locator(where).filter(has_text=answer)
            assert matches.count() == 1, question
            expect(matches).to_be_in_viewport(ratio=1)
        assert window.selected() == window.page.get_by_role("option", name="left by").get_attribute(
            "id"
        )


@pytest.mark.parametrize(("width", "height"), [(390, 844), (768, 1_024), (2_560, 1_440)])
def test_at_any_width_the_verdict_and_what_explains_it_are_in_view_and_nothing_overlaps(
    show: Show, width: int, height: int
) -> None:
    with show(recorded(), width=width, height=height, timezone_id="UTC") as window:
        page = window.page
        assert window.overflow() <= 0
        assert window.overlaps() == []
        explained = page.get_by_role("complementary").get_by_text("kicked by", exact=False)
        back = page.get_by_role("button", name="Back")
        for node in (page.locator("#verdict"), explained.first, back):
            expect(node).to_be_in_viewport(ratio=1)
        boxes = [page.locator(it).bounding_box() for it in ("#notice", "main", "aside")]
        notice, main, aside = (box for box in boxes if box)
        assert notice["y"] + notice["height"] <= main["y"] + 1
        beside = main["x"] + main["width"] <= aside["x"] + 1
        assert beside or main["y"] + main["height"] <= aside["y"] + 1
        assert axe(page) == []


def test_the_largest_things_are_what_happened_in_the_room_and_the_rest_has_switches(
    show: Show,
) -> None:
    with show(recorded(), timezone_id="UTC") as window:
        page = window.page
        lanes = "McpDebug-record", "McpDebug-diagnose", "McpDebug-check"

        def drawn() -> list[str]:
            return [name for name in lanes if f"\n{name}" in texts(page)]

        shown = [drawn()]
        assert not page.locator(".bar:visible").count()
        assert not page.get_by_text("bot@localhost as").locator("visible=true").count()
        counts = [options(page).count()]
        for switch in ("the bridge's visits", "old history", "connecting that went well"):
            page.get_by_label(switch).check()
            counts.append(options(page).count())
            shown.append(drawn())
        assert shown[:2] == [[lanes[0]], [*lanes]]
        assert counts == sorted({*counts})
        assert page.locator(".bar:visible").count()
        assert page.get_by_text("bot@localhost as").locator("visible=true").count() == 2
        page.get_by_label("old history").uncheck()
        assert options(page).count() == counts[3] - 6
        page.evaluate("location.hash = '#e6'")  # an event that is folded
        assert window.selected() == "e6"
        expect(page.get_by_label("old history")).to_be_checked()


ASKED = (
    {"at": 0, "text": "<Ann> !ping", "lane": 0, "answer": "e3", "answerMs": 1_200},
    {"at": 1, "text": "<Bob> hello", "lane": 1},
    {"at": 1.2, "text": "<Bot> pong", "lane": 2},
    {"at": 5, "text": "<Ann> !ping", "lane": 0, "answered": False},
)
LANES = [{"name": name, "spans": [{"from": START}]} for name in ("Ann", "Bob", "Bot")]


def test_a_question_and_its_answer_are_one_row_and_a_missing_answer_is_marked(show: Show) -> None:
    with show(room(*ASKED, lanes=LANES)) as window:
        page = window.page
        rows = [it.split("message")[1].strip() for it in options(page).all_inner_texts()]
        assert rows == ["<Ann> !ping→ 1.2 s →<Bot> pong", "<Bob> hello", "<Ann> !ping? no answer"]
        assert page.locator(".mark.unanswered").count() == 1
        assert window.selected() == "e4"
        assert "Answer\nno answer" in page.get_by_role("complementary").inner_text()
        page.get_by_role("listbox").press("Home")
        assert "Answer\n<Bot> pong\nAfter\n1.2 s" in page.get_by_role("complementary").inner_text()
        page.get_by_role("link", name="<Bot> pong").click()
        assert (window.selected(), page.url.rpartition("#")[2]) == ("e1", "e3")
        assert "Answers\n<Ann> !ping" in page.get_by_role("complementary").inner_text()
        page.get_by_role("listbox").press("ArrowDown")
        assert window.selected() == "e2"
        page.get_by_label("Who", exact=True).select_option("Bot")  # whose answer the row has
        assert "2 of 4 events" in page.get_by_role("status").inner_text()
        assert options(page).count() == 1


def test_the_search_opens_a_part_with_hits_and_enter_the_first_of_them(show: Show) -> None:
    other = {**room({"at": 5, "id": "x1", "text": "needle"})["parts"][0], "id": "p9"}
    folded = {**other["events"][0], "id": "x2", "folded": "history"}
    page = {
        **INCIDENT,
        "parts": [*INCIDENT["parts"], {**other, "events": [*other["events"], folded]}],
    }
    with show(page) as window:
        search = window.page.get_by_label("Search")
        expect(window.page.locator("#x1")).to_be_hidden()
        search.fill("needle")
        expect(window.page.locator("#x1")).to_be_visible()
        expect(window.page.locator("#x2")).to_be_visible()
        search.press("Enter")
        assert window.selected() == "x1"
        search.press("Escape")
        expect(window.page.get_by_role("complementary")).to_be_hidden()
        window.page.locator("#x1").click()
        expect(window.page.get_by_role("complementary")).to_be_visible()


def test_what_went_wrong_is_counted_and_shown_one_after_the_other(show: Show) -> None:
    told = [{"at": at, "severity": it} for at, it in enumerate(("error", "note", "warning"))]
    with show(room(*told, {"at": 9, "answered": False})) as window:
        button = window.page.get_by_role("button", name="3 troubles: next")
        chosen = []
        for _ in range(4):
            chosen.append(window.selected())
            button.click()
        assert chosen == ["e1", "e3", "e4", "e1"]
    with show(room({"at": 0})) as window:
        expect(window.page.locator("#next")).to_be_hidden()


def test_dragging_over_the_time_line_shows_that_time_alone_in_the_list_too(show: Show) -> None:
    with show(room(*({"at": at} for at in range(0, 100, 10)))) as window:
        box = window.page.locator(".timeline").bounding_box()
        assert box is not None
        ends = [box["x"] + 150 + (box["width"] - 177) * share for share in (0.25, 0.55)]
        window.page.mouse.move(ends[1], box["y"] + 10)
        window.page.mouse.down()
        window.page.mouse.move(ends[0], box["y"] + 10)
        window.page.mouse.up()
        assert [it.get_attribute("id") for it in options(window.page).all()] == ["e4", "e5"]
        window.page.get_by_role("button", name="Whole").click()
        assert options(window.page).count() == 10


def test_an_event_out_of_the_time_that_is_seen_ends_the_zoom(show: Show) -> None:
    with show(INCIDENT) as window:
        whole = texts(window.page)
        box = window.page.locator(".track").first.bounding_box()
        assert box is not None
        window.page.mouse.move(box["x"] + 100, box["y"] + 10)
        window.page.mouse.down()
        window.page.mouse.move(box["x"] + 200, box["y"] + 10)
        window.page.mouse.up()
        expect(window.page.locator("#e1")).to_be_hidden()
        assert texts(window.page) != whole
        window.page.evaluate("location.hash = '#e1'")
        expect(window.page.locator("#e1")).to_be_visible()
        assert texts(window.page) == whole


def test_times_in_sentences_have_the_form_of_all_others_and_words_stay(show: Show) -> None:
    stamp = "2026-11-18T11:06:41.250Z"
    gap = {"at": 1, "kind": "gap", "severity": "note", "text": f"nobody recorded until {stamp}"}
    said = {"at": 2, "text": f"<Ann> (said {stamp}) {stamp}", "body": stamp}
    page = room({"at": 0}, gap, said, verdict=f"It left at {stamp}.")
    with show(page, timezone_id="Asia/Kolkata") as window:
        assert window.page.inner_text("#verdict") == "It left at 16:36:41."
        rows = [it.text_content() or "" for it in options(window.page).all()]
    assert rows[1].endswith("nobody recorded until 16:36:41")
    assert rows[2].endswith(f"<Ann> (said 16:36:41) {stamp}")


# Finding something.


def test_a_link_leads_to_a_moment_wherever_it_is(show: Show) -> None:
    page = {
        **INCIDENT,
        "parts": [*INCIDENT["parts"], {**room({"at": 5, "id": "x1"})["parts"][0], "id": "p9"}],
    }
    with show(page, at="#e60") as window:
        assert window.selected() == "e60"
        expect(window.page.locator("#e60")).to_be_in_viewport()
        window.page.evaluate("location.hash = '#x1'")
        expect(window.page.locator("#x1")).to_be_in_viewport()
        assert window.selected() == "x1"
        window.page.get_by_role("link", name="The room returned a message").first.click()
        assert window.page.url.endswith(f"#{REFUSED}")
        assert window.selected() == REFUSED
        window.page.locator("#e50").click()
        window.page.get_by_role("link", name="Link to this moment").click()
        assert window.page.url.endswith("#e50")
        window.page.go_back()
        expect(window.page.locator(f"#{REFUSED}")).to_have_attribute("aria-selected", "true")
        window.page.evaluate("location.hash = '#nobody'")
        assert window.selected() == REFUSED


FILTERS: list[tuple[dict[str, str], int]] = [
    ({"Kind": "leave"}, 3),
    ({"Who": "Robot"}, 15),
    ({"Search": "ANYBODY"}, 1),
    ({"Search": "id='r17'"}, 1),  # in a stanza
    ({"Kind": "message", "Who": "Bob", "Search": "deploy"}, 2),
    ({"Search": "no such thing"}, 0),
]


def test_filters_and_search_leave_what_fits_in_the_list_and_in_the_drawing(show: Show) -> None:
    with show(INCIDENT) as window:
        marks = "document.querySelectorAll('.mark:not([hidden])').length"
        before = window.page.evaluate(marks)
        for chosen, count in FILTERS:
            fields = [(window.page.get_by_label(it, exact=True), it) for it in chosen]
            for field, name in fields:
                value = chosen[name]
                field.fill(value) if name == "Search" else field.select_option(value)
            assert options(window.page).count() == count
            assert f"{count} of 66 events" in window.page.get_by_role("status").inner_text()
            assert window.page.evaluate(marks) < before
            for field, name in fields:
                field.fill("") if name == "Search" else field.select_option(index=0)
            assert options(window.page).count() == 66


def test_a_click_in_the_drawing_selects_what_is_nearest(show: Show) -> None:
    with show(INCIDENT) as window:
        track = window.page.locator(".lane").filter(has_text="Bob").locator(".track")
        box = track.bounding_box()
        assert box is not None
        share = 330 / 1_600  # of the time at which Bob asks again
        track.click(position={"x": box["width"] * share, "y": 20})
        assert window.selected() == "e45"


# Times.


@pytest.mark.parametrize(
    ("zone", "row", "local"),
    [
        ("UTC", "11:06:40", "2026-11-18 11:06:40.000, UTC+00:00"),
        ("Australia/Adelaide", "21:36:40", "2026-11-18 21:36:40.000, UTC+10:30"),
        ("America/St_Johns", "07:36:40", "2026-11-18 07:36:40.000, UTC\N{MINUS SIGN}03:30"),
    ],
)
def test_times_are_in_the_readers_zone_and_in_utc(
    show: Show, zone: str, row: str, local: str
) -> None:
    with show(INCIDENT, at="#e1", timezone_id=zone) as window:
        assert zone in window.page.inner_text("#made")
        assert window.page.locator("#e1 time").inner_text() == row
        details = window.page.get_by_role("complementary").inner_text()
        assert local in details
        assert "2026-11-18 11:06:40.000\n" in details


def test_the_marks_of_the_axis_are_round_in_the_readers_zone(show: Show) -> None:
    with show(room({"at": 0}, {"at": 36_000}), timezone_id="Australia/Adelaide") as window:
        hours = [
            each for each in texts(window.page).splitlines() if re.fullmatch(r"\d\d:\d\d", each)
        ]
    assert len(hours) >= 4
    assert {each[3:] for each in hours} == {"00"}


def test_the_date_is_said_where_there_are_several(show: Show) -> None:
    page = room({"at": 0}, {"at": 3_600})
    with show(page, timezone_id="Pacific/Fiji") as window:  # midnight is between the two
        assert window.page.locator("time").all_inner_texts()[:2] == [
            "2026-11-18 23:06:40",
            "2026-11-19 00:06:40",
        ]


def test_times_without_a_zone_are_shown_as_they_are_and_said_to_be(show: Show) -> None:
    page = room({"at": 0, "time": "Nov 18 11:06:40"}, {"at": 90}, zone="unknown")
    with show(page, at="#e1", timezone_id="Asia/Kolkata") as window:
        assert "does not say in which zone" in window.page.inner_text("#made")
        assert window.page.locator("time").all_inner_texts()[:2] == ["11:06:40", "11:08:10"]
        details = window.page.get_by_role("complementary").inner_text()
        assert "Nov 18 11:06:40" in details
        assert "UTC" not in details


def test_without_times_the_places_in_the_log_are_shown(show: Show) -> None:
    part = {"id": "p1", "kind": "stream", "title": "a@b", "from": 1, "to": 900}
    told = [
        {"id": f"e{at}", "at": at, "kind": "stanza", "text": "sent", "direction": "out"}
        for at in (1, 450, 900)
    ]
    with show({**INCIDENT, "zone": "none", "parts": [{**part, "events": told}]}) as window:
        assert window.page.locator("time").all_inner_texts()[:3] == [
            *("line 1", "line 450", "line 900")
        ]
        assert "Who ↓ Line →" in texts(window.page)
        assert "400" in texts(window.page).splitlines()
        assert "The stream" in texts(window.page)
        assert ":" not in window.page.locator("#p1 summary").inner_text()


# Everybody.


def axe(page: Page) -> list[str]:
    """What axe-core finds that is serious or critical."""
    page.evaluate((npm_packages() / "axe-core" / "axe.min.js").read_text("utf-8"))
    matches = page.evaluate("axe.run().then(it => it.violations)")
    return [
        f"{each['id']}: {[node['html'] for node in each['nodes'][:3]]}"
        for each in matches
        if each["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1_280), ("dark", 1_280), ("light", 360)])
def test_axe_finds_nothing_serious(show: Show, scheme: str, width: int) -> None:
    for page in (INCIDENT, encode(crowd(200, 40))):
        with show(page, at=f"#{REFUSED}", width=width, color_scheme=scheme) as window:
            assert axe(window.page) == []


def reached(page: Page) -> Iterator[str]:
    """The names of what the tabulator reaches, in order; each shows that it has the focus."""
    name = "(it => it.ariaLabel ?? (it.labels?.[0] ?? it.querySelector('h2') ?? it).innerText)"
    while True:
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            return
        outline = page.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid 2px" in outline, outline
        yield str(page.evaluate(f"{name}(document.activeElement)"))


def test_the_keyboard_alone_reaches_everything(show: Show) -> None:
    with show(INCIDENT) as window:
        names = [name.strip() for name in reached(window.page)]
    room = INCIDENT["parts"][0]["title"]
    first, second = (matches["message"] for matches in INCIDENT["parts"][0]["findings"])
    expected = [
        *("Search", "Kind", "Who", "6 troubles: next", "connecting that went well"),
        *(room, first, second),
        *("Whole", f"Timeline of {room}", f"Events of {room}"),
        *("debug@example.org", "The selected event", "Link to this moment", "Back", first),
    ]
    assert names == expected


def test_arrows_move_the_selection_and_enter_and_escape_lead_to_its_details_and_back(
    show: Show,
) -> None:
    with show(INCIDENT) as window:
        here = window.page.get_by_role("listbox").first
        here.focus()
        for key, selected in (
            *(("Home", "e1"), ("ArrowRight", "e2"), ("ArrowDown", "e3"), ("ArrowLeft", "e2")),
            *(("ArrowUp", "e1"), ("ArrowUp", "e1"), ("PageDown", "e11"), ("PageUp", "e1")),
            *(("End", "e66"), ("PageDown", "e66"), ("Control+Home", "e66")),
        ):
            window.page.keyboard.press(key)
            assert window.selected() == selected, key
        assert here.get_attribute("aria-activedescendant") == "e66"
        window.page.keyboard.press("Enter")
        expect(window.page.get_by_role("complementary")).to_be_focused()
        window.page.keyboard.press("Escape")
        expect(here).to_be_focused()
        window.page.get_by_label("Kind").select_option("leave")
        here.focus()
        window.page.keyboard.press("Home")
        assert window.selected() == "e47"


def test_on_a_phone_the_details_stand_below_the_page_until_they_are_closed(show: Show) -> None:
    with show(INCIDENT, width=360, height=740) as window:
        details = window.page.get_by_role("complementary")
        expect(details).to_be_in_viewport(ratio=1)
        assert window.selected() == REFUSED
        window.page.locator("#e45").click()
        expect(details).to_be_in_viewport(ratio=1)
        window.page.get_by_role("button", name="Back").click()
        expect(details).to_be_hidden()


def test_nothing_jumps_while_it_loads_and_nothing_moves(show: Show) -> None:
    jumps = """new Promise(done => new PerformanceObserver(list =>
        done(list.getEntries().reduce((sum, entry) => sum + entry.value, 0))
    ).observe({type: 'layout-shift', buffered: true}) ?? setTimeout(() => done(0), 300))"""
    for page in (INCIDENT, CROWD):
        with show(page, reduced_motion="reduce") as window:
            assert window.page.evaluate(jumps) == 0
            assert window.page.evaluate("document.getAnimations().length") == 0


def test_printed_it_has_everything_on_white(show: Show) -> None:
    with show(INCIDENT, color_scheme="dark", width=2_560) as window:
        page = window.page
        assert len(page.pdf(format="A4")) > 10_000
        page.emulate_media(media="print")
        page.evaluate(SETTLED)
        assert (
            page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        expect(page.locator("#filters")).to_be_hidden()
        for scrolled in page.locator(".events:visible, .timeline:visible, aside").all():
            assert scrolled.evaluate("it => it.scrollHeight - it.clientHeight") <= 2
        page.set_viewport_size({"width": 700, "height": 1_000})  # of paper, between its margins
        assert window.overflow() <= 0
        assert window.overlaps() == []
