"""Whether the bridge's message came on a client's own stream, and what the client sent then. Pure.

The room shows neither. Only `tap`, or the client's log, sees what the client sends elsewhere.
"""

from collections.abc import Sequence
from itertools import islice
from xml.etree.ElementTree import Element

from bridge.capture.examined import Examined
from bridge.capture.rooms import Room
from bridge.capture.stanza import FOOTER, HOLE, QUOTED, SOMEBODY, Stanza
from bridge.text import counted, iso, quoted
from bridge.wire.names import domain_of, local, lower_bare
from bridge.xmpp.checks.evidence import Evidence, words_of

MAX_DEEDS = 3
"""The most different deeds of a client that a sentence names."""

DEEDS = frozenset({"message", "presence", "iq", HOLE, FOOTER})
"""The tags of what a client does of its own accord. Of requests, only those that change something
count: libraries ask for other things by themselves."""


def has_seat(examined: Examined, evidence: Evidence, *, former: bool = False) -> bool:
    """Whether the occupant is or was in the room on this stream.

    With `former`, the stream before it counts, too.
    """
    rooms = examined.stream.rooms
    seats = [*rooms.by_jid.values(), *(rooms.former.values() if former else ())]
    return any(_is_seat(each, evidence) for each in seats)


def _is_seat(room: Room, evidence: Evidence) -> bool:
    is_there = lower_bare(room.jid) == lower_bare(evidence.room)
    return is_there and room.is_under(evidence.nickname)


class Delivery:
    """Follows the bridge's last message, if an occupant has not answered it."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._message = evidence.past.heard if evidence.is_silent else None
        self._came: tuple[Examined, Stanza] | None = None
        """The stream on which the message came, and the message there."""
        self._deeds: dict[str, tuple[str, int]] = {}
        """What the client did then, in a few words: how soon it did so first, and how often."""

    @property
    def body(self) -> str:
        """The body of the message; empty if there is none, or if it was answered."""
        return self._message.body if self._message else ""

    @property
    def now(self) -> float | None:
        """The time now on the capture's clock, if the message came; None if that is not known."""
        if self._message is None or self._came is None or self._came[1].seconds is None:
            return None
        return self._came[1].seconds + (self._evidence.now - self._message.at)

    @property
    def line(self) -> int:
        """In which line of the capture the message came; 0 if it did not."""
        return self._came[1].place.line if self._came else 0

    @property
    def is_ignored(self) -> bool:
        """Whether the message came, and the client has sent nothing since."""
        return self._came is not None and not self._deeds

    def take(self, examined: Examined, stanza: Stanza) -> None:
        """Take a stanza of a capture."""
        element = stanza.element
        if self._message is None:
            return
        if not stanza.sent and element.tag == "message" and self._came is None:
            id_ = getattr(self._message.event, "id", None)  # some rooms give no ids back
            is_it = element.get("id") == id_ if id_ else element.findtext("body") == self.body
            seat = examined.stream.rooms.of(examined.stream.client, stanza)
            if is_it and seat is not None and _is_seat(seat, self._evidence):
                self._came = examined, stanza
        elif stanza.sent and self._came is not None and self._is_by_it(examined, element):
            asks = element.tag == "iq" and element.get("type") != "set"
            if element.tag in DEEDS and not asks:
                deed = _deed(element)
                after, times = self._deeds.get(deed, (_after(self._came[1], stanza), 0))
                self._deeds[deed] = after, times + 1

    def _is_by_it(self, examined: Examined, element: Element) -> bool:
        """Whether the client to which the message came sent this; a component has several."""
        if self._came is None or self._came[0] is not examined:
            return False
        own = self._came[1].element.get("to", "")
        is_one = "@" in examined.stream.client.account  # whatever it writes into `from`
        return is_one or lower_bare(element.get("from") or own) == lower_bare(own)

    def sentence(self, streams: Sequence[Examined] = ()) -> str:
        """Return whether the message came, and what the client did then; empty if not known.

        `streams` are all of the client, up to now. Without them, the message may have come later.
        """
        if self._message is None:
            return ""
        what, who = words_of(self.body), self._evidence.who
        if self._came is not None:
            deeds = [
                f"{deed}{after}{f' ({times} times)' if times > 1 else ''}"
                for deed, (after, times) in islice(self._deeds.items(), MAX_DEEDS)
            ]
            more = len(self._deeds) - len(deeds)
            deeds += [f"did {counted(more, 'more thing')}"] if more else []
            did = f"which then {', '.join(deeds)}" if deeds else "which has sent nothing since"
            return f"{what} reached {who}, {did}."
        seats = [each for each in streams if has_seat(each, self._evidence)]
        if not seats:
            return ""
        last, ended = streams[-1].stream, seats[-1].stream.ending.last
        why = ""
        if seats[-1].stream.client.ended and ended is not None:
            why = f": its stream had ended{_at(ended)}"
        if last.first is not None and not last.rooms.by_jid:
            why += f"; another began{_at(last.first)}, on which it has not asked to join the room"
        return f"{what} did not reach {who}{why}."


def _at(stanza: Stanza) -> str:
    return f" at {iso(stanza.seconds)}" if stanza.seconds is not None else ""


def _after(asked: Stanza, stanza: Stanza) -> str:
    if asked.seconds is None or stanza.seconds is None:
        return ""
    return f" after {(stanza.seconds - asked.seconds) * 1000:,.0f} ms"


def _deed(element: Element) -> str:
    """Return a few words for what a client did by sending this."""
    tag, type_, to = element.tag, element.get("type", ""), element.get("to", "")
    if tag == FOOTER:
        return "ended its connection"
    if tag == HOLE:
        return "sent something that is no whole stanza"
    where = f" to {quoted(to, QUOTED)}" if to else ""
    if to.startswith(f"{SOMEBODY}@"):
        where = f" to an address at {quoted(domain_of(to), QUOTED)}"
    if tag == "presence":
        return f"sent presence{f' of type {quoted(type_)}' if type_ else ''}{where}"
    inside = ", ".join(local(child.tag) for child in element if child.tag != "body")
    body, holds = element.find("body"), f" with {quoted(inside, QUOTED)}" if inside else ""
    if tag == "iq":
        return f"sent a request{where}{holds}"
    if body is None:
        holds = f" without a body{f' but{holds}' if inside else ''}"
    elif body.text:  # of what is not the room's, `tap` keeps no words
        holds = f" with the body {quoted(body.text, QUOTED)}"
    return f"sent a message of type {quoted(type_ or 'normal')}{where}{holds}"
