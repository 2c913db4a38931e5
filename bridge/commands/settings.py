"""`xmpp-bridge settings`: shows every setting in effect, and where it is set."""

import argparse
import json
import sys
from collections.abc import Sequence

from bridge.commands.configuration import ReadSettings, complain_of, run_with_settings
from bridge.commands.exit import FAILURE, SUCCESS, USAGE
from bridge.logs import show
from bridge.settings.table import TABLE, Configuration
from bridge.text import one_line
from bridge.views.output import display_of
from bridge.views.screen import Display

INDENT = " " * 4
"""What stands before the meaning of a setting."""


def run(parsed: argparse.Namespace) -> int:
    """Show the settings once."""
    return run_with_settings(parsed, _settings)


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


def rows_of(configuration: Configuration) -> list[dict[str, str | None]]:
    """Return each setting: its name, its value (None without one), its source and its meaning."""
    rows = []
    for row in TABLE:
        setting = configuration.in_effect.get(row.name)
        if setting is None and row.name == "MCP_BOT_NICKNAME":
            setting = configuration.in_effect.get("BOT_NICKNAME")
        value, source = (setting.value, setting.source) if setting else (row.default, "default")
        named = {"variable": row.name, "value": value or None, "source": source}
        rows.append(named | {"meaning": row.plain_meaning})
    return rows


def listing(rows: Sequence[dict[str, str | None]], display: Display) -> list[str]:
    """Return these settings as lines for a person."""
    lines = []
    for row in rows:
        said = f"={row['value']} ({row['source']})" if row["value"] else " is not set"
        lines += display.paragraph(f"{row['variable']}{said}", len(INDENT))
        lines += display.hanging(INDENT, len(INDENT), row["meaning"] or "", len(INDENT))
    return lines
