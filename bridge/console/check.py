"""The check in a terminal: the stages as they complete, then what they come to."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from statistics import median
from typing import cast

from bridge.console.block import Block
from bridge.console.checkview import BLOCKS, HEAD_WIDTH, MIN_BAR_WIDTH, CheckView, times_of
from bridge.console.output import Output, terminal_size
from bridge.console.paint import Paint, can_move, is_wanted
from bridge.escaping import one_line
from bridge.log import complain
from bridge.mcp.schema import render
from bridge.settings.table import Configuration, Setting, Settings
from bridge.xmpp.probe import Probe
from bridge.xmpp.report import PHASES, SETTINGS, CheckPhase, Report, unconfigured


async def check(
    settings: Settings,
    first: CheckPhase,
    *,
    send: bool,
    as_json: bool,
    times: int,
    environ: Mapping[str, str],
    in_effect: Iterable[Setting],
) -> bool:
    """Check so many times, and write to stdout how it went; return whether every stage passed.

    `first` is the stage before the connection's: reading the settings. Whatever cannot be written
    counts as not passed. When nobody reads stdout any more, no further run is begun.
    """
    unread = asyncio.Event()
    output = _output(unread.set)
    probe = Probe(settings)
    reports: list[Report] = []

    async def run(on_phase: Callable[[CheckPhase], None] | None = None) -> Report | None:
        """Check once more, if all goes on: not after a refused password, which locks accounts."""
        if len(reports) == times or not probe.may_repeat or (reports and unread.is_set()):
            return None
        reports.append(await probe.run(on_phase, send=send))
        return reports[-1]

    try:
        if as_json:
            while await run():
                pass
            shown = _json(first, reports, times) | {"settings": _listed(in_effect)}
            output.put(json.dumps(shown))
        else:
            lines = _Lines(output, environ)
            lines.put(lines.view.title(settings.room))
            if times == 1:
                await _once(lines, first, run, send=send)
            else:
                lines.put([*lines.view.found(first), ""])
                while report := await run():
                    lines.put(lines.view.run(len(reports), report))
                lines.put(["", *lines.view.spread(reports), ""])
                lines.put(lines.view.outcome(reports, times))
        await output.settled()
    finally:
        output.close()
    if output.error is not None:
        complain(f"xmpp-bridge: stdout cannot be written: {output.error.strerror}")
    return all(report.ok for report in reports) and output.error is None


async def show_unconfigured(configuration: Configuration, first: CheckPhase) -> None:
    """Write as JSON that the settings do not do, in the shape of any other check."""
    problems = [one_line(str(problem)) for problem in configuration.problems]
    output = _output(lambda: None)
    try:
        shown = _object(unconfigured(configuration, first), problems)
        output.put(json.dumps(shown | {"settings": _listed(configuration.in_effect.values())}))
        await output.settled()
    finally:
        output.close()


class _Lines:
    """Writes lines; on a terminal that can, with a block at the foot that is drawn anew."""

    def __init__(self, output: Output, environ: Mapping[str, str]) -> None:
        stdout = sys.stdout
        self._output = output
        self._descriptor = stdout.fileno()
        self._terminal = stdout.isatty()
        self._moves = can_move(terminal=self._terminal, environ=environ)
        self._paint = Paint(is_wanted(terminal=self._terminal, environ=environ))
        self._blocks = _can_write(BLOCKS, stdout.encoding)
        self._block = Block()

    @property
    def view(self) -> CheckView:
        """For the terminal as wide as it is now."""
        columns = terminal_size(self._descriptor).columns if self._terminal else None
        return CheckView(self._paint, columns, blocks=self._blocks)

    def put(self, lines: Sequence[str], block: Sequence[str] = ()) -> None:
        """Write lines in the place of the block, and a new block under them."""
        size = terminal_size(self._descriptor) if self._moves else (0, 0)
        if size[0] < HEAD_WIDTH + MIN_BAR_WIDTH:  # the terminal would break lines itself
            block = ()
        self._output.put(self._block.drawn(lines, block, (size[0], size[1])))


async def _once(
    lines: _Lines,
    first: CheckPhase,
    run: Callable[[Callable[[CheckPhase], None]], Awaitable[Report | None]],
    *,
    send: bool,
) -> None:
    """Write what each stage found, and under it the bars as far as the check has come."""
    stages = [SETTINGS, *(one for one in PHASES if send or one != "send"), ""]
    phases: list[CheckPhase] = []

    def note(phase: CheckPhase) -> None:
        phases.append(phase)
        under_way = stages[len(phases)] if phase.ok else ""
        lines.put(lines.view.found(phase), ["", *lines.view.bars(phases, under_way)])

    note(first)
    if report := await run(note):
        lines.put(["", *lines.view.bars(phases), "", *lines.view.verdict(report)])


def _json(first: CheckPhase, reports: Sequence[Report], times: int) -> dict[str, object]:
    """Return the reports of so many runs as JSON shows them, each preceded by `first`."""
    runs = [_object(report.preceded_by(first)) for report in reports]
    if times == 1:
        return runs[0]
    taken = times_of(reports)
    return {
        "ok": all(report.ok for report in reports),
        "runs": runs,
        "medianMs": {name: round(median(each), 3) for name, each in taken.items()},
        "worstMs": {name: max(each) for name, each in taken.items()},
    }


def _object(report: Report, problems: Sequence[str] = ()) -> dict[str, object]:
    """Return the report as JSON shows it, with the `problems` of the settings."""
    return cast(dict[str, object], render(report)) | {"problems": list(problems)}


def _listed(in_effect: Iterable[Setting]) -> list[dict[str, str]]:
    return [asdict(one) for one in in_effect]


def _output(ended: Callable[[], None]) -> Output:
    """Return what writes to stdout and drops nothing, since there is no more than was asked for."""
    stdout = sys.stdout
    return Output(stdout.fileno(), None, ended, encoding=stdout.encoding, max_waiting=sys.maxsize)


def _can_write(text: str, encoding: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode(encoding))
    return False
