"""The commands of the client: which there are, how a line is parsed, and how they are run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple

from bridge.client import formatting
from bridge.client.arguments import Parameter, read_arguments, trailing_arguments
from bridge.client.client import LISTS, Client
from bridge.client.errors import InvalidInputError, RequestError
from bridge.client.formatting import Answer, client_error, client_message
from bridge.client.frontend import Frontend
from bridge.client.rooms import STATUS
from bridge.mcp.jsonrpc import Json
from bridge.text import nearest, one_line
from bridge.views.results import as_json


class ToolCommand(NamedTuple):
    """A command that calls one tool."""

    tool: str
    argument: str | None = None
    """The argument that takes the words without a name. If it is None, and nothing is typed, the
    client asks for every argument. Otherwise it asks for the required ones that are missing."""
    verbatim: bool = False
    """Whether the whole rest of the line is the value of `argument`, unchanged."""
    default: str = ""
    """Stands for the rest of the line if nothing is typed."""
    trailing: bool = False
    """Whether a verbatim line may end with other arguments, as `name=value`."""


TOOL_COMMANDS = {
    "status": ToolCommand(STATUS),
    "send": ToolCommand("xmppSend", "message", verbatim=True, trailing=True),
    "history": ToolCommand("xmppHistory", "contains"),
    "wait": ToolCommand("xmppWait", "contains"),
    "occupants": ToolCommand("xmppOccupants", "nickname"),
    "ping": ToolCommand("xmppPing", "target", default="server"),
    "info": ToolCommand("xmppInfo", "target", default="server"),
    "check": ToolCommand("xmppCheck"),
    "diagnose": ToolCommand("xmppDiagnose", "nickname"),
    "trace": ToolCommand("xmppTrace", "contains"),
}
"""The commands that call a tool of the bridge."""

ECHO = ToolCommand("echo", "message", verbatim=True)
"""The tool that gets a line without a command."""

SENDING = TOOL_COMMANDS["send"].tool
"""The tool that says something in the room, which a bridge has unless it only reads."""

PLAIN_NAMES = ("help", "exit", "quit", "status", "send")
"""The commands that need no slash."""

LEAVE = frozenset({"exit", "quit"})
"""The commands that end the client."""

USAGES = {
    "TEXT": "send TEXT to the tool `echo`; send TEXT, status, help and exit need no slash",
    "//TEXT": "the same for a text that begins with a slash",
    "/send TEXT": "say TEXT in the chat room",
    "/status": "ask the tool `xmppStatus`",
    "/occupants [NICK]": "who is in the room",
    "/history [TEXT]": "what happened in the room, with TEXT in it",
    "/exit, /quit": "leave (Ctrl-D does too); Ctrl-C cancels the call in flight",
    "/help": "this list",
    "/wait [TEXT]": "wait for the next message, with TEXT in it",
    "/ping [TARGET]": "round trip to the server, or to room, self, a nickname or a JID",
    "/info [TARGET]": "what the server, or room, self, a nickname or a JID, is and can do",
    "/check": "walk a new connection through its stages",
    "/diagnose NICK": "why somebody in the room does not answer",
    "/trace [TEXT]": "the stanzas on the wire",
    "/tools [NAME]": "the tools of the server; one with its arguments",
    "/call NAME [{JSON}]": "call any tool; without JSON it asks for each argument",
    "/resources [URI]": "the resources, or the content of one",
    "/prompts [NAME]": "the prompts, or one filled in",
    "NAME=VALUE": "after a command that calls a tool: any of its arguments; `send` takes them last",
}
"""The lines of `help`: a command with its arguments, and what it does. The commands that a newcomer
needs come first."""

IN_CHAT = {"TEXT": "say TEXT in the room"}
"""What differs in the `help` of a chat."""

SAID = "Said in the room; /help shows the commands."
"""The remark in a chat after a line that is a command without its slash."""

NAMES = tuple(re.findall(r"[^/]/(\w+)", " ".join(USAGES)))
"""The commands that may follow a slash."""


class Command(NamedTuple):
    """One line that was typed."""

    name: str | None
    """The name of the command, even if there is no such command; None for a text."""
    rest: str = ""
    """The rest of the line after the name, or the text."""


def parse(line: str, *, chat: bool = False) -> Command:
    """Return the command in `line`, which must not be blank.

    In a `chat` every line is a text, just as it is, unless it begins with a slash.
    """
    if chat and not line.startswith("/"):
        return Command(None, line)
    line = line.strip()
    if line.startswith("//"):
        return Command(None, line[1:])
    word, _, rest = line.removeprefix("/").partition(" ")
    rest = rest.strip()
    # Without a slash, `send` is a command only if a text follows, the others only if none does.
    if line.startswith("/") or (word in PLAIN_NAMES and bool(rest) == (word == "send")):
        return Command(word, rest)
    return Command(None, line)


@dataclass(eq=False)
class CommandRunner:
    """Carries out commands, one after the other."""

    client: Client
    frontend: Frontend
    catalogue_is_stale: bool = False
    """Whether the server has changed its lists, so that they are read before the next command."""
    chat: bool = False
    """Whether a line without a command is said in the room. Otherwise it is echoed."""
    _began: float = 0.0
    """When the command began. If the person was asked for arguments: when the last was typed."""

    async def run(self, command: Command) -> Answer:
        """Carry out `command`; raises `ServerError` when the server has ended."""
        if self.catalogue_is_stale:
            self.catalogue_is_stale = False
            await self.client.read_catalogue()
        self._began = monotonic()
        try:
            answer = await self._run(command)
        except InvalidInputError as error:
            return client_error(str(error))
        except RequestError as refusal:
            answer = formatting.error_response(refusal)
        if not answer.own:
            answer = replace(answer, seconds=monotonic() - self._began)
        if command.name is None and self.chat and not answer.failed:
            word = parse(command.rest).name or command.rest.strip()
            # The room sends it back, and so it is shown.
            return client_message(SAID if word in NAMES else "")
        if command.name is None and SENDING in self.client.catalogue.tools and not self.chat:
            answer = replace(answer, note="not said in the room")
        return answer

    async def _run(self, command: Command) -> Answer:
        name, rest = command
        said = TOOL_COMMANDS["send"]._replace(trailing=False) if self.chat else ECHO
        tool_command = said if name is None else TOOL_COMMANDS.get(name)
        if tool_command is not None:
            return await self._call(tool_command, rest or tool_command.default)
        if name in LISTS:
            return await self._show(name, *_two(rest))
        if name == "call":
            return await self._call_by_name(rest)
        if name == "help":
            usages = USAGES | IN_CHAT if self.chat else USAGES
            columns = max(map(len, usages))
            lines = [f"{usage:{columns}}  {does}" for usage, does in usages.items()]
            return client_message("\n".join(lines), raw=usages)
        texts = "says" if self.chat else "echoes"
        meant = nearest(name or "", [*TOOL_COMMANDS, *LISTS, "call", "help", "exit", "quit"])
        unknown = f"There is no command /{name}{meant}; /help lists them, //TEXT {texts} a slash."
        return client_error(one_line(unknown))

    async def _call_by_name(self, rest: str) -> Answer:
        tool, typed = _two(rest)
        if not tool:
            return client_error("Which tool? Type /call NAME; /tools lists them.")
        return await self._call(ToolCommand(tool), typed)

    async def _call(self, command: ToolCommand, typed: str) -> Answer:
        tool, main = command.tool, command.argument
        known = self.client.catalogue.tools.get(tool, ())
        if main is None and len(known) == 1 and known[0].types == ("string",):
            main = known[0].name
        if command.verbatim and main is not None:
            arguments: dict[str, Json] = {}
            if command.trailing:
                others = [parameter for parameter in known if parameter.name != main]
                typed, arguments = trailing_arguments(typed, others)
            arguments |= {main: typed} if typed else {}
        else:
            arguments = read_arguments(typed, known, main)
        if not typed.startswith("{"):
            missing = [parameter for parameter in known if parameter.name not in arguments]
            every = command.argument is None and not typed
            arguments |= await self._asked([each for each in missing if every or each.required])
        return formatting.tool_result(await self.client.call(tool, arguments))

    async def _asked(self, wanted: Sequence[Parameter]) -> dict[str, Json]:
        arguments: dict[str, Json] = {}
        for parameter in wanted if self.frontend.interactive else ():
            arguments |= await self.frontend.ask(parameter)
        self._began = monotonic()
        return arguments

    async def _show(self, kind: str, name: str, typed: str) -> Answer:
        """Show a list, or the tool, resource or prompt of this name in it."""
        client, catalogue = self.client, self.client.catalogue
        if not name:
            return formatting.listing(kind, await client.list_all(kind))
        if kind == "tools":
            tool = catalogue.definitions.get(name)
            if tool is None:
                return client_error(f"{one_line(name)} is not among the tools of this server.")
            return Answer(tool, tool, as_json(tool, indent=2), own=True)
        if kind == "resources":
            read = await client.request("resources/read", {"uri": name})
            return formatting.resource_contents(read)
        known = catalogue.prompts.get(name, ())
        arguments = read_arguments(typed, known) if typed else await self._asked(known)
        prompt = await client.request("prompts/get", {"name": name, "arguments": arguments})
        return formatting.prompt_messages(prompt)


def _two(rest: str) -> tuple[str, str]:
    """Return the first word, and what follows it."""
    first, _, others = rest.partition(" ")
    return first, others.strip()
