"""Reads deeds.txt: what bots do, step by step, and what must be found.

- `login OPTION`: how the bot's program logs in. `opens`: it does so once more, and waits.
- `bot XML`, `owner XML`: the bot, or the owner of the room, Ann, sends a stanza.
- `sees TEXT`, `hears TEXT`: the bot, or the owner, gets this; quotes are left out.
- `ask`, `join`: the bot asks for a seat in the room; it also waits for it. `refused`: it gets an
  error. `says BODY`, `said BODY`: the bot, or the owner, says it in the room. `blurt BODY`: the bot
  asks for a seat and says it, at once.
- `administer ITEM`, `configure OPTION VALUE`, `own XML`, `ban`: the owner changes the room.
- `answered`: the server answers a request of the bot's. `late`: so it does 11 s later.
- `later SECONDS`: they pass. `cut`: the network breaks the connection. `swallow`: it loses
  everything from here on. `twin`: another program logs in as the bot.
- `server XML`, `end`: the sandbox sends this, or ends the stream.
- `close`: the bot ends the stream. `closed`: the stream is over. `again`: the bot connects once
  more, unless its library does so by itself.
- `times NUMBER`: how often the steps below it are done.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Step = tuple[str, str]
"""A verb, and what follows it."""

SERVERS = ("prosody", "ejabberd", "sandbox")
MUC = "http://jabber.org/protocol/muc"
PING = "<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>"
VIOLATION = "<policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"


def _form(kind: str, name: str, value: str) -> str:
    """A form that sets one field (XEP-0004)."""
    fields = ("FORM_TYPE", f"{MUC}#{kind}"), (f"muc#{kind}_{name}", value)
    text = "".join(f"<field var='{var}'><value>{given}</value></field>" for var, given in fields)
    return f"<x xmlns='jabber:x:data' type='submit'>{text}</x>"


WORDS = {
    "{muc}": f"<x xmlns='{MUC}'/>",
    "{ping}": PING,
    "{long}": "x" * 300_000,
    "{text}": "a long text, " * 400,
    "{policy-violation}": f"<error type='wait'>{VIOLATION}</error>",
    "{register}": (
        "<iq type='set' id='r1' to='{room}'><query xmlns='jabber:iq:register'>"
        f"{_form('register', 'roomnick', 'Robby')}</query></iq>"
    ),
}
"""What stands for longer texts. `{room}`, `{other}` and `{account}` are those of a run."""


@dataclass(frozen=True)
class Deed:
    """One or more streams of a bot, and what is found on them."""

    steps: tuple[Step, ...]
    rule: str = ""
    """Its name; empty if nothing is found."""
    words: str = ""
    """A part of what it says."""
    on: tuple[str, ...] = SERVERS
    """The servers on which it is so."""
    without: tuple[str, ...] = ()
    """The libraries that do not let a bot do it."""
    option: str = ""
    """How the bot logs in."""


def _query(kind: str, content: str) -> list[Step]:
    query = f"<query xmlns='{MUC}#{kind}'>{content}</query>"
    asked = f"<iq type='set' id='o2' to='{{room}}'>{query}</iq>"
    return [("owner", asked), ("hears", "id=o2"), ("hears", "type=result")]


def _steps(line: str) -> list[Step]:
    verb, _, text = line.partition(" ")
    message = f"<message to='{{room}}' type='groupchat' id='m1'><body>{text}</body></message>"
    ask = ("bot", f"<presence to='{{room}}/bot'><x xmlns='{MUC}'/></presence>")
    answered = [("bot", PING), ("sees", "id=p1"), ("sees", "id=p1")]  # it sees what it sends, too
    match verb:
        case "says":
            return [("bot", message)]
        case "said":
            return [("owner", message)]
        case "ask":
            return [ask]
        case "blurt":
            return [("bot", f"{ask[1]}\n{message}")]
        case "join":
            # A room that the bot has left may still tell it so.
            return [ask, ("sees", "from={room}/"), ("sees", "code=110")]
        case "refused":
            return [("sees", "type=error")]
        case "answered":
            return answered
        case "late":
            return [("later", "11"), *answered]
        case "administer":
            return _query("admin", f"<item {text}/>")
        case "ban":
            return _query("admin", "<item jid='{account}' affiliation='outcast'/>")
        case "configure":
            return _query("owner", _form("roomconfig", *text.split(" ")))
        case "own":
            return _query("owner", text)
    return [(verb, text)]


def _deed(head: str, lines: list[str]) -> Deed:
    rule, _, words = head.partition(", ")
    settings: dict[str, tuple[str, ...]] = {}
    steps: list[Step] = []
    before: list[Step] = []
    times = 1
    for line in lines:
        verb, *given = line.split(" ")
        if verb in {"on", "without", "login"}:
            settings[verb] = tuple(given)
        elif verb == "times":
            times, before, steps = int(given[0]), steps, []
        else:
            steps += _steps(line)
    (option,) = settings.pop("login", ("",))
    return Deed((*before, *steps * times), rule, words, option=option, **settings)


def _read(text: str) -> Iterator[tuple[str, Deed]]:
    for word, meaning in WORDS.items():
        text = text.replace(word, meaning)
    for paragraph in text.replace("\\x0b", "\x0b").split("\n\n"):
        head, *lines = [line for line in paragraph.split("\n") if line and line[0] != "#"] or [""]
        if head:
            name, _, told = head.partition(": ")
            yield name, _deed(told, [line.strip(" ") for line in lines])


DEEDS = dict(_read(Path(__file__).with_suffix(".txt").read_text("utf-8")))
