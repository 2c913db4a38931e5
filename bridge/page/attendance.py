"""Folds the events of one room into lanes: who was there, when, and why they left. Pure."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from bridge.page.pseudonyms import Pseudonyms
from bridge.page.timeline import MAX_EVENTS, Lane, Presence
from bridge.text import one_line
from bridge.xmpp.model.formatting import unambiguous_nickname
from bridge.xmpp.model.room import GONE_MEANWHILE, MAX_OCCUPANTS, put_out

LOST = "the bridge lost its connection"

MAX_LANES = 1_000
"""Most lanes of a room. Some rooms have more occupants, but a reader could not tell more lanes
apart."""


class Attendance:
    """The occupants of one room, as far as its events name them."""

    def __init__(self) -> None:
        self._here: dict[str, Presence] = {}
        self._gone: deque[tuple[str, Presence]] = deque(maxlen=MAX_EVENTS)
        self._own: set[str] = set()
        self._seen: set[str] = set()
        """The nicknames of the first `MAX_OCCUPANTS` occupants that were in the room."""
        self._observers: dict[str, str] = {}
        """The bridges that are in the room, with their nicknames."""
        self._listed: set[str] | None = None
        """The occupants that the room has listed so far, while a bridge joins. None if no bridge
        joins, or if another bridge is in the room already."""

    @property
    def is_entering(self) -> bool:
        """Whether a bridge is on its way into the room, and no other is in it."""
        return self._listed is not None

    @property
    def here(self) -> Mapping[str, Presence]:
        """Who is in the room now, by nickname."""
        return self._here

    def take(self, at: int, begin: int, exact: Mapping[str, Any], observer: str) -> None:
        """Take an event in its exact form; `begin` is the time of the first event of the room."""
        name = exact.get("sender", "")
        if exact.get("self"):
            self._own.add(name)
        match exact:
            case {"kind": "join" | "role"} if name:
                self._come(at, name, exact)
            case {"kind": "leave", "destroyed": True}:
                for name in [*self._here]:
                    self._go(at, name, "the room was destroyed")
            case {"kind": "leave"}:
                self._appear(begin, name)
                self._go(at, name, _why(exact))
            case {"kind": "nick", "newNickname": str(new)}:
                self._appear(begin, name)
                if former := self._here.get(name):
                    self._go(at, name, f"is now <{unambiguous_nickname(new)}>")
                    self._arrive(new, replace(former, from_=at, before=False))
                if name in self._own:
                    self._own.add(new)
            case {"kind": "connection"}:
                self._take_connection(at, exact, observer)
            case {"kind": "message", "source": "live"} if name:
                self._appear(begin, name)

    def lanes(self, begin: int, words: Pseudonyms) -> Iterator[tuple[str, Lane]]:
        """Yield the nicknames and lanes of all who were there after `begin`, ourselves first."""
        spans: dict[str, list[Presence]] = {}
        spells = [*self._gone, *self._here.items()]
        for name, presence in sorted(spells, key=lambda spell: spell[1].from_):
            if presence.to is None or presence.to >= begin:
                role, affiliation = presence.role, presence.affiliation
                renamed = words.event({"kind": "role", "role": role, "affiliation": affiliation})
                span = replace(
                    presence,
                    role=one_line(renamed["role"]),
                    affiliation=one_line(renamed["affiliation"]),
                    before=presence.before and name not in self._own,
                    left=words.text(presence.left),
                )
                spans.setdefault(name, []).append(span)
        for name in sorted(spans, key=lambda name: name not in self._own)[:MAX_LANES]:
            nickname = one_line(words.nickname(name))
            yield name, Lane(nickname, name in self._own, tuple(spans[name]))

    def _take_connection(self, at: int, exact: Mapping[str, Any], observer: str) -> None:
        match exact.get("phase"):
            case None if "service" not in exact:  # we are in the room under this nickname
                self._observers[observer] = exact.get("sender", "")
                self._own.add(exact.get("sender", ""))
            case "joining" if not self._observers:
                self._listed = set()
            case "joined":
                if self._listed is not None:
                    for name in self._here.keys() - self._listed:
                        self._go(at, name, GONE_MEANWHILE)
                self._listed = None
            case "waiting" | "failed" | "closed" | "resolving" | "connecting":
                why = "left" if exact["phase"] == "closed" else LOST
                self._go(at, self._observers.pop(observer, ""), why)

    def _come(self, at: int, name: str, exact: Mapping[str, Any]) -> None:
        role, affiliation = exact.get("role", ""), exact.get("affiliation", "")
        if self._listed is not None:
            self._listed.add(name)
        former = self._here.get(name)
        if former is not None:
            if (former.role, former.affiliation) == (role, affiliation):
                return
            self._go(at, name, "")
        was_there = former is None and self._listed is not None
        self._arrive(name, Presence(at, None, role, affiliation, before=was_there))

    def _appear(self, begin: int, name: str) -> None:
        """Note an occupant who does something, if no record says when it came."""
        if name not in self._seen:
            self._arrive(name, Presence(begin, before=True))

    def _arrive(self, name: str, presence: Presence) -> None:
        if len(self._here) < MAX_OCCUPANTS:
            self._here[name] = presence
        if len(self._seen) < MAX_OCCUPANTS:
            self._seen.add(name)

    def _go(self, at: int, name: str, why: str) -> None:
        if presence := self._here.pop(name, None):
            self._gone.append((name, replace(presence, to=at, left=why)))


def _why(exact: Mapping[str, Any]) -> str:
    why = put_out(exact.get("codes", ())) or "left"
    if actor := exact.get("actor"):
        why += f" by <{unambiguous_nickname(actor)}>"
    text = exact.get("reason") or exact.get("status")
    return f"{why}: {one_line(text)}" if text else why
