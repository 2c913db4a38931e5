"""`xmpp-bridge log`: shows what was recorded in the rooms."""

import argparse
import asyncio
import sys
from collections import deque
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from time import time

from bridge.commands.configuration import ReadSettings, run_with_settings, usable
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.commands.filters import Selection, selection_of
from bridge.commands.record import store_to
from bridge.commands.report import report_path, write_report
from bridge.logs import complain, complain_of, write_out
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import RecordedPage
from bridge.page.timeline import MAX_EVENTS
from bridge.recording.recorded import Reader as StoreReader
from bridge.settings.table import Settings
from bridge.store.database import Recorded
from bridge.store.errors import StoreError
from bridge.store.location import Team
from bridge.testing.retelling import RoomEvent, retold
from bridge.testing.scenario import ScenarioError
from bridge.text import iso
from bridge.views.log import FOLLOW_MS, NEWEST, TEAM_FOLLOW_MS, Log
from bridge.views.moments import moment
from bridge.views.output import display_of
from bridge.views.watch import RoomView
from bridge.xmpp.checks.evidence import list_of
from bridge.xmpp.checks.presence import alike
from bridge.xmpp.model.events import KINDS
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import CursorError

NOT_RETOLD = (
    *("since", "until", "limit", "follow", "json", "stanzas", "report"),
    *("senders", "contains", "pattern", "kinds"),
)
"""The options that `--as-scenario` excludes: a scenario needs every message of its time."""


def run(parsed: argparse.Namespace) -> int:
    """Show what was recorded, and with `--follow` what is being recorded."""
    return run_with_settings(parsed, lambda *given: _Showing(*given).run())


class _Showing:
    """One run of the command."""

    def __init__(self, parsed: argparse.Namespace, read: ReadSettings) -> None:
        """Read the command line and the settings; raises `UsageError`."""
        configuration, self._settings = usable(read, "BRIDGE_STORE")
        self._parsed, settings = parsed, self._settings
        selection = _selection(parsed, settings)
        self._start, self._end = _times(parsed)
        self._path = path = store_to("show recorded rooms", configuration)
        self._page = report_path(parsed, [path] if isinstance(path, Path) else [])
        """The file of the page; None without a page."""
        self._filters = selection.filters if selection else ()
        rooms = (selection and selection.rooms) or settings.rooms
        self._walk = partial(StoreReader(path, settings.jid).walk, rooms, seconds=inf)
        """Reads the chosen rooms, and all that happened to the connection."""
        if parsed.as_scenario is not None:
            if len(rooms) > 1:
                raise UsageError("a scenario is of one room: name it with --room")
            self._filters = (EventFilter(frozenset(KINDS)),)
        several, view = len(settings.rooms) > 1, None
        if sys.stdout.isatty():
            view = RoomView(display_of(sys.stdout), names_rooms=several, looks_back=True)
        is_narrow = self._filters and not self._page
        wanted = replace(self._filters[0], sender=None) if is_narrow else EventFilter()
        narrowed = partial(
            self._walk,
            wanted,
            connection=bool(self._page) or not (parsed.rooms or parsed.as_scenario),
            stanzas=parsed.stanzas,
            start=self._start,
            end=self._end,
        )
        as_json = parsed.json
        self._log = Log(narrowed, self._filters, as_json=as_json, names_rooms=several, view=view)

    async def run(self) -> int:
        """Show, draw or retell what was recorded; return the exit code."""
        parsed, log = self._parsed, self._log
        try:
            if self._page is not None:
                return await self._report(self._page)
            if parsed.as_scenario is not None:
                return await self._retell()
            if parsed.follow:
                newest = NEWEST if self._start is None else None
                pause = TEAM_FOLLOW_MS if isinstance(self._path, Team) else FOLLOW_MS
                await log.follow(parsed.limit or newest, pause, self._hint)
            else:
                await log.show(limit=parsed.limit)
        except StoreError as error:
            complain(f"xmpp-bridge: {error}")
            return FAILURE
        except CursorError:
            replaced = f"{str(self._path)!r} was replaced while it was shown; run this again"
            complain(f"xmpp-bridge: {replaced}")
            return FAILURE
        except OSError as error:
            return FAILURE if complain_of(error) else SUCCESS
        except asyncio.CancelledError:
            if parsed.follow:  # Ctrl-C is the usual end of `--follow`
                return SUCCESS
            raise
        return SUCCESS if log.has_shown or parsed.follow else self._nothing(log)

    async def _report(self, path: Path) -> int:
        """Write the page of what was recorded; raises `StoreError`."""
        # No filter may leave out the events that say who was there and how connecting went.
        words = Pseudonyms(on=self._parsed.pseudonyms)
        page = RecordedPage(Chronicle(words, self._parsed.limit or MAX_EVENTS), self._filters)
        log = replace(self._log, filters=[EventFilter(frozenset(KINDS))], reporting=page.take)
        await page.look_back(self._walk, self._start, self._end)
        await log.show()
        return write_report(page.timeline(time()), path) if page.has_events else self._nothing(log)

    async def _retell(self) -> int:
        """Print what was recorded as a scenario file; raises `StoreError`."""
        happened = deque[Recorded](maxlen=MAX_EVENTS + 1)
        await replace(self._log, reporting=happened.append).show()
        if len(happened) > MAX_EVENTS:
            raise UsageError(f"more than {MAX_EVENTS:,} events: take a shorter time")
        story = [RoomEvent(row.at, row.event) for row in happened]
        words, room = Pseudonyms(on=self._parsed.pseudonyms), happened[0].room if happened else ""
        try:
            text = retold(story, room, self._settings.nickname, words)
        except ScenarioError as error:
            complain(f"xmpp-bridge: {error}")
            return FAILURE
        if text:
            return FAILURE if complain_of(write_out(text.rstrip("\n"))) else SUCCESS
        complain("xmpp-bridge: nothing was said in this time")
        return FAILURE

    def _meant(self) -> str:
        """Return which senders were recorded under names like those asked for, for a sentence."""
        known = [*self._log.senders]
        names = [it for sender in self._parsed.senders or () for it in alike(sender, known)]
        return f"; they have {list_of(names)}" if names else ""

    def _hint(self) -> None:
        if not self._log.has_shown and (meant := self._meant()):
            complain(f"xmpp-bridge: no records match so far{meant}")

    def _nothing(self, log: Log) -> int:
        """Say on stderr why there is nothing to show; return the exit code."""
        why = f"{str(self._path)!r} is empty; `xmpp-bridge record` records the rooms"
        if log.oldest < inf:
            why = f"nothing recorded matches; records begin at {iso(log.oldest)}"
            why += self._meant()
        elif self._parsed.stanzas:
            why = "no stanzas were recorded; BRIDGE_STORE_STANZAS says whether `record` does"
        complain(f"xmpp-bridge: {why}")
        return FAILURE


def _selection(parsed: argparse.Namespace, settings: Settings) -> Selection | None:
    """Return the selection; raises `UsageError` for a wrong filter, and for options that clash."""
    selection = selection_of(parsed, settings.rooms)
    if selection is not None and parsed.stanzas:
        raise UsageError("--stanzas cannot be combined with filters")
    if parsed.follow and parsed.until:
        raise UsageError("--follow cannot be combined with --until")
    if parsed.report and (parsed.follow or parsed.json or parsed.stanzas):
        raise UsageError("--report cannot be combined with --follow, --json or --stanzas")
    if parsed.as_scenario is not None and any(getattr(parsed, name) for name in NOT_RETOLD):
        raise UsageError("--as-scenario can be combined with --room and --pseudonyms only")
    return selection


def _times(parsed: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the times that `--since` and `--until` mean; raises `UsageError`."""
    asked = (parsed.since, parsed.until)
    if parsed.as_scenario is not None:
        begin, dots, end = parsed.as_scenario.partition("..")
        if not dots:
            raise UsageError("--as-scenario needs a stretch of time, FROM..TO")
        asked = (begin, end or "now")
    try:
        start, end = (text and iso(moment(text, datetime.now())) for text in asked)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if start and end and end < start:
        raise UsageError(f"this time would begin at {start} and end before that, at {end}")
    return start, end
