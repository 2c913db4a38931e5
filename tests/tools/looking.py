"""A page of xmppHistory or xmppTrace, for tests of what is on it."""

from typing import Any

from bridge.mcp.toolset import Tool
from bridge.tools.entries import NOTICE
from bridge.tools.history import xmpp_history
from tests.tools.played import Played, arguments, fitting


async def page_of(played: Played, tool: Tool = xmpp_history, /, **given: object) -> dict[str, Any]:
    """Return what the tool tells; it fits its schema, and is marked if strangers wrote in it."""
    page = fitting(tool, await tool(played.link, **arguments(tool, given)))
    assert page.get("notice") == (NOTICE if page["entries"] else None)
    return page


def bodies(page: dict[str, Any]) -> list[str]:
    """Return the bodies of the entries of a page, in order."""
    return [one["body"] for one in page["entries"]]
