"""Registers this bridge with a client and undoes it: plans the changes, then carries them out.

A new entry is made by the client's own command where that is installed. One that is there
already is edited in place, since the commands refuse it (Claude Code) or forget whatever the user
added to it (Codex). What the command wrote is read afterwards, and corrected where need be.
"""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bridge.client.client import Client as McpClient
from bridge.client.errors import RequestError, ServerError
from bridge.client.process import ServerProcess
from bridge.logs import complain, write_out
from bridge.registration.clients import SEND_TOOL, client
from bridge.registration.entry import Entry, EntryLocation, is_ours, new_entry, why_unstartable
from bridge.registration.errors import EditError, LaunchError, RegistrationError
from bridge.registration.files import ConfigFile
from bridge.registration.formats import Document, Format, edited, load, table_in
from bridge.registration.launch import flaws, launch_command, own_command
from bridge.settings.table import SECRETS
from bridge.text import one_line

COMMAND_SECONDS = 60.0
"""How long a client's own command may take; they take half a second."""

LIST_SECONDS = 10.0
"""How long the list of tools may take; it is made before anything is connected."""

PASSED_ON = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""All that a careful client lets a server have of its own environment: none of our settings."""


class Edit(NamedTuple):
    """A change of one of the client's files."""

    file: ConfigFile
    form: Format
    change: Callable[[Document], None]
    by_hand: str
    """What a person would do."""

    done: str
    """What was done, in words in front of the file's path."""

    def texts(self) -> tuple[str, str]:
        """Return the text of the file, and the one that it is to have."""
        before = self.file.read() or ""
        try:
            return before, edited(before, self.form, self.change)
        except EditError as error:
            raise _left_alone(self.file, error, self.by_hand) from error


class Plan(NamedTuple):
    """What is left to be done, in this order; nothing if both are empty."""

    command: list[str]
    """The client's own command."""

    edits: list[Edit]
    """The first is that of the entry, if there is a command."""


def location_of(key: str, name: str) -> EntryLocation:
    """Return where this user's client has the entry `name`; raises `LaunchError`."""
    try:
        home = Path.home()
    except RuntimeError as error:
        raise LaunchError("your home folder is not known: set HOME") from error
    return EntryLocation(client(key, os.environ, home), name)


def register(
    location: EntryLocation, env_file: Path, *, approve_send: bool, only_shown: bool
) -> None:
    """Register this bridge with its settings file, start it once, and print what was done.

    Raises `RegistrationError`.
    """
    there = location.client
    if approve_send and not there.takes_approval:
        raise LaunchError(
            f"{there.title} cannot be told in advance to approve {SEND_TOOL}: its file holds no "
            "approvals; you can allow the tool for good in the program itself.\n"
            "Register without --approve-send."
        )
    for flaw in flaws(env_file):
        complain(f"WARNING: {one_line(flaw)}")
    launch = launch_command(own_command(sys.argv[0], sys.executable), env_file)
    planned = plan(location, launch, approve_send=approve_send)
    unchanged = f"{there.title} has it already, as {location.name}; nothing was changed."
    _report(location, planned, only_shown=only_shown, unchanged=unchanged)
    if only_shown:
        return
    if approve_send:
        write_out(
            f"{SEND_TOOL} is approved: the agent may speak in the room without asking you "
            "first, and what it says there cannot be taken back. No other tool was approved."
        )
    command, env = registered_command(location)
    for name in SECRETS:
        if name in env:
            complain(
                f"WARNING: {name} stands in {there.file}; it belongs into the settings file "
                "and nowhere else"
            )
    tools = asyncio.run(list_tools(command, env))
    write_out(f"Started it once, with the settings in {one_line(str(env_file))}.")
    write_out(f"It lists {len(tools)} tools: {', '.join(tools)}.")
    write_out(f"Restart {there.title} to have them there.")


def unregister(location: EntryLocation, *, only_shown: bool) -> None:
    """Undo `register` and print what was done; raises `RegistrationError`."""
    unchanged = f"{location.client.title} has no {location.name}; nothing was changed."
    _report(location, plan(location, None), only_shown=only_shown, unchanged=unchanged)


def _report(location: EntryLocation, planned: Plan, *, only_shown: bool, unchanged: str) -> None:
    """Carry the plan out, or only show it, and print its lines as they come."""
    for line in describe(planned) if only_shown else carry_out(location, planned):
        write_out(line)
    if not planned.edits:
        write_out(unchanged)


def plan(
    location: EntryLocation, launch: tuple[str, ...] | None, *, approve_send: bool = False
) -> Plan:
    """Return what is left to do until the entry runs `launch`, or, if None, is gone.

    Nothing is done yet. Raises `RegistrationError`.
    """
    there, file = location.client, ConfigFile(location.client.file)

    def wanted_instead_of(old: Entry) -> Entry | None:
        return None if launch is None else new_entry(there, launch, old, approve_send=approve_send)

    try:
        present = location.read(file.read() or "")
    except EditError as error:
        by_hand = _by_hand(location, wanted_instead_of({}))
        raise _left_alone(file, error, by_hand) from error
    if present is not None and not is_ours(present):
        raise RegistrationError(
            f"{there.title} has a server called {location.name} that is not this bridge; it was "
            "left alone.\nTake another name with --name."
        )
    wanted = wanted_instead_of(present or {})
    if wanted is not None and (why := why_unstartable(wanted)):
        raise RegistrationError(
            f"{there.file}: nothing can start {location.name}: {why}; the file was left alone"
        )
    if present == wanted:
        command, edits = [], []
    else:
        command = _own_command(location, launch, is_new=present is None)
        done = "Took {} out of" if wanted is None else "Wrote {} into"
        change = partial(location.write, entry=wanted)
        by_hand = _by_hand(location, wanted)
        edits = [Edit(file, there.format, change, by_hand, done.format(location.path))]
    if there.approvals is not None and (approve_send or launch is None):
        edits += _approval(location, ConfigFile(there.approvals), given=approve_send)
    for edit in edits:
        edit.file.check_writable()
    return Plan(command, edits)


def describe(planned: Plan) -> Iterator[str]:
    """Yield what a person would do."""
    if planned.command:
        yield shlex.join(planned.command)
    yield from (edit.by_hand for edit in planned.edits)


def carry_out(location: EntryLocation, planned: Plan) -> Iterator[str]:
    """Do what is planned, and yield a line on every change; raises `RegistrationError`."""
    command, edits = planned
    if command:
        backup = _run(location, edits[0].file, command)
        yield f"Ran: {shlex.join(command)}{_kept(backup)}"
    for edit in edits:
        before, after = edit.texts()
        if after != before:
            yield f"{edit.done} {edit.file.path}{_kept(edit.file.replace(before, after))}"


def registered_command(location: EntryLocation) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of the entry that is in the file.

    Raises `RegistrationError`.
    """
    there = location.client
    entry = location.read(ConfigFile(there.file).read() or "")
    if entry is None or not isinstance(entry.get("command"), str):
        raise RegistrationError(
            f"{there.title} did not keep the entry: {there.file} does not hold it."
        )
    words = [entry["command"], *map(str, entry.get("args") or [])]
    return words, {str(key): str(value) for key, value in (entry.get("env") or {}).items()}


async def list_tools(command: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Start `command` with the environment of its entry, and return the names of its tools.

    It runs in an empty folder, since a client starts it in whatever project it works on. Raises
    `RegistrationError`.
    """
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    logged = deque[str](maxlen=1)
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = await ServerProcess.start(
                command, environment={**kept, **env}, cwd=Path(folder), stderr=PIPE
            )
            server.on_log_line = logged.append
            try:
                mcp = McpClient(server)
                await mcp.open()
                async with asyncio.timeout(LIST_SECONDS):
                    tools = (await mcp.list_all("tools"))["tools"]
            finally:
                await server.stop()
        except (ServerError, RequestError, TimeoutError) as error:
            cause = str(error) or f"no list of tools within {LIST_SECONDS:g} s"
            last = "".join(f"\nIts last words: {one_line(line, 300)}" for line in logged)
            raise RegistrationError(
                "it is registered, but the registered command does not answer: "
                f"{one_line(cause, 300)}{last}"
            ) from error
    return [one_line(str(tool.get("name"))) for tool in tools]


def _own_command(
    location: EntryLocation, launch: tuple[str, ...] | None, *, is_new: bool
) -> list[str]:
    """Return what has the client itself add or remove the entry; empty if it cannot."""
    there, command = location.client, []
    if launch is None:
        command = there.remove_command(location.name)
    elif is_new:
        command = there.add_command(location.name, launch)
    return command if command and shutil.which(command[0]) else []


def _approval(location: EntryLocation, file: ConfigFile, *, given: bool) -> list[Edit]:
    """Return what has Claude Code's settings approve our sending tool, or no longer do so."""
    tool = location.approval
    if not given and tool not in (file.read() or ""):
        return []

    def change(settings: Document) -> None:
        allowed = table_in(settings, "permissions").setdefault("allow", [])
        if not isinstance(allowed, list):
            raise EditError("permissions.allow in it is no list")
        if not given:
            allowed[:] = [other for other in allowed if other != tool]
        elif tool not in allowed:
            allowed.append(tool)

    with_, done = ("with", "Added") if given else ("without", "Took away")
    by_hand = f'In {file.path}: {with_} "{tool}" under permissions.allow'
    approval = Edit(file, "json", change, by_hand, f"{done} the approval {tool} in")
    before, after = approval.texts()
    return [approval] if before != after else []


def _by_hand(location: EntryLocation, wanted: Entry | None) -> str:
    """Return what a person would do to have the entry `wanted`, or none."""
    file = location.client.file
    if wanted is None:
        return f"In {file}: without {location.path}"
    return f"In {file}:\n{location.snippet(wanted)}"


def _left_alone(file: ConfigFile, error: EditError, by_hand: str) -> RegistrationError:
    return RegistrationError(
        f"{file.path} was left alone: {error}.\nChange it by hand, as it is shown.", by_hand
    )


def _kept(backup: Path | None) -> str:
    return "" if backup is None else f" (the file as it was: {backup})"


def _run(location: EntryLocation, file: ConfigFile, arguments: list[str]) -> Path | None:
    """Run the client's command, and undo what it did to the text of other entries.

    Returns the backup of the file; raises `RegistrationError`.
    """
    before = file.read()
    backup = file.back_up()
    try:
        _finish(arguments)
        after = file.read()
    except RegistrationError:
        if backup is not None and file.read() == before:
            backup.unlink()
        raise
    if location.client.format == "toml" and before and after:
        # Codex rewrites all its servers, and drops the comments of those that are not ours.
        with suppress(EditError):
            entry = location.read(after)
            gentle = edited(before, "toml", partial(location.write, entry=entry))
            if load(gentle, "toml") == load(after, "toml"):
                file.replace(after, gentle)
    return backup


def _finish(arguments: list[str]) -> None:
    shown = shlex.join(arguments[:3])
    try:
        ran = subprocess.run(  # noqa: S603 - the client's own command, looked up in the PATH
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RegistrationError(f"{shown} did not work: {one_line(str(error), 300)}") from error
    if ran.returncode != 0:
        said = (ran.stderr + b"\n" + ran.stdout).decode("utf-8", "replace").strip().splitlines()
        first = next((line for line in said if "error" in line.lower()), said[-1] if said else "")
        raise RegistrationError(
            f"{shown} failed with exit code {ran.returncode}: {one_line(first, 300)}"
        )
