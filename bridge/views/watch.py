"""The command `watch`: shows the events of the room, as a participant of its own."""

import asyncio
import json
import sys
from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime
from xml.etree.ElementTree import indent

from bridge.logs import complain
from bridge.settings.table import Settings
from bridge.text import iso, one_line, visible
from bridge.views.output import Output, look_of
from bridge.views.screen import Paint, cut, hanging, padded, width
from bridge.views.selection import Selection
from bridge.views.termination import run_until_signal
from bridge.xmpp.link.stanzas import xml_of
from bridge.xmpp.link.trace import TracedStanza
from bridge.xmpp.model import events
from bridge.xmpp.model.events import Phase, Source
from bridge.xmpp.model.faults import Fault, Retry
from bridge.xmpp.model.formatting import (
    MAX_TEXT_CHARACTERS,
    format_event,
    notes_on_message,
    unambiguous_body,
    unambiguous_nickname,
)
from bridge.xmpp.model.journal import Journal, Record
from bridge.xmpp.muc.participant import Participant

NICKNAME_WIDTH = 16
"""Columns for nicknames; longer ones push their line to the right."""

NICKNAME_LIMIT = 40
"""Columns after which a nickname is cut; a room may allow a thousand characters."""

NOTES_LIMIT = 100
"""Characters that are shown of the ids and times in a message: strangers choose them too."""

EVENT_INDENT = len("12:34:56") + 2
"""Columns by which the further lines of an event are indented."""

INDENT = EVENT_INDENT + len("<>") + NICKNAME_WIDTH + 2
"""Columns by which the further lines of a message are indented."""

STANZA_INDENT = 4
"""Columns by which a stanza is indented."""

ARROWS = {"in": "<--", "out": "-->"}

MINOR = (
    events.OccupantJoined
    | events.OccupantLeft
    | events.OccupantChanged
    | events.NicknameChanged
    | events.AffiliationChanged
    | events.ConnectionChanged
)
"""The events that are dim: they matter less than what is said."""

ABOUT_US = events.ConnectionChanged | events.Connected | events.Joined
"""The events of our own connection, which go to stderr."""


class RoomView:
    """Writes events and stanzas as lines for a terminal, or for a pipe.

    A message begins with the speaker between `<` and `>`, and nothing else does; no text of a
    stranger comes to stand at the left edge. A pipe gets one line an event, with the date, of
    several rooms the name, and as much of a message as of any text. On a terminal a date or a room
    stands in a line of its own, before the first event of another day or room than before.
    """

    def __init__(
        self,
        paint: Paint,
        columns: Callable[[], int | None] = lambda: None,
        *,
        names_rooms: bool = False,
    ) -> None:
        """`columns` returns how wide the terminal is now; None stands for no terminal.

        With `names_rooms` it says which room an event is of.
        """
        self._paint = paint
        self._columns = columns
        self._names_rooms = names_rooms
        self._day = ""
        self._room = ""

    def event(self, record: Record) -> str:
        """Return the lines of one event; none for a message of ours: its reflection is shown."""
        event = record.event
        if isinstance(event, events.MessageSent):
            return ""
        columns = self._columns()
        form = "%Y-%m-%dT%H:%M:%SZ" if columns is None else "%H:%M:%S"
        head = self._paint.dim(f"{datetime.fromtimestamp(record.at, UTC):{form}}") + "  "
        room = one_line(record.room) if self._names_rooms else ""
        above: list[str] = []
        if room and columns is None:
            head += f"{room}: "
        elif room and room != self._room:
            self._room = room
            above = hanging("", 0, f"--- {room}", EVENT_INDENT, columns)
        if isinstance(event, events.MessageReceived):
            lines = self._message(head, event, columns)
        else:
            lines = self._other(head, event, columns)
        if columns is not None:
            above = [*self._new_day(record.at), *map(self._paint.dim, above)]
        return "\n".join([*above, *lines])

    def stanza(self, traced: TracedStanza) -> str:
        """Return a head, and the XML of a piece of the stream, indented."""
        xml = traced.xml
        size = len(xml_of(xml).encode("utf-8", "surrogatepass"))
        if not isinstance(xml, str):
            xml = deepcopy(xml)
            indent(xml)
        head = f"{datetime.fromtimestamp(traced.at, UTC):%H:%M:%S}  {ARROWS[traced.direction]} "
        head += f"{size} bytes, connection {traced.connection}"
        text = f"\n{visible(xml_of(xml))}"
        lines = hanging(self._paint.dim(head), 0, text, STANZA_INDENT, self._columns())
        return "\n".join([*self._new_day(traced.at), *lines])

    def _new_day(self, at: float) -> list[str]:
        """Return a line with the date, in UTC, if it is another than that of what came last."""
        before, self._day = self._day, f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
        return [self._paint.dim(f"--- {self._day}")] if before not in {"", self._day} else []

    def _message(self, head: str, said: events.MessageReceived, columns: int | None) -> list[str]:
        beside = EVENT_INDENT + len("<>") + 2
        limit = NICKNAME_LIMIT if columns is None else min(NICKNAME_LIMIT, max(columns - beside, 2))
        nickname = padded(
            f"<{cut(unambiguous_nickname(said.sender), limit)}>", NICKNAME_WIDTH + len("<>")
        )
        about = one_line(notes_on_message(events.encode(said)), NOTES_LIMIT)
        if about and said.body:
            about += " "
        used = EVENT_INDENT + width(nickname) + 2
        body = unambiguous_body(said.body)
        body = one_line(body, MAX_TEXT_CHARACTERS) if columns is None else visible(body)
        first, *rest = hanging("", used, about + body, INDENT, columns)
        if first.startswith(about):
            first = self._paint.dim(about) + first.removeprefix(about)
        painted = self._paint.nickname(said.sender, nickname)
        return [f"{head}{painted}  {first}", *rest]

    def _other(self, head: str, event: events.Event, columns: int | None) -> list[str]:
        line = format_event(events.encode(event))
        first, *rest = hanging("", EVENT_INDENT, line, EVENT_INDENT, columns)
        paint: Callable[[str], str] = self._paint.dim if isinstance(event, MINOR) else str
        match event:
            case (
                events.SendFailed()
                | events.OccupantError()
                | events.RoomError()
                | events.StanzaDamaged()
                | events.ConnectionChanged(fault=Fault())
            ):
                paint = self._paint.red
        return [f"{head}{paint(first)}", *map(paint, rest)]


class News:
    """Tells what happens from what a room sends to whoever enters it.

    That is who is there, its history, and its subject. What the history has when we come back is
    news: it happened meanwhile.
    """

    def __init__(self) -> None:
        self._entering: set[str] = set()
        """Rooms that we are on the way into, or that have not sent their subject since."""
        self._known: set[str] = set()
        """Rooms that we have entered before."""

    def has(self, record: Record) -> bool:
        """Whether `record`, which comes after all that were given before, is news."""
        room, event = record.room, record.event
        if isinstance(event, events.ConnectionChanged):
            if event.phase is Phase.JOINING:
                self._entering.add(room)
        elif room in self._entering:
            match event:
                case events.MessageReceived(source=Source.HISTORY):
                    return room in self._known
                case events.MessageReceived() | events.SubjectChanged():
                    # The subject follows the history, live messages follow both (XEP-0045, 7.1).
                    self._entering.discard(room)
                    self._known.add(room)
            return isinstance(event, events.MessageReceived)
        return True


async def watch(
    settings: Settings,
    *,
    stanzas: bool,
    as_json: bool,
    selection: Selection | None = None,
    first: bool = False,
    seconds: float | None = None,
) -> bool:
    """Write what happens in the room to stdout, and our connection's events to stderr.

    With a `selection` that is only what it picks of the news. It ends with Ctrl-C, when nobody
    reads stdout any more, after so many `seconds`, and with `first` after one event. Return False
    if nothing can be written, if the rooms cannot be reached and trying again would do harm, or if
    it was to end by itself and nothing was shown.
    """
    # Under a name of its own, beside a bridge that may be in the room already.
    participant = Participant(settings._replace(nickname=f"{settings.nickname}-watch"))
    journal = participant.journal
    stdout, stderr = sys.stdout, sys.stderr  # stderr is None if it was closed
    ended = asyncio.Event()
    hopeless = shown = False
    news = News()
    output = Output(stdout, stderr, ended.set)
    several = len(settings.rooms) > 1
    view = notices = RoomView(*look_of(stdout), names_rooms=several)
    # On one terminal one view writes both, so that the date is written once.
    if stderr is not None and not (stderr.isatty() and stdout.isatty()):
        notices = RoomView(*look_of(stderr), names_rooms=several)

    def on_record(record: Record) -> None:
        nonlocal hopeless, shown
        about_us = isinstance(record.event, ABOUT_US)
        is_news = news.has(record)  # asked of each, so that it knows when we enter
        if selection is None:
            wanted = not stanzas and (as_json or not about_us)
        else:
            wanted = is_news and selection.picks(record) and not (first and shown)
        if wanted and (
            text := json.dumps(journal.encode(record)) if as_json else view.event(record)
        ):
            shown = True
            output.write(text)
            if first:
                ended.set()
        if about_us and stderr is not None:
            output.write_notice(notices.event(record))
        match record.event:
            case events.ConnectionChanged(fault=Fault(retry=Retry.NEVER)):
                hopeless = True
                ended.set()

    def on_stanza(traced: TracedStanza) -> None:
        output.write(_stanza_as_json(traced, journal) if as_json else view.stanza(traced))

    participant.listen(on_record)
    if stanzas:
        participant.trace.listen(on_stanza)
    is_late = await run_until_signal(participant, ended, seconds=seconds)
    output.close()
    if output.error is not None:
        complain(f"xmpp-bridge: stdout cannot be written: {output.error.strerror}")
    awaits = first or seconds is not None
    if is_late and not shown:
        complain(f"xmpp-bridge: nothing matched within {seconds:g} s")
    return not hopeless and output.error is None and (shown or not awaits)


def _stanza_as_json(traced: TracedStanza, journal: Journal) -> str:
    """Return a piece of the stream as one line of ASCII, which harms no terminal."""
    xml = xml_of(traced.xml)
    return json.dumps(
        {
            "cursor": journal.cursor_of(traced.number),
            "at": iso(traced.at),
            "kind": "stanza",
            "direction": traced.direction,
            "bytes": len(xml.encode("utf-8", "surrogatepass")),
            "connection": traced.connection,
            "xml": xml,
        }
    )
