"""How long a page takes to open in Chromium."""

from collections.abc import Mapping
from time import perf_counter
from typing import Any

from playwright.sync_api import Browser

from bridge.page.timeline import MAX_EVENTS, encode
from tests.benchmarks.bench import BRIDGE, Bench
from tests.benchmarks.figures import Aim, Outcome, Series, alternated
from tests.page.chromium import SETTLED, chromium, showing
from tests.page.samples import as_html, crowd

NAME = "page"
SMALL = "a page of one event"
OCCUPANTS = 200
SECONDS = 2.0
"""What somebody waits who has opened a file."""


def measure(bench: Bench) -> Outcome:
    """Open pages from disk, until they are drawn and the list has gone to its last event."""
    large, small = encode(crowd(OCCUPANTS, MAX_EVENTS)), encode(crowd(1, 1))
    with chromium() as browser:
        results = alternated(
            bench.pairs,
            {
                BRIDGE: lambda: _opened(browser, bench, large, MAX_EVENTS),
                SMALL: lambda: _opened(browser, bench, small, 1),
            },
        )
        version = browser.version
    series = {
        name: Series(name, "navigation to a list that answers", "s", tuple(seconds))
        for name, seconds in results.items()
    }
    return Outcome(
        NAME,
        f"A page of {MAX_EVENTS:,} events and {OCCUPANTS} occupants, opened",
        tuple(series.values()),
        (Aim("to a list that answers", series[BRIDGE].median, "at most", SECONDS, "s"),),
        f"Chromium {version}, without a screen and without a GPU",
    )


def _opened(browser: Browser, bench: Bench, encoded: Mapping[str, Any], events: int) -> float:
    with showing(browser, bench.folder, {**encoded, "parts": []}) as window:
        (bench.folder / "page.html").write_text(as_html(encoded), "utf-8")
        started = perf_counter()
        window.page.reload()
        window.page.evaluate(SETTLED)
        window.page.locator(".events").press("End")
        assert window.selected() == f"e{events}"
        taken = perf_counter() - started
        window.requests.pop()
        return taken
