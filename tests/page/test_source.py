"""The template, the script and the style of a page: small, linted, and of colours that hold."""

import re
from itertools import product
from pathlib import Path

import pytest

import bridge.page

SOURCES = {
    suffix: Path(bridge.page.__file__).with_name(f"page.{suffix}").read_text("utf-8")
    for suffix in ("html", "css", "js")
}
MAX_LINES = 940
"""Of all three together: what is larger wants a framework, and a page has none."""
TEXT, SHAPE = 4.5, 3.0
"""The least contrasts of texts and of shapes (WCAG 2.2, 1.4.3 and 1.4.11)."""


def test_it_is_small() -> None:
    assert sum(len(source.splitlines()) for source in SOURCES.values()) <= MAX_LINES


def test_it_makes_no_html_of_texts_and_names_no_other_host() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "import"):
        assert word not in SOURCES["js"]
    addresses = re.findall(r"https?://[^\"']*", "".join(SOURCES.values()))
    assert addresses == []


def _luminance(colour: str) -> float:
    """The relative luminance of a colour in hexadecimal (WCAG 2.2)."""
    digits = colour.removeprefix("#")
    if len(digits) == 3:
        digits = "".join(digit * 2 for digit in digits)
    shares = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_colour_stands_out_from_what_is_behind_it(scheme: int) -> None:
    pairs = re.findall(r"--(\w+): light-dark\((#\w+), (#\w+)\)", SOURCES["css"])
    colours = {name: _luminance(pair[scheme]) for name, *pair in pairs}
    needed = {
        **dict.fromkeys(product(("ink", "muted", "accent", "error", "warning"), ("ground",)), TEXT),
        **dict.fromkeys((("muted", "panel"), ("ink", "stay")), TEXT),
        **dict.fromkeys(product(("error", "warning"), ("stay",)), TEXT),
        **dict.fromkeys(product(("edge",), ("ground",)), SHAPE),
    }
    for (front, back), least in needed.items():
        dark, bright = sorted((colours[front], colours[back]))
        assert (bright + 0.05) / (dark + 0.05) >= least, (front, back)
