"""What was found, as bars: one group for each quantity that several contenders have."""

from collections.abc import Iterator, Sequence
from html import escape

from tests.benchmarks.bench import BRIDGE
from tests.benchmarks.figures import Outcome, Series
from tests.benchmarks.table import number

WIDTH = 860
LABELS = 220
BARS = 480
BAR = 18
GAP = 6
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.title{font-weight:600}.other{fill:#b8bfc9}"
    ".bridge{fill:#2f6fde}@media(prefers-color-scheme:dark){text{fill:#ddd}.other{fill:#667}}"
)


def chart(outcomes: Sequence[Outcome]) -> str:
    """The picture as SVG. Each group has a scale of its own; it says what is better."""
    drawn: list[str] = []
    top = 24
    for outcome, what, series in _groups(outcomes):
        better = "more is better" if series[0].unit.endswith("/s") else "less is better"
        name = "" if what in outcome.title else f", {what}"
        title = f"{outcome.title.replace('`', '')}{name} ({series[0].unit}, {better})"
        drawn.append(f'<text class="title" x="8" y="{top}">{escape(title)}</text>')
        top += 12
        scale = BARS / max(one.median for one in series)
        for one in series:
            who = escape(one.contender)
            kind = "bridge" if one.contender.startswith(BRIDGE) else "other"
            length = max(1.0, one.median * scale)
            width = f"{length:.1f}"
            middle = top + BAR - 5
            drawn += [
                f'<text x="{LABELS - 8}" y="{middle}" text-anchor="end">{who}</text>',
                f'<rect class="{kind}" x="{LABELS}" y="{top}" width="{width}" height="{BAR}"/>',
                f'<text x="{LABELS + length + 8:.1f}" y="{middle}">{number(one.median)}</text>',
            ]
            top += BAR + GAP
        top += 28
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *drawn, "</svg>", ""])


def _groups(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, str, list[Series]]]:
    for outcome in outcomes:
        for what in dict.fromkeys(one.what for one in outcome.series):
            series = [one for one in outcome.series if one.what == what]
            if len(series) > 1:
                yield outcome, what, series
