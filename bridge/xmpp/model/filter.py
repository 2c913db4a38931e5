"""Selects the events that a caller wants: by kind, sender, text or pattern. Pure."""

from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property

from bridge.text import one_line, searchable, unescaped, visible
from bridge.xmpp.errors import XmppError
from bridge.xmpp.model import events

MAX_PATTERN_MEMORY = 2 * 1024 * 1024
"""Most bytes of memory that RE2 may take for one pattern."""

MAX_INSTRUCTIONS = 10_000
"""Most instructions of a compiled pattern. With 10,000 of them, a search through the longest text
takes about four seconds."""

MAX_SEARCHED = 65_536
"""Most characters of one text that a pattern searches. People write shorter texts."""

ASCII_COST, OTHER_COST = 2, 40
"""The most that `searchable` costs for each character of an ASCII text, and of any other text: 9
and 200 ns. The unit is one instruction of a pattern, which takes 5 ns."""

ESCAPE = r"\u{"
"""The start of an escape, as `visible` writes it. Callers see names with hidden characters only in
this form."""


NICKNAMES = ("sender", "new_nickname", "moderated_by")
"""The fields of an event that hold the nickname of the occupant who caused it."""


class PatternError(XmppError, ValueError):
    """The caller's pattern is invalid; the text says why."""


class Pattern:
    """A regular expression in RE2's syntax, whose time is linear in the text."""

    def __init__(self, source: str) -> None:
        """Compile `source`; raises `PatternError`. RE2 is loaded only here, as few runs need it."""
        import re2

        re2.purge()  # RE2 keeps the last 128 patterns, each with memory of its own
        options = re2.Options()
        options.log_errors = False  # the caller gets the error; RE2 would write it to stderr
        options.never_capture = True
        options.max_mem = MAX_PATTERN_MEMORY
        try:
            self._compiled = re2.compile(source, options=options)
        except (re2.error, UnicodeEncodeError) as error:
            reason = error.args[0] if isinstance(error, re2.error) else b"it is not Unicode text"
            raise PatternError(one_line(reason.decode("utf-8", "replace"))) from error
        self.instructions: int = self._compiled.programsize
        """The most instructions that the search needs for each character."""
        if self.instructions > MAX_INSTRUCTIONS:
            raise PatternError(
                f"it is too large: {self.instructions} instructions, the most is {MAX_INSTRUCTIONS}"
            )

    def is_in(self, text: str) -> bool:
        """Whether the pattern is found in the first `MAX_SEARCHED` characters of `text`."""
        # A lone surrogate is replaced: UTF-8 cannot encode it. RE2 gets bytes, since in a `str` it
        # would count the characters up to the match.
        searched = text[:MAX_SEARCHED].encode("utf-8", "replace")
        return self._compiled.search(searched) is not None


class Words:
    """A text to look for as a reader would: case and hidden characters do not count.

    The text may have escapes as `visible` writes them. If it has only hidden characters, they are
    looked for as they are.
    """

    def __init__(self, wanted: str) -> None:
        spellings = {wanted, unescaped(wanted)}
        self._seen = {searchable(spelling) for spelling in spellings} - {""}
        self._unseen = {spelling for spelling in spellings if not searchable(spelling)}

    @property
    def searchable(self) -> tuple[str, ...]:
        """The searchable form of every match has at least one of these texts; empty if unknown."""
        return () if self._unseen else tuple(self._seen)

    def is_in(self, text: str) -> bool:
        """Whether the wanted text is found in `text`."""
        seen = searchable(text)
        return any(word in seen for word in self._seen) or any(
            word in text for word in self._unseen
        )


@dataclass(frozen=True)
class EventFilter:
    """Matches the events that satisfy every condition. A condition that is None always holds."""

    kinds: frozenset[str] | None = None
    sender: str | None = None
    """A nickname, an occupant JID or a real JID, with or without its resource. If it looks like a
    JID, it is not compared with nicknames, since an occupant can take another's JID for a
    nickname."""
    contains: str | None = None
    """A text to look for in `text_of(event)`, as `Words` does."""
    pattern: Pattern | None = None
    """A pattern to look for in `text_of(event)`."""
    own: bool = True
    """Whether our own messages match when the room sends them back."""
    silent: bool = True
    """Whether messages that have only a `payload`, and no body, match."""
    history: bool = True
    """Whether brief output has the messages of the room's history. To xmppWait they are not new."""
    unheard: Container[str] | None = None
    """The ids of our messages that the room has not sent back. With these ids the output is brief:
    it has these messages as we sent them, and our other messages as they came back. With None the
    output is full, and has both."""

    @property
    def nickname(self) -> str:
        """A nickname that every matching event contains; empty if there is no such nickname."""
        sender = self.sender or ""
        return "" if "@" in sender or ESCAPE in sender else sender

    def may_show(self, event: events.Event) -> bool:
        """Whether the output may have an event of this class, whatever its sender and its text.

        Brief output has the steps of connecting only if `kinds` names their kind. It has faults in
        any case.
        """
        if self.unheard is None:
            return True
        match event:
            case events.MessageReceived(source=events.Source.HISTORY):
                return self.history
            case events.MessageSent(id=id_):
                return id_ in self.unheard
            case events.ConnectionChanged(fault=None) | events.Connected() | events.Joined():
                return self.kinds is not None and event.kind in self.kinds
        return True

    def matches(self, event: events.Event) -> bool:
        """Whether `event` satisfies every condition."""
        if not self._matches_without_text(event):
            return False
        if self.contains is None and self.pattern is None:
            return True
        text = text_of(event)
        if self.words is not None and not self.words.is_in(text):
            return False
        return bool(text) and (self.pattern is None or self.pattern.is_in(text))

    def cost(self, event: events.Event) -> int:
        """Return the most work that `matches` does: the characters times the work for each.

        The unit is one instruction of a pattern, also for the work of `contains`.
        """
        if not self._matches_without_text(event):
            return 0
        text = text_of(event)
        cost = 0 if self.pattern is None else self.pattern.instructions
        if self.contains is not None:
            cost += ASCII_COST if text.isascii() else OTHER_COST
        return len(text) * cost

    @cached_property
    def words(self) -> Words | None:
        """The text of `contains`, prepared for the search; None without it."""
        return None if self.contains is None else Words(self.contains)

    def _matches_without_text(self, event: events.Event) -> bool:
        if not self.may_show(event) or (self.kinds is not None and event.kind not in self.kinds):
            return False
        match event:
            case events.MessageReceived(own=True) if not self.own:
                return False
            case events.MessageReceived(payload=payload) if payload and not self.silent:
                return False
        return self.sender is None or self._is_from(event, self.sender)

    def _is_from(self, event: events.Event, sender: str) -> bool:
        names = () if looks_like_jid(sender) else NICKNAMES
        nicknames: list[str] = [getattr(event, name, None) or "" for name in names]
        # The `from_` of a gap is a time.
        jids: list[str] = ["" if isinstance(event, events.Gap) else getattr(event, "from_", "")]
        if ESCAPE in sender:
            nicknames += [visible(name) for name in nicknames]
            jids += [visible(name) for name in jids]
        jid: str = getattr(event, "jid", None) or ""
        jids += [jid, jid.partition("/")[0]]
        return sender != "" and (sender in nicknames or _folded(sender) in map(_folded, jids))


def text_of(event: events.Event) -> str:
    """Return the text that a person or a server wrote: body, subject, status text, error text."""
    match event:
        case (
            events.MessageReceived(body=text)
            | events.MessageSent(body=text)
            | events.SubjectChanged(subject=text)
        ):
            return text
        case (
            events.OccupantPresence(status=text)
            | events.OccupantLeft(status=text)
            | events.OccupantError(text=text)
        ):
            return text or ""
    return ""


def looks_like_jid(name: str) -> bool:
    """Whether `name` has an `@` inside, as every JID with a local part has."""
    return "@" in name[1:-1]


def _folded(jid: str) -> str:
    """Return `jid` without case. Case matters only in the resource (RFC 7622, section 3)."""
    bare, slash, resource = jid.partition("/")
    return bare.casefold() + slash + resource
