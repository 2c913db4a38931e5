"""Has the rules look at what passes, says at once what they find, and keeps it in a file."""

import time
from collections.abc import Callable, Collection
from xml.etree.ElementTree import Element

from bridge.capture.capture import Capture
from bridge.capture.examined import Examined
from bridge.capture.finding import Finding, Severity
from bridge.capture.stanza import EXITED, FOOTER, PAUSE, LogPlace, Stanza
from bridge.capture.stream import Stream
from bridge.tap.record import CaptureFile, recorded
from bridge.tap.remarks import remark
from bridge.text import iso
from bridge.wire.names import COMPONENT, HEADER, lower_bare
from bridge.wire.xmlwriter import written

UNFINISHED_SECONDS = 2.0
"""Clients write a stanza at once. One that is not whole after this time probably never will be."""


class Witness:
    """Sees the streams of all clients of one tap."""

    def __init__(
        self,
        file: CaptureFile,
        rooms: Collection[str],
        show: Callable[[Finding], None],
        *,
        command: str = "",
        clock: Callable[[], float] = time.time,
        draw: Callable[[Examined, Stanza], None] | None = None,
    ) -> None:
        """`show` gets each finding as it is made, `draw` what is kept of each stanza, for a page.

        `show` gets a note only if it is tap's own, and each such note once.
        """
        self.capture = Capture(command=command, observe=self._observe, on_new=self._say)
        self._file = file
        self._rooms = frozenset(map(lower_bare, rooms))
        """The rooms of the settings."""
        self._show, self._draw, self._clock = show, draw, clock
        self._streams: dict[str, Examined] = {}
        """The streams under way, by the name of their session."""
        self._going = set[str]()
        """The sessions that have begun and not ended."""
        self._noted = set[str]()
        """The messages of the notes that were shown."""
        self.sessions = 0
        """How many clients have connected."""
        self._unfinished: dict[str, tuple[float, int]] = {}
        """Since when a client's stanza is not whole, and how many bytes of it came, by session."""

    def begin(self) -> str:
        """Return the name of a new session."""
        self.sessions += 1
        session = str(self.sessions)
        self._going.add(session)
        return session

    def take(self, session: str, sent: bool, element: Element, raw: bytes = b"") -> None:
        """Take what a client sent or got; nothing more once either side has gone."""
        if session not in self._going:
            return
        if element.tag == HEADER and COMPONENT.encode() in raw:
            element.set("xmlns", COMPONENT)
        if sent:
            self._unfinished.pop(session, None)
        now = self._clock()
        at = iso(now)
        stanza = Stanza(sent, element, LogPlace("", 0, at), now, session)
        self.capture.take(stanza)
        examined = self._streams[session]
        stream = examined.stream
        if stream.client.bound:
            self._file.account = self._file.account or stream.client.account
        # Without the `muc` element, a presence may be for a person as well.
        joined = {it.jid for it in stream.rooms.by_jid.values() if it.nickname and it.has_muc}
        kept, xml, size = recorded(sent, element, raw, self._rooms | joined)
        if self._draw is not None:
            self._draw(examined, stanza._replace(element=kept))
        rooms = sorted(self._rooms) if sent and element.tag == HEADER else []
        self._file.add(at, sent, session, xml, bytes=size, rooms=rooms)

    def hold(self, session: str, size: int) -> None:
        """Note how many bytes of a client's stanza came that is not whole yet; 0 if all are."""
        since, _ = self._unfinished.pop(session, (self._clock(), 0))
        if size:
            self._unfinished[session] = since, size

    def flush(self) -> None:
        """Write to the file what was taken."""
        self._file.flush()

    def add(self, session: str, name: str, **words: object) -> None:
        """Take what tap itself has found: a row of `remarks`."""
        finding = remark(name, LogPlace("", 0, iso(self._clock())), **words)
        if session not in self._streams:  # nothing has passed yet
            self._streams[session] = Examined(Stream(), session, self._say)
            self.capture.streams.append(self._streams[session])
        examined = self._streams[session]
        if finding.name == "login" and finding.severity is Severity.ERROR:
            examined.stream.login.judged = finding  # the failure that tap sends next shows it
        else:
            examined.add([finding])
        if finding.severity is Severity.NOTE and finding.message not in self._noted:
            self._noted.add(finding.message)
            self._show(finding)

    def pause(self) -> None:
        """Tell the rules the time: an answer, or the rest of a stanza, may be overdue."""
        now = self._clock()
        self.capture.pause(now, self._streams)
        for session, (since, size) in [*self._unfinished.items()]:
            if now - since >= UNFINISHED_SECONDS:
                del self._unfinished[session]
                self.add(session, "unfinished", seconds=UNFINISHED_SECONDS, size=size)
                self._file.add(iso(since), True, session, "<", bytes=size)
                self.flush()

    def end(self, session: str, sent: bool | None) -> None:
        """Note that one side has ended its connection: the client, if it `sent`; None for tap."""
        if session not in self._streams:
            self._going.discard(session)
            return
        stream = self._streams[session].stream
        is_over = stream.client.ended or stream.first is None
        if sent is not None and not is_over:
            self.take(session, sent, Element(FOOTER, {} if sent else {"cut": "true"}))
        elif not is_over:
            self.pause()
            self._file.add(iso(self._clock()), False, session, written(Element(PAUSE)))
        del self._streams[session]
        self._going.discard(session)
        self._unfinished.pop(session, None)
        self.flush()

    def close(self, domain: str, fault: str = "") -> None:
        """Note that tap stops. If no account was known, the file has the name of the `domain`.

        `fault` says how the client's program ended, if that was a fault of its own.
        """
        streams = self.capture.streams
        notes = [note for each in streams for note in each.findings() if note.cause == "mismatch"]
        if notes and not any(each.stream.client.bound for each in streams):
            streams[-1].add([notes[-1]._replace(severity=Severity.ERROR, key="never-in ")])
        for session in [*self._streams]:
            self.end(session, None)
        if fault and streams and streams[-1].stream.first is not None:
            (end := Element(EXITED)).text = fault
            now, session = self._clock(), streams[-1].session
            self.capture.take(Stanza(False, end, LogPlace("", 0, iso(now)), now, session))
            self._file.add(iso(now), False, session, written(end))
        self._file.close(domain)
        self.capture.finish()

    def _observe(self, examined: Examined, taken: Stanza) -> None:
        self._streams[taken.session] = examined

    def _say(self, finding: Finding) -> None:
        if finding.severity is not Severity.NOTE:
            self._show(finding)
