"""The options by which a command picks events, and what they pick."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from bridge.console.errors import ArgumentError
from bridge.text import quoted
from bridge.xmpp.events import Event
from bridge.xmpp.filter import EventFilter, Pattern, PatternError
from bridge.xmpp.journal import Record

KINDS = tuple(dict.fromkeys(one.kind for one in get_args(Event)))
"""The kinds of events."""

IN_ROOMS = frozenset(KINDS) - {"connection"}
"""The kinds of what happens in a room, not to our connection."""


@dataclass(frozen=True)
class Selection:
    """Picks the events of some rooms that one of its filters matches.

    By default that is all that happens in any room but what has nothing to read, such as a chat
    state.
    """

    rooms: frozenset[str] = frozenset()
    """Bare JIDs as configured; all rooms, and the connection, if there are none."""
    filters: tuple[EventFilter, ...] = (EventFilter(IN_ROOMS, silent=False),)

    def picks(self, record: Record) -> bool:
        """Whether `record` is one of these events."""
        in_room = not self.rooms or record.room in self.rooms
        return in_room and any(one.matches(record.event) for one in self.filters)


def add_filters(command: argparse.ArgumentParser) -> None:
    """Add the options to `command`: each narrows what it shows."""
    add = command.add_argument_group(
        "filters", "A room, sender or kind may be given again, for one more of them."
    ).add_argument
    add("--room", action="append", default=[], help="its JID, or what stands before the @")
    help_ = "a nickname, an occupant JID or a real JID"
    add("--from", action="append", dest="senders", default=[], metavar="SENDER", help=help_)
    add("--contains", metavar="TEXT", help="in body, subject or status, whatever the case")
    add("--pattern", type=_pattern, metavar="RE2", help="a regular expression found in one of them")
    help_ = f"one of {', '.join(KINDS)}; without it all but connection, and no chat states"
    add("--kind", action="append", choices=KINDS, default=[], metavar="KIND", help=help_)


def selection_of(parsed: argparse.Namespace, rooms: Sequence[str]) -> Selection | None:
    """Return what the options of `add_filters` pick; None where none is given.

    Raises `ArgumentError` for a room that is none of `rooms`, the configured ones.
    """
    if not any((parsed.room, parsed.senders, parsed.contains, parsed.pattern, parsed.kind)):
        return None
    kinds = frozenset(parsed.kind) or IN_ROOMS
    return Selection(
        frozenset(_room(name, rooms) for name in parsed.room),
        tuple(
            EventFilter(kinds, sender, parsed.contains, parsed.pattern, silent=bool(parsed.kind))
            for sender in parsed.senders or [None]
        ),
    )


def _room(name: str, rooms: Sequence[str]) -> str:
    """Return the room that is called `name`, by its JID or its local part."""
    wanted = name.casefold()
    found = [one for one in rooms if wanted in {one.casefold(), one.casefold().partition("@")[0]}]
    if len(found) != 1:
        what = "is the name of several rooms" if found else "is no room of the settings"
        named = ", ".join(map(quoted, rooms))
        raise ArgumentError(f"--room {quoted(name)} {what}; MUC_ROOM has {named}")
    return found[0]


def _pattern(source: str) -> Pattern:
    try:
        return Pattern(source)
    except PatternError as error:
        raise argparse.ArgumentTypeError(f"no regular expression of RE2: {error}") from error
