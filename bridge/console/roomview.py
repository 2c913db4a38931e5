"""The room as a person watches it: one event after the other, readable at a glance. Pure."""

from datetime import UTC, datetime

from bridge.console.paint import Paint
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
)
from bridge.xmpp.journal import Record
from bridge.xmpp.narration import described
from bridge.xmpp.trace import Traced

NICKNAME_WIDTH = 16
"""Columns for nicknames; longer ones push their line to the right."""

INDENT = " " * (len("12:34:56") + 2 + NICKNAME_WIDTH + 2)
"""Under which the further lines of a message stand."""

ARROWS = {"in": "<--", "out": "-->"}


class RoomView:
    """Writes events and stanzas as lines for a terminal."""

    def __init__(self, paint: Paint) -> None:
        self._paint = paint

    def event(self, record: Record) -> str:
        """Return the line or lines of one event; empty for what another one tells already."""
        time = self._paint.dim(clock(record.at))
        match record.event:
            case MessageSent():
                return ""  # its reflection is the message
            case MessageReceived() as said if said.body:
                return f"{time}  {self._message(said)}"
            case event:
                return f"{time}  {self._other(event)}"

    def stanza(self, traced: Traced, xml: str) -> str:
        """Return the head and the indented XML of one piece of the stream."""
        size = f"{len(xml.encode('utf-8', 'surrogatepass'))} bytes"
        head = f"{clock(traced.at)}  {ARROWS[traced.direction]} {size}, connection "
        lines = "\n".join(f"    {one}" for one in visible(xml).split("\n"))
        return f"{self._paint.dim(head + traced.connection)}\n{lines}"

    def _message(self, said: MessageReceived) -> str:
        nickname = one_line(said.nickname)
        shown = self._paint.nickname(said.nickname, f"{nickname:<{NICKNAME_WIDTH}}")
        marks = [
            "private" if said.type == "chat" else "",
            "" if said.source is Source.LIVE else f"said {said.delayed_from}",
            f"instead of {said.replaces}" if said.replaces else "",
            f"answering {said.reply_to}" if said.reply_to else "",
        ]
        told = ", ".join(one_line(mark) for mark in marks if mark)
        about = self._paint.dim(f"({told}) ") if told else ""
        return f"{shown}  {about}" + f"\n{INDENT}".join(visible(said.body).split("\n"))

    def _other(self, event: Event) -> str:
        line = described(event)
        match event:
            case (
                OccupantJoined()
                | OccupantLeft()
                | OccupantChanged()
                | NicknameChanged()
                | AffiliationChanged()
            ):
                return self._paint.dim(line)
            case SendFailed() | RoomError():
                return self._paint.red(line)
            case ConnectionChanged(fault=fault) if fault is not None:
                return self._paint.red(line)
            case ConnectionChanged():
                return self._paint.dim(line)
            case _:
                return line


def clock(at: float) -> str:
    """Return the time of day in UTC, as the log has it."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")
