"""Writes what passed into the account's file: for its owner alone, redacted, and within bounds."""

import json
import logging
import os
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

from bridge.capture.stanza import CUT, FOOTER, HOLE, SOMEBODY, STANZA_TAGS
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
        self._closing = ExitStack()
        """Closes the file, and then gives it free for another tap."""
        self._is_tried = False
        """Whether opening the file was tried, with success or not."""
        self._is_lossy = False
        """Whether writing has failed."""
        self._waiting = list[str]()

    def add(self, at: str, sent: bool, session: str, xml: str, **more: object) -> None:
        """Add an entry, with those further fields that are not empty.

        `bytes` is how many passed, if `xml` has not all of them. `rooms` are the rooms of the
        settings, for the beginning of a stream: it may never get in.
        """
        direction, fields = "out" if sent else "in", {key: more[key] for key in more if more[key]}
        entry = {"at": at, "direction": direction, "connection": session, "xml": xml}
        self._waiting.append(json.dumps(entry | fields))

    def flush(self) -> None:
        """Write what was added, once the account is known."""
        if self.account and self._waiting and not self._is_tried:
            self._is_tried = True
            try:
                self._open()
            except OSError as error:
                log.warning("What passes is not kept: %s", error)
        is_kept = self._file is None or not self._waiting or self._file.add(*self._waiting)
        if not (is_kept or self._is_lossy):
            self._is_lossy = True
            log.warning("Some of what passes is not kept: the disk may be full.")
        if self.account or len(self._waiting) > MAX_EARLY:
            self._waiting.clear()

    def close(self, name: str = "") -> None:
        """Close the file. If no account was known, it has this `name`."""
        self.account = self.account or name
        self.flush()
        self._closing.close()

    def _open(self) -> None:
        """Open the file, which no other process writes until it is closed; raises `OSError`."""
        path, lock = lock_file(self._folder, self.account)
        with ExitStack() as opened:
            opened.callback(os.close, lock)
            if path.exists():
                path.replace(path.with_name(f"{path.name}.1"))
            self._file = FileHandler("", path, MAX_BYTES)
            opened.callback(self._file.close)
            self.path, self._closing = path, opened.pop_all()


def recorded(
    sent: bool, element: Element, raw: bytes, rooms: Collection[str]
) -> tuple[Element, str, int]:
    """Return what is kept of an element, its XML, and how many bytes passed if that is not all.

    Of a stanza that is not from or to one of these `rooms` or their services, only the kind is
    kept, and no words. The other side's address then keeps its domain alone, unless it is another
    room of such a service: the type `groupchat` tells rooms from people, whom a gateway or wrong
    settings may put at the same domain.
    """
    if element.tag == FOOTER:
        return element, written(Element(CUT)) if element.get("cut") else STREAM_FOOTER, 0
    if element.tag == HOLE:
        return element, "<", len(raw)
    is_stanza, services = element.tag in STANZA_TAGS, set(map(domain_of, rooms))
    key = "to" if sent else "from"
    other = lower_bare(element.get(key, ""))
    is_bind = element.tag == "iq" and element.find(f"{{{BIND}}}bind") is not None
    is_own = is_bind and "@" not in other
    if is_stanza and not is_own and other not in {*rooms, *services}:
        is_room = element.get("type") == "groupchat" and domain_of(other) in services
        hidden = f"{SOMEBODY}@{domain_of(other)}" if "@" in other and not is_room else other
        outline = _outline(element, key, hidden)
        return outline, written(outline), len(raw)
    clean = redacted(element)
    is_raw = element.tag == HEADER or (is_stanza and raw.startswith(b"<" + element.tag.encode()))
    is_as_sent = clean is element and is_raw
    return clean, raw.decode("utf-8", "replace") if is_as_sent else written(clean), 0


def _outline(element: Element, key: str, other: str) -> Element:
    """Return a stanza without words: its kind, its id, and the condition of its error.

    Its attribute `key` becomes `other`, the other side's address as far as that is kept.
    """
    kept = Element(element.tag, {name: value for name, value in element.items() if name in KEPT})
    if key in kept.attrib:
        kept.set(key, other)
    for child in element:
        copy = SubElement(kept, child.tag)
        if child.tag == "priority" and (child.text or "").strip().lstrip("-").isdecimal():
            copy.text = child.text
        if child.tag == "error":
            copy.set("type", child.get("type", ""))
            copy.extend(Element(each.tag) for each in child if local(each.tag) != "text")
    return kept
