"""`xmpp-bridge diagnose`: finds out why somebody in a room does not do what is expected of them."""

import argparse
import asyncio
from typing import Any

from bridge.commands.calling import run_call, say
from bridge.commands.exit import FAILURE, SUCCESS, UNDECIDED
from bridge.settings.table import Configuration
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.link import RoomLink
from bridge.xmpp.checks.diagnosis import OF_OTHERS

JOIN_SECONDS = 30.0
"""The longest wait for the first join; the room alone may take 20 s."""


def run(parsed: argparse.Namespace) -> int:
    """Look once, and with `--say` say something before."""
    return run_call(parsed, parsed.say, _diagnose)


async def _diagnose(
    parsed: argparse.Namespace, link: RoomLink, configuration: Configuration
) -> tuple[dict[str, Any], int]:
    if parsed.say is None:
        await link.room().first_join(asyncio.get_running_loop().time() + JOIN_SECONDS)
    else:
        await say(parsed, link, configuration, parsed.say, parsed.nickname or "")
    result = await xmpp_diagnose(link, parsed.nickname)
    ok = {finding["name"]: finding["ok"] for finding in result["findings"]}
    if any(ok[name] is False for name in ok.keys() - OF_OTHERS):
        return result, FAILURE
    return result, SUCCESS if ok.get("answer" if parsed.nickname else "program") else UNDECIDED
