"""`xmpp-bridge log`: shows what was recorded in the rooms."""

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from datetime import datetime
from functools import partial
from math import inf
from pathlib import Path
from time import time

from bridge.commands.configuration import ReadSettings, require_trust, run_with_settings, usable
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.commands.filters import selection_of
from bridge.commands.report import report_path, write_report
from bridge.logs import can_print, complain
from bridge.page.chronicle import Chronicle
from bridge.page.pseudonyms import Pseudonyms
from bridge.page.recorded import RecordedPage
from bridge.page.timeline import MAX_EVENTS
from bridge.recording.recorded import Reader as StoreReader
from bridge.recording.recording import store_path
from bridge.settings.table import Settings
from bridge.store.errors import StoreError
from bridge.store.opening import Place, Team
from bridge.text import iso, quoted
from bridge.views.log import FOLLOW_MS, NEWEST, TEAM_FOLLOW_MS, Log
from bridge.views.moments import is_zone, moment
from bridge.views.output import complain_of, display_of
from bridge.views.selection import Selection
from bridge.views.watch import RoomView
from bridge.xmpp.model.events import KINDS
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import CursorError


def run(parsed: argparse.Namespace) -> int:
    """Show what was recorded, and with `--follow` what is being recorded."""
    return run_with_settings(parsed, _log) if can_print() else FAILURE


async def _log(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration, settings = usable(read, "BRIDGE_STORE")
    require_trust(configuration, "show recorded rooms")
    selection = _selection(parsed, settings)
    start, end = _times(parsed)
    path = store_path(configuration, os.environ, making=True)
    assert path is not None  # the settings are trusted
    report = report_path(parsed, [path] if isinstance(path, Path) else [])
    filters = selection.filters if selection else ()
    rooms = (selection and selection.rooms) or settings.rooms
    walk_all = partial(StoreReader(path, settings.jid).walk, rooms, seconds=inf)
    walk = partial(
        walk_all,
        replace(filters[0], sender=None) if filters and not report else EventFilter(),
        connection=bool(report) or not parsed.rooms,
        stanzas=parsed.stanzas,
        start=start,
        end=end,
    )
    several, view = len(settings.rooms) > 1, None
    if sys.stdout.isatty():
        display = display_of(sys.stdout)
        view = RoomView(display, names_rooms=several, local=parsed.local, looks_back=True)
    log = Log(walk, filters, as_json=parsed.json, names_rooms=several, view=view)
    newest = NEWEST if parsed.follow and start is None else None
    page = None
    if report:
        # Who was there and how connecting went is told by events that no filter may leave out.
        chronicle = Chronicle(Pseudonyms(on=parsed.pseudonyms), parsed.limit or MAX_EVENTS)
        page = RecordedPage(chronicle, filters)
        log = replace(log, filters=[EventFilter(frozenset(KINDS))], reporting=page.take)
    try:
        if page is not None:
            await page.look_back(walk_all, start, end)
        limit = None if page else parsed.limit or newest
        cursor = await log.show(limit=limit, follows=parsed.follow)
        if parsed.follow:
            await log.follow(cursor, TEAM_FOLLOW_MS if isinstance(path, Team) else FOLLOW_MS)
    except StoreError as error:
        complain(f"xmpp-bridge: {error}")
        return FAILURE
    except CursorError:
        complain(f"xmpp-bridge: {str(path)!r} was replaced while it was shown; run this again")
        return FAILURE
    except OSError as error:
        return FAILURE if complain_of(error) else SUCCESS
    except asyncio.CancelledError:
        if parsed.follow:  # Ctrl-C is the usual end of `--follow`
            return SUCCESS
        raise
    if report and page and page.has_events:
        return write_report(page.timeline(time()), report)
    if (log.has_shown and not page) or parsed.follow:
        return SUCCESS
    complain(f"xmpp-bridge: {_why_nothing(log.oldest, path, stanzas=parsed.stanzas)}")
    return FAILURE


def _selection(parsed: argparse.Namespace, settings: Settings) -> Selection | None:
    """Return what the filters select; raises `UsageError`, also for options that exclude others."""
    selection = selection_of(parsed, settings.rooms)
    if selection is not None and parsed.stanzas:
        raise UsageError("--stanzas cannot be combined with filters")
    if parsed.follow and parsed.until:
        raise UsageError("--follow cannot be combined with --until")
    if parsed.report and (parsed.follow or parsed.json or parsed.stanzas):
        raise UsageError("--report cannot be combined with --follow, --json or --stanzas")
    return selection


def _times(parsed: argparse.Namespace) -> tuple[str | None, str | None]:
    """Return the times that `--since` and `--until` mean; raises `UsageError`."""
    asked = (parsed.since, parsed.until)
    try:
        start, end = (text and iso(moment(text, datetime.now())) for text in asked)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if any(asked) and not is_zone(zone := os.environ.get("TZ", "")):
        raise UsageError(f"TZ names no time zone: {quoted(zone)}; write TZ=Europe/Berlin or TZ=UTC")
    return start, end


def _why_nothing(oldest: float, path: Place, *, stanzas: bool) -> str:
    if oldest < inf:
        return f"nothing recorded matches; records begin at {iso(oldest)}"
    if stanzas:
        return "no stanzas were recorded; set BRIDGE_STORE_STANZAS=1 for `record`"
    return f"{str(path)!r} is empty; `xmpp-bridge record` records the rooms"
