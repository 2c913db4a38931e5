"""Where a membership stands: the table of its transitions, seen from outside."""

import pytest

from bridge.xmpp.muc.state import TRANSITIONS, State, Step


def test_a_stay_goes_through_the_states() -> None:
    now = State.OUT
    for step, state in (
        (Step.ASK, State.ENTERING),
        (Step.END, State.OUT),
        (Step.ASK, State.ENTERING),
        (Step.ADMISSION, State.INSIDE),
        (Step.REMOVAL, State.REMOVED),
        (Step.END, State.OUT),
    ):
        now = TRANSITIONS[now][step]
        assert now is state


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (State.OUT, Step.ADMISSION),
        (State.OUT, Step.REMOVAL),
        (State.ENTERING, Step.REMOVAL),
        (State.INSIDE, Step.ASK),
        (State.REMOVED, Step.ASK),
        (State.REMOVED, Step.ADMISSION),
    ],
)
def test_no_presence_of_ours_is_believed_that_nobody_asked_for(state: State, step: Step) -> None:
    assert step not in TRANSITIONS[state]
