"""The options that narrow what a command shows: the filters of `watch` and `log`, and `--room`."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bridge.commands.exit import UsageError
from bridge.text import quoted, rooms_named
from bridge.xmpp.model.events import KINDS
from bridge.xmpp.model.filter import EventFilter, Pattern, PatternError
from bridge.xmpp.model.journal import Record

IN_ROOMS = frozenset(KINDS) - {"connection"}
"""The kinds of events that happen in a room, and not to our connection."""


@dataclass(frozen=True)
class Selection:
    """Picks events of some rooms: an event that any of its filters matches.

    By default it picks every event of every room, except messages without text, such as a chat
    state.
    """

    rooms: frozenset[str] = frozenset()
    """Bare JIDs as configured. If this is empty, events of all rooms and of the connection
    match."""
    filters: tuple[EventFilter, ...] = (EventFilter(IN_ROOMS, silent=False),)

    def picks(self, record: Record) -> bool:
        """Whether the selection picks `record`."""
        in_room = not self.rooms or record.room in self.rooms
        return in_room and any(each.matches(record.event) for each in self.filters)


def selection_of(parsed: argparse.Namespace, rooms: Sequence[str]) -> Selection | None:
    """Return the selection of the command line's filters; None if it has no filters.

    Raises `UsageError`, for example if a room is not one of `rooms`, the configured ones.
    """
    if not any((parsed.rooms, parsed.senders, parsed.contains, parsed.pattern, parsed.kinds)):
        return None
    try:
        pattern = Pattern(parsed.pattern) if parsed.pattern else None
    except PatternError as error:
        raise UsageError(f"--pattern is no regular expression of RE2: {error}") from error
    kinds = frozenset(parsed.kinds) or IN_ROOMS
    form = EventFilter(kinds, None, parsed.contains, pattern, silent=bool(parsed.kinds))
    filters = tuple(replace(form, sender=sender) for sender in parsed.senders or [None])
    return Selection(frozenset(room_of(name, rooms) for name in parsed.rooms), filters)


def room_of(name: str, rooms: Sequence[str]) -> str:
    """Return the room that is called `name`, by its JID or its local part.

    Raises `UsageError` unless it is one of `rooms`.
    """
    named = rooms_named(name, rooms)
    if len(named) != 1:
        what = "is the name of several rooms" if named else "is no room of the settings"
        names = ", ".join(map(quoted, rooms))
        raise UsageError(f"--room {quoted(name)} {what}; MUC_ROOM has {names}")
    return named[0]
