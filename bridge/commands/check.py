"""`xmpp-bridge check`: walks through a connection stage by stage and says where it breaks."""

import argparse
import asyncio
import signal
import time

from bridge.commands.configuration import ReadSettings, complain_of, run_with_settings
from bridge.commands.exit import FAILURE, SUCCESS, UNKNOWN, USAGE, UsageError
from bridge.logs import open_log, write_out
from bridge.views.check import check, show_unconfigured
from bridge.views.monitoring import Level, plugin_line
from bridge.views.termination import until_terminated
from bridge.xmpp.checks.report import settings_stage
from bridge.xmpp.link.from_slixmpp import load


def run(parsed: argparse.Namespace) -> int:
    """Check the connection once, or as often as asked for."""
    load()
    return run_with_settings(parsed, lambda *given: until_terminated(_check(*given)))


async def _check(parsed: argparse.Namespace, read: ReadSettings) -> int:
    started = time.perf_counter()
    configuration = read()
    first = settings_stage(configuration, time.perf_counter() - started)
    plugin = parsed.format == "nagios"
    shows_stages = parsed.format == "text" and configuration.settings is not None
    # A plugin writes the problems into its line, and the first stage has them.
    if configuration.problems and not plugin and not shows_stages:
        complain_of(configuration)
    if configuration.settings is None:
        show_unconfigured(configuration, first, parsed.format)
        return UNKNOWN if plugin else USAGE
    mistake = ""
    if parsed.send and configuration.read_only:
        source = configuration.source_of("BRIDGE_READ_ONLY")
        mistake = (
            "--send would say something in the room, and BRIDGE_READ_ONLY in "
            f"{source} forbids that; check without --send"
        )
    elif None not in (parsed.warn, parsed.crit) and parsed.warn > parsed.crit:
        mistake = f"--warn {parsed.warn} is above --crit {parsed.crit}, and would never warn"
    if mistake and plugin:
        write_out(plugin_line(Level.UNKNOWN, mistake))
        return UNKNOWN
    if mistake:
        raise UsageError(mistake)
    open_log("[Client]", configuration.log_level)
    checking = asyncio.current_task()
    assert checking is not None
    # The first Ctrl-C makes us hang up; a second one must not interrupt that.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, checking.cancel, signal.SIGINT)
    level = await check(configuration, first, parsed)
    if plugin:
        return level
    if configuration.problems:
        return USAGE
    return SUCCESS if level <= Level.WARNING else FAILURE
