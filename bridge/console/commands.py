"""What can be typed, and what it means. Pure."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Shortcut:
    """A command that calls one tool."""

    tool: str
    argument: str | None = None
    """What the words after it are, where they name no argument."""
    verbatim: bool = False
    """Whether all that follows is that argument, as it stands."""
    usual: str = ""
    """What is meant where nothing follows."""


@dataclass(frozen=True)
class Usage:
    """One command, for the list of them."""

    line: str
    meaning: str


SHORTCUTS = {
    "status": Shortcut("xmppStatus"),
    "send": Shortcut("xmppSend", "message", verbatim=True),
    "history": Shortcut("xmppHistory", "contains"),
    "wait": Shortcut("xmppWait", "contains"),
    "occupants": Shortcut("xmppOccupants", "nickname"),
    "ping": Shortcut("xmppPing", "target", usual="server"),
    "info": Shortcut("xmppInfo", "target", usual="server"),
    "check": Shortcut("xmppCheck"),
    "trace": Shortcut("xmppTrace", "contains"),
}
"""The commands that are a tool of the bridge by a shorter name."""

ECHO = Shortcut("echo", "message", verbatim=True)
"""What a line that is no command calls."""

USAGES = (
    Usage("TEXT", "send TEXT to the tool `echo`; //TEXT for a text that begins with a slash"),
    Usage("status", "ask the tool `xmppStatus`"),
    Usage("send TEXT", "say TEXT in the chat room"),
    Usage("help", "this list"),
    Usage("exit, quit", "leave (Ctrl-D does too); Ctrl-C cancels the call in flight"),
    Usage("/status, /send TEXT", "the same as without the slash"),
    Usage("/history [TEXT]", "what happened in the room, with TEXT in it"),
    Usage("/wait [TEXT]", "wait for the next message, with TEXT in it"),
    Usage("/occupants [NICK]", "who is in the room"),
    Usage("/ping [TARGET]", "round trip to the server, or to room, self, a nickname or a JID"),
    Usage("/info [TARGET]", "what the server, or room, self, a nickname or a JID, is and can do"),
    Usage("/check", "walk a new connection through its stages"),
    Usage("/trace [TEXT]", "the stanzas on the wire"),
    Usage("/tools [NAME]", "the tools of the server; one with its arguments"),
    Usage("/call NAME [{JSON}]", "call any tool; without JSON it asks for each argument"),
    Usage("/resources [URI]", "the resources, or what stands in one"),
    Usage("/prompts [NAME]", "the prompts, or one filled in"),
    Usage("/raw {JSON}", "send this as it is; the answer is shown as it came"),
    Usage("/framing [WORD]", "`lines`, or `headers` (Content-Length)"),
    Usage("/revision [DATE]", "speak this revision of MCP"),
    Usage("/bare [on|off]", "call tools by bare JSON-RPC, their name as the method"),
    Usage("NAME=VALUE", "after a command that calls a tool: any of its arguments"),
)
"""Every command, in the order of `help`."""

WORDS = (
    *SHORTCUTS,
    "tools",
    "call",
    "resources",
    "prompts",
    "raw",
    "framing",
    "revision",
    "bare",
    "help",
    "exit",
    "quit",
)
"""What may follow a slash."""

PLAIN_WORDS = ("help", "exit", "quit", "status", "send")
"""What is a command without one, too."""


@dataclass(frozen=True)
class Call:
    """Call a tool."""

    tool: str
    typed: str = ""
    """The arguments as they were typed."""
    shortcut: Shortcut | None = None
    """By which it is called; None for `/call`."""


@dataclass(frozen=True)
class Show:
    """List things of one kind (`tools`, `resources`, `prompts`), or look at one of them."""

    kind: str
    name: str = ""
    typed: str = ""


@dataclass(frozen=True)
class Raw:
    """Send a text as it is."""

    text: str


@dataclass(frozen=True)
class Switch:
    """Say how the console speaks (`framing`, `revision`, `bare`), or change it."""

    what: str
    to: str = ""


@dataclass(frozen=True)
class Help:
    """List the commands."""


@dataclass(frozen=True)
class Leave:
    """End the conversation."""


@dataclass(frozen=True)
class Unclear:
    """What begins like a command and is none."""

    why: str


Command: TypeAlias = Call | Show | Raw | Switch | Help | Leave | Unclear


def parse(line: str) -> Command:
    """Return what `line`, which is not blank, asks for."""
    line = line.strip()
    if line.startswith("//"):
        return Call(ECHO.tool, line[1:], ECHO)
    if line.startswith("/"):
        word, _, rest = line[1:].partition(" ")
        return _slash(word, rest.strip())
    word, _, rest = line.partition(" ")
    if line in PLAIN_WORDS and line != "send":
        return _slash(line, "")
    if word == "send" and rest.strip():
        return _slash(word, rest.strip())
    return Call(ECHO.tool, line, ECHO)


def is_room_text(line: str) -> bool:
    """Whether `line` holds something that is said in the room.

    Nothing of that is kept on disk unless somebody asked for a traffic log.
    """
    match parse(line) if line.strip() else None:
        case Call(tool=tool):
            return tool == SHORTCUTS["send"].tool
        case Raw(text=text):
            return SHORTCUTS["send"].tool in text
        case _:
            return False


def _slash(word: str, rest: str) -> Command:
    if shortcut := SHORTCUTS.get(word):
        return Call(shortcut.tool, rest or shortcut.usual, shortcut)
    first, _, others = rest.partition(" ")
    match word:
        case "call" if first:
            return Call(first, others.strip())
        case "call":
            return Unclear("Which tool? Type /call NAME; /tools lists them.")
        case "tools" | "resources" | "prompts":
            return Show(word, first, others.strip())
        case "raw" if rest:
            return Raw(rest)
        case "raw":
            return Unclear('What? For example /raw {"jsonrpc":"2.0","id":1,"method":"ping"}')
        case "framing" | "revision" | "bare":
            return Switch(word, rest)
        case "help":
            return Help()
        case "exit" | "quit":
            return Leave()
        case _:
            return Unclear(f"There is no command /{word}; help lists them, //TEXT echoes a slash.")
