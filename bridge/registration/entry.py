"""The entry of this bridge in a client's configuration file: where it stands and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from bridge.registration import jsonfile, tomlfile
from bridge.registration.clients import SEND_TOOL, Client
from bridge.registration.errors import EditError, RegistrationError
from bridge.registration.launch import ENV_FILE_OPTION, FORMER_VARIABLE, SCRIPT
from bridge.text import one_line, quoted

Entry = dict[str, Any]


@dataclass(frozen=True)
class EntryLocation:
    """A client's file, and the name of an entry in it, whether or not that is there."""

    client: Client
    name: str

    @property
    def path(self) -> tuple[str, str]:
        """The keys that lead to the entry."""
        return (self.client.servers, self.name)

    @property
    def approval(self) -> str:
        """What Claude Code calls our sending tool in its list of those that need no asking."""
        return f"mcp__{self.name}__{SEND_TOOL}"

    def snippet(self, entry: Entry) -> str:
        """Return the entry as text to paste."""
        if self.client.format == "toml":
            return tomlfile.snippet(self.path, entry)
        return jsonfile.dumps({self.client.servers: {self.name: entry}}, "  ")

    def load(self, text: str) -> Any:
        """Return everything in the client's file; raises `RegistrationError`."""
        try:
            if self.client.format == "toml":
                return tomlfile.load(text)
            return jsonfile.load(text, comments=self.client.format == "jsonc")
        except EditError as error:
            raise RegistrationError(
                f"{self.client.file} is broken, so it was left alone: {one_line(str(error))}.\n"
                f"Mend it first; {self.client.title} cannot read it either."
            ) from error

    def read(self, text: str | None) -> Entry | None:
        """Return the entry in the file's `text`; raises `RegistrationError`."""
        servers = jsonfile.find(self.load(text or ""), [self.client.servers])
        entry = servers.get(self.name) if isinstance(servers, dict) else servers
        if entry is None or isinstance(entry, dict):
            return entry
        raise RegistrationError(
            f"{self.client.file} is broken, so it was left alone: {self.client.servers} is no "
            f"table of servers, or {self.name} in it is none."
        )

    def edit(self, text: str, entry: Entry | None) -> str:
        """Return the file's `text` with this entry, or without it; raises `EditError`."""
        edit = tomlfile.edit if self.client.format == "toml" else jsonfile.edit
        return edit(text, self.path, entry)


def is_ours(entry: object) -> bool:
    """Whether a client's entry starts this bridge, in whatever way it was written there."""
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args")
    if isinstance(command, str) and PurePosixPath(command).name == SCRIPT:
        return True
    words = [command, *args] if isinstance(args, list) else []
    return ("-m", "bridge") in pairwise(words)


def new_entry(client: Client, command: Sequence[str], old: Entry, *, approve_send: bool) -> Entry:
    """Return the entry that runs `command`; what the user added to the `old` one stays in it."""
    entry: Entry = {"type": "stdio"} if client.key in ("claude", "vscode") else {}
    if client.key == "claude":  # else a first prompt may be answered before the tools are there
        entry["alwaysLoad"] = True
    entry |= {key: value for key, value in old.items() if key not in ("args", "env")}
    entry["command"], *arguments = command
    entry["args"] = [*arguments, *user_arguments(old.get("args"))]
    env = _table(old.get("env"))
    env.pop(FORMER_VARIABLE, None)
    if env or client.key == "claude":  # whose own command writes it even if it is empty
        entry["env"] = env
    if client.key == "codex":
        entry["required"] = True  # no session starts without the server
        if approve_send:
            tools = _table(old.get("tools"))
            tool = _table(tools.get(SEND_TOOL)) | {"approval_mode": "approve"}
            entry["tools"] = tools | {SEND_TOOL: tool}
    return entry


def why_unstartable(entry: Entry) -> str | None:
    """Return what keeps every system from starting the entry's command, in words; else None."""
    env = {str(name): str(value) for name, value in _table(entry.get("env")).items()}
    texts = {f"the variable {quoted(name)} in its env": name + value for name, value in env.items()}
    texts["an argument"] = "".join(map(str, entry["args"]))
    for what, text in texts.items():
        if "\0" in text:
            return f"{what} has a NUL"
        if any("\ud800" <= one <= "\udfff" for one in text):
            return f"{what} has a lone surrogate, which is no UTF-8"
    named = (name for name in env if "=" in name)
    return next(
        (f"the variable {quoted(one)} in its env has a = in its name" for one in named), None
    )


def user_arguments(args: object) -> Sequence[str]:
    """Return those arguments of an entry of ours that we did not write, such as `--read-only`."""
    words = [one for one in args if isinstance(one, str)] if isinstance(args, list) else []
    for index, pair in enumerate(pairwise(words)):
        if pair == ("-m", "bridge"):
            words = words[index + 2 :]
            break
    words = words[1:] if words[:1] == ["serve"] else words
    if ENV_FILE_OPTION in words:
        at = words.index(ENV_FILE_OPTION)
        words = words[:at] + words[at + 2 :]
    return [one for one in words if not one.startswith(f"{ENV_FILE_OPTION}=")]


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
