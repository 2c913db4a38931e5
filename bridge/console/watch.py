"""Following the room in a terminal, as a participant of its own."""

import asyncio
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import indent

from bridge.config import Settings
from bridge.console.paint import Paint
from bridge.console.roomview import RoomView
from bridge.times import iso
from bridge.xmpp.events import ConnectionChanged
from bridge.xmpp.faults import Retry
from bridge.xmpp.participant import Participant
from bridge.xmpp.telling import line_of

if TYPE_CHECKING:
    from bridge.xmpp.journal import Record
    from bridge.xmpp.trace import Traced


async def watch(
    settings: Settings,
    write: Callable[[str], None],
    *,
    stanzas: bool = False,
    as_json: bool = False,
    paint: Paint,
) -> bool:
    """Write what happens to `write`, a line or some at a time, until Ctrl-C or no hope is left.

    Return False if the room cannot be reached and trying again would do harm.
    """
    # Under a name of its own, beside a bridge that may be in the room already.
    participant = Participant(replace(settings, nickname=f"{settings.nickname}-watch"))
    ended = asyncio.Event()
    hopeless = False
    show = _Json(participant) if as_json else _Terminal(RoomView(paint))

    def put(text: str) -> None:
        try:
            write(text)
        except BrokenPipeError:  # nobody reads any more
            ended.set()

    def see(record: "Record") -> None:
        nonlocal hopeless
        if not stanzas and (text := show.event(record)):
            put(text)
        match record.event:
            case ConnectionChanged(fault=fault) if fault is not None:
                if fault.retry is Retry.NEVER:
                    hopeless = True
                    ended.set()

    participant.listen(see)
    if stanzas:
        participant.trace.listen(lambda traced: put(show.stanza(traced)))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    running = asyncio.create_task(participant.run())
    await asyncio.wait(
        (running, asyncio.ensure_future(ended.wait())), return_when=asyncio.FIRST_COMPLETED
    )
    participant.leave()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return not hopeless


class _Terminal:
    def __init__(self, view: RoomView) -> None:
        self._view = view

    def event(self, record: "Record") -> str:
        return self._view.event(record)

    def stanza(self, traced: "Traced") -> str:
        from bridge.xmpp.stanzas import xml_of

        xml = traced.xml
        if not isinstance(xml, str):
            xml = deepcopy(xml)
            indent(xml)
        return self._view.stanza(traced, xml_of(xml))


class _Json:
    """One object a line, the texts exact; ASCII, so that no terminal comes to harm."""

    def __init__(self, participant: Participant) -> None:
        self._journal = participant.journal

    def event(self, record: "Record") -> str:
        return json.dumps(line_of(record, self._journal))

    def stanza(self, traced: "Traced") -> str:
        from bridge.xmpp.stanzas import xml_of

        xml = xml_of(traced.xml)
        return json.dumps(
            {
                "cursor": self._journal.cursor_of(traced.number),
                "at": iso(traced.at),
                "direction": traced.direction,
                "bytes": len(xml.encode("utf-8", "surrogatepass")),
                "connection": traced.connection,
                "xml": xml,
            }
        )
