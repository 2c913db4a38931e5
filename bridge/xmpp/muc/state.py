"""Says whether we are out of a room, entering it, inside, or removed.

We are out of a room until we ask to be let in. From then on we are entering it: the room lists who
is there. Our own presence says that we are inside (XEP-0045, section 7.1.2). The room may put us
out again, by a kick, a ban or its own end. Then we are removed, for a reason that is known. However
an attempt or a stay ends, we are out of the room after it, and the next attempt begins there. If a
connection resumes the former session (XEP-0198), we are still inside if we were; with any other
connection we are out.

`TRANSITIONS` has every step that is possible. Any other step is a mistake of ours.
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


class Step(Enum):
    """What leads from one state to the next."""

    ASK = auto()
    """We send the presence with which one joins."""
    ADMISSION = auto()
    """Our own presence comes back."""
    REMOVAL = auto()
    """The room puts us out, or is destroyed."""
    END = auto()
    """The attempt failed, the stay ended, or the session is another one."""


TRANSITIONS: dict[State, dict[Step, State]] = {
    State.OUT: {Step.ASK: State.ENTERING, Step.END: State.OUT},
    State.ENTERING: {Step.ADMISSION: State.INSIDE, Step.END: State.OUT},
    State.INSIDE: {Step.REMOVAL: State.REMOVED, Step.END: State.OUT},
    State.REMOVED: {Step.END: State.OUT},
}
"""The state after each step that is possible in a state."""
