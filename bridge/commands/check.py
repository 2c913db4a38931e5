"""`xmpp-bridge check`: walks through a connection stage by stage and says where it breaks."""

import argparse
import asyncio
import signal
import time
from functools import partial

from bridge.commands.exit import FAILURE, INTERRUPTED, SUCCESS, USAGE, ignore_further_signals
from bridge.commands.settings import Reader, complain_of, run_with_settings
from bridge.console.check import check, show_unconfigured
from bridge.logs import can_print, complain, open_log
from bridge.xmpp.report import settings_stage


def run(parsed: argparse.Namespace) -> int:
    """Check the connection once, or as often as asked for."""
    return run_with_settings(parsed, partial(_check, parsed)) if can_print() else FAILURE


async def _check(parsed: argparse.Namespace, read: Reader) -> int:
    started = time.perf_counter()
    configuration = read()
    first = settings_stage(configuration, time.perf_counter() - started)
    if configuration.settings is None:
        complain_of(configuration)
        if parsed.json:
            show_unconfigured(configuration, first)
        return USAGE
    if parsed.send and configuration.read_only:
        source = configuration.source_of("BRIDGE_READ_ONLY")
        complain(
            "xmpp-bridge: --send would say something in the room, and BRIDGE_READ_ONLY in "
            f"{source} forbids that; check without --send"
        )
        return USAGE
    open_log("[Client]", configuration.log_level)
    checking = asyncio.create_task(
        check(
            configuration.settings,
            first,
            send=parsed.send,
            as_json=parsed.json,
            times=parsed.repeat,
            in_effect=configuration.in_effect.values(),
        )
    )
    # Of our own, so that a second Ctrl-C does not cut short what the first began: hanging up.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, checking.cancel)
    try:
        return SUCCESS if await checking else FAILURE
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        ignore_further_signals(asyncio.get_running_loop().remove_signal_handler)
