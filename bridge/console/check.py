"""The check in a terminal: the stages as they complete, then what they come to."""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from statistics import median
from typing import cast

from bridge.config import Configuration, Settings
from bridge.console.block import Block
from bridge.console.checkview import BLOCKS, HEAD_WIDTH, MIN_BAR_WIDTH, CheckView, times_of
from bridge.console.output import Output, terminal_size
from bridge.console.paint import Paint, can_move, is_wanted
from bridge.escaping import one_line
from bridge.log import complain
from bridge.mcp.schema import render
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
) -> bool:
    """Check so many times, and write to stdout how it went; return whether every stage passed.

    `first` is the stage before the connection's: reading the settings. Whatever cannot be written
    counts as not passed. When nobody reads stdout any more, no further run is begun.
    """
    unread = asyncio.Event()
    output = _output(unread.set)
    checking = _Checking(settings, first, unread, times=times, send=send)
    try:
        if as_json:
            output.put(json.dumps(await checking.as_json()))
        elif times > 1:
            await checking.often(_Lines(output, environ))
        else:
            await checking.once(_Lines(output, environ))
        await output.settled()
    finally:
        output.close()
    if output.error is not None:
        complain(f"xmpp-bridge: stdout cannot be written: {output.error.strerror}")
    return checking.ok and output.error is None


async def show_unconfigured(configuration: Configuration, first: CheckPhase) -> None:
    """Write as JSON that the settings do not do, in the shape of any other check."""
    problems = [one_line(str(problem)) for problem in configuration.problems]
    output = _output(lambda: None)
    try:
        output.put(json.dumps(_object(unconfigured(configuration, first), problems)))
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


class _Checking:
    """Checks as often as it is told to, and writes how it goes."""

    def __init__(
        self,
        settings: Settings,
        first: CheckPhase,
        unread: asyncio.Event,
        *,
        times: int,
        send: bool,
    ) -> None:
        self._probe = Probe(settings)
        self._room = settings.room
        self._first = first
        self._unread = unread
        self._times = times
        self._send = send
        self._stages = [SETTINGS, *(one for one in PHASES if send or one != "send"), ""]
        self._reports: list[Report] = []

    @property
    def ok(self) -> bool:
        """Whether every stage passed."""
        return all(report.ok for report in self._reports)

    async def once(self, lines: _Lines) -> None:
        """Check once, with the bars as far as it came under what was found."""
        phases: list[CheckPhase] = []

        def note(phase: CheckPhase) -> None:
            phases.append(phase)
            under_way = self._stages[len(phases)] if phase.ok else ""
            lines.put(lines.view.found(phase), ["", *lines.view.bars(phases, under_way)])

        lines.put(lines.view.title(self._room))
        note(self._first)
        report = await self._run(note)
        lines.put(["", *lines.view.bars(phases), "", *lines.view.verdict(report)])

    async def often(self, lines: _Lines) -> None:
        """Check as often as asked; write the median and the worst of each stage."""
        lines.put([*lines.view.title(self._room), *lines.view.found(self._first), ""])
        while self._goes_on():
            report = await self._run()
            lines.put(lines.view.run(len(self._reports), report))
        lines.put(["", *lines.view.spread(self._reports), ""])
        lines.put(lines.view.outcome(self._reports, self._times))

    async def as_json(self) -> dict[str, object]:
        """Check as often as asked; return all there is to tell."""
        while self._goes_on():
            await self._run()
        runs = [_object(report.preceded_by(self._first)) for report in self._reports]
        if self._times == 1:
            return runs[0]
        times = times_of(self._reports)
        return {
            "ok": self.ok,
            "runs": runs,
            "medianMs": {name: round(median(taken), 3) for name, taken in times.items()},
            "worstMs": {name: max(taken) for name, taken in times.items()},
        }

    def _goes_on(self) -> bool:
        """Whether there is another run: none after a refused password, which locks accounts."""
        if not self._reports:
            return True
        more = len(self._reports) < self._times
        return more and self._probe.may_repeat and not self._unread.is_set()

    async def _run(self, on_phase: Callable[[CheckPhase], None] | None = None) -> Report:
        report = await self._probe.run(on_phase, send=self._send)
        self._reports.append(report)
        return report


def _object(report: Report, problems: Sequence[str] = ()) -> dict[str, object]:
    """Return the report as JSON shows it, with the `problems` of the settings."""
    return cast(dict[str, object], render(report)) | {"problems": list(problems)}


def _output(ended: Callable[[], None]) -> Output:
    """Return what writes to stdout and drops nothing, since there is no more than was asked for."""
    stdout = sys.stdout
    return Output(stdout.fileno(), None, ended, encoding=stdout.encoding, max_waiting=sys.maxsize)


def _can_write(text: str, encoding: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode(encoding))
    return False
