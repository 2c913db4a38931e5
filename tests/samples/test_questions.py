from bridge.samples.questions import answer_general_question


def test_a_general_question_comes_back_as_it_is() -> None:
    assert answer_general_question("Why is the sky blue?") == "Why is the sky blue?"
