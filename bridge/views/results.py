"""What the result of a tool looks like to a person: as lines. Pure.

`send`, `diagnose`, `check` and the client show results by this module alone. The client may talk to
any server, so any value of a result may be any JSON. No text of a stranger begins at the left edge,
except for a room's name.
"""

import json
import re
from collections.abc import Callable, Sequence

from bridge.mcp.jsonrpc import Json, Object, objects
from bridge.text import counted, one_line, visible_within
from bridge.views.screen import Display, cut, padded, width
from bridge.xmpp.model.formatting import format_event

NAME_WIDTH = 11
"""Columns for the name of a stage or of a finding; a longer name pushes its line to the right."""

NAME_LIMIT = 20
"""Columns after which such a name is cut: servers that are no bridge choose names, too."""

MARK_WIDTH = len("FAILED")
"""Columns for the outcome of a stage or of a finding."""

MAX_MS = 1e9
"""A greater `ms` is no time: the server is no bridge, and means something else by the name."""

INDENT = " " * 2
"""What stands before an answer, and before an object in a list."""

BESIDE_ENTRIES = ("more", "next", "gap", "oldest", "phase", "outBecause", "seen")
"""The fields of a page that are shown under its entries; the others are the same on every page."""

ENTRY_FIELDS = frozenset({"kind", "xml"})
"""Each entry of a page has one of these fields: an event has `kind`, a stanza has `xml`."""

ARROWS = {"in": "<--", "out": "-->"}
"""What stands before a stanza, by the direction in which it went."""

ROOM_FIELDS = ("to", "room")
"""The fields of a result with its room, which come first."""

FOR_MODELS = "notice"
"""The field of a result that a person is not shown: it says to a model how to treat the rest."""


_PLAIN_WORD = re.compile(r"[\w.@/:+%#~-]+")
"""Matches a text that needs no quotation marks between other words."""


def lines_of(result: Json, display: Display) -> list[str]:
    """Return a result as lines, in the form that its fields call for."""
    if not isinstance(result, dict):
        return display.paragraph(as_json(result, indent=2), indent=0)
    match result:
        case {"sent": True, "to": _, "roundTripMs": _}:
            return _sent(result, display)
        case {"verdict": text, "findings": list()}:
            return _diagnosed(result, text, display)
        case {"diagnosis": text, "phases": list()}:
            return _found(result, text, display)
        case {"entries": list(entries)} if all(map(_is_entry, entries)):
            return _page(result, entries, display)
    return _fields(result, display)


def row(finding: Object, display: Display) -> list[str]:
    """Return the name, the outcome and the time of a stage or a finding, and its detail.

    The further lines of the detail stand below its first.
    """
    name = padded(cut(_text(finding.get("name")), NAME_LIMIT), NAME_WIDTH)
    ok, took = finding.get("ok"), f"{_ms(finding['ms']):>8} ms" if "ms" in finding else ""
    used, columns = width(name) + MARK_WIDTH + len(took), display.columns()
    is_narrow = columns is not None and columns < used  # then the name has a line of its own
    before = INDENT if is_narrow else name
    head = f"{before}{display.mark(ok=ok if isinstance(ok, bool) else None)}{took}  "
    used += width(before) - width(name) + 2
    first, *rest = display.hanging(head, used, _text(finding.get("detail") or ""), used)
    return [*[name.rstrip()] * is_narrow, first.rstrip(), *rest]


def stage(stage: Object, former: Object, display: Display) -> list[str]:
    """Return the row of a stage, below its room unless the `former` stage was in the same room."""
    return [*heading(stage.get("room"), former.get("room"), display), *row(stage, display)]


def heading(room: Json, former: Json, display: Display) -> list[str]:
    """Return the room of a stage; nothing if it has none, or if the `former` stage has the same.

    The stages of the connection have no room, and no stage has one if there is only one room.
    """
    if room in (None, former):
        return []
    return [*map(display.bold, display.paragraph(_text(room)))]


def outcome(text: Json, reports: Sequence[Object], display: Display) -> list[str]:
    """Return `text`, and what to do after these checks: failures first, each advice once."""
    failures, hints = [], []
    for report in reports:
        conditions = {str(room.get("room")): room for room in objects(report, "rooms")}
        for finding in _rows(report):
            hint = _text(finding.get("hint") or "")
            if finding.get("ok") is False:
                condition = conditions.get(str(finding.get("room")), report).get("condition")
                failures.append(f"[{_text(condition)}] {hint}".rstrip() if condition else hint)
            elif hint and hint not in str(report.get("diagnosis", text)):
                hints.append(f"{_text(finding.get('name'))}: {hint}")
    paint = display.red if failures else display.bold
    said = [paint(line) for line in display.paragraph(_text(text))]
    return said + _paragraphs([*failures, *hints], display)


def entry_line(entry: Object) -> str:
    """Return an event, or a stanza as it was on the wire, as one line with its time."""
    if "xml" not in entry:
        return format_event(entry)
    arrow = ARROWS["in" if entry.get("direction") == "in" else "out"]
    return one_line(f"{entry.get('at')} {arrow} {entry['xml']}")


def as_json(value: Json, indent: int | None = None) -> str:
    """Return a value as JSON, with hidden characters as escapes."""
    return json.dumps(visible_within(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _rows(result: Object) -> list[dict[str, Json]]:
    """Return the stages of a check, or the findings of a diagnosis."""
    return objects(result, "phases") or objects(result, "findings")


def _found(result: Object, text: Json, display: Display) -> list[str]:
    """Return each stage, the outcome, which is `text`, and what to do."""
    lines, former = list[str](), dict[str, Json]()
    for finding in _rows(result):
        lines += stage(finding, former, display)
        former = finding
    lines += ["", *outcome(text, [result], display)]
    return lines + _paragraphs([result.get("standing")], display)


def _diagnosed(result: Object, text: Json, display: Display) -> list[str]:
    """Return the verdict, which is `text`, what supports it, and last what to do next."""
    paint = display.red if result.get("outcome") == "cause" else display.bold
    findings = objects(result, "findings")
    lines = _paragraphs([text], display, paint)
    for finding in findings:
        if _text(finding.get("detail")) not in _text(text):
            lines += row(finding, display)
    lines += _answers(result, display)
    looked = result.get("lookedAt")
    more = looked - len(findings) if isinstance(looked, int) else 0
    rest = f"Looked at {counted(more, 'more thing')}, nothing to see." if more > 0 else ""
    where = f" in {_text(result['room'])} only," if "room" in result else ""
    at = result.get("since")
    since = f"Looked at what happened{where} since {_text(at)}." if at else ""
    hints = [finding.get("hint") for finding in findings if finding.get("ok") is False]
    return lines + _paragraphs([rest, since, *hints, *_next(result)], display)


def _next(result: Object) -> list[str]:
    """Return what the result says to do next."""
    step, hint = result.get("nextStep"), result.get("hint")
    if not isinstance(step, dict):
        return [_text(hint)] if hint else []
    command = step.get("command")
    call = f"{_text(step.get('tool'))} {as_json(step.get('arguments'))}"
    return [f"Next: {_text(command) if command else call}"]


def _sent(result: Object, display: Display) -> list[str]:
    """Return the room, the time that its copy took, and the answers that were waited for."""
    text = f"{_text(result['to'])} sent it back after {_ms(result['roundTripMs'])} ms"
    if "heardAs" in result:
        text += f", with another text: {_text(result['heardAs'])}"
    lines = _paragraphs([text], display)
    if result.get("answers") == []:
        lines.append(display.red("No answer."))
    lines += _answers(result, display)
    warnings = result.get("warnings")
    lines += _paragraphs(warnings if isinstance(warnings, list) else [], display, display.red)
    return lines + _paragraphs(_next(result), display)


def _answers(result: Object, display: Display) -> list[str]:
    lines = []
    for answer in objects(result, "answers"):
        event = {name: value for name, value in answer.items() if name != "at"}
        took = f"after {_ms(answer['answerMs'])} ms" if "answerMs" in answer else "no answer"
        text = f"{took} {format_event(event)}"
        if "to" in answer:
            times = f" ({_text(answer['times'])} times)" if "times" in answer else ""
            text = f"{took} to <{_text(answer['to'])}> {_text(answer.get('asked', ''))}{times}"
        lines += display.hanging(INDENT, len(INDENT), text, len(INDENT))
    return lines


def _is_entry(entry: Json) -> bool:
    """Whether an entry of a page is a stanza or an event."""
    return isinstance(entry, dict) and "at" in entry and not entry.keys().isdisjoint(ENTRY_FIELDS)


def _page(result: Object, entries: Sequence[Object], display: Display) -> list[str]:
    around = {k: result[k] for k in BESIDE_ENTRIES if result.get(k) not in (None, False)}
    lines = [*map(entry_line, entries)] or ["(nothing)"]
    lines += [f"({_words(around)})"] if around else []
    return [part for line in lines for part in display.paragraph(line)]


def _fields(result: Object, display: Display) -> list[str]:
    """Return a line for each field, and for each item that is an object."""
    fields = {name: result[name] for name in ROOM_FIELDS if name in result} | {**result}
    lines = []
    for name, value in fields.items():
        if name == FOR_MODELS:
            continue
        items = objects(result, name)
        if isinstance(value, list) and len(items) < len(value):
            items = []
        if isinstance(value, dict) and {"sender", "body", "receivedAt"} <= value.keys():
            # As an entry of the history is shown.
            value = format_event({"kind": "message", "at": value["receivedAt"], **value})
        text = "" if items else f" {one_line(value) if isinstance(value, str) else _words(value)}"
        lines += display.paragraph(f"{one_line(name)}:{text}")
        for item in items:
            lines += display.hanging(INDENT, len(INDENT), _words(item), 2 * len(INDENT))
    return lines


def _words(value: Json, *, inner: bool = False) -> str:
    """Return a value on one line, without the punctuation of JSON.

    Texts are in quotation marks unless they are one word, so that no text passes for a field.
    """
    match value:
        case None:
            return "none"
        case str():
            return value if _PLAIN_WORD.fullmatch(value) else as_json(value)
        case dict():
            text = ", ".join(f"{one_line(k)} {_words(v, inner=True)}" for k, v in value.items())
        case list():
            text = ", ".join(_words(item, inner=True) for item in value)
        case _:
            return as_json(value)
    return f"({text})" if inner or not text else text


def _paragraphs(
    texts: Sequence[Json], display: Display, paint: Callable[[str], str] = str
) -> list[str]:
    """Return the texts that are not empty, each once, from the left edge on."""
    said = dict.fromkeys(_text(text) for text in texts if text)
    return [paint(line) for text in said for line in display.paragraph(text)]


def _text(value: Json) -> str:
    return one_line(value if isinstance(value, str) else as_json(value))


def _ms(value: Json) -> str:
    """Return a number of milliseconds, to a tenth."""
    return f"{value:.1f}" if isinstance(value, int | float) and value < MAX_MS else "?"
