"""Pages in a real Chromium, and everything that it complains of or asks the network for."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.page.samples import as_html
from tests.support.prerequisites import do_without

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-lcd-text",  # grey edges of letters: pictures are smaller, and alike everywhere
)
SETTLED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until what was changed is on the screen."""

OVERLAPS = """[...document.querySelectorAll('.drawing')].flatMap(drawing => {
        const boxes = [...drawing.querySelectorAll('span:not(.mark)')]
            .filter(it => it.firstChild?.data && it.checkVisibility())
            .map(it => ({it, box: it.getBoundingClientRect()}))
        return boxes.flatMap((one, index) => boxes.slice(index + 1, index + 40).filter(other =>
            one.box.left < other.box.right - 1 && other.box.left < one.box.right - 1 &&
            one.box.top < other.box.bottom - 4 && other.box.top < one.box.bottom - 4
        ).map(other => one.it.textContent + ' / ' + other.it.textContent))
    })"""
"""The pairs of texts in the drawings that lie over each other."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A Chromium, as Debian has it."""
    if (program := shutil.which("chromium")) is None:
        do_without("chromium is not installed: sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Window:
    """A page that is open, and what has been seen of it since."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    """Lines of the console, which are also of the security policy; errors, dialogs."""
    requests: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def overlaps(self) -> list[str]:
        return list(self.page.evaluate(OVERLAPS))

    def selected(self) -> str:
        """The id of the event that is selected, as a screen reader hears it."""
        return str(self.page.evaluate("document.querySelector('[aria-selected=true]')?.id ?? ''"))


@contextmanager
def showing(
    browser: Browser,
    folder: Path,
    encoded: Mapping[str, Any] | str,
    *,
    at: str = "",
    width: int = 1_280,
    height: int = 800,
    timezone_id: str = "",
    **media: Any,
) -> Iterator[Window]:
    """Open the page of a timeline in its JSON form, or a text of HTML, from disk.

    A browser has one window, in which one page comes after the other: to open another is what
    costs most.
    """
    file = folder / "page.html"
    file.write_text(encoded if isinstance(encoded, str) else as_html(encoded), "utf-8")
    page = browser.contexts[0].pages[0] if browser.contexts else _opened(browser)
    page.set_viewport_size({"width": width, "height": height})
    page.emulate_media(
        **{"media": "null", "color_scheme": "null", "reduced_motion": "null"} | media
    )
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setTimezoneOverride", {"timezoneId": timezone_id})
    window = Window(page)
    heard: tuple[tuple[Any, Callable[[Any], None]], ...] = (
        ("console", lambda message: window.complaints.append(message.text)),
        ("pageerror", lambda error: window.complaints.append(str(error))),
        ("dialog", lambda dialog: window.complaints.append(dialog.message)),
        ("request", lambda request: window.requests.append(request.url)),
    )
    for event, listener in heard:
        page.on(event, listener)
    try:
        page.goto(f"{file.as_uri()}{at}")
        page.evaluate(SETTLED)
        yield window
        assert window.requests == [file.as_uri()]
        assert window.complaints == []
    finally:
        for event, listener in heard:
            page.remove_listener(event, listener)
        devtools.send("Emulation.setTimezoneOverride", {"timezoneId": ""})
        devtools.detach()
        page.goto("about:blank")


def _opened(browser: Browser) -> Page:
    context = browser.new_context()
    # What must never happen would be answered here, and not by the network.
    context.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
    return context.new_page()
