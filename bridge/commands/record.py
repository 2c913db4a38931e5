"""`xmpp-bridge record`: stays in the rooms and records what happens there, with no agent."""

import argparse
import asyncio
import logging
import os
import sys
from contextlib import closing

from bridge.commands.configuration import ReadSettings, complain_of, run_with_settings, usable
from bridge.commands.exit import FAILURE, MISTAKE, SUCCESS, USAGE, UsageError
from bridge.logs import TIMED, can_print, complain, open_log, show
from bridge.recording.recording import Recording, store_path
from bridge.registration.launch import own_command
from bridge.settings.sources import TO_TRUST_IT
from bridge.settings.table import Configuration, Settings
from bridge.store.errors import NotOurStoreError, RefusedStoreError, StoreError
from bridge.store.location import Place, Team
from bridge.store.postgresql import PostgresqlDatabase
from bridge.store.retention import Retention
from bridge.store.sqlite import open_file
from bridge.text import counted, iso, one_line
from bridge.views.termination import run_until_signal
from bridge.views.watch import PRESENT, News
from bridge.xmpp.link.from_slixmpp import load
from bridge.xmpp.model.events import ConnectionChanged
from bridge.xmpp.model.faults import Fault, Retry
from bridge.xmpp.model.formatting import format_event
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc.participant import Participant

HISTORY = 1_000
"""The events in memory. This process has no tools that would read them."""

NEEDED = ("BRIDGE_STORE", "BRIDGE_STORE_DAYS", "BRIDGE_STORE_MB")
"""Settings that must be valid. If a value is wrong, its default is in effect, and by that the
recorder could delete events that the user wants to keep."""

UNIT = f"""\
[Unit]
Description=Recorder of XMPP rooms (xmpp-bridge)

[Service]
ExecStart=%s
Restart=on-failure
RestartSec=10
# Wrong settings, a wrong password, a ban: trying again would lock the account. It is started again
# after a mistake of its own (exit code {MISTAKE}).
RestartPreventExitStatus={FAILURE} {USAGE}

[Install]
WantedBy=default.target
"""

log = logging.getLogger(__name__)


def run(parsed: argparse.Namespace) -> int:
    """Record until a signal comes, print the unit by which systemd starts it, or make the store."""
    command = _print_unit if parsed.print_unit else _record
    command = _prepare_store if parsed.prepare_store else command
    try:
        return run_with_settings(parsed, command)
    except (ImportError, UsageError):
        raise  # the installation is incomplete, or the user made a mistake
    except Exception as error:  # after any mistake, systemd starts the recorder again
        log.debug("where it failed", exc_info=error)
        name = type(error).__name__
        complain(
            f"xmpp-bridge: a mistake in the bridge ended it ({name}); LOG_LEVEL=DEBUG says where"
        )
        return MISTAKE


async def _print_unit(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration = read()
    complain_of(configuration)
    file = configuration.env_file if configuration.trusted else None
    if file is None and parsed.env_file is None:
        raise UsageError("--print-unit needs --env-file PATH")
    if file is None or configuration.settings is None or any(map(configuration.rejected, NEEDED)):
        return USAGE
    for setting in configuration.in_effect.values():
        if setting.source == "the environment":
            name = setting.variable
            complain(f"WARNING: {name} is set in the environment, which the unit does not have")
    command, *options = own_command(sys.argv[0], sys.executable)
    words = [*options[:-1], "record", "--env-file", file]
    line = " ".join([_word(command), *(_word(word).replace("$", "$$") for word in words)])
    # A CR would end the line, and systemd ignores a line that is not UTF-8: systemd.syntax(7).
    if "\r" in line or line.encode(errors="replace") != os.fsencode(line):
        raise UsageError(f"a unit can name no path with a CR or that is not UTF-8: {line!a}")
    return SUCCESS if can_print() and show([(UNIT % line).rstrip("\n")]) else FAILURE


def _word(text: str) -> str:
    """Return a word of a command line, quoted by the rules of systemd.service(5)."""
    for special, escaped in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("\n", "\\n")):
        text = text.replace(special, escaped)
    return f'"{text}"'


def store_to(what: str, configuration: Configuration) -> Place:
    """Return where the store is, or is to be made.

    Raises `UsageError` unless the settings file is trusted to do `what`.
    """
    place = store_path(configuration, os.environ, making=True)
    if place is None:
        raise UsageError(
            f"{configuration.env_file} was found only because it lies in the current directory, "
            f"so it is not trusted to {what}; {TO_TRUST_IT}"
        )
    return place


async def _prepare_store(parsed: argparse.Namespace, read: ReadSettings) -> int:
    configuration, _ = usable(read, *NEEDED)
    place = store_to("make a store", configuration)
    try:
        await asyncio.to_thread(_open_once, place, migrating=True)
    except StoreError as error:
        raise UsageError(str(error)) from error
    return SUCCESS if show([f"{place} is ready"]) else FAILURE


def _open_once(place: Place, *, migrating: bool = False) -> None:
    """Make the store if there is none, and see whether it can be written to.

    With `migrating`, a team's database of the former version is migrated.
    """
    if isinstance(place, Team):
        database = PostgresqlDatabase(place.url, making=True, migrating=migrating)
        with closing(database), database.transaction():
            return
    with closing(open_file(place)) as file, file.transaction():
        if exposed := file.warnings.get("exposed"):  # it is mended now, so no later warning has it
            log.warning("%s", exposed)


async def _record(parsed: argparse.Namespace, read: ReadSettings) -> int:
    load()
    configuration, settings = usable(read, *NEEDED)
    path = store_to("record rooms", configuration)
    if problem := open_log("[Server]", configuration.log_level, configuration.log_file):
        complain(f"WARNING: {problem}")
    try:
        await asyncio.to_thread(_open_once, path)
    except (NotOurStoreError, RefusedStoreError) as error:
        raise UsageError(str(error)) from error
    except StoreError as error:
        log.debug("%s", error)  # if it does not pass, the recorder reports it
    kept = f"kept {counted(configuration.store_days, 'day')} or {configuration.store_mb} MiB"
    log.info("recording to %s, %s", path, kept)
    return SUCCESS if await _stay(configuration, settings, path) else FAILURE


async def _stay(configuration: Configuration, settings: Settings, path: Place) -> bool:
    """Record until a signal or until no room can be reached; return whether it was a signal."""
    # It joins under another nickname, since a bridge may be in the room already.
    settings = settings._replace(nickname=f"{settings.nickname}-record")
    participant = Participant(settings, history=HISTORY)
    retention = Retention(configuration.store_days, configuration.store_mb)
    stanzas = configuration.store_stanzas
    recording = Recording(participant, path, stanzas=stanzas, retention=retention)
    ended = asyncio.Event()
    hopeless: set[str] = set()
    news = News()

    def on_record(record: Record) -> None:
        mark = news.present(record, is_news=news.has(record))
        if log.isEnabledFor(logging.INFO):
            lines = [format_event(participant.journal.encode(record))]
            if mark:
                room = f"{one_line(record.room)}: " if len(settings.rooms) > 1 else ""
                lines.insert(mark == "after", f"{iso(record.at)} {room}{PRESENT}")
            for line in lines:
                log.info("%s", line, extra=TIMED)
        match record.event:
            case ConnectionChanged(fault=Fault(retry=Retry.NEVER)):
                hopeless.update([record.room] if record.room else settings.rooms)
                if hopeless.issuperset(settings.rooms):
                    ended.set()

    participant.listen(on_record)
    await run_until_signal(participant, ended)
    recording.close()
    return not hopeless.issuperset(settings.rooms)
