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

from bridge.commands.configuration import ReadSettings, require_trust, run_with_settings, usable
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.logs import can_print, complain
from bridge.recording.recorded import Reader as StoreReader
from bridge.recording.recording import store_path
from bridge.store.errors import StoreError
from bridge.text import iso, quoted
from bridge.views.log import NEWEST, Log
from bridge.views.moments import is_zone, moment
from bridge.views.output import complain_of, look_of
from bridge.views.selection import SelectionError, selection_of
from bridge.views.watch import RoomView
from bridge.xmpp.model.filter import EventFilter
from bridge.xmpp.model.journal import CursorError


def run(parsed: argparse.Namespace) -> int:
    """Show what was recorded, and with `--follow` what is being recorded."""
    return run_with_settings(parsed, _log) if can_print() else FAILURE


async def _log(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration, settings = usable(read, "BRIDGE_STORE")
    require_trust(configuration, "show recorded rooms")
    try:
        selection = selection_of(parsed, settings.rooms)
        asked = (parsed.since, parsed.until)
        start, end = (text and iso(moment(text, datetime.now())) for text in asked)
    except (SelectionError, ValueError) as error:
        raise UsageError(str(error)) from error
    if any(asked) and not is_zone(zone := os.environ.get("TZ", "")):
        raise UsageError(f"TZ names no time zone: {quoted(zone)}; write TZ=Europe/Berlin or TZ=UTC")
    if selection is not None and parsed.stanzas:
        raise UsageError("--stanzas cannot be combined with filters")
    if parsed.follow and parsed.until:
        raise UsageError("--follow cannot be combined with --until")
    path = store_path(configuration, os.environ, making=True)
    assert path is not None  # the settings are trusted
    filters = selection.filters if selection else ()
    rooms = (selection and selection.rooms) or settings.rooms
    walk = partial(
        StoreReader(path, settings.jid).walk,
        rooms,
        replace(filters[0], sender=None) if filters else EventFilter(),
        connection=not parsed.rooms,
        stanzas=parsed.stanzas,
        seconds=inf,
        start=start,
        end=end,
    )
    several, view = len(settings.rooms) > 1, None
    if sys.stdout.isatty():
        look = look_of(sys.stdout)
        view = RoomView(*look, names_rooms=several, local=parsed.local, looks_back=True)
    log = Log(walk, filters, as_json=parsed.json, names_rooms=several, view=view)
    newest = NEWEST if parsed.follow and start is None else None
    try:
        cursor = await log.show(limit=parsed.limit or newest, follows=parsed.follow)
        if parsed.follow:
            await log.follow(cursor)
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
    if log.has_shown or parsed.follow:
        return SUCCESS
    complain(f"xmpp-bridge: {_why_nothing(log.oldest, path, stanzas=parsed.stanzas)}")
    return FAILURE


def _why_nothing(oldest: float, path: Path, *, stanzas: bool) -> str:
    if oldest < inf:
        return f"nothing recorded matches; records begin at {iso(oldest)}"
    if stanzas:
        return "no stanzas were recorded; set BRIDGE_STORE_STANZAS=1 for `record`"
    return f"{str(path)!r} is empty; `xmpp-bridge record` records the rooms"
