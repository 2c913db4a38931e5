"""A page of xmppHistory, for tests of what is on it."""

from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from bridge.tools import history
from bridge.tools.entries import NOTICE
from tests.tools.played import Played, arguments, wire

TOOL = history.xmpp_history
SCHEMA = Draft202012Validator(TOOL.output_schema)


async def page_of(played: Played, **given: object) -> dict[str, Any]:
    """Return what the tool tells; it fits its schema, and is marked if strangers wrote in it."""
    page = wire(await TOOL(played.link, **arguments(TOOL, given)))
    SCHEMA.validate(page)
    assert page.get("notice") == (NOTICE if page["entries"] else None)
    return page


def bodies(page: dict[str, Any]) -> list[str]:
    """Return the bodies of the entries of a page, in order."""
    return [one["body"] for one in page["entries"]]
