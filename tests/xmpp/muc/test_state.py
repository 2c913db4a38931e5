"""Where a membership stands: the table of its transitions, seen from outside."""

import pytest

from bridge.xmpp.muc.state import TRANSITIONS, State, Step


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([Step.ASK, Step.ADMISSION], State.INSIDE),
        ([Step.ASK, Step.END], State.OUT),
        ([Step.ASK, Step.ADMISSION, Step.REMOVAL], State.REMOVED),
        ([Step.ASK, Step.ADMISSION, Step.REMOVAL, Step.END, Step.ASK], State.ENTERING),
    ],
    ids=["let in", "refused", "kicked", "kicked and on the way back"],
)
def test_a_stay_goes_through_the_states(steps: list[Step], state: State) -> None:
    now = State.OUT
    for step in steps:
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
