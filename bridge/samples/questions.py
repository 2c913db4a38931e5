"""The tool that hands a question back to the model that called it."""

from bridge.toolkit import tool


@tool(title="Answer a general question", read_only=True, open_world=False)
def answer_general_question(question: str) -> str:
    """Hand a question of general knowledge back, for you to answer yourself.

    Use it only for general questions that no other tool answers. Returns the question as it is:
    answer it from what you know, and say so if you do not know. Nothing is looked up.
    """
    return question
