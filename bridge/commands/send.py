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
        parsed.text = _typed(sys.stdin.buffer.read(MAX_BODY_BYTES + 2) if sys.stdin else b"")
    return run_call(parsed, parsed.text, _send, must_show=False)  # said is said


def _typed(data: bytes) -> str:
    """Return the text without the line break at its end; raises `UsageError`."""
    data = data.removesuffix(b"\n")
    if len(data) > MAX_BODY_BYTES:
        raise UsageError(
            f"standard input has more than {MAX_BODY_BYTES:,} bytes: send less at once"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8: byte {error.start + 1}") from error


async def _send(
    parsed: argparse.Namespace, link: RoomLink, configuration: Configuration
) -> tuple[dict[str, Any], int]:
    result = await say(parsed, link, configuration, parsed.text, parsed.sender)
    return result, FAILURE if result.get("answers") == [] else SUCCESS
