"""The pictures in the README show what the commands print, and what a page is like, today."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from docs import page_picture
from docs.terminal import PICTURE, record, svg
from tests.docs.pages import alike
from tests.page.chromium import chromium

TEXT = "{http://www.w3.org/2000/svg}text"


def _lines(picture: str) -> "Counter[str]":
    """Return the lines of a picture, without what differs from run to run."""
    tree = ElementTree.fromstring(picture)  # noqa: S314 - it is our own
    return _alike("".join(each.itertext()) for each in tree.iter(TEXT))


def _alike(lines: Iterable[str]) -> "Counter[str]":
    return Counter(map(alike, lines))


def test_the_picture_is_what_the_commands_print(tmp_path: Path) -> None:
    rows = record(tmp_path)
    real = _alike("".join(text for text, _ in row) for row in rows if row)
    # What the room says comes when it comes: the order is left out.
    assert _lines(PICTURE.read_text("utf-8")) == real, "run python -m docs.terminal"
    assert _lines(svg(rows)) == real


MAX_BYTES = 220_000
"""Of the picture of the page: a README is read on the way, too."""


def test_the_picture_of_the_page_is_what_a_browser_shows(tmp_path: Path) -> None:
    picture = page_picture.PICTURE.read_bytes()
    with chromium() as browser:
        shown = page_picture.draw(browser, tmp_path)
    told = page_picture.description(picture)
    assert "1 min 15 s" in told
    assert told == page_picture.description(shown), "run python -m docs.page_picture"
    assert len(picture) < MAX_BYTES
    assert picture[:24] == shown[:24]  # its width and its height
