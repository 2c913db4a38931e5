"""`xmpp-bridge diagnose`: finds out why a bot, or anybody else in a room, does not answer."""

import argparse
import asyncio
from pathlib import Path
from typing import Any

from bridge.commands.calling import run_call, say
from bridge.commands.exit import FAILURE, SUCCESS, UNDECIDED, UsageError
from bridge.settings.table import Configuration
from bridge.tools.diagnose import xmpp_diagnose
from bridge.tools.link import RoomLink

JOIN_SECONDS = 30.0
"""The longest wait for the first join; the room alone may take 20 s."""

CODES = {"well": SUCCESS, "cause": FAILURE, "unknown": UNDECIDED}


def run(parsed: argparse.Namespace) -> int:
    """Say the text of `--say`, if there is one, and then look once."""
    if parsed.log and not parsed.nickname:
        raise UsageError("--log goes with NICKNAME, whose log it is")
    if parsed.nickname == "":
        raise UsageError("NICKNAME is empty; leave it out to look at all who look like programs")
    return run_call(parsed, parsed.say, _diagnose)


async def _diagnose(
    parsed: argparse.Namespace, link: RoomLink, configuration: Configuration
) -> tuple[dict[str, Any], int]:
    if parsed.say is None:
        await link.room().first_join(asyncio.get_running_loop().time() + JOIN_SECONDS)
    else:
        await say(parsed, link, configuration, parsed.say, parsed.nickname or "")
    if parsed.log:
        _, nickname = link.occupant(parsed.nickname, None)
        link.bot_logs = {nickname: Path(parsed.log)}
    detail = "full" if parsed.full else "brief"
    result = {**await xmpp_diagnose(link, parsed.nickname, detail=detail)}
    if configuration.settings and len(configuration.settings.rooms) > 1:
        result["room"] = link.room().name  # the others were not looked at
    return result, CODES[result["outcome"]]
