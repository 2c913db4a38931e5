"""Says whether we are out of a room, entering it, inside, or removed.

We are out of a room until we ask to be let in. From then on we are entering it: the room lists who
is there. Our own presence says that we are inside (XEP-0045, section 7.1.2). The room may put us
out again, by a kick, a ban or its own end. Then we are removed, and know the reason. After every
attempt and every stay we are out of the room, and the next attempt begins there. If a connection
resumes the former session (XEP-0198), we are still inside if we were; with any other connection we
are out.

`TRANSITIONS` has every step that is possible. Any other step is a mistake in this program.
"""

from enum import Enum, auto


class State(Enum):
    """Our state in the room."""

    OUT = auto()
    """Not in the room, and not on the way in."""
    ENTERING = auto()
    """We have asked to be let in, and the room lists who is there."""
    INSIDE = auto()
    """The room has sent our own presence."""
    REMOVED = auto()
    """The room has put us out."""


TRANSITIONS: dict[State, set[State]] = {
    State.OUT: {State.ENTERING, State.OUT},
    State.ENTERING: {State.INSIDE, State.OUT},
    State.INSIDE: {State.REMOVED, State.OUT},
    State.REMOVED: {State.OUT},
}
"""The states that may follow each state."""
