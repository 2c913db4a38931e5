"""`xmpp-bridge watch`: follows the room in the terminal."""

import argparse

from bridge.commands.configuration import ReadSettings, run_with_settings, usable
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.commands.filters import Selection, selection_of
from bridge.logs import open_log
from bridge.views.watch import watch
from bridge.xmpp.link.from_slixmpp import load


def run(parsed: argparse.Namespace) -> int:
    """Show what happens in the room, until Ctrl-C."""
    load()
    return run_with_settings(parsed, _watch)


async def _watch(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration, settings = usable(read)
    selection = selection_of(parsed, settings.rooms)
    if selection is None and (parsed.first or parsed.timeout is not None):
        selection = Selection()
    if selection is not None and parsed.stanzas:
        raise UsageError("--stanzas cannot be combined with filters, --first or --timeout")
    open_log("[Client]", configuration.log_level)
    well = await watch(settings, parsed, selection.picks if selection else None)
    return SUCCESS if well else FAILURE
