"""`xmpp-bridge watch`: follows the room in the terminal."""

import argparse

from bridge.commands.exit import FAILURE, SUCCESS, USAGE, UsageError
from bridge.commands.settings import ReadSettings, complain_of, run_with_settings
from bridge.logs import can_print, open_log
from bridge.views.selection import Selection, SelectionError, selection_of
from bridge.views.watch import watch
from bridge.xmpp.link.from_slixmpp import load


def run(parsed: argparse.Namespace) -> int:
    """Show what happens in the room, until Ctrl-C."""
    if not can_print():
        return FAILURE
    load()
    return run_with_settings(parsed, _watch)


async def _watch(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration = read()
    complain_of(configuration)
    if configuration.settings is None:
        return USAGE
    try:
        selection = selection_of(parsed, configuration.settings.rooms)
    except SelectionError as error:
        raise UsageError(str(error)) from error
    if selection is None and (parsed.first or parsed.timeout is not None):
        selection = Selection()
    if selection is not None and parsed.stanzas:
        raise UsageError("--stanzas goes with no filter, --first or --timeout")
    open_log("[Client]", configuration.log_level)
    well = await watch(configuration.settings, parsed, selection)
    return SUCCESS if well else FAILURE
