"""Decides which of the events after a message of ours are answers to it."""

from typing import NamedTuple

from bridge.tools.entries import Entry, brief
from bridge.xmpp.model.journal import Journal, Record

MAX_ANSWERS = 10
"""The most answers in one result; a bot that sends more in reply floods the room."""

SIGNALS = (
    "(http://jabber.org/protocol/chatstates)",
    "(urn:xmpp:receipts)",
    "(urn:xmpp:chat-markers:0)",
)
"""How an item of `payload` ends that clients send by themselves: that somebody is typing, that a
message came, that it was shown (the namespaces of XEP-0085, XEP-0184, XEP-0333)."""


class Said(NamedTuple):
    """What we said, as the room reflected it."""

    number: int
    """The number of the reflection in the journal."""
    at: float
    """Seconds since the epoch."""
    id: str
    room: str
    """As the journal has it."""


def answer(record: Record, journal: Journal, said: Said) -> Entry | None:
    """Return an event as an entry of `answers`; None if it is no answer to `said`.

    An answer is a live message of somebody else that has more than `SIGNALS` in it, or an error
    about our message: from somebody who answered it, or from the room, which returned it.
    """
    exact = journal.encode(record)
    how = _how(exact, said.id)
    if how is None or record.number <= said.number:
        return None
    taken = max(0.0, round((record.at - said.at) * 1000, 3))  # the wall clock may be set back
    return {**brief(exact), "answerMs": taken, "how": how}


def _how(exact: Entry, id_: str) -> str | None:
    if exact["kind"] == "error" and "id" in exact:
        return "error" if exact["id"] == id_ else None
    if exact["kind"] != "message" or not exact["sender"]:  # the room itself has no nickname
        return None
    if exact["direction"] == "out" or exact.get("source") != "live" or "reflection" in exact:
        return None
    if "encrypted" in exact:
        return "encrypted"
    if "body" not in exact:
        payload = exact.get("payload")
        silent = isinstance(payload, list) and all(str(name).endswith(SIGNALS) for name in payload)
        return None if silent else "no-body"
    return "private" if exact.get("type") == "chat" else "public"
