"""What a person sees of the results of tools."""

from bridge.views.results import sent
from bridge.views.screen import Display

SENT = {"to": "lobby@rooms.example", "roundTripMs": 1.5}


def test_a_warning_of_a_second_answer_follows_the_answers() -> None:
    answer = {"kind": "message", "sender": "Robot", "body": "pong", "answerMs": 9.0}
    warning = '"Robot" said the same twice.'
    shown = sent({**SENT, "answers": [answer] * 2, "warnings": [warning]}, Display(False))
    assert shown[0].startswith("lobby@rooms.example ")
    assert [line.strip() for line in shown[1:]] == ["after 9.0 ms <Robot> pong"] * 2 + [warning]


def test_no_answer_is_said() -> None:
    assert sent({**SENT, "answers": []}, Display(False))[-1] == "No answer."
