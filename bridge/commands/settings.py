"""`xmpp-bridge settings`: shows every setting in effect, and where it is set."""

import argparse
import json
import sys

from bridge.commands.configuration import ReadSettings, complain_of, run_with_settings
from bridge.commands.exit import FAILURE, SUCCESS, USAGE
from bridge.logs import can_print
from bridge.text import one_line
from bridge.views.output import display_of, show
from bridge.views.settings import listing, rows_of


def run(parsed: argparse.Namespace) -> int:
    """Show the settings once."""
    return run_with_settings(parsed, _settings) if can_print() else FAILURE


async def _settings(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration = read()
    rows = rows_of(configuration)
    lines = listing(rows, display_of(sys.stdout))
    if parsed.json:
        encoded = {
            "settings": rows,
            "problems": [one_line(str(problem)) for problem in configuration.problems],
            "warnings": [one_line(warning) for warning in configuration.warnings],
        }
        lines = [json.dumps(encoded)]
    if not show(lines):
        return FAILURE
    complain_of(configuration)
    return USAGE if configuration.problems else SUCCESS
