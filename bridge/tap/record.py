"""Writes what passed into the account's file: for its owner alone, redacted, and within bounds."""

import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from bridge.capture.stanza import FOOTER, HOLE, SOMEBODY, STANZA_TAGS
from bridge.logs import FileHandler
from bridge.recording.tapped import MAX_BYTES, lock_file
from bridge.wire.names import BIND, HEADER, domain_of, local, lower_bare
from bridge.wire.xmlwriter import written
from bridge.xmpp.link.stream import STREAM_FOOTER
from bridge.xmpp.link.trace import redacted

log = logging.getLogger(__name__)

MAX_EARLY = 1_000
"""We keep at most so many entries until the account is known."""

KEPT = frozenset({"id", "type", "to", "from"})
"""The attributes that are kept of any stanza."""


class CaptureFile:
    """The file of one account. It is made anew by each tap; the former one is kept."""

    def __init__(self, folder: Path, account: str) -> None:
        """`account` may be empty, and be set once it is known."""
        self.account = account
        self.path: Path | None = None
        """The file; None before the first entry, and if it cannot be written."""
        self._folder = folder
        self._file: FileHandler | None = None
        self._is_tried = False
        """Whether opening the file was tried, with success or not."""
        self._waiting = list[str]()

    def add(
        self,
        at: str,
        sent: bool,
        session: str,
        xml: str,
        size: int = 0,
        rooms: Collection[str] = (),
    ) -> None:
        """Add an entry; `size` is how many bytes passed, if `xml` has not all of them.

        `rooms` are the rooms of the settings, for the beginning of a stream: it may never get in.
        """
        direction, more = "out" if sent else "in", f', "bytes": {size}' if size else ""
        more += f', "rooms": {json.dumps(sorted(rooms))}' if rooms else ""
        entry = f'"at": "{at}", "direction": "{direction}", "connection": "{session}"'
        self._waiting.append(f'{{{entry}, "xml": {json.dumps(xml)}{more}}}')

    def flush(self) -> None:
        """Write what was added, once the account is known."""
        if self.account and self._waiting and not self._is_tried:
            self._is_tried = True
            try:
                self._open()
            except OSError as error:
                log.warning("What passes is not kept: %s", error)
        if self._file is not None and self._waiting:
            self._file.add(*self._waiting)
        if self.account or len(self._waiting) > MAX_EARLY:
            self._waiting.clear()

    def close(self, name: str = "") -> None:
        """Close the file. If no account was known, it has this `name`."""
        self.account = self.account or name
        self.flush()
        if self._file is not None:
            self._file.close()
            os.close(self._lock)

    def _open(self) -> None:
        """Open the file, which no other process writes until it is closed; raises `OSError`."""
        path, self._lock = lock_file(self._folder, self.account)
        try:
            if path.exists():
                path.replace(path.with_name(f"{path.name}.1"))
            self._file = FileHandler("", path, MAX_BYTES)
        except OSError:
            os.close(self._lock)
            raise
        self.path = path


def recorded(
    sent: bool, element: Element, raw: bytes, *, is_known: bool, is_near: bool = False
) -> tuple[str, int]:
    """Return what is kept of an element, as XML, and how many bytes passed if that is not all.

    Unless it `is_known` that a stanza is from or to a room or its service, only its kind is kept,
    and no words; and the bare address only if it `is_near`: a room of that service.
    """
    if element.tag == FOOTER:
        return STREAM_FOOTER, 0
    if element.tag == HOLE:
        return "<", len(raw)
    is_stanza = element.tag in STANZA_TAGS
    is_bind = element.find(f"{{{BIND}}}bind") is not None
    if is_stanza and not is_bind and not is_known:
        return written(_outline(sent, element, is_near=is_near)), len(raw)
    clean = redacted(element)
    is_raw = element.tag == HEADER or (is_stanza and raw.startswith(b"<" + element.tag.encode()))
    return (raw.decode("utf-8", "replace") if clean is element and is_raw else written(clean)), 0


def _outline(sent: bool, element: Element, *, is_near: bool) -> Element:
    """Return a stanza without words: its kind, its id, and the condition of its error.

    Of the other side's address the domain is kept, after `SOMEBODY` if it has a local part.
    """
    kept = Element(element.tag, {key: value for key, value in element.items() if key in KEPT})
    other = "to" if sent else "from"
    if other in kept.attrib:
        bare = lower_bare(kept.attrib[other])
        hidden = f"{SOMEBODY}@{domain_of(bare)}" if "@" in bare else bare
        kept.set(other, bare if is_near else hidden)
    for child in element:
        copy = SubElement(kept, child.tag)
        if child.tag == "priority" and (child.text or "").strip().lstrip("-").isdecimal():
            copy.text = child.text
        if child.tag == "error":
            copy.set("type", child.get("type", ""))
            copy.extend(Element(each.tag) for each in child if local(each.tag) != "text")
    return kept
