"""One event as one line for people, which nobody in the room can forge. Pure.

It takes the exact form of an event (`bridge.xmpp.events.encode`), and an entry of xmppHistory,
brief or full, of whatever server the client talks to: the names are the same, the JSON may be any.
All of it is escaped.
"""

from collections.abc import Mapping

from bridge.text import one_line

MAX_TEXT_CHARACTERS = 2_000
"""Of one text, such as a body; the journal and the store have the rest."""


_CONCERNS = {
    "replaces": "instead of",
    "reactsTo": "reacting to",
    "retracts": "taking back",
    "replyTo": "answering",
}
"""How a message is said to concern another one; the first that applies."""


def format_event(entry: Mapping[str, object]) -> str:
    """Return what happened in one line, after its time and its room if `entry` has them.

    An entry has a room where there are several. Never raises.
    """
    if None in entry.values():  # some servers write null for what does not apply
        entry = {name: value for name, value in entry.items() if value is not None}
    match entry.get("kind"):
        case "message":
            line = _message(entry)
        case "connection":
            line = _connection(entry)
        case "error":
            line = _error(entry)
        case _:
            line = _change(entry)
    if "room" in entry:
        line = f"{_text(entry, 'room')}: {line}"
    return f"{_text(entry, 'at')} {line}" if "at" in entry else line


def _message(entry: Mapping[str, object]) -> str:
    if entry.get("direction") == "out":
        return f"sending, id {_text(entry, 'id')}: {_text(entry, 'body')}"
    line = f"<{_text(entry, 'sender')}>"
    if "delayedFrom" in entry:
        line += f" (said {_text(entry, 'delayedFrom')})"
    if entry.get("type") == "chat":
        line += " (private)"
    if entry.get("reflection") is True or "heard" in entry:
        line += " (our own, not heard)" if entry.get("heard") is False else " (our own)"
    for name, words in _CONCERNS.items():
        if name in entry:
            reactions = f": {_text(entry, 'reactions', ' ')}" if name == "reactsTo" else ""
            line += f" ({words} {_text(entry, name)}{reactions})"
            break
    if "encrypted" in entry:
        line += f" (encrypted: {_text(entry, 'encrypted')})"
    if "payload" in entry:
        line += f" (no body: {_text(entry, 'payload')})"
    return f"{line} {_text(entry, 'body')}" if "body" in entry else line


def _connection(entry: Mapping[str, object]) -> str:
    text = _text(entry, "text")
    if "phase" in entry:
        line = _text(entry, "phase")
        if "condition" in entry:
            line += f": {text} [{_text(entry, 'condition')}] {_text(entry, 'hint')}"
        if isinstance(wait := entry.get("nextAttemptInMs"), int):
            line += f" Next attempt in {round(wait, -3) // 1000} s."
        return line
    if "service" in entry:
        tls = _text(entry, "tls").removesuffix(", certificate not checked")
        secured = "no TLS" if tls == "none" else tls
        again = "" if text == "logged in" else ", the former session resumed"
        line = f"logged in to {_text(entry, 'service')}{_part(' as ', entry, 'jid')}"
        return f"{line} ({secured}, {_text(entry, 'sasl')}{again})"
    made = "" if text == "in the room" else "; joining made this room, is MUC_ROOM spelt right?"
    return f"in the room as {_text(entry, 'from') or _text(entry, 'sender')}{made}"


def _error(entry: Mapping[str, object]) -> str:
    if "sender" in entry:
        what = f"* {_text(entry, 'sender')} answered{_part(' id ', entry, 'id')} with an error"
    else:
        what = f"returned, id {_text(entry, 'id')}" if "id" in entry else "* the room refused us"
    return f"{what}: {_text(entry, 'condition')}{_part(': ', entry, 'text')}"


def _change(entry: Mapping[str, object]) -> str:
    who, by = _text(entry, "sender"), _part(" by ", entry, "actor")
    reason = _part(": ", entry, "reason")
    match entry.get("kind"):
        case "join":
            return f"* {who} is here ({_all(entry, 'role', 'affiliation')})"
        case "leave" if entry.get("destroyed") is True:
            venue = _part("; its owner names ", entry, "venue")
            return f"* the room was destroyed{reason}{venue}"
        case "leave":
            codes = _part(" [", entry, _codes(entry), "]")
            return f"* {who} left{by}{codes}{reason or _part(': ', entry, 'status')}"
        case "nick":
            return f"* {who} is now {_text(entry, 'newNickname')}"
        case "role" if "sender" in entry:
            held = _all(entry, "role", "affiliation", "show")
            return f"* {who} is now ({held}){by}{reason}{_part(': ', entry, 'status')}"
        case "role":
            absent = f"* {_text(entry, 'jid')}, who is not here, is now "
            return f"{absent}{_text(entry, 'affiliation')}{by}{reason}"
        case "subject":
            return f"* subject{_part(' by ', entry, 'sender')}: {_text(entry, 'subject')}"
        case "config":
            return f"* the room's configuration changed [{_text(entry, _codes(entry))}]"
        case "gap":
            span = f"from {_text(entry, 'from')} to {_text(entry, 'to')}"
            if "events" in entry:
                count = _text(entry, "events")
                return f"* {count} events and stanzas {span} were not recorded{reason}"
            if "reason" in entry:
                return f"* {_text(entry, 'reason')} {span}; what happened may be missing"
            return f"* what was said {span} may be missing"
        case _:
            return f"* {_text(entry, 'kind')}"


def _codes(entry: Mapping[str, object]) -> str:
    """Return the field that has the status codes: brief entries have their meaning alone."""
    return "codes" if "codes" in entry else "meaning"


def _part(before: str, entry: Mapping[str, object], name: str, after: str = "") -> str:
    """Return what a field says between two texts; nothing where it says nothing."""
    text = _text(entry, name)
    return f"{before}{text}{after}" if text else ""


def _all(entry: Mapping[str, object], *names: str) -> str:
    return ", ".join(_text(entry, name) for name in names if name in entry)


def _text(entry: Mapping[str, object], name: str, separator: str = ", ") -> str:
    """Return what a field says, escaped and cut; nothing where it is not there."""
    value = entry.get(name, "")
    if isinstance(value, list):
        value = separator.join(map(_scalar, value))
    return one_line(value if isinstance(value, str) else _scalar(value), MAX_TEXT_CHARACTERS)


def _scalar(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else "?"
