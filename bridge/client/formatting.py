"""What a server answered, as text: for a person, for a pipe, for a program. Pure.

What strangers wrote, or another server says of itself, is escaped before it reaches a terminal.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bridge.client.errors import RequestError
from bridge.mcp.jsonrpc import Json
from bridge.text import one_line, visible, visible_within
from bridge.xmpp.model.formatting import format_event

SHOWN_BESIDE_ENTRIES = ("more", "next", "gap", "oldest", "phase", "outBecause", "seen")
"""The fields of a page that are shown under its entries; the others are the same on every page."""

FIRST_LINE_CHARACTERS = 100
"""Length of a name, a title or a description in a list."""


@dataclass(frozen=True)
class Answer:
    """The outcome of one command, which each frontend shows in its own format."""

    raw: Json
    """The JSON as it came over the wire, for a program."""
    value: Json = None
    """The object that the server answered; None if `text` has the answer."""
    text: str = ""
    """The answer in words, already escaped."""
    failed: bool = False
    own: bool = False
    """Whether the server was not asked: the words are the console's, and may be several lines."""
    seconds: float | None = None
    """How long the server took, once that is known."""
    data: Json = None
    """What `instruction` is about, without it; `value` has both."""
    instruction: str = ""
    """How to report the data to a person; empty where the tool has none."""


def console_message(text: str, *, raw: Json = None) -> Answer:
    """Return an answer in the console's own words; `raw` is what a program gets instead."""
    return Answer({"text": text} if raw is None else raw, text=text, own=True)


def console_error(text: str) -> Answer:
    """Return a failure in the console's own words."""
    return Answer({"error": text}, text=text, failed=True, own=True)


def tool_result(result: Json) -> Answer:
    """Return the result of a tool, under MCP or by bare JSON-RPC."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(content, list):
        # By bare JSON-RPC the result is the tool's own object.
        return Answer(result, result, "null" if result is None else "")
    failed = result.get("isError") is True
    structured = result.get("structuredContent")
    if not failed and (pair := _interpretable(content, structured)):
        data, instruction = pair
        value = data if isinstance(data, dict) else {"data": data}
        together = {**value, "interpret": instruction}
        return Answer(result, together, data=data, instruction=instruction)
    if not failed and structured is not None and _repeats(content, structured):
        return Answer(result, structured)
    return Answer(result, None, "\n".join(map(_content_block, content)), failed)


def _interpretable(content: Sequence[Json], structured: Json) -> tuple[Json, str] | None:
    """Return the data and the instruction of a result that has both, in any dialect."""
    match content:
        case [{"type": "json", **part}, {"type": "interpret", **told}]:
            data, instruction = _json_of(part), told.get("prompt", told.get("text"))
            return (data, instruction) if isinstance(instruction, str) else None
        # A revision without structured content has the same object as a text.
        case [{"type": "text", "text": str(text)}, {"type": "text"}] if structured is None:
            with suppress(ValueError, RecursionError):
                structured = json.loads(text)
    match structured:
        case {"interpret": str(instruction), **data} if data and instruction:
            return data, instruction
    return None


def error_response(refusal: RequestError) -> Answer:
    """Return the error object that a request was answered with."""
    text, data = str(refusal), refusal.error.get("data")
    if isinstance(data, dict) and {"condition", "hint"} & data.keys():
        # The bridge's failures by bare JSON-RPC, in the words that they have under MCP.
        lines = [str(refusal.error.get("message"))]
        text = "\n".join([*lines, *(f"{name.capitalize()}: {said}" for name, said in data.items())])
    return Answer({"error": refusal.error}, None, visible(text), failed=True)


def listing(kind: str, result: Json) -> Answer:
    """Return a list of tools, resources or prompts, a line each."""
    items = objects(result, kind)
    names = [one_line(str(one.get("uri", one.get("name"))), FIRST_LINE_CHARACTERS) for one in items]
    width = max(map(len, names), default=0)
    lines = [
        f"{name:{width}}  {_summary(one)}".rstrip() for name, one in zip(names, items, strict=True)
    ]
    text = "\n".join(lines) or f"This server has no {kind}."
    return Answer(result, result, text)


def tool_definition(tool: Mapping[str, Json], parameters: Iterable[str]) -> Answer:
    """Return the definition of a tool, with a line for each of its parameters."""
    name, description = str(tool.get("name")), str(tool.get("description") or "")
    lines = [one_line(name), visible(description), *parameters]
    annotations = tool.get("annotations")
    if isinstance(annotations, dict):
        hints = [one_line(str(k)) for k, v in annotations.items() if v is True]
        lines.append(f"  [{', '.join(hints) or 'no hints'}]")
    return Answer(dict(tool), dict(tool), "\n".join(lines), own=True)


def resource_contents(result: Json) -> Answer:
    """Return what a resource holds."""
    texts = [
        _json_text(str(one["text"])) if "text" in one else _content_block(one)
        for one in objects(result, "contents")
    ]
    return Answer(result, result, "\n".join(texts))


def prompt_messages(result: Json) -> Answer:
    """Return the messages of a prompt."""
    texts = [
        f"{one_line(str(one.get('role')))}: {_content_block(one.get('content'))}"
        for one in objects(result, "messages")
    ]
    return Answer(result, result, "\n".join(texts))


def first_line(description: str) -> str:
    """Return the first line of a description, cut to `FIRST_LINE_CHARACTERS`."""
    return one_line(description.strip().partition("\n")[0], FIRST_LINE_CHARACTERS)


def for_person(answer: Answer) -> str:
    """Return `answer` in several lines, with the time it took."""
    text = answer.text
    if not text and answer.instruction:
        text = f"{_readable(answer.data)}\n\nHow to read this: {visible(answer.instruction)}"
    elif not text and answer.value is not None:
        text = _page(answer.value) or _as_json(answer.value, indent=2)
    if answer.seconds is None:
        return text
    return f"{text}\n({answer.seconds * 1000:.1f} ms)"


def for_pipe(answer: Answer) -> str:
    """Return `answer` in one line; only words of our own may be several."""
    if answer.value is not None:
        return _as_json(answer.value)
    if answer.failed:
        return _as_json({"error": answer.text})
    if answer.own:
        return answer.text
    return answer.text.replace("\n", "\\u{A}")


def for_program(answer: Answer) -> str:
    """Return `answer` as it came over the wire, in one line of ASCII JSON."""
    return json.dumps(answer.raw)


def objects(value: Json, key: str) -> list[dict[str, Json]]:
    """Return the objects in the list that `value` has under `key`; leave out anything else."""
    found = value.get(key) if isinstance(value, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _page(value: Json) -> str:
    """Return a page of events or stanzas, a line each; nothing for any other object."""
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(entries, list):
        return ""
    lines = []
    for entry in entries:
        match entry:
            case {"at": at, "xml": xml}:
                arrow = "<-" if entry.get("direction") == "in" else "->"
                lines.append(f"{one_line(str(at))} {arrow} {one_line(str(xml))}")
            case {"at": _, "kind": _}:
                lines.append(format_event(entry))
            case _:
                return ""
    around = {k: value[k] for k in SHOWN_BESIDE_ENTRIES if value.get(k) not in (None, False)}
    return "\n".join([*(lines or ["(nothing)"]), _as_json(around)])


def _content_block(block: Json) -> str:
    """Return one block of content (MCP, "Tool Result")."""
    if not isinstance(block, dict):
        return _as_json(block)
    match block.get("type"):
        case "text":
            return visible(str(block.get("text")))
        case "json":
            return _as_json(_json_of(block), indent=2)
        case "interpret":
            return visible(str(block.get("prompt", block.get("text"))))
        case "resource" if isinstance(block.get("resource"), dict):
            return resource_contents({"contents": [block["resource"]]}).text
        case "resource_link":
            return f"[{one_line(str(block.get('name')))} {one_line(str(block.get('uri')))}]"
        case _:
            data = block.get("data", block.get("blob"))
            size = f", {len(data)} characters of base64" if isinstance(data, str) else ""
            kind = block.get("type") or block.get("uri") or "something"
            mime = one_line(str(block.get("mimeType") or "of no type"))
            return f"[{one_line(str(kind))}, {mime}{size}]"


def _json_of(part: Mapping[Any, Json]) -> Json:
    """Return the JSON of a part of the type `json`, which may be there as a text alone."""
    data = part.get("json", part.get("text"))
    if "json" not in part and isinstance(data, str):
        with suppress(ValueError, RecursionError):
            return json.loads(data)
    return data


def _repeats(content: Sequence[Json], structured: Json) -> bool:
    """Whether the content only repeats the structured content; else it is made for reading."""
    match content:
        case []:
            return True
        case [{"type": "text", "text": str(text)}]:
            with suppress(ValueError, RecursionError):
                return bool(json.loads(text) == structured)
    return False


def _summary(item: Mapping[str, Json]) -> str:
    """Return the title and the first line of the description of a listed item."""
    title = one_line(str(item.get("title") or ""), FIRST_LINE_CHARACTERS)
    shown = (title, first_line(str(item.get("description") or "")))
    return ": ".join(one for one in shown if one)


def _readable(data: Json) -> str:
    """Return an object as a line a field; anything else as JSON."""
    if not isinstance(data, dict):
        return _as_json(data, indent=2)
    shown = {
        one_line(str(name)): visible(one) if isinstance(one, str) else _as_json(one, indent=2)
        for name, one in data.items()
    }
    return "\n".join(f"{name}: {one}" for name, one in shown.items())


def _json_text(text: str) -> str:
    """Return a text indented if it is JSON."""
    try:
        return _as_json(json.loads(text), indent=2)
    except (ValueError, RecursionError):
        return visible(text)


def _as_json(value: Json, indent: int | None = None) -> str:
    return json.dumps(visible_within(value), ensure_ascii=False, indent=indent, allow_nan=False)
