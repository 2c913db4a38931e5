"""Which events somebody wants to see. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from bridge.escaping import one_line, visible
from bridge.xmpp.chapter import Chapter, Names, names_of, text_of
from bridge.xmpp.events import Event, MessageReceived, MessageSent
from bridge.xmpp.journal import Record
from bridge.xmpp.telling import KINDS, kind_of

MAX_PATTERN_MEMORY = 2 * 1024 * 1024
"""Bytes that RE2 may take for one pattern, and as many again to search many texts at once."""

MAX_INSTRUCTIONS = 10_000
"""Of a compiled pattern: on the longest text, 10,000 of them take about four seconds."""

MAX_SEARCHED = 65_536
"""Characters of one text that a pattern looks at; what people say is shorter."""


GROUP = 16
"""Texts that are looked at together once a chapter is known to have what is looked for."""

REMEMBERED = 1_024
"""People of whom it is remembered whether they are the sender that is asked for."""

ESCAPE = r"\u{"
"""Stands in a name that is given as it was shown (`visible`); chapters have names as they are."""

_TELLS_TEXT_FROM_LINE = re.compile(r"\\[Az]|\(\?[a-zA-Z]*-")
"""Finds \\A, \\z and what may switch (?m) off."""


class PatternError(ValueError):
    """The caller's pattern is none; the text says why."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression in RE2's syntax: its time is linear in the text, whatever it says."""

    search: Callable[[str], object] = field(repr=False)
    instructions: int
    """How much it does for each character, at worst."""
    search_lines: Callable[[str], object] | None = field(default=None, repr=False)
    """Finds something in texts that stand one after the other, each on lines of its own, if it is
    in one of them, and may where it is in none; None where that cannot be done."""

    @classmethod
    def of(cls, source: str) -> "Pattern":
        """Compile `source`; raises `PatternError`. RE2 is loaded by the first call: few need it."""
        search, instructions = _compiled(source)
        if instructions > MAX_INSTRUCTIONS:
            raise PatternError(
                f"it is too large: {instructions} instructions, the most is {MAX_INSTRUCTIONS}"
            )
        # What is found in a text is found in a longer one, but for what asks where it stands. An
        # end of a line is to \\b and \\B what an end of the text is, and with (?m) to ^ and $.
        if _TELLS_TEXT_FROM_LINE.search(source) is not None:
            return cls(search, instructions)
        try:
            search_lines, _ = _compiled("(?m)" + source)
        except PatternError:  # a little more may be too much
            return cls(search, instructions)
        return cls(search, instructions, search_lines)

    def fits(self, text: str) -> bool:
        """Whether it is found in `text`."""
        return self.search(text[:MAX_SEARCHED]) is not None


def _compiled(source: str) -> tuple[Callable[[str], object], int]:
    """Return what searches, and its instructions."""
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
        raise PatternError(one_line(reason.decode("utf-8", "replace"))) from error

    def search(text: str) -> object:
        # Half a character, which only a server that lies can send, is none to RE2. In text it
        # would go on to count the characters up to what it has found.
        return made.search(text.encode("utf-8", "replace"))

    return search, made.programsize


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
    silent: bool = True
    """Whether messages are taken that have nothing to read but a `payload`."""

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

    def narrowed(self, records: Sequence[Record]) -> list[Record]:
        """Return those that can be taken at all: few are left to `takes`, in little time."""
        chapter = _chapter(records)
        if not self._may_concern(chapter):
            return []
        if self._looks_at_once and chapter.text is not None and not self._may_fit(chapter.text):
            return []
        left = self._with_text(chapter) if self._looks_at_once else chapter
        if self.kinds is not None:
            types = _types(self.kinds)
            left = [one for one in left if type(one.event) in types]
        if self.sender is not None:
            left = [one for one in left if _is_from(names_of(one.event), self.sender)]
        return left

    def cost_of_narrowing(self, records: Sequence[Record]) -> int:
        """Return what `narrowed` does at worst, as `cost` counts."""
        chapter = _chapter(records)
        if not self._looks_at_once or not self._may_concern(chapter):
            return 0
        return chapter.characters * self._cost_of_a_character

    def _may_concern(self, chapter: Chapter) -> bool:
        if self.kinds is not None and chapter.types.isdisjoint(_types(self.kinds)):
            return False
        if self.sender is None or chapter.names is None or ESCAPE in self.sender:
            return True
        return self.sender.casefold() in chapter.names

    @property
    def _looks_at_once(self) -> bool:
        """Whether many texts can be looked through at once."""
        if self.contains is not None:
            return True
        return self.pattern is not None and self.pattern.search_lines is not None

    def _with_text(self, chapter: Chapter) -> list[Record]:
        left = []
        for start in range(0, len(chapter), GROUP):
            texts = chapter.texts[start : start + GROUP]
            if self._may_fit("\n".join(texts)):
                pairs = zip(chapter[start : start + GROUP], texts, strict=True)
                left += [one for one, text in pairs if self._may_fit(text)]
        return left

    def _may_fit(self, texts: str) -> bool:
        """Whether one of them can be wanted."""
        # So much takes its time, and a pattern may ask for the place where a text is cut.
        if len(texts) > MAX_SEARCHED:
            return True
        if self.contains is not None and self.contains not in texts.casefold():
            return False
        search = None if self.pattern is None else self.pattern.search_lines
        return search is None or search(texts) is not None

    def _concerns(self, event: Event) -> bool:
        if self.kinds is not None and kind_of(event) not in self.kinds:
            return False
        if not self.own and is_own_message(event):
            return False
        if not self.silent and isinstance(event, MessageReceived) and event.payload:
            return False
        return self.sender is None or _is_from(names_of(event), self.sender)

    def cost(self, event: Event) -> int:
        """Return what `takes` does at worst: characters, each times a pattern's instructions."""
        if self.pattern is not None and not self._concerns(event):
            return 0
        return len(text_of(event) or "") * self._cost_of_a_character

    @property
    def _cost_of_a_character(self) -> int:
        return 1 if self.pattern is None else self.pattern.instructions

    def _fits(self, text: str) -> bool:
        if self.contains is not None and self.contains not in text.casefold():
            return False
        return self.pattern is None or self.pattern.fits(text)


def is_own_message(event: Event) -> bool:
    """Whether `event` is something that we said."""
    return isinstance(event, MessageSent) or (isinstance(event, MessageReceived) and event.own)


@lru_cache(maxsize=REMEMBERED)
def _is_from(names: Names, sender: str) -> bool:
    nickname, new_nickname, occupant, jid = names
    # Who asks has seen the hidden characters in a name as escapes only.
    for name in (nickname, new_nickname):
        if name is not None and sender in {name, visible(name)}:
            return True
    wanted = _folded(sender)
    if occupant is not None and wanted in {_folded(occupant), _folded(visible(occupant))}:
        return True
    if jid is None:
        return False
    real = _folded(jid)
    return wanted in {real, real.partition("/")[0]}


def _folded(jid: str) -> str:
    """Case matters in the resource alone (RFC 7622, section 3)."""
    bare, slash, resource = jid.partition("/")
    return bare.casefold() + slash + resource


@lru_cache
def _types(kinds: frozenset[str]) -> frozenset[type]:
    return frozenset(one for one, kind in KINDS.items() if kind in kinds)


def _chapter(records: Sequence[Record]) -> Chapter:
    return records if isinstance(records, Chapter) else Chapter(records)
