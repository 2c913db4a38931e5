"""The results of tools as lines for a person: what was sent, and what a diagnosis found.

No text of a stranger begins at the left edge.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from bridge.text import one_line
from bridge.views.screen import Display
from bridge.xmpp.model.formatting import format_event

View: TypeAlias = Callable[[dict[str, Any], Display], list[str]]
"""Returns a result as lines."""

NAME_WIDTH = 11
"""Columns for the name of a finding, as for the stages of a check."""

HEAD_WIDTH = NAME_WIDTH + len("FAILED") + 2
"""Columns before what was found."""

INDENT = " " * 2
"""What stands before an answer."""


def sent(result: dict[str, Any], display: Display) -> list[str]:
    """Return the room, the time that its copy took, and the answers that were waited for."""
    text = f"{one_line(result['to'])} sent it back after {result['roundTripMs']:.1f} ms"
    lines = display.paragraph(text)
    if result.get("answers") == []:
        lines.append(display.red("No answer."))
    lines += _answers(result, display)
    for warning in result.get("warnings", ()):
        lines += map(display.red, display.paragraph(warning))
    return lines


def diagnosis(result: dict[str, Any], display: Display) -> list[str]:
    """Return each finding, the answers, the verdict, and what to do."""
    lines = []
    for finding in result["findings"]:
        head = f"{finding['name']:<{NAME_WIDTH}}{display.mark(ok=finding['ok'])}  "
        lines += display.hanging(head, HEAD_WIDTH, finding["detail"], HEAD_WIDTH)
    lines += [*_answers(result, display), ""]
    lines += map(display.bold, display.paragraph(result["verdict"]))
    hints = dict.fromkeys(each["hint"] for each in result["findings"] if each["ok"] is False)
    for text in (*hints, f"Looked at what happened since {result['since']}."):
        lines += display.paragraph(text)
    return lines


def _answers(result: dict[str, Any], display: Display) -> list[str]:
    lines = []
    for answer in result.get("answers", ()):
        event = {name: value for name, value in answer.items() if name != "at"}
        text = f"after {answer['answerMs']:.1f} ms {format_event(event)}"
        lines += display.hanging(INDENT, len(INDENT), text, len(INDENT))
    return lines
