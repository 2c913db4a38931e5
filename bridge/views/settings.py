"""The values of the settings in effect, as data and as lines for a person."""

from collections.abc import Sequence

from bridge.settings.table import TABLE, Configuration
from bridge.views.screen import Display

INDENT = " " * 4
"""What stands before the meaning of a setting."""


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
