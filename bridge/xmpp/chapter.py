"""A stretch of the journal, and what tells soon whether anything in it is wanted. Pure."""

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from bridge.xmpp.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    SubjectChanged,
)

if TYPE_CHECKING:
    from bridge.xmpp.journal import Record

MAX_TEXT = 65_536
"""Characters of a text that is kept of a chapter, with line breaks: what people say is shorter."""

MAX_NAMES = 32_768
"""Characters of the names that are kept of a chapter, with line breaks: enough for as many people
as it has events, with a real JID each."""

_TEXTS: dict[type, str] = {
    MessageReceived: "body",
    MessageSent: "body",
    SubjectChanged: "subject",
    OccupantJoined: "status",
    OccupantChanged: "status",
    OccupantLeft: "status",
}
"""What people wrote, of each event that has such a text."""


Names: TypeAlias = tuple[str | None, str | None, str | None, str | None]
"""Nickname, new nickname, occupant JID and real JID."""


class Chapter(list["Record"]):
    """Records one after the other.

    What is told of them all is found out once, and kept: to look at each record by itself takes ten
    times as long.
    """

    @classmethod
    def closed(cls, records: list["Record"]) -> "Chapter":
        """Return a chapter that nothing is added to any more.

        What takes little memory is found out now, when the events are at hand. The joined `text`,
        which takes as much again as was said, is left to the first search.
        """
        chapter = cls(records)
        _ = chapter.types, chapter.names, chapter.texts
        return chapter

    @cached_property
    def types(self) -> frozenset[type[Event]]:
        """Of the events."""
        return frozenset([type(one.event) for one in self])

    @cached_property
    def names(self) -> str | None:
        """What everybody in it is called, one name a line; the case of letters is folded.

        None where that is too long to be kept twice.
        """
        names = {name for each in {names_of(one.event) for one in self} for name in each if name}
        characters = sum(map(len, names)) + len(names)
        return "\n".join(names).casefold() if characters <= MAX_NAMES else None

    @cached_property
    def texts(self) -> list[str]:
        """What people wrote, of each event; an empty text where it has none."""
        events = [one.event for one in self]
        # Nearly all of them are messages, and a call for each is what takes the time.
        return [
            event.body if type(event) is MessageReceived else text_of(event) or ""
            for event in events
        ]

    @cached_property
    def characters(self) -> int:
        """How long the texts are, with a line break after each."""
        return sum(map(len, self.texts)) + len(self)

    @cached_property
    def text(self) -> str | None:
        """All of them, one after the other; None where that is too long to be kept twice."""
        return "\n".join(self.texts) if self.characters <= MAX_TEXT else None


def names_of(event: Event) -> Names:
    """Return what the one is called whom `event` is about."""
    if type(event) is MessageReceived:  # as nearly all are
        return event.nickname, None, event.occupant, event.jid
    nickname, occupant = getattr(event, "nickname", None), getattr(event, "occupant", None)
    if nickname is None and occupant is not None:
        nickname = occupant.partition("/")[2]
    return nickname, getattr(event, "new_nickname", None), occupant, getattr(event, "jid", None)


def text_of(event: Event) -> str | None:
    """Return the body, subject or status text of `event`; None where it has none."""
    name = _TEXTS.get(type(event))
    return getattr(event, name) or None if name is not None else None
