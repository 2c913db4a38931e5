"""The room as a person watches it: one event after the other, readable at a glance. Pure.

What was said begins with the speaker between `<` and `>`, and nothing else does; no text of a
stranger comes to stand at the left edge.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from bridge.console.screen import TAB, Paint, cut, padded, width, wrapped
from bridge.escaping import one_line, visible
from bridge.xmpp.events import (
    AffiliationChanged,
    ConnectionChanged,
    Event,
    MessageReceived,
    MessageSent,
    NicknameChanged,
    OccupantChanged,
    OccupantJoined,
    OccupantLeft,
    RoomError,
    SendFailed,
    Source,
    encode,
)
from bridge.xmpp.formatting import format_event
from bridge.xmpp.journal import Record
from bridge.xmpp.trace import Traced

NICKNAME_WIDTH = 16
"""Columns for nicknames; longer ones push their line to the right."""

NICKNAME_LIMIT = 40
"""Columns after which a nickname is cut; a room may allow a thousand characters."""

MARK_LIMIT = 60
"""Characters of an id or a time that a message refers to, which is a stranger's text too."""

INDENT = len("12:34:56") + 2 + len("<>") + NICKNAME_WIDTH + 2
"""Columns under which the further lines of a message stand."""

EVENT_INDENT = len("12:34:56") + 2
"""Columns under which the further lines of anything else stand."""

STANZA_INDENT = 4

ARROWS = {"in": "<--", "out": "-->"}

_DECEPTIVE = re.compile(r"(?<=\s)\s|^\s|\s$|[^\S ]|[<>\u2800]")
"""In a nickname: blanks that would end it early for the eye, and the marks around it."""


class RoomView:
    """Writes events and stanzas as lines for a terminal, or for a pipe."""

    def __init__(self, paint: Paint, columns: Callable[[], int | None] = lambda: None) -> None:
        """`columns` tells how wide the terminal is now; None stands for no terminal."""
        self._paint = paint
        self._columns = columns
        self._day = ""

    def event(self, record: Record) -> str:
        """Return the line or lines of one event; empty for what another one tells already."""
        match record.event:
            case MessageSent():
                return ""  # its reflection is the message
            case MessageReceived() as said:
                return self._on_its_day(record.at) + self._message(clock(record.at), said)
            case event:
                return self._on_its_day(record.at) + self._other(clock(record.at), event)

    def stanza(self, traced: Traced, size: int, xml: str) -> str:
        """Return a head and the laid out `xml` of a piece of the stream of `size` bytes."""
        head = f"{clock(traced.at)}  {ARROWS[traced.direction]} {size} bytes, connection "
        lines = self._under(STANZA_INDENT, 0, visible(xml))
        shown = "\n".join([self._paint.dim(head + traced.connection), *lines])
        return self._on_its_day(traced.at) + shown

    def _on_its_day(self, at: float) -> str:
        """Return a line with the date, in UTC, where it is another than that of what came last."""
        before, self._day = self._day, f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
        return self._paint.dim(f"--- {self._day}") + "\n" if before not in {"", self._day} else ""

    def _message(self, time: str, said: MessageReceived) -> str:
        nickname = f"<{cut(_on_its_own(said.sender), self._nickname_limit())}>"
        marks = [
            "private" if said.type == "chat" else "",
            "" if said.source is Source.LIVE else f"said {_mark(said.delayed_from or 'earlier')}",
            f"instead of {_mark(said.replaces)}" if said.replaces else "",
            f"answering {_mark(said.reply_to)}" if said.reply_to else "",
            f"taking back {_mark(said.retracts)}" if said.retracts else "",
            f"reacting to {_mark(said.reacts_to)}" if said.reacts_to else "",
            _mark(" ".join(said.reactions or ())),
            f"encrypted: {_mark(said.encrypted)}" if said.encrypted else "",
            f"no body: {_mark(', '.join(said.payload))}" if said.payload else "",
        ]
        told = ", ".join(mark for mark in marks if mark)
        about = f"({told})" + " " * bool(said.body) if told else ""
        shown = padded(nickname, NICKNAME_WIDTH + len("<>"))
        used = len(time) + 2 + width(shown) + 2
        first, *rest = self._under(INDENT, used, about + visible(said.body))
        first = first[INDENT:]
        if about and first.startswith(about):
            first = self._paint.dim(about) + first.removeprefix(about)
        painted = self._paint.nickname(said.sender, shown)
        return "\n".join([f"{self._paint.dim(time)}  {painted}  {first}", *rest])

    def _other(self, time: str, event: Event) -> str:
        first, *rest = self._under(EVENT_INDENT, EVENT_INDENT, format_event(encode(event)))
        lines = [first[EVENT_INDENT:], *rest]
        shown = "\n".join(map(self._painter(event), lines))
        return f"{self._paint.dim(time)}  {shown}"

    def _painter(self, event: Event) -> Callable[[str], str]:
        match event:
            case SendFailed() | RoomError():
                return self._paint.red
            case ConnectionChanged(fault=fault) if fault is not None:
                return self._paint.red
            case (
                OccupantJoined()
                | OccupantLeft()
                | OccupantChanged()
                | NicknameChanged()
                | AffiliationChanged()
                | ConnectionChanged()
            ):
                return self._paint.dim
            case _:
                return partial(str)

    def _nickname_limit(self) -> int:
        columns = self._columns()
        beside = len("12:34:56") + 2 + len("<>") + 2
        return NICKNAME_LIMIT if columns is None else min(NICKNAME_LIMIT, max(columns - beside, 2))

    def _under(self, indent: int, used: int, text: str) -> list[str]:
        """Return the lines of `text`, indented; the first begins where `used` columns are taken."""
        columns = self._columns()
        if columns is None:
            return [" " * indent + line for line in text.split("\n")]
        # On a terminal this narrow the layout is lost; that nobody forges a line is not.
        indent_within = min(indent, columns // 2)
        room = max(columns - indent_within, 2)
        lines = [
            piece
            for number, line in enumerate(text.replace("\t", TAB).split("\n"))
            for piece in wrapped(line, columns - used if used and not number else room, room)
        ]
        return [
            " " * (indent_within if number or not used else indent) + line
            for number, line in enumerate(lines)
        ]


def clock(at: float) -> str:
    """Return the time of day in UTC, as the log has it."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def _on_its_own(nickname: str) -> str:
    return _DECEPTIVE.sub(lambda it: f"\\u{{{ord(it[0]):X}}}", one_line(nickname))


def _mark(text: str) -> str:
    return one_line(text, MARK_LIMIT)
