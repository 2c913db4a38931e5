"""Pages in a real Chromium, and everything that it complains of or asks the network for."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from bridge.page.page import as_html
from tests.prerequisites import do_without

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
    **options: Any,
) -> Iterator[Window]:
    """Open the page of a timeline in its JSON form, or a text of HTML, from disk."""
    file = folder / "page.html"
    file.write_text(encoded if isinstance(encoded, str) else as_html(encoded), "utf-8")
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    window = Window(context.new_page())
    window.page.on("console", lambda message: window.complaints.append(message.text))
    window.page.on("pageerror", lambda error: window.complaints.append(str(error)))
    window.page.on("dialog", lambda dialog: window.complaints.append(dialog.message))
    window.page.on("request", lambda request: window.requests.append(request.url))
    # What must never happen would be answered here, and not by the network.
    context.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
    try:
        window.page.goto(f"{file.as_uri()}{at}")
        window.page.evaluate(SETTLED)
        yield window
        assert window.requests == [file.as_uri()]
        assert window.complaints == []
    finally:
        context.close()
