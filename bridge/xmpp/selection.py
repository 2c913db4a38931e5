"""Which events somebody wants to see. Pure."""

from collections.abc import Callable
from dataclasses import field

from bridge.escaping import visible
from bridge.frozen import dataclass
from bridge.xmpp.events import (
    Event,
    MessageReceived,
    MessageSent,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    SubjectChanged,
)
from bridge.xmpp.journal import Record
from bridge.xmpp.telling import KINDS, kind_of

MAX_PATTERN_MEMORY = 2 * 1024 * 1024
"""Bytes that RE2 may take for one pattern."""

MAX_INSTRUCTIONS = 10_000
"""Of a compiled pattern: on the longest text, 10,000 of them take about four seconds."""

MAX_SEARCHED = 65_536
"""Characters of one text that a pattern looks at; what people say is shorter."""


_TEXTS: dict[type, str] = {
    MessageReceived: "body",
    MessageSent: "body",
    SubjectChanged: "subject",
    OccupantJoined: "status",
    OccupantChanged: "status",
    OccupantLeft: "status",
}
"""What people wrote, of each event that has such a text."""


class PatternError(ValueError):
    """The caller's pattern is none; the text says why."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression in RE2's syntax: its time is linear in the text, whatever it says."""

    search: Callable[[str], object] = field(repr=False)
    instructions: int
    """How much it does for each character, at worst."""

    @classmethod
    def of(cls, source: str) -> "Pattern":
        """Compile `source`; raises `PatternError`. RE2 is loaded by the first call: few need it."""
        import re2

        re2.purge()  # it keeps the last 128 patterns, each with memory of its own
        options = re2.Options()
        options.log_errors = False  # they would go to stderr, and the caller gets them
        options.never_capture = True
        options.max_mem = MAX_PATTERN_MEMORY
        try:
            made = re2.compile(source, options=options)
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0] if isinstance(error, re2.error) else b"it is not Unicode text"
            raise PatternError(reason.decode("utf-8", "replace")) from error
        if made.programsize > MAX_INSTRUCTIONS:
            raise PatternError(
                f"it is too large: {made.programsize} instructions, the most is {MAX_INSTRUCTIONS}"
            )
        return cls(made.search, made.programsize)

    def fits(self, text: str) -> bool:
        """Whether it is found in `text`."""
        # Half a character, which only a server that lies can send, is none to RE2.
        looked_at = text[:MAX_SEARCHED].encode("utf-8", "replace").decode()
        return self.search(looked_at) is not None


@dataclass(frozen=True)
class Selection:
    """Takes the events that fit every part; a part that is None fits all."""

    kinds: frozenset[str] | None = None
    sender: str | None = None
    """A nickname, an occupant JID or a real JID, with or without its resource."""
    contains: str | None = None
    """In body, subject or status text, whatever the case of its letters."""
    pattern: Pattern | None = None
    """Found in a body, subject or status text."""
    own: bool = True
    """Whether our own messages are taken, both as they went out and as they came back."""

    def __post_init__(self) -> None:
        if self.contains is not None:
            object.__setattr__(self, "contains", self.contains.casefold())

    def takes(self, event: Event) -> bool:
        """Whether `event` is wanted."""
        if not self._concerns(event):
            return False
        if self.contains is None and self.pattern is None:
            return True
        text = text_of(event)
        return text is not None and self._fits(text)

    def narrowed(self, records: list[Record]) -> list[Record]:
        """Return those that can be taken at all: fewer to look at one by one, in little time."""
        if self.kinds is not None:
            types = tuple(one for one, kind in KINDS.items() if kind in self.kinds)
            records = [one for one in records if isinstance(one.event, types)]
        wanted = self.contains
        if wanted is not None:
            events = [one.event for one in records]
            # Nearly all of them are messages, and a call for each is what takes the time.
            texts = [
                event.body if type(event) is MessageReceived else text_of(event) or ""
                for event in events
            ]
            if wanted not in "\n".join(texts).casefold():
                return []
            records = [
                one for one, text in zip(records, texts, strict=True) if wanted in text.casefold()
            ]
        return records

    def _concerns(self, event: Event) -> bool:
        if self.kinds is not None and kind_of(event) not in self.kinds:
            return False
        if not self.own and is_own_message(event):
            return False
        return self.sender is None or _is_from(event, self.sender)

    def cost(self, event: Event) -> int:
        """Return what `takes` does at worst: characters, each times a pattern's instructions."""
        if self.pattern is not None and not self._concerns(event):
            return 0
        each = 1 if self.pattern is None else self.pattern.instructions
        return len(text_of(event) or "") * each

    def _fits(self, text: str) -> bool:
        if self.contains is not None and self.contains not in text.casefold():
            return False
        return self.pattern is None or self.pattern.fits(text)


def text_of(event: Event) -> str | None:
    """Return the body, subject or status text of `event`; None where it has none."""
    name = _TEXTS.get(type(event))
    return getattr(event, name) or None if name is not None else None


def is_own_message(event: Event) -> bool:
    """Whether `event` is something that we said."""
    return isinstance(event, MessageSent) or (isinstance(event, MessageReceived) and event.own)


def _is_from(event: Event, sender: str) -> bool:
    occupant = getattr(event, "occupant", None)
    names = [getattr(event, "nickname", None), getattr(event, "new_nickname", None)]
    if names[0] is None and occupant is not None:
        names.append(occupant.partition("/")[2])
    # Who asks has seen the hidden characters in a name as escapes only.
    if any(name is not None and sender in {name, visible(name)} for name in names):
        return True
    wanted = _folded(sender)
    if occupant is not None and wanted in {_folded(occupant), _folded(visible(occupant))}:
        return True
    jid = getattr(event, "jid", None)
    if jid is None:
        return False
    real = _folded(jid)
    return wanted in {real, real.partition("/")[0]}


def _folded(jid: str) -> str:
    """Case matters in the resource alone (RFC 7622, section 3)."""
    bare, slash, resource = jid.partition("/")
    return bare.casefold() + slash + resource
