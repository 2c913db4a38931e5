"""Registers this bridge with a client and undoes it: plans the edits, then carries them out.

The client's own command is not used. Claude Code's refuses to replace an entry, and Codex's drops
comments and what the user added to the entry.
"""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bridge.client.client import Client
from bridge.client.errors import RequestError, ServerError
from bridge.client.process import ServerProcess
from bridge.client.rooms import settled_status, standing_of
from bridge.logs import complain, write_out
from bridge.registration.clients import SEND_TOOL, client
from bridge.registration.entry import Entry, EntryLocation, is_ours, new_entry, user_arguments
from bridge.registration.errors import EditError, LaunchError, RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.formats import Change, edited, load, restored, table_in
from bridge.registration.json_text import MISSING
from bridge.registration.launch import ENV_FILE_OPTION, check_lasting, flaws, own_command
from bridge.settings.table import SECRETS
from bridge.text import counted, one_line

LIST_SECONDS = 10.0
"""How long the list of tools may take; it is made before anything is connected."""

JOIN_SECONDS = 20.0
"""How long the started bridge may take to get into its rooms: as long as one join may take."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""The variables of its own environment that a careful client passes on to a server. None is a
setting of the bridge."""


class Edit(NamedTuple):
    """A change of one of the client's files."""

    file: ConfigFile
    before: str
    after: str | None
    """None if the file was made for this entry alone, and goes with it."""

    by_hand: str
    """What a person would have to do to make the change by hand."""

    done: str
    """What the change does, as the beginning of a sentence that ends with the file's path."""


def home_folder() -> Path:
    """Return this user's folder; raises `LaunchError`."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise LaunchError("your home folder is not known: set HOME") from error


def location_of(key: str, name: str) -> EntryLocation:
    """Return where this user's client has the entry `name`; raises `LaunchError`."""
    return EntryLocation(client(key, os.environ, home_folder()), name)


def register(
    location: EntryLocation, env_file: Path, *, approve_send: bool, only_shown: bool
) -> None:
    """Start this bridge once as it is to be registered, register it, and print what was done.

    Raises `RegistrationError`. If it changed a file before that, it has printed so.
    """
    program = location.client
    if approve_send and program.key not in ("codex", "claude"):
        raise LaunchError(
            f"{program.title} cannot be told in advance to approve {SEND_TOOL}: its file holds no "
            "approvals; you can allow the tool for good in the program itself.\n"
            "Register without --approve-send."
        )
    check_lasting(sys.prefix)
    flawed = flaws(env_file)
    for flaw in flawed:
        complain(f"WARNING: {one_line(flaw)}")
    command = own_command(sys.argv[0], sys.executable)
    launch = (*command, ENV_FILE_OPTION, str(env_file))
    planned = plan(location, launch, approve_send=approve_send)
    entry = _entry(location, planned)
    trial = None if only_shown else asyncio.run(try_out(*_startable(location, entry)))
    for warning in trial.warnings if trial else ():
        if warning not in flawed:
            complain(f"WARNING: {one_line(warning)}")
    unchanged = f"{program.title} has it already, as {location.name}; nothing was changed."
    kept = user_arguments(entry["args"])
    _report(planned, only_shown=only_shown, unchanged=unchanged)
    if kept:
        write_out(
            f"It keeps {one_line(' '.join(kept))}, which the entry had already (to lift that, "
            "unregister first)."
        )
    if trial is None:
        return
    if approve_send:
        write_out(
            f"{SEND_TOOL} is approved: the agent may speak in the room without asking you "
            "first, and what it says there cannot be taken back. No other tool was approved."
        )
    write_out(f"Started it once, with the settings in {one_line(str(env_file))}.")
    write_out(f"{trial.standing}\n{trial.tools}")
    if planned:
        write_out(f"Restart {program.title} to have them there.")


def _entry(location: EntryLocation, planned: list[Edit]) -> Entry:
    """Return the entry as the client's file will have it."""
    file = ConfigFile(location.client.file)
    after = [edit.after for edit in planned if edit.file.path == file.path]
    return location.read((after[0] if after else file.read()) or "") or {}


def _startable(location: EntryLocation, entry: Entry) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment of the entry."""
    env = {name: str(value) for name, value in entry.get("env", {}).items()}
    for name in env.keys() & SECRETS:
        complain(
            f"WARNING: {name} is in {location.client.file}; it belongs into the settings file and "
            "nowhere else"
        )
    return [entry["command"], *entry["args"]], env


def unregister(location: EntryLocation, *, only_shown: bool) -> None:
    """Undo `register` and print what was done; raises `RegistrationError`."""
    unchanged = f"{location.client.title} has no {location.name}; nothing was changed."
    _report(plan(location, None), only_shown=only_shown, unchanged=unchanged)


def _report(edits: list[Edit], *, only_shown: bool, unchanged: str) -> None:
    """Carry the edits out, or only show them, and print their lines as they come."""
    for edit in edits:
        write_out(edit.by_hand if only_shown else carry_out(edit))
    if not edits:
        write_out(unchanged)


def plan(
    location: EntryLocation, launch: tuple[str, ...] | None, *, approve_send: bool = False
) -> list[Edit]:
    """Return the edits after which the entry runs `launch`, or is removed if `launch` is None.

    No file is changed here. Raises `RegistrationError`.
    """
    program, file = location.client, ConfigFile(location.client.file)
    try:
        present = location.read(file.read() or "")
    except EditError:  # `_edit` raises it again, with what to write by hand
        present = None
    if present is not None and not is_ours(present):
        raise RegistrationError(
            f"{program.title} has a server called {location.name} that is not this bridge; it was "
            "left alone.\nTake another name with --name."
        )
    if launch is None:
        wanted, done = None, f"Took {location.path} out of"
        by_hand = f"In {file.path}: without {location.path}"
    else:
        wanted = new_entry(program, launch, present or {}, approve_send=approve_send)
        done = f"Wrote {location.path} into"
        by_hand = f"In {file.path}:\n{location.snippet(wanted)}"
    changes = location.changes(present, wanted)

    def change(text: str) -> str | None:
        if launch is None and present is not None:
            former = location.changes(None, present)
            return restored(text, program.format, changes, former, file.originals())
        return edited(text, program.format, changes)

    edits = [_edit(file, change, by_hand, done)]
    if program.approvals is not None:
        approvals, tool = ConfigFile(program.approvals), f"mcp__{location.name}__{SEND_TOOL}"
        if approve_send or (launch is None and tool in (approvals.read() or "")):
            edits.append(_approval(tool, approvals, given=approve_send))
    return [edit for edit in edits if edit.before != edit.after]


def carry_out(edit: Edit) -> str:
    """Make the edit, and return a line about it; raises `RegistrationError`."""
    if edit.after is None:
        edit.file.remove(edit.before)
        return f"{edit.done} {edit.file.path}, which held nothing else and is gone"
    backup = edit.file.replace(edit.before, edit.after)
    kept = "" if backup is None else f" (the file as it was: {backup})"
    return f"{edit.done} {edit.file.path}{kept}"


class Trial(NamedTuple):
    """What a bridge did that was started as it is to be registered, in sentences."""

    standing: str
    """Whether it got into its rooms."""
    tools: str
    """Which tools it lists."""
    warnings: list[str]
    """What it warns of, such as a nickname that another occupant has."""


async def try_out(command: Sequence[str], env: Mapping[str, str]) -> Trial:
    """Start `command` with the environment of its entry, and return what it did.

    It runs in the root folder, since a client starts it in whatever project it works on. Raises
    `RegistrationError`.
    """
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    env = {**passed_on, **env}
    logged = deque[str](maxlen=1)
    try:
        server = await ServerProcess.start(command, environment=env, cwd=Path("/"), stderr=PIPE)
        server.on_log_line = logged.append
        try:
            mcp = Client(server)
            await mcp.open()
            async with asyncio.timeout(LIST_SECONDS):
                tools = (await mcp.list_all("tools"))["tools"]
            status = await settled_status(mcp, JOIN_SECONDS)
        finally:
            await server.stop()
    except (ServerError, RequestError, TimeoutError) as error:
        cause = str(error) or f"no list of tools within {LIST_SECONDS:g} s"
        last = "".join(f"\nIts last log line: {one_line(line, 300)}" for line in logged)
        raise RegistrationError(
            "nothing was changed: the command that is to be registered does not answer: "
            f"{one_line(cause, 300)}{last}"
        ) from error
    names = [one_line(str(tool.get("name"))) for tool in tools]
    listing = f"It lists {counted(len(names), 'tool')}: {', '.join(names)}."
    warnings = status.get("warnings")
    warned = [*map(str, warnings)] if isinstance(warnings, list) else []
    return Trial(f"It is {standing_of(status)}", listing, warned)


def _approval(tool: str, file: ConfigFile, *, given: bool) -> Edit:
    """Return the edit of Claude Code's settings that approves `tool`, or ends its approval."""
    with_, done = ("with", "Added") if given else ("without", "Took away")
    by_hand = f'In {file.path}: {with_} "{tool}" under permissions.allow'

    path = ("permissions", "allow")

    def change(text: str) -> str | None:
        allowed = table_in(load(text, "json"), path[0]).get(path[1], [])
        if not isinstance(allowed, list):
            raise EditError("permissions.allow in it is no list")
        approval: list[Change] = [((*path, 0), tool)]
        if given:
            return edited(text, "json", [] if tool in allowed else approval)
        numbers = [number for number, other in enumerate(allowed) if other == tool]
        gone: list[Change] = [((*path, number), MISSING) for number in reversed(numbers)]
        return restored(text, "json", gone, approval, file.originals()) if gone else text

    return _edit(file, change, by_hand, f"{done} the approval {tool} in")


def _edit(file: ConfigFile, change: Callable[[str], str | None], by_hand: str, done: str) -> Edit:
    before = file.read() or ""
    try:
        after = change(before)
    except EditError as error:
        raise RegistrationError(
            f"{file.path} was left alone: {error}.\nChange it by hand, as it is shown.", by_hand
        ) from error
    if after != before:
        file.check_writable(by_hand)
    return Edit(file, before, after, by_hand, done)
