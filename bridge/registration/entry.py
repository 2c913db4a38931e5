"""The entry of this bridge in a client's configuration file: where it is and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from bridge.registration.clients import SEND_TOOL, Agent
from bridge.registration.formats import Change, dump, load, table_in
from bridge.registration.json_text import MISSING
from bridge.registration.launch import ENV_FILE_OPTION, SCRIPT
from bridge.settings.table import SECRETS

Entry = dict[str, Any]


@dataclass(frozen=True)
class EntryLocation:
    """A client's file, and the name of an entry in it, which need not exist."""

    client: Agent
    name: str

    @property
    def path(self) -> str:
        """The keys that lead to the entry, as people write them."""
        return f"{self.client.servers}.{self.name}"

    def snippet(self, entry: Entry) -> str:
        """Return the entry as text to paste, without the secrets in its env."""
        if env := entry.get("env"):
            entry = entry | {"env": env | dict.fromkeys(env.keys() & SECRETS, "***")}
        document = {self.client.servers: {self.name: entry}}
        return dump(document, self.client.format).rstrip("\n")

    def read(self, text: str) -> Entry | None:
        """Return the entry in the file's `text`; raises `EditError`."""
        servers = table_in(load(text, self.client.format), self.client.servers)
        return table_in(servers, self.name) if self.name in servers else None

    def changes(self, held: Entry | None, wanted: Entry | None) -> list[Change]:
        """Return the changes that turn the entry `held` into `wanted`; None means no entry."""
        path = (self.client.servers, self.name)
        if held is None or wanted is None:
            return [] if held is wanted else [(path, wanted or MISSING)]
        changed = dict.fromkeys(held.keys() - wanted.keys(), MISSING)
        changed |= {key: value for key, value in wanted.items() if held.get(key) != value}
        return [((*path, key), value) for key, value in changed.items()]


def is_ours(entry: object) -> bool:
    """Whether a client's entry starts this bridge, in whatever way it was written there."""
    if not isinstance(entry, dict):
        return False
    command, args = entry.get("command"), entry.get("args")
    if isinstance(command, str) and PurePosixPath(command).name == SCRIPT:
        return True
    words = [command, *args] if isinstance(args, list) else []
    return ("-m", "bridge") in pairwise(words)


def new_entry(client: Agent, command: Sequence[str], old: Entry, *, approve_send: bool) -> Entry:
    """Return the entry that runs `command`, with what the user added to the `old` entry."""
    entry: Entry = {"type": "stdio"} if client.key in ("claude", "vscode") else {}
    if client.key == "claude":  # otherwise the first prompt may lack the tools
        entry["alwaysLoad"] = True
    entry |= {key: value for key, value in old.items() if key not in ("args", "env")}
    entry["command"], *arguments = command
    added = [word for word in user_arguments(old.get("args")) if word not in arguments]
    entry["args"] = _in_former_order([*arguments, *added], old.get("args"))
    env = _table(old.get("env"))
    if env or client.key == "claude":  # Claude's own command writes an empty `env`, too
        entry["env"] = env
    if client.key == "codex":
        entry["required"] = True  # no session starts without the server
        if approve_send:
            tools = _table(old.get("tools"))
            tool = _table(tools.get(SEND_TOOL)) | {"approval_mode": "approve"}
            entry["tools"] = tools | {SEND_TOOL: tool}
    return entry


def user_arguments(args: object) -> Sequence[str]:
    """Return the arguments that the user added to our entry, such as `--read-only`."""
    words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if ("-m", "bridge") in pairwise(words):
        words = words[words.index("-m") + 2 :]
    words = words[1:] if words[:1] == ["serve"] else words
    if ENV_FILE_OPTION in words:
        at = words.index(ENV_FILE_OPTION)
        words = words[:at] + words[at + 2 :]
    return [word for word in words if not word.startswith(f"{ENV_FILE_OPTION}=")]


def _in_former_order(args: list[str], old: object) -> list[str]:
    """Return `args`; if the `old` arguments differ in nothing but their order, return these."""
    if not isinstance(old, list) or not all(isinstance(word, str) for word in old):
        return args
    words = old[1:] if old[:1] == ["serve"] else old
    pairs = {pair for pair in pairwise(args) if pair[0] in ("-m", ENV_FILE_OPTION)}
    return old if sorted(words) == sorted(args) and pairs <= {*pairwise(words)} else args


def _table(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
