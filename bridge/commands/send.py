"""`xmpp-bridge send`: says something in a room, and proves that the room got it."""

import argparse
import sys
from typing import Any

from bridge.commands.calling import run_call, say
from bridge.commands.exit import FAILURE, SUCCESS, UsageError
from bridge.settings.table import Configuration
from bridge.tools.link import RoomLink
from bridge.xmpp.model.message_body import MAX_BODY_BYTES


def run(parsed: argparse.Namespace) -> int:
    """Say one message."""
    if parsed.sender and not parsed.await_seconds:
        raise UsageError("--from goes with --await, which waits for an answer")
    if parsed.text == "-":
        # The line break at the end is not said. Of a text that is too long, so much is refused.
        data = sys.stdin.buffer.read(MAX_BODY_BYTES + 2) if sys.stdin else b""
        parsed.text = data.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return run_call(parsed, parsed.text, _send, must_show=False)  # said is said


async def _send(
    parsed: argparse.Namespace, link: RoomLink, configuration: Configuration
) -> tuple[dict[str, Any], int]:
    result = await say(parsed, link, configuration, parsed.text, parsed.sender)
    return result, FAILURE if result.get("answers") == [] else SUCCESS
