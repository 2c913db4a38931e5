"""Decides which events a page folds away until its reader wants them. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bridge.page.timeline import Bar, Lane
from bridge.text import seconds_of

VISITS = ("check", "diagnose", "send")
"""The commands that go into a room for a moment, each under the bridge's nickname with its name."""

RECORDER = "-record"
"""The end of the nickname of `xmpp-bridge record`."""

ON_ENTRY = frozenset({"join", "role", "subject"})
"""The kinds of events in which a room tells a newcomer how things stand."""


class Folding:
    """What is folded in one part of a page."""

    def __init__(
        self, bridges: Collection[str], lanes: Mapping[str, Lane], begin: int, end: int
    ) -> None:
        """Know the nicknames of the bridges that recorded, and who was in the room."""
        ours = {name.removesuffix(RECORDER) for name in bridges}
        ours |= {name.removesuffix(f"-{it}") for name in bridges for it in VISITS}
        names = tuple(f"{name}-{it}" for name in ours for it in VISITS)
        stays = {
            name: sum((end if span.to is None else span.to) - span.from_ for span in lane.spans)
            for name, lane in lanes.items()
            if name in bridges
        }
        longest = max(stays, key=stays.__getitem__, default="")
        self.visitors = {
            name
            for name in lanes
            if (name in bridges or name.startswith(names))
            and not (name == longest or name.endswith(RECORDER))
        }
        """The nicknames under which bridges came for a moment."""
        self._begin = begin / 1_000

    def of(self, exact: Mapping[str, Any], entering: bool, stages: Iterable[Bar], at: int) -> str:
        """Return which folded events an event belongs to; empty if it is shown.

        `entering` is whether the observer was on its way into the room.
        """
        if exact["kind"] in {"connection", "stanza"}:
            went_well = not any(bar.from_ <= at <= bar.to and not bar.ok for bar in stages)
            return "connecting" if entering and went_well else ""
        said = seconds_of(exact.get("delayedFrom"))
        if said is not None and said < self._begin:
            return "history"
        if exact.get("sender") in self.visitors and exact["kind"] not in {"message", "error"}:
            return "bridge"
        if entering and exact["kind"] in ON_ENTRY:
            return "history"
        return ""
