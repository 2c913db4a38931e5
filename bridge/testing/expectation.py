"""What a test expects of a room: which events meet an expectation, and how others differ. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypedDict, TypeVar

from bridge.text import quoted
from bridge.xmpp.model.events import Event, MessageReceived, OccupantJoined, OccupantLeft, Source
from bridge.xmpp.model.filter import EventFilter, Pattern
from bridge.xmpp.model.journal import Record

OTHER_TEXT, OTHER_SENDER = "another text", "from another sender"
FAR = frozenset({OTHER_TEXT, OTHER_SENDER})
"""Shortcomings that weigh more: events that are only late or private are named first."""

OWN, BEFORE_COMING = "said by the actor itself", "said before the actor came"
BEFORE_LOOKING = "before the actor's last expectation"
ONLY_ALONE = frozenset({OWN, BEFORE_COMING, BEFORE_LOOKING})
"""An event with one of these shortcomings is named only if it has no other."""

Expected = TypeVar("Expected", MessageReceived, OccupantJoined, OccupantLeft)


class Conditions(TypedDict, total=False):
    """Conditions on a message, in addition to its whole text."""

    contains: str
    """A part of the text, compared as in `xmppHistory`: without case and hidden characters."""
    pattern: str
    """A regular expression (RE2) that is found in the text."""
    from_: str
    """A nickname, an occupant JID or a real JID. Without it, any sender but the actor itself."""
    private: bool
    """Whether the message is for the actor alone (XEP-0045, section 7.5)."""


@dataclass(frozen=True)
class Expectation(Generic[Expected]):
    """An event that a test expects: of one kind, from whom, with what text."""

    kind: type[Expected]
    wanted: str
    """The event in words, with the test's own texts `quoted`."""
    from_: str | None
    text: str | None = None
    """The whole body."""
    words: EventFilter = field(default_factory=EventFilter)
    """Further conditions on the body."""
    private: bool | None = None
    """Whether the message is private; None: either."""

    def shortcomings(self, event: Expected) -> list[str]:
        """Return how `event` differs from what is expected; empty if it does not."""
        differs = []
        if isinstance(event, MessageReceived):
            if self.private not in {None, event.type == "chat"}:
                differs.append("not in private" if self.private else "in private")
            if event.payload:
                differs.append("without a text")
            elif self.text not in {None, event.body} or not self.words.matches(event):
                differs.append(OTHER_TEXT)
            if event.source is not Source.LIVE:
                differs.append(BEFORE_COMING)
        own = isinstance(event, MessageReceived) and event.own
        if not EventFilter(sender=self.from_).matches(event) or (own and self.from_ is None):
            differs.append(OWN if own else OTHER_SENDER)
        return differs

    def is_met_by(self, event: Event) -> bool:
        """Whether `event` meets the expectation."""
        return isinstance(event, self.kind) and not self.shortcomings(event)


def message(
    text: str | None,
    *,
    contains: str | None = None,
    pattern: str | None = None,
    from_: str | None = None,
    private: bool | None = None,
) -> Expectation[MessageReceived]:
    """Return the expectation of a message; raises `PatternError`."""
    said = {"from": from_, "that says": text, "that contains": contains, "that matches": pattern}
    wanted = "a private message" if private else "a message"
    wanted += "".join(f" {how} {quoted(what)}" for how, what in said.items() if what is not None)
    words = EventFilter(contains=contains, pattern=None if pattern is None else Pattern(pattern))
    return Expectation(MessageReceived, wanted, from_, text, words, private)


def nearest_misses(
    wanted: Expectation[Expected], records: Iterable[Record], looked: int, due: float
) -> list[tuple[str, Record]]:
    """Return what came instead of what was wanted, nearest first, and how it differs in words.

    `looked` is the number of the event that met the last expectation. `due` is the time until which
    the test waited for the wanted event.
    """
    misses = []
    for record in records:
        if isinstance(record.event, wanted.kind):
            differs = wanted.shortcomings(record.event)
            if record.number <= looked:
                differs.append(BEFORE_LOOKING)
            elif record.at > due or not differs:
                differs.append(f"{max(record.at - due, 0.0):.1f} s too late")
            if len(differs) == 1 or ONLY_ALONE.isdisjoint(differs):
                misses.append((differs, record))
    misses.sort(key=lambda miss: (len(miss[0]), len(FAR.intersection(miss[0]))))
    return [(", ".join(differs), record) for differs, record in misses]
