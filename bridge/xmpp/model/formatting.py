"""One event as one line for people, which no occupant can forge. Pure.

An event comes in its exact form (`bridge.xmpp.model.events.encode`), or as an entry of xmppHistory,
brief or full. Such an entry may come from any server that the client talks to: the names are the
same, but the values may be any JSON. All texts are escaped. Each part of a line has a fixed place,
and no text can pretend to end early:

- A nickname is always between `<` and `>`, and has neither in it.
- The notes on a message follow the nickname in brackets, and no note closes its bracket early.
- The body comes last, and does not begin with a bracket.
"""

import re
from collections.abc import Mapping

from bridge.text import one_line

MAX_TEXT_CHARACTERS = 2_000
"""Most characters that a line shows of one text; the journal and the store have all of it."""

# Brackets, and the characters that look like brackets because Unicode (NFKC) makes them brackets.
_OPENING, _CLOSING = "(\u207d\u208d\ufe35\ufe59\uff08", ")\u207e\u208e\ufe36\ufe5a\uff09"
_ENDS_NICKNAME = re.compile(r"(?<=\s)\s|^\s|\s$|[^\S ]|[<>\u2800\ufe64\ufe65\uff1c\uff1e]")
_ENDS_NOTE = re.compile(rf"\([^{_OPENING}{_CLOSING}]*\)|([{_OPENING}{_CLOSING}])")
"""Matches a whole pair of brackets, or a single bracket. The group holds only the single bracket,
which could end a note."""
_BEGINS_LIKE_NOTE = re.compile(
    rf"([\s\u2800\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]*)([{_OPENING}])"
)
"""Matches the bracket at the start of a body, with the blanks before it and the marks drawn on
them."""

_CONCERNS = {
    "replaces": "instead of",
    "reactsTo": "reacting to",
    "retracts": "taking back",
    "replyTo": "answering",
}
"""The words for each field in which a message refers to another; only the first is shown."""


def format_event(entry: Mapping[str, object]) -> str:
    """Return the event as one line, with its time and its room in front if `entry` has them.

    An entry names its room if there are several. Never raises.
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


def unambiguous_nickname(nickname: str) -> str:
    """Return a nickname to write between `<` and `>`; characters that could end it are escaped."""
    line = one_line(nickname, MAX_TEXT_CHARACTERS)
    return line if line.isalnum() else _ENDS_NICKNAME.sub(lambda it: _escaped(it[0]), line)


def unambiguous_body(body: str) -> str:
    """Return a body. If it begins like a note, its first bracket alone is escaped."""
    note = None if body[:1].isalnum() else _BEGINS_LIKE_NOTE.match(body)
    return body if note is None else f"{note[1]}{_escaped(note[2])}{body[note.end() :]}"


def notes_on_message(entry: Mapping[str, object]) -> str:
    """Return the notes that come before the body of a message, each in brackets."""
    notes = []
    if "delayedFrom" in entry:
        notes.append(f"said {_text(entry, 'delayedFrom')}")
    if entry.get("type") == "chat":
        notes.append("private")
    if entry.get("reflection") is True or "heard" in entry:
        notes.append("our own, not heard" if entry.get("heard") is False else "our own")
    for name, words in _CONCERNS.items():
        if name in entry:
            reactions = f": {_text(entry, 'reactions', ' ')}" if name == "reactsTo" else ""
            notes.append(f"{words} {_text(entry, name)}{reactions}")
            break
    if entry.keys() & {"moderatedBy", "author", "reason"}:
        by = f" by {_name(entry, 'moderatedBy')}" if "moderatedBy" in entry else ""
        author = f", written by {_name(entry, 'author')}" if "author" in entry else ""
        notes.append(f"moderated{by}{author}{_part(': ', entry, 'reason')}")
    if "times" in entry:
        notes.append(f"{_text(entry, 'times')} times until {_text(entry, 'lastAt')}")
    if "encrypted" in entry:
        notes.append(f"encrypted: {_text(entry, 'encrypted')}")
    if "payload" in entry:
        notes.append(f"no body: {_text(entry, 'payload')}")
    if "languages" in entry:
        notes.append(f"also in other languages: {_text(entry, 'languages')}")
    if "marked" in entry:
        notes.append(f"people may see another text: {_text(entry, 'marked')}")
    return " ".join(map(_bracketed, notes))


def _message(entry: Mapping[str, object]) -> str:
    if entry.get("direction") == "out":
        return f"sending, id {_text(entry, 'id')}: {_text(entry, 'body')}"
    line = _name(entry, "sender")
    if notes := notes_on_message(entry):
        line += f" {notes}"
    if "body" not in entry:
        return line
    return f"{line} {one_line(unambiguous_body(_plain(entry, 'body')), MAX_TEXT_CHARACTERS)}"


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
    unnamed = "the room itself" if entry.get("from") else "the server"
    sender = _name(entry, "sender") if entry.get("sender") else unnamed
    if entry.get("condition") == "unreadable-stanza":
        return f"* a stanza of {sender} cannot be read: {_text(entry, 'reason')}"
    if "sender" in entry:
        what = f"* {sender} answered{_part(' id ', entry, 'id')} with an error"
    else:
        what = f"returned, id {_text(entry, 'id')}" if "id" in entry else "* the room refused us"
    return f"{what}: {_text(entry, 'condition')}{_part(': ', entry, 'text')}"


def _change(entry: Mapping[str, object]) -> str:
    who = _name(entry, "sender")
    by = f" by {_name(entry, 'actor')}" if entry.get("actor") else ""
    reason = _part(": ", entry, "reason")
    match entry.get("kind"):
        case "join":
            return f"* {who} is here {_held(entry, 'role', 'affiliation')}"
        case "leave" if entry.get("destroyed") is True:
            venue = _part("; its owner names ", entry, "venue")
            return f"* the room was destroyed{reason}{venue}"
        case "leave":
            codes = f" [{codes}]" if (codes := _text(entry, _codes(entry))) else ""
            return f"* {who} left{by}{codes}{reason or _part(': ', entry, 'status')}"
        case "nick":
            return f"* {who} is now {_name(entry, 'newNickname')}"
        case "role" if "sender" in entry:
            held = _held(entry, "role", "affiliation", "show")
            line = f"* {who} is now {held}{by}{reason}{_part(': ', entry, 'status')}"
            if "formerPayload" in entry:
                payload = _text(entry, "payload") or "nothing"
                line += f" {_bracketed(f'extensions in its presence: {payload}')}"
            return line
        case "role":
            absent = f"* {_name(entry, 'jid')}, who is not here, is now "
            return f"{absent}{_text(entry, 'affiliation')}{by}{reason}"
        case "subject":
            by = f" by {who}" if entry.get("sender") else ""
            return f"* subject{by}: {_text(entry, 'subject')}"
        case "config":
            changed = _part(": ", entry, "changed")
            return f"* the room's configuration changed [{_text(entry, _codes(entry))}]{changed}"
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
    """Return the name of the field with the status codes; brief entries have only `meaning`."""
    return "codes" if "codes" in entry else "meaning"


def _part(before: str, entry: Mapping[str, object], name: str) -> str:
    """Return the text of a field with `before` in front; empty if there is no text."""
    text = _text(entry, name)
    return f"{before}{text}" if text else ""


def _held(entry: Mapping[str, object], *names: str) -> str:
    return _bracketed(", ".join(_text(entry, name) for name in names if name in entry))


def _name(entry: Mapping[str, object], name: str) -> str:
    """Return the nickname in a field, between `<` and `>`."""
    return f"<{unambiguous_nickname(_plain(entry, name))}>"


def _bracketed(note: str) -> str:
    return f"({_ENDS_NOTE.sub(lambda it: _escaped(it[1]) if it[1] else it[0], note)})"


def _escaped(character: str) -> str:
    return f"\\u{{{ord(character):X}}}"


def _text(entry: Mapping[str, object], name: str, separator: str = ", ") -> str:
    """Return the text of a field, escaped and cut; empty without the field."""
    return one_line(_plain(entry, name, separator), MAX_TEXT_CHARACTERS)


def _plain(entry: Mapping[str, object], name: str, separator: str = ", ") -> str:
    value = entry.get(name, "")
    if isinstance(value, str):
        return value
    return separator.join(map(_scalar, value)) if isinstance(value, list) else _scalar(value)


def _scalar(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else "?"
