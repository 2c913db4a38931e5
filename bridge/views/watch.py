"""The command `watch`: shows the events of the room, as a participant of its own."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal
from xml.etree.ElementTree import indent

from bridge.logs import complain, complain_of
from bridge.settings.table import Settings
from bridge.text import iso, one_line, seconds_of, visible
from bridge.views.output import Output, display_of
from bridge.views.results import ARROWS
from bridge.views.screen import Display, cut, padded, width
from bridge.views.termination import run_until_signal
from bridge.xmpp.checks.evidence import list_of
from bridge.xmpp.checks.presence import alike
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import TracedStanza
from bridge.xmpp.model import events, formatting
from bridge.xmpp.model.events import Phase, Source
from bridge.xmpp.model.faults import Fault, Retry
from bridge.xmpp.model.journal import Record
from bridge.xmpp.muc import stanza_filter
from bridge.xmpp.muc.participant import Participant

NICKNAME_WIDTH = 16
"""Columns for nicknames; longer ones push their line to the right."""

NICKNAME_LIMIT = 40
"""Columns after which a nickname is cut; a room may allow a thousand characters."""

NOTES_LIMIT = 100
"""The most characters of the notes on a message, such as ids and times: strangers choose them."""

EVENT_INDENT = len("12:34:56") + 2
"""Columns by which the further lines of an event are indented."""

INDENT = EVENT_INDENT + len("<>") + NICKNAME_WIDTH + 2
"""Columns by which the further lines of a message are indented."""

STANZA_INDENT = 4
"""Columns by which a stanza is indented."""

MINOR = (
    events.OccupantPresence
    | events.OccupantLeft
    | events.NicknameChanged
    | events.AffiliationChanged
    | events.ConnectionChanged
)
"""The events that are dim: they matter less than what is said."""

PRESENT = "--- here the present begins"
"""Stands between what a room sent when we came, and what happens while we are there."""

ABOUT_US = events.ConnectionChanged | events.Connected | events.Joined
"""The events of our own connection, which go to stderr."""


@dataclass(eq=False)
class RoomView:
    """Writes events and stanzas as lines for a terminal, or for a pipe.

    A message begins with its speaker between `<` and `>`, and nothing else does. No text of a
    stranger begins at the left edge.

    - A pipe gets one line for each event. It has the date, and the room if there are several. A
      long message is cut, as other texts are.
    - A terminal gets a line with the date or the room above an event if the event before was of
      another day or room.
    """

    display: Display
    names_rooms: bool = False
    """Whether to name the room of an event."""
    looks_back: bool = False
    """Whether the events are of the past. Then the first event has its date too, and the view shows
    a sent message: it is given such a message only if the room did not send it back."""
    _day: str = ""
    _room: str = ""

    def event(self, record: Record, by: str = "") -> str:
        """Return the lines of one event; `by` names the observer if not everybody saw the event.

        A `MessageSent` has no lines unless the view looks back: its reflection has them.
        """
        event, at = record.event, record.at
        if isinstance(event, events.MessageSent) and not self.looks_back:
            return ""
        match event:
            case events.MessageReceived(source=Source.HISTORY) if not self.looks_back:
                # The time at which it was said counts, not when the room sent it to us.
                if said := seconds_of(event.delayed_from):
                    event, at = event._replace(delayed_from=None), said
        head, above = self._head(at)
        columns = self.display.columns()
        room = one_line(record.room) if self.names_rooms else ""
        if room and columns is None:
            head += f"{room}: "
        elif room and room != self._room:
            self._room = room
            above += map(self.display.dim, self.display.paragraph(f"--- {room}", EVENT_INDENT))
        if isinstance(event, events.MessageReceived):
            lines = self._message(event, columns)
        else:
            lines = self._other(event)
        if by:
            observer = self.display.paragraph(f"--- {one_line(by)}", EVENT_INDENT)
            above += map(self.display.dim, observer)
        return "\n".join([*above, head + lines[0], *lines[1:]])

    def present(self, record: Record) -> str:
        """Return the line that stands where the present begins; `record` is beside it."""
        head, above = self._head(record.at)
        room = f"{one_line(record.room)}: " if self.names_rooms else ""
        lines = self.display.hanging("", EVENT_INDENT, f"{room}{PRESENT}", EVENT_INDENT)
        first, *rest = map(self.display.dim, lines)
        return "\n".join([*above, head + first, *rest])

    def _head(self, at: float) -> tuple[str, list[str]]:
        """Return the beginning of an event's line, and the lines with the date above it."""
        if self.display.columns() is None:
            return f"{iso(at)}  ", []
        return f"{self.display.dim(f'{self._moment(at):%H:%M:%S}')}  ", self._new_day(at)

    def stanza(self, traced: TracedStanza) -> str:
        """Return a line about a piece of the stream, and below it its XML, indented."""
        xml = deepcopy(traced.xml)
        if not isinstance(xml, str):
            indent(xml)
        head = f"{self._moment(traced.at):%H:%M:%S}  {ARROWS[traced.direction]} "
        size = len(xml_of(traced.xml).encode("utf-8", "surrogatepass"))
        head += f"{size} bytes, connection {traced.connection}"
        text = f"\n{visible(xml_of(xml))}"
        lines = self.display.hanging(self.display.dim(head), 0, text, STANZA_INDENT)
        return "\n".join([*self._new_day(traced.at), *lines])

    def _moment(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, UTC)

    def _new_day(self, at: float) -> list[str]:
        """Return a line with the date if it differs from the date of the last event."""
        before, self._day = self._day, f"{self._moment(at):%Y-%m-%d}"
        is_new = before != self._day and (before or self.looks_back)
        return [self.display.dim(f"--- {self._day}")] if is_new else []

    def _message(self, said: events.MessageReceived, columns: int | None) -> list[str]:
        limit = NICKNAME_LIMIT
        if columns is not None:
            limit = min(limit, max(columns - EVENT_INDENT - len("<>") - 2, 2))
        nickname = f"<{cut(formatting.unambiguous_nickname(said.sender), limit)}>"
        nickname = padded(nickname, min(NICKNAME_WIDTH, limit) + len("<>"))
        about = one_line(formatting.notes_on_message(events.encode(said)), NOTES_LIMIT)
        if about and said.body:
            about += " "
        body = formatting.unambiguous_body(said.body)
        body = one_line(body, formatting.MAX_TEXT_CHARACTERS) if columns is None else visible(body)
        used = EVENT_INDENT + width(nickname) + 2
        first, *rest = self.display.hanging("", used, about + body, INDENT)
        if first.startswith(about):
            first = self.display.dim(about) + first.removeprefix(about)
        return [f"{self.display.nickname(said.sender, nickname)}  {first}", *rest]

    def _other(self, event: events.Event) -> list[str]:
        line = formatting.format_event(events.encode(event))
        lines = self.display.hanging("", EVENT_INDENT, line, EVENT_INDENT)
        if event.kind == "error" or isinstance(getattr(event, "fault", None), Fault):
            return [*map(self.display.red, lines)]
        return [*map(self.display.dim, lines)] if isinstance(event, MINOR) else lines


class News:
    """Distinguishes news from what a room sends to everybody who enters it.

    A room sends its occupants, its history, and its subject. When we come back to a room, its
    history is news: it happened while we were away.
    """

    def __init__(self) -> None:
        self._entered: set[str] = set()
        """Rooms that we have entered."""
        self._known: set[str] = set()
        """Rooms that we enter again."""
        self._open: set[str] = set()
        """Rooms that may still send what they send to everybody who enters."""

    def has(self, record: Record) -> bool:
        """Whether `record` is news; all records must be given, in their order."""
        match record.event:
            case events.ConnectionChanged(phase=Phase.JOINING) if record.room in self._entered:
                self._known.add(record.room)
            case events.Joined():
                self._entered.add(record.room)
            case events.OccupantJoined(self_=True):
                return False
            case events.MessageReceived(source=source):
                return source is not Source.HISTORY or record.room in self._known
        return not record.earlier

    def present(self, record: Record, *, is_news: bool) -> Literal["", "before", "after"]:
        """Return whether the present of a room begins beside `record`, and on which side of it.

        It begins after the subject, which comes last of what the room sends (XEP-0045, section
        7.2.15), or else before the first news.
        """
        match record.event:
            case events.ConnectionChanged(phase=Phase.JOINING):
                self._open.add(record.room)
                return ""
            case events.MessageReceived(source=Source.HISTORY | Source.ARCHIVE) | events.Gap():
                return ""  # it is of the past, even if we were away
            case event if isinstance(event, ABOUT_US) or record.room not in self._open:
                return ""
            case events.SubjectChanged():
                place: Literal["before", "after"] = "after"
            case _ if is_news:
                place = "before"
            case _:
                return ""
        self._open.discard(record.room)
        return place


def _views(*, several: bool) -> tuple[RoomView, RoomView]:
    """Return the views for stdout and for stderr.

    On one terminal one view writes both, so that the date is written once.
    """
    stdout, stderr = sys.stdout, sys.stderr  # stderr is None if it was closed
    view = RoomView(display_of(stdout), names_rooms=several)
    if stderr is None or (stderr.isatty() and stdout.isatty()):
        return view, view
    return view, RoomView(display_of(stderr), names_rooms=several)


def _unmatched(seconds: float, senders: Collection[str], records: Iterable[Record]) -> str:
    """Return that nothing matched, and who was seen whom a misspelt nickname may mean."""
    met = {getattr(record.event, "sender", None) or "" for record in records}
    unmet = [sender for sender in senders if sender not in met]
    names = {name for it in unmet for name in alike(it, [*met])}
    others = f"; seen in the room: {list_of(sorted(names))}" if names else ""
    return f"xmpp-bridge: nothing matched within {seconds:g} s{others}"


async def watch(
    settings: Settings, parsed: argparse.Namespace, picks: Callable[[Record], bool] | None
) -> bool:
    """Write what happens in the room to stdout, and our connection's events to stderr.

    `picks` says which news is written; if it is None, everything is. Ctrl-C, a closed stdout,
    `--timeout` and the event of `--first` end it. Return False if stdout cannot be written, if a
    room refuses us for good, or if nothing was shown under `--timeout` or `--first`.
    """
    as_json, first, seconds = parsed.json, parsed.first, parsed.timeout
    # A bridge may be in the room already.
    participant = Participant(settings._replace(nickname=f"{settings.nickname}-watch"))
    journal, news = participant.journal, News()
    ended, hopeless, has_shown = asyncio.Event(), False, False
    output = Output(sys.stdout, sys.stderr, ended.set)
    marks_present = picks is None and not (as_json or parsed.stanzas)
    view, notices = _views(several=len(settings.rooms) > 1)

    def on_record(record: Record) -> None:
        nonlocal hopeless, has_shown
        about_us = isinstance(record.event, ABOUT_US)
        is_news = news.has(record)  # called for all, to learn when we enter
        if picks is None:
            wanted = not parsed.stanzas and (as_json or not about_us)
        else:
            wanted = is_news and picks(record) and not (first and has_shown)
        mark = news.present(record, is_news=is_news) if marks_present else ""
        if mark == "before":
            output.write(view.present(record))
        if wanted and (
            text := json.dumps(journal.encode(record)) if as_json else view.event(record)
        ):
            has_shown = True
            output.write(text)
            if first:
                ended.set()
        if mark == "after":
            output.write(view.present(record))
        if about_us:
            output.write_notice(notices.event(record))
        match record.event:
            case events.ConnectionChanged(fault=Fault(retry=Retry.NEVER)):
                hopeless = True
                ended.set()

    def on_stanza(traced: TracedStanza) -> None:
        encoded = stanza_filter.encode(traced, journal.cursor_of(traced.number))
        as_line = json.dumps({"kind": "stanza"} | encoded)  # ASCII, which harms no terminal
        output.write(as_line if as_json else view.stanza(traced))

    participant.listen(on_record)
    if parsed.stanzas:
        participant.trace.listen(on_stanza)
    is_late = await run_until_signal(participant, ended, seconds=seconds)
    output.close()
    complain_of(output.error)
    if is_late and not has_shown:
        complain(_unmatched(seconds, parsed.senders or (), journal))
    missed = not has_shown and (first or seconds is not None)
    return not (hopeless or missed or output.error)
