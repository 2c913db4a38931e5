"""What strangers wrote does nothing in a page, whatever it is and in whatever field it stands."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from bridge.page.timeline import encode
from tests.faults.test_strangers_words import LONG, NAME, WORDS
from tests.page.chromium import SETTLED, showing
from tests.page.samples import HOSTILE, START, as_html, filled, incident

MAX_BODY = 16_384
"""Characters of a long word."""
TEXTS = (
    *HOSTILE,
    WORDS,
    NAME,
    LONG[:MAX_BODY],
    "W" * MAX_BODY,
    "<b onclick=alert(1)>" * 800,
    "</li></ol></details><script>alert(1)</script><svg onload=alert(1)><style>*{display:none}",
    "url(https://evil.example/) ; background: url(//evil.example)",
    "\x1b[2J\x7f\ufeff",
    "",
)
FOREIGN = """document.querySelectorAll('b, img, image, use, iframe, object, embed, link, base, '
    + 'form, script:not(body > script), style:not(head > style)').length"""
HANDLERS = """[...document.querySelectorAll('*')].flatMap(it => [...it.attributes])
    .filter(it => /^on|^style$|^src|^xlink/.test(it.name) && it.name !== 'style'
        || it.name === 'href' && !/^#/.test(it.value)).map(it => it.name)"""
INCIDENT = encode(incident())
for part in INCIDENT["parts"]:
    part["events"] = [
        event
        for event in part.get("events", [])
        if event.get("severity") or event["at"] < START + 60_000
    ]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_in_every_field_they_are_text_run_nothing_ask_nobody_and_break_no_layout(
    browser: Browser, tmp_path: Path, text: str
) -> None:
    with showing(browser, tmp_path, filled(INCIDENT, text), width=360, height=740) as window:
        window.page.locator("#e10").click()
        window.page.get_by_label("Who", exact=True).select_option(index=1)
        window.page.get_by_label("Search", exact=True).fill(text[:40])
        assert window.page.evaluate(FOREIGN) == 0
        assert window.page.evaluate(HANDLERS) == []
        assert window.overflow() <= 0
        assert text not in HOSTILE or window.overlaps() == []
        expect(window.page.locator("#e10")).to_have_attribute("aria-selected", "true")
        said = window.page.get_by_role("complementary").text_content() or ""
        assert text[:80] in said
        if text.isprintable():
            assert window.page.title() == " ".join(text.split())
        window.page.set_viewport_size({"width": 1_280, "height": 800})
        window.page.evaluate(SETTLED)
        assert window.overflow() <= 0
        assert text not in HOSTILE or window.overlaps() == []


ACTIVE = (
    "<script>alert(1)</script>",
    "<img src=https://evil.example/x.png>",
    "<p style='color: red'>",
    "<p onclick='alert(1)' id=bad><script>document.getElementById('bad').click()</script>",
)


@pytest.mark.parametrize("element", ACTIVE)
def test_what_would_do_something_would_be_seen_and_is_forbidden(
    browser: Browser, tmp_path: Path, element: str
) -> None:
    html = as_html(INCIDENT).replace("<main", f"{element}<main")
    with showing(browser, tmp_path, html) as window:
        assert [each for each in window.complaints if "Content Security Policy" in each]
        assert "1" not in window.complaints  # no dialog was shown
        window.complaints.clear()
        del window.requests[1:]  # what was asked for, and refused
