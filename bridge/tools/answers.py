"""Decides which of the events after a message of ours are answers to it."""

from collections import Counter
from collections.abc import Mapping, Sequence

from bridge.text import quoted
from bridge.tools.entries import Entry, brief
from bridge.xmpp.checks.evidence import How, how_said
from bridge.xmpp.model.events import Event, MessageReceived, OccupantError, SendFailed, Source
from bridge.xmpp.model.journal import Journal, Record

MAX_ANSWERS = 10
"""The most answers in one result; a bot that sends more in reply floods the room."""


def answer(record: Record, journal: Journal, said: Record) -> Entry | None:
    """Return an event as an entry of `answers`; None if it is no answer to what we `said`.

    `said` is the room's reflection of our message, or the error that returned it. An answer is a
    live message from another occupant with more than signals in it, or an error about our message.
    The error comes from an occupant who answered it, or from the room that returned it.
    """
    is_later = record.number > said.number
    how = _how(record.event, getattr(said.event, "id", None)) if is_later else None
    if how is None:
        return None
    taken = max(0.0, round((record.at - said.at) * 1000, 3))  # the wall clock may be set back
    return {**brief(journal.encode(record)), "answerMs": taken, "how": how}


def call(tool: str, arguments: Mapping[str, object], room: str = "") -> Entry:
    """Return `nextStep` of a result: the call that leads on, in `room` if that is not empty.

    xmppCheck looks at all rooms.
    """
    where = {"room": room} if room and tool != "xmppCheck" else {}
    return {"tool": tool, "arguments": {**arguments, **where}}


def option(name: str, value: str) -> list[str]:
    """Return the words that give an option of our command this value; none if it is empty."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value] if value else []


def doubled(answers: Sequence[Entry], accounts: Mapping[str, Sequence[str]]) -> list[str]:
    """Return sentences on the answers that came twice from one account.

    `accounts` has the nicknames of each account that the room shows.
    """
    senders = dict.fromkeys(str(entry.get("sender")) for entry in answers)
    same = [[name for name in senders if name in nicknames] for nicknames in accounts.values()]
    bodies = Counter((entry.get("sender"), entry.get("body")) for entry in answers)
    twice = dict.fromkeys(str(who) for (who, body), count in bodies.items() if body and count > 1)
    return [
        f"{' and '.join(map(quoted, names))} have one account: does the program run twice?"
        for names in same
        if len(names) > 1
    ] + [f"{quoted(name)} said the same twice." for name in twice]


def _how(event: Event, id_: str | None) -> How | None:
    match event:
        case OccupantError(id=about) | SendFailed(id=about):
            return "error" if about == id_ else None
        case MessageReceived(source=Source.LIVE, own=False, sender=str(nickname)) if nickname:
            return how_said(event)  # the room itself has no nickname
    return None
