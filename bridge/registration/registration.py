"""Registering this bridge with a client, and undoing it: first a plan, then its steps.

A new entry is made by the client's own command where that is installed. One that is there
already is edited in place, since the commands refuse it (Claude Code) or forget whatever the user
added to it (Codex). What the command did is looked at afterwards, and put right where need be.
"""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.escaping import one_line
from bridge.registration import jsonfile, tomlfile
from bridge.registration.client import SEND_TOOL, Client
from bridge.registration.configfile import ConfigFile
from bridge.registration.jsontree import JsonError
from bridge.registration.launch import FORMER, Launch, added_by_user, is_ours
from bridge.registration.tomlfile import TomlError

COMMAND_SECONDS = 60.0
"""How long a client's own command may take; they take half a second."""

Entry = dict[str, Any]


class RegistrationError(Exception):
    """It could not be done, and nothing is half done; the text says why."""


@dataclass(frozen=True)
class RunCommand:
    """Let the client's own command do it."""

    arguments: tuple[str, ...]

    def shown(self, place: "Place") -> str:
        """The step as a person would type it."""
        del place
        return shlex.join(self.arguments)


@dataclass(frozen=True)
class SetEntry:
    """See to it that the entry reads like this."""

    entry: Entry
    expected: bool
    """Whether the command before should have done all of it."""

    def shown(self, place: "Place") -> str:
        """The step as a person would do it."""
        if self.expected:
            return ""
        return f"In {place.client.file}:\n{place.snippet(self.entry)}"


@dataclass(frozen=True)
class DropEntry:
    """See to it that there is no entry."""

    def shown(self, place: "Place") -> str:
        """The step as a person would do it."""
        return f"In {place.client.file}: without {place.client.servers}.{place.name}"


@dataclass(frozen=True)
class Approve:
    """Add our tool to the client's list of those that need no asking, or take it out again."""

    file: Path
    word: str
    wanted: bool

    def shown(self, place: "Place") -> str:
        """The step as a person would do it."""
        del place
        verb = "with" if self.wanted else "without"
        return f"In {self.file}: {verb} {json.dumps(self.word)} under permissions.allow"


Step = RunCommand | SetEntry | DropEntry | Approve

ALLOWED = ("permissions", "allow")
"""Where Claude Code's settings list what needs no asking."""


@dataclass(frozen=True)
class Place:
    """Where an entry stands, or would: under a name in one client's file."""

    client: Client
    name: str

    @property
    def path(self) -> tuple[str, str]:
        """The keys that lead to the entry."""
        return (self.client.servers, self.name)

    @property
    def approval(self) -> str:
        """What the client calls our sending tool among those that need no asking."""
        return f"mcp__{self.name}__{SEND_TOOL}"

    def snippet(self, entry: Entry) -> str:
        """The entry as text to paste."""
        if self.client.format == "toml":
            return tomlfile.snippet(self.path, entry)
        whole = {self.client.servers: {self.name: entry}}
        try:
            return jsonfile.dumps(whole, "  ")
        except JsonError as error:
            raise RegistrationError(f"{self.client.file}: the entry: {error}.") from error

    def load(self, text: str) -> dict[str, Any]:
        """Everything in the client's file; raises `RegistrationError`."""
        try:
            if self.client.format == "toml":
                return tomlfile.load(text)
            loaded = jsonfile.load(text, comments=self.client.format == "jsonc")
        except (TomlError, JsonError) as error:
            raise RegistrationError(
                f"{self.client.file} is broken, so it was left alone: {one_line(str(error))}.\n"
                f"Mend it first; {self.client.title} cannot read it either."
            ) from error
        if not isinstance(loaded, dict):
            raise RegistrationError(f"{self.client.file} holds no object, so it was left alone.")
        return loaded

    def present(self, text: str | None) -> Entry | None:
        """The entry that stands there; raises `RegistrationError`."""
        document = {} if text is None else self.load(text)
        servers = document.get(self.client.servers, {})
        if not isinstance(servers, dict):
            raise RegistrationError(
                f"{self.client.file} is broken, so it was left alone: {self.client.servers} is "
                "no table of servers."
            )
        entry = servers.get(self.name)
        if entry is None or isinstance(entry, dict):
            return entry
        raise RegistrationError(
            f"{self.client.file}: {self.client.servers}.{self.name} is no entry of a server, so it "
            "was left alone."
        )

    def edited(self, text: str | None, entry: Entry | None) -> str:
        """The file with this entry, or without it; raises `RegistrationError`."""
        text = text or ""
        try:
            toml = self.client.format == "toml"
            if entry is None:
                return (tomlfile.drop if toml else jsonfile.drop)(text, self.path)
            return (tomlfile.put if toml else jsonfile.put)(text, self.path, entry)
        except (TomlError, JsonError) as error:
            verb = "unregister" if entry is None else "register"
            raise RegistrationError(
                f"{self.client.file}: {one_line(str(error))}; it was left alone.\n"
                f"To do it by hand: xmpp-bridge {verb} {self.client.key} --print"
            ) from error


def plan_register(place: Place, launch: Launch, *, approve_send: bool = False) -> tuple[Step, ...]:
    """What is left to do until the bridge is registered; nothing is done yet.

    Raises `RegistrationError` and `FileError`.
    """
    client = place.client
    file = ConfigFile(client.file)
    present = _present_and_ours(place, file)
    wanted = _wanted(place, launch, present, approve_send=approve_send)
    steps: list[Step] = []
    if present is None:
        plain = _wanted(place, launch, None, approve_send=False)
        plain.pop("required", None)
        if command := _installed(client.adding(place.name, launch.words)):
            steps.append(RunCommand(command))
        steps.append(SetEntry(wanted, expected=bool(command) and plain == wanted))
    elif present != wanted:
        steps.append(SetEntry(wanted, expected=False))
    if approve_send and client.approvals is not None:
        steps += _approval(place, client.approvals, wanted=True)
    if steps:
        file.check_writable()
    return tuple(steps)


def plan_unregister(place: Place) -> tuple[Step, ...]:
    """What is left to do until nothing of the bridge is registered there.

    Raises `RegistrationError` and `FileError`.
    """
    client = place.client
    file = ConfigFile(client.file)
    steps: list[Step] = []
    if _present_and_ours(place, file) is not None:
        if command := _installed(client.removing(place.name)):
            steps.append(RunCommand(command))
        steps.append(DropEntry())
        file.check_writable()
    if client.approvals is not None:
        steps += _approval(place, client.approvals, wanted=False)
    return tuple(steps)


def carry_out(place: Place, steps: tuple[Step, ...], say: Callable[[str], None]) -> None:
    """Do it, telling `say` of each change in one line; raises `RegistrationError`, `FileError`."""
    file = ConfigFile(place.client.file)
    backed_up = False
    for step in steps:
        match step:
            case RunCommand(arguments):
                backup = _run(place, file, arguments)
                backed_up = backup is not None
                say(f"Ran: {shlex.join(arguments)}{_kept(backup)}")
            case SetEntry(entry):
                before = file.read()
                if place.present(before) != entry:
                    after = place.edited(before, entry)
                    backup = file.replace(before, after, keep=not backed_up)
                    say(
                        f"Wrote {place.client.servers}.{place.name} into {file.path}{_kept(backup)}"
                    )
            case DropEntry():
                before = file.read()
                if place.present(before) is not None:
                    backup = file.replace(before, place.edited(before, None), keep=not backed_up)
                    say(f"Took {'.'.join(place.path)} out of {file.path}{_kept(backup)}")
            case Approve(path, word, wanted):
                approvals = ConfigFile(path)
                before = approvals.read()
                backup = approvals.replace(before, _approved(path, before, word, wanted=wanted))
                verb = "Added" if wanted else "Took away"
                say(f"{verb} the approval {word} in {path}{_kept(backup)}")


def entry_now(place: Place) -> tuple[list[str], dict[str, str]]:
    """Return command and environment of the entry as it stands in the file.

    Raises `RegistrationError` and `FileError`.
    """
    entry = place.present(ConfigFile(place.client.file).read())
    if entry is None or not isinstance(entry.get("command"), str):
        raise RegistrationError(
            f"{place.client.title} did not keep the entry: {place.client.file} does not hold it."
        )
    words = [entry["command"], *map(str, entry.get("args") or [])]
    return words, {str(key): str(value) for key, value in (entry.get("env") or {}).items()}


def _kept(backup: Path | None) -> str:
    return "" if backup is None else f" (the file as it was: {backup})"


def _present_and_ours(place: Place, file: ConfigFile) -> Entry | None:
    present = place.present(file.read())
    if present is not None and not is_ours(present):
        raise RegistrationError(
            f"{place.client.title} has a server called {place.name} that is not this bridge; it "
            "was left alone.\nTake another name with --name."
        )
    return present


def _wanted(place: Place, launch: Launch, present: Entry | None, *, approve_send: bool) -> Entry:
    """Our entry; what the user added to it, such as time limits, stays."""
    client = place.client
    entry: Entry = {"type": "stdio"} if client.typed else {}
    old = present or {}
    entry |= {key: value for key, value in old.items() if key not in ("args", "env")}
    entry["command"], *own = launch.words
    entry["args"] = [*own, *added_by_user(old.get("args"))]
    env = old.get("env")
    env = (
        {key: value for key, value in env.items() if key != FORMER} if isinstance(env, dict) else {}
    )
    if env or client.key == "claude":  # whose own command writes it, be it empty
        entry["env"] = env
    if client.required:
        entry["required"] = True
        if approve_send:
            tools = old.get("tools")
            tools = dict(tools) if isinstance(tools, dict) else {}
            tool = tools.get(SEND_TOOL)
            tool = tool if isinstance(tool, dict) else {}
            entry["tools"] = tools | {SEND_TOOL: tool | {"approval_mode": "approve"}}
    return entry


def _installed(command: list[str]) -> tuple[str, ...]:
    return tuple(command) if command and shutil.which(command[0]) else ()


def _approval(place: Place, path: Path, *, wanted: bool) -> list[Step]:
    file = ConfigFile(path)
    before = file.read()
    after = _approved(path, before, place.approval, wanted=wanted)
    if after == (before or ""):
        return []
    file.check_writable()
    return [Approve(path, place.approval, wanted)]


def _approved(path: Path, text: str | None, word: str, *, wanted: bool) -> str:
    edit = jsonfile.append if wanted else jsonfile.discard
    try:
        return edit(text or "", ALLOWED, word)
    except JsonError as error:
        raise RegistrationError(
            f"{path} is broken, so it was left alone: {one_line(str(error))}."
        ) from error


def _run(place: Place, file: ConfigFile, arguments: tuple[str, ...]) -> Path | None:
    """Run the client's command, and undo what it did to other people's text."""
    before = file.read()
    backup = file.back_up()
    try:
        _finish(arguments)
        after = file.read()
    except RegistrationError:
        if backup is not None and file.read() == before:
            backup.unlink()
        raise
    if place.client.format == "toml" and before and after:
        # Codex writes all its servers anew, and drops the comments of those that are not ours.
        entry = place.present(after)
        try:
            gentle = place.edited(before, entry)
        except RegistrationError:
            return backup
        if tomlfile.filled(place.load(gentle)) == tomlfile.filled(place.load(after)):
            file.replace(after, gentle, keep=False)
    return backup


def _finish(arguments: tuple[str, ...]) -> None:
    shown = shlex.join(arguments[:3])
    try:
        ran = subprocess.run(  # noqa: S603 - the client's own command, looked up in the PATH
            arguments,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RegistrationError(f"{shown} did not end within {COMMAND_SECONDS:g} s.") from error
    except OSError as error:
        raise RegistrationError(f"{shown} does not start: {error.strerror}") from error
    if ran.returncode != 0:
        said = (ran.stderr + b"\n" + ran.stdout).decode("utf-8", "replace").strip().splitlines()
        first = next((line for line in said if "error" in line.lower()), said[-1] if said else "")
        raise RegistrationError(
            f"{shown} failed with exit code {ran.returncode}: {one_line(first, 300)}"
        )
