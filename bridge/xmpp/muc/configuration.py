"""What a room says of its configuration, and what changes in it.

A room says that its configuration changed, but not how (XEP-0045, section 10.2.1). So we ask the
room, and publish the notice together with what the room's answer shows.
"""

import asyncio
from collections.abc import Callable
from math import inf

from bridge.text import quoted, wire_name
from bridge.xmpp.model import events
from bridge.xmpp.queries.disco import ROOM_INFO, Description, room_configuration

SETTING_CHANGED = 104
"""The status code of a change in the room's configuration (XEP-0045, section 10.2.1)."""

ASK_SECONDS = 10.0
"""Seconds from one question to the next, since an owner may change a hundred options one by one. We
wait as long for an answer."""

MAX_OPTIONS = 20
"""Most options that are compared; real rooms show up to 20."""

MAX_CHARACTERS = 60
"""Most characters of a name and of a value."""

NOT_OPTIONS = frozenset({"occupants", "subject", "subjectmod"})
"""Fields that a room lists among its options, although owners cannot set them (XEP-0045, section
16.5)."""

NOT_SET = "not set"
"""The value of an option that the room leaves out, or leaves empty."""

_NAMED_OTHERWISE = frozenset({"logs", "roomname", "roomdesc", "description", "lang"})
"""Fields of the form to which `room_configuration` gives other names."""


class Options:
    """The configuration of one room, as much of it as the room shows.

    `ask` sends the room a question; its answer comes to `answer`. `publish` gets a change once we
    know what has changed, or have given up finding out.
    """

    def __init__(self, ask: Callable[[], None], publish: Callable[[events.Event], object]) -> None:
        self._ask = ask
        self._publish = publish
        self._options: dict[str, str] = {}
        self._codes: frozenset[int] = frozenset()
        """The codes of the changes that are to be published."""
        self._asked_at = -inf
        self._next: asyncio.TimerHandle | None = None
        """The next question, or the end of the wait for an answer."""

    def takes(self, codes: frozenset[int]) -> bool:
        """Whether we publish a notice with these codes later, together with what has changed."""
        return SETTING_CHANGED in codes or bool(self._codes)

    def change(self, codes: frozenset[int]) -> None:
        """Take a notice with these codes, and find out what has changed."""
        self._codes |= codes
        if self._next is None:
            loop = asyncio.get_running_loop()
            due = max(self._asked_at + ASK_SECONDS, loop.time())
            self._next = loop.call_at(due, self._question)

    def answer(self, description: Description) -> None:
        """Take what the room says of itself."""
        former, self._options = self._options, options_of(description)
        if former and self._codes:
            names = [name for name in self._options | former if name not in NOT_OPTIONS]
            values = ((it, self._options.get(it, NOT_SET), former.get(it, NOT_SET)) for it in names)
            changed = (f"{name}: {now}, before {then}" for name, now, then in values if now != then)
            self.conclude(tuple(changed))

    def conclude(self, changed: tuple[str, ...] = ()) -> None:
        """Publish what has changed, if a notice waits to be published."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._codes:
            codes, self._codes = self._codes, frozenset()
            self._publish(events.RoomConfigured(codes, changed))

    def _question(self) -> None:
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        self._next = loop.call_later(ASK_SECONDS, self.conclude)
        self._ask()


def options_of(description: Description) -> dict[str, str]:
    """Return the options in a room's description, with their values as users see them."""
    options: dict[str, str] = {}
    for name, value in room_configuration(description).items():
        options[wire_name(name)] = _shown(value)
    for field in description.fields:
        name = field.name.rpartition("_")[2]
        if field.form == ROOM_INFO and name not in _NAMED_OTHERWISE:
            options.setdefault(name[:MAX_CHARACTERS], _shown(", ".join(field.values)))
    return dict([*options.items()][:MAX_OPTIONS])


def _shown(value: object) -> str:
    if value is None or value == "":
        return NOT_SET
    return quoted(value, MAX_CHARACTERS) if isinstance(value, str) else str(value).lower()
