"""Following the room in a terminal, as a participant of its own."""

import asyncio
import json
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TextIO
from xml.etree.ElementTree import indent

from bridge.console.frontend import call_on_termination
from bridge.console.output import Output, terminal_size
from bridge.console.roomview import RoomView
from bridge.console.screen import Paint, has_colour
from bridge.log import complain
from bridge.settings.table import Settings
from bridge.times import iso
from bridge.xmpp.events import Connected, ConnectionChanged, Event, Joined
from bridge.xmpp.faults import Retry
from bridge.xmpp.participant import Participant

if TYPE_CHECKING:
    from bridge.xmpp.journal import Record
    from bridge.xmpp.trace import Traced


async def watch(
    settings: Settings,
    *,
    stanzas: bool = False,
    as_json: bool = False,
    environ: Mapping[str, str],
) -> bool:
    """Write what happens in the room to stdout, and how we stand to it to stderr, until Ctrl-C.

    It ends too when nobody reads stdout any more. Return False if nothing can be written, or if
    the room cannot be reached and trying again would do harm.
    """
    # Under a name of its own, beside a bridge that may be in the room already.
    participant = Participant(replace(settings, nickname=f"{settings.nickname}-watch"))
    ended = asyncio.Event()
    hopeless = False
    words = sys.stderr  # None if it was closed
    output = Output(
        sys.stdout.fileno(),
        None if words is None else words.fileno(),
        ended.set,
        encoding=sys.stdout.encoding,
    )
    view = _view(sys.stdout, environ)
    show: _Show = _Json(participant) if as_json else _Terminal(view)
    about = view  # on one terminal the date is told once
    if words is None or not (words.isatty() and sys.stdout.isatty()):
        about = RoomView(Paint(on=False)) if words is None else _view(words, environ)

    def see(record: "Record") -> None:
        nonlocal hopeless
        if not stanzas and (text := show.event(record)):
            output.write(text)
        if _is_about_us(record.event):
            output.write_notice(about.event(record))
        match record.event:
            case ConnectionChanged(fault=fault) if fault is not None:
                if fault.retry is Retry.NEVER:
                    hopeless = True
                    ended.set()

    participant.listen(see)
    if stanzas:
        participant.trace.listen(lambda traced: output.write(show.stanza(traced)))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, ended.set)
    call_on_termination(lambda number: ended.set())
    running = asyncio.create_task(participant.run())
    ending = asyncio.create_task(ended.wait())
    await asyncio.wait((running, ending), return_when=asyncio.FIRST_COMPLETED)
    participant.leave()
    for task in (running, ending):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    output.close()
    if output.error is not None:
        complain(f"xmpp-bridge: stdout cannot be written: {output.error.strerror}")
    return not hopeless and output.error is None


def _is_about_us(event: Event) -> bool:
    return isinstance(event, ConnectionChanged | Connected | Joined)


def _view(stream: TextIO, environ: Mapping[str, str]) -> RoomView:
    terminal = stream.isatty()
    paint = Paint(has_colour(terminal=terminal, environ=environ))
    if not terminal:
        return RoomView(paint)
    return RoomView(paint, lambda: terminal_size(stream.fileno()).columns)


class _Show(Protocol):
    def event(self, record: "Record") -> str: ...

    def stanza(self, traced: "Traced") -> str: ...


class _Terminal:
    """For a person; how we stand to the room is told beside it."""

    def __init__(self, view: RoomView) -> None:
        self._view = view

    def event(self, record: "Record") -> str:
        return "" if _is_about_us(record.event) else self._view.event(record)

    def stanza(self, traced: "Traced") -> str:
        from bridge.xmpp.stanzas import xml_of

        xml = traced.xml
        size = len(xml_of(xml).encode("utf-8", "surrogatepass"))
        if not isinstance(xml, str):
            xml = deepcopy(xml)
            indent(xml)
        return self._view.stanza(traced, size, xml_of(xml))


class _Json:
    """One object a line, the texts exact; ASCII, so that no terminal comes to harm."""

    def __init__(self, participant: Participant) -> None:
        self._journal = participant.journal

    def event(self, record: "Record") -> str:
        return json.dumps(self._journal.encode(record))

    def stanza(self, traced: "Traced") -> str:
        from bridge.xmpp.stanzas import xml_of

        xml = xml_of(traced.xml)
        return json.dumps(
            {
                "cursor": self._journal.cursor_of(traced.number),
                "at": iso(traced.at),
                "kind": "stanza",
                "direction": traced.direction,
                "bytes": len(xml.encode("utf-8", "surrogatepass")),
                "connection": traced.connection,
                "xml": xml,
            }
        )
