"""Formats the answers of a server as text: for a person, a pipe, or a program. Pure.

Texts of strangers and of other servers are escaped before they reach a terminal.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from bridge.client.errors import RequestError
from bridge.mcp.jsonrpc import Json, objects, parse
from bridge.text import one_line, visible
from bridge.views.results import as_json, lines_of
from bridge.views.screen import Display, width

FIRST_LINE_CHARACTERS = 100
"""The most characters of a name, a title or a description in a list."""

PLAIN = Display(coloured=False)
"""A display that breaks no line and has no colours."""


@dataclass(frozen=True)
class Answer:
    """The outcome of one command, which each frontend shows in its own format."""

    raw: Json
    """The JSON as it came over the wire, for a program."""
    value: Json = None
    """The object that the server sent; None if `text` has the answer."""
    text: str = ""
    """The answer in words, already escaped; what a person sees of `value`, if not its lines."""
    failed: bool = False
    own: bool = False
    """Whether the answer is the client's own. Then its text may have several lines."""
    seconds: float | None = None
    """How long the server took, once that is known."""
    note: str = ""
    """A remark on the answer for a person, shown next to it; empty if there is none."""


def client_message(text: str, *, raw: Json = None) -> Answer:
    """Return an answer in the client's own words; `raw` is what a program gets instead."""
    return Answer({"text": text} if raw is None else raw, text=text, own=True)


def client_error(text: str) -> Answer:
    """Return a failure in the client's own words."""
    return Answer({"error": text}, text=text, failed=True, own=True)


def tool_result(result: Json) -> Answer:
    """Return the result of a tool."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(content, list):
        # It is none by MCP, and is shown as it is.
        return Answer(result, result, "null" if result is None else "")
    text = "\n".join(map(_content_block, content))
    if result.get("isError") is True:
        return Answer(result, None, text, failed=True)
    structured = result.get("structuredContent")
    if structured is None or not _repeats(content, structured):
        return Answer(result, None, text)
    return Answer(result, structured)


def error_response(refusal: RequestError) -> Answer:
    """Return the error object with which the server answered a request."""
    text, data = str(refusal), refusal.error.get("data")
    if isinstance(data, dict) and {"condition", "hint"} & data.keys():
        # A failure of a prompt gets the same words as a failure of a tool.
        text = str(refusal.error.get("message"))
        text += "".join(f"\n{name.capitalize()}: {value}" for name, value in data.items())
    return Answer({"error": refusal.error}, None, visible(text), failed=True)


def listing(kind: str, result: Json) -> Answer:
    """Return a list of tools, resources or prompts, with a line for each."""
    items = objects(result, kind)
    uris_or_names = [str(item.get("uri", item.get("name"))) for item in items]
    names = [one_line(name, FIRST_LINE_CHARACTERS) for name in uris_or_names]
    width = max(map(len, names), default=0)
    lines = []
    for name, item in zip(names, items, strict=True):
        words = (first_line(item.get(key) or "") for key in ("title", "description"))
        lines.append(f"{name:{width}}  {': '.join(filter(None, words))}".rstrip())
    return Answer(result, result, "\n".join(lines) or f"This server has no {kind}.")


def resource_contents(result: Json) -> Answer:
    """Return the contents of a resource; one that is an object is shown like a tool's result."""
    parts = objects(result, "contents")
    if len(parts) == 1 and isinstance(value := _parsed(str(parts[0].get("text"))), dict):
        return Answer(result, value)
    return Answer(result, result, "\n".join(map(_content_block, parts)))


def prompt_messages(result: Json) -> Answer:
    """Return the messages of a prompt."""
    texts = [
        f"{one_line(str(message.get('role')))}: {_content_block(message.get('content'))}"
        for message in objects(result, "messages")
    ]
    return Answer(result, result, "\n".join(texts))


def first_line(text: Json) -> str:
    """Return the first line of a server's text, cut to `FIRST_LINE_CHARACTERS`."""
    return one_line(str(text).strip().partition("\n")[0], FIRST_LINE_CHARACTERS)


def for_person(answer: Answer, display: Display = PLAIN) -> str:
    """Return `answer` in several lines, with the time it took."""
    lines = answer.text.split("\n")
    text = "\n".join(piece for line in lines for piece in display.paragraph(line, _column(line)))
    if not text and answer.value is not None:
        text = "\n".join(lines_of(answer.value, display))
    if answer.seconds is None:
        return text
    note = f"; {answer.note}" if answer.note else ""
    return f"{text}\n({answer.seconds * 1000:.1f} ms{note})"


def _column(line: str) -> int:
    """Return where the further lines of a text begin: below its second column, if it has two."""
    columns = re.match(r"(.*?\S  +)\S", line)
    return width(columns[1]) if columns else 2


def for_pipe(answer: Answer) -> str:
    """Return `answer` in one line; a text of the client's own may have several."""
    if answer.value is not None:
        return as_json(answer.value)
    if answer.failed:
        return as_json({"error": answer.text})
    return answer.text if answer.own else answer.text.replace("\n", "\\u{A}")


def for_program(answer: Answer) -> str:
    """Return `answer` as it came over the wire, in one line of ASCII JSON."""
    return json.dumps(answer.raw)


def _content_block(block: Json) -> str:
    """Return one block of content (MCP, "Tool Result")."""
    match block:
        case {"type": "resource", "resource": dict(resource)}:
            return _content_block(resource)
        case {"type": "resource_link", **link}:
            return one_line(f"[{link.get('name')} {link.get('uri')}]")
        case {"uri": _, "text": str(text)} if (value := _parsed(text)) is not None:
            return as_json(value, indent=2)
        case {"text": text}:
            return visible(str(text))
        case {**members}:
            data = members.get("data", members.get("blob"))
            size = f", {len(data)} characters of base64" if isinstance(data, str) else ""
            kind = members.get("type") or members.get("uri") or "something"
            return one_line(f"[{kind}, {members.get('mimeType') or 'of no type'}{size}]")
    return as_json(block)


def _repeats(content: Sequence[Json], structured: Json) -> bool:
    """Whether the content has nothing for a person but what the structured content has."""
    match content:
        case [{"type": "text", "text": str(text)}, *others]:
            return _parsed(text) == structured and all(map(_is_for_models, others))
    return not content


def _is_for_models(block: Json) -> bool:
    """Whether a block of content is for the model alone (MCP, "Annotations")."""
    match block:
        case {"annotations": {"audience": ["assistant"]}}:
            return True
    return False


def _parsed(text: str) -> Json:
    """Return the JSON value in a text; None if it is not JSON, or cannot be shown."""
    with suppress(ValueError, RecursionError):
        value = parse(text)
        as_json(value)
        return value
    return None
