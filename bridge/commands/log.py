"""`xmpp-bridge log`: shows what was recorded in the rooms."""

import argparse
import asyncio
import os
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from time import time
from typing import NamedTuple

from bridge.commands.configuration import ReadSettings, require_trust, run_with_settings, usable
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.commands.filters import selection_of
from bridge.commands.report import report_path, write_report
from bridge.logs import can_print, complain, write_out
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import RecordedPage
from bridge.page.timeline import MAX_EVENTS
from bridge.recording.recorded import Reader as StoreReader
from bridge.recording.recorded import Walk
from bridge.recording.recording import store_path
from bridge.settings.table import Settings
from bridge.store.database import Recorded
from bridge.store.errors import StoreError
from bridge.store.opening import Place, Team
from bridge.testing.retelling import RoomEvent, retold
from bridge.testing.scenario import ScenarioError
from bridge.text import iso
from bridge.views.log import FOLLOW_MS, NEWEST, TEAM_FOLLOW_MS, Log
from bridge.views.moments import moment
from bridge.views.output import complain_of, display_of
from bridge.views.selection import Selection
from bridge.views.watch import RoomView
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
    return run_with_settings(parsed, _log) if can_print() else FAILURE


class _Asked(NamedTuple):
    """The wishes of the command line, and the store that they concern."""

    path: Place
    report: Path | None
    """The file of the page; None without a page."""
    settings: Settings
    filters: Sequence[EventFilter]
    walk: Callable[..., Awaitable[Walk]]
    """Reads the chosen rooms, and all that happened to the connection."""
    start: str | None
    end: str | None


async def _log(parsed: argparse.Namespace, read: ReadSettings) -> int:
    asked, log = _chosen(parsed, read)
    try:
        if asked.report is not None:
            return await _report(parsed, asked, log)
        if parsed.as_scenario is not None:
            return await _retell(parsed, asked, log)
        newest = NEWEST if parsed.follow and asked.start is None else None
        cursor = await log.show(limit=parsed.limit or newest, follows=parsed.follow)
        if parsed.follow:
            await log.follow(cursor, TEAM_FOLLOW_MS if isinstance(asked.path, Team) else FOLLOW_MS)
    except StoreError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    except CursorError:
        complain(
            f"xmpp-bridge: {str(asked.path)!r} was replaced while it was shown; run this again"
        )
        return FAILURE
    except OSError as error:
        return FAILURE if complain_of(error) else SUCCESS
    except asyncio.CancelledError:
        if parsed.follow:  # Ctrl-C is the usual end of `--follow`
            return SUCCESS
        raise
    return SUCCESS if log.has_shown or parsed.follow else _nothing(parsed, asked, log)


def _chosen(parsed: argparse.Namespace, read: ReadSettings) -> tuple[_Asked, Log]:
    """Read the command line; return its wishes, and the log that shows them.

    Raises `UsageError`.
    """
    configuration, settings = usable(read, "BRIDGE_STORE")
    require_trust(configuration, "show recorded rooms")
    selection = _selection(parsed, settings)
    start, end = _times(parsed)
    path = store_path(configuration, os.environ, making=True)
    assert path is not None  # the settings are trusted
    report = report_path(parsed, [path] if isinstance(path, Path) else [])
    filters = selection.filters if selection else ()
    rooms = (selection and selection.rooms) or settings.rooms
    walk = partial(StoreReader(path, settings.jid).walk, rooms, seconds=inf)
    if parsed.as_scenario is not None:
        if len(rooms) > 1:
            raise UsageError("a scenario is of one room: name it with --room")
        filters = (EventFilter(frozenset(KINDS)),)
    asked = _Asked(path, report, settings, filters, walk, start, end)
    several, view = len(settings.rooms) > 1, None
    if sys.stdout.isatty():
        display = display_of(sys.stdout)
        view = RoomView(display, names_rooms=several, looks_back=True)
    wanted = replace(filters[0], sender=None) if filters and not report else EventFilter()
    connection = bool(report) or not (parsed.rooms or parsed.as_scenario)
    narrowed = partial(
        walk, wanted, connection=connection, stanzas=parsed.stanzas, start=start, end=end
    )
    return asked, Log(narrowed, filters, as_json=parsed.json, names_rooms=several, view=view)


async def _report(parsed: argparse.Namespace, asked: _Asked, log: Log) -> int:
    """Write the page of what was recorded; raises `StoreError`."""
    assert asked.report is not None
    # No filter may leave out the events that say who was there and how connecting went.
    chronicle = Chronicle(Pseudonyms(on=parsed.pseudonyms), parsed.limit or MAX_EVENTS)
    page = RecordedPage(chronicle, asked.filters)
    log = replace(log, filters=[EventFilter(frozenset(KINDS))], reporting=page.take)
    await page.look_back(asked.walk, asked.start, asked.end)
    await log.show()
    if page.has_events:
        return write_report(page.timeline(time()), asked.report)
    return _nothing(parsed, asked, log)


async def _retell(parsed: argparse.Namespace, asked: _Asked, log: Log) -> int:
    """Print what was recorded as a scenario file; raises `StoreError`."""
    happened = deque[Recorded](maxlen=MAX_EVENTS + 1)
    await replace(log, reporting=happened.append).show()
    if len(happened) > MAX_EVENTS:
        raise UsageError(f"more than {MAX_EVENTS:,} events: take a shorter time")
    story = [RoomEvent(row.at, row.event) for row in happened]
    words, room = Pseudonyms(on=parsed.pseudonyms), happened[0].room if happened else ""
    try:
        text = retold(story, room, asked.settings.nickname, words)
    except ScenarioError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    if text:
        return FAILURE if complain_of(write_out(text.rstrip("\n"))) else SUCCESS
    complain("xmpp-bridge: nothing was said in this time")
    return FAILURE


def _nothing(parsed: argparse.Namespace, asked: _Asked, log: Log) -> int:
    """Say on stderr why there is nothing to show; return the exit code."""
    complain(f"xmpp-bridge: {_why_nothing(log.oldest, asked.path, stanzas=parsed.stanzas)}")
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
        begin, _, end = parsed.as_scenario.partition("..")
        asked = (begin, end or "now")
    try:
        start, end = (text and iso(moment(text, datetime.now())) for text in asked)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return start, end


def _why_nothing(oldest: float, path: Place, *, stanzas: bool) -> str:
    if oldest < inf:
        return f"nothing recorded matches; records begin at {iso(oldest)}"
    if stanzas:
        return "no stanzas were recorded; BRIDGE_STORE_STANZAS says whether `record` does"
    return f"{str(path)!r} is empty; `xmpp-bridge record` records the rooms"
