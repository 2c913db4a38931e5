"""What a server answered, as text: for a person, for a pipe, for a program. Pure.

What strangers wrote, or another server says of itself, is escaped before it reaches a terminal.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bridge.escaping import one_line, visible
from bridge.mcp.jsonrpc import Json
from bridge.xmpp.formatting import format_event

SHOWN_BESIDE_ENTRIES = ("more", "next", "gap", "oldest", "phase", "outBecause", "seen")
"""Of a page, what a person may need to go on; the rest is the same on every page."""

FIRST_LINE_CHARACTERS = 100
"""Of a name, a title or a description, in a list."""


@dataclass(frozen=True)
class Answer:
    """What came of one command."""

    raw: Json
    """As it came over the wire; what a program wants."""
    value: Json = None
    """The object in it, if there is one; else `text` is what there is."""
    text: str = ""
    """In words, already fit for a terminal."""
    failed: bool = False
    seconds: float | None = None
    """How long the server took; None where it was not asked."""
    own: bool = False
    """Whether the words are the console's own, several lines perhaps."""


def message(text: str, *, raw: Json = None) -> Answer:
    """Return an answer in the console's own words; `raw` is what a program gets instead."""
    return Answer({"text": text} if raw is None else raw, text=text, own=True)


def usage_error(text: str) -> Answer:
    """Return a failure in the console's own words."""
    return Answer({"error": text}, text=text, failed=True, own=True)


def called(result: Json, seconds: float) -> Answer:
    """Return what a tool answered, under MCP or bare."""
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(result, dict) or not isinstance(content, list):
        # Bare: the tool's own object.
        return Answer(result, result, "null" if result is None else "", seconds=seconds)
    failed = result.get("isError") is True
    structured = result.get("structuredContent")
    if not failed and structured is not None and _says(content, structured):
        return Answer(result, structured, seconds=seconds)
    return Answer(result, None, "\n".join(_block(one) for one in content), failed, seconds)


def refused(error: Mapping[str, Json], words: str, seconds: float | None = None) -> Answer:
    """Return what is told of an error object."""
    data = error.get("data")
    if isinstance(data, dict) and {"condition", "hint"} & data.keys():
        # The bare dialect's failures, in the words that MCP's have.
        told = [str(error.get("message")), *(f"{k.capitalize()}: {v}" for k, v in data.items())]
        words = "\n".join(told)
    return Answer({"error": dict(error)}, None, visible(words), True, seconds)


def listed(kind: str, result: Mapping[str, Json], seconds: float) -> Answer:
    """Return a list of tools, resources or prompts."""
    rows = [_row(one) for one in objects(result, kind)]
    text = _table(rows) if rows else f"This server has no {kind}."
    return Answer(result, result, text, seconds=seconds)


def described(tool: Mapping[str, Json], parameters: Iterable[str]) -> Answer:
    """Return the definition of a tool, with a line for each of its parameters."""
    name, description = str(tool.get("name")), str(tool.get("description") or "")
    lines = [one_line(name), visible(description), *parameters]
    annotations = tool.get("annotations")
    if isinstance(annotations, dict):
        hints = [one_line(str(k)) for k, v in annotations.items() if v is True]
        lines.append(f"  [{', '.join(hints) or 'no hints'}]")
    return Answer(dict(tool), dict(tool), "\n".join(lines))


def contents(result: Json, seconds: float) -> Answer:
    """Return what stands in a resource."""
    texts = [
        _laid_out_text(str(one["text"])) if "text" in one else _block(one)
        for one in objects(result, "contents")
    ]
    return Answer(result, result, "\n".join(texts), seconds=seconds)


def prompt(result: Json, seconds: float) -> Answer:
    """Return the messages of a prompt."""
    texts = [
        f"{one_line(str(one.get('role')))}: {_block(one.get('content'))}"
        for one in objects(result, "messages")
    ]
    return Answer(result, result, "\n".join(texts), seconds=seconds)


def gist(description: str) -> str:
    """Return the first line of a description, cut short."""
    first = description.strip().partition("\n")[0]
    if len(first) > FIRST_LINE_CHARACTERS:
        first = f"{first[:FIRST_LINE_CHARACTERS]}..."
    return one_line(first)


def for_person(answer: Answer) -> str:
    """Return `answer` laid out, with the time it took."""
    text = answer.text
    if not text and answer.value is not None:
        page = _page(answer.value) if isinstance(answer.value, dict) else None
        text = _laid_out(answer.value) if page is None else page
    if answer.seconds is None:
        return text
    return f"{text}\n({answer.seconds * 1000:.1f} ms)"


def for_pipe(answer: Answer) -> str:
    """Return `answer` in one line; only words of our own may be several."""
    if answer.value is not None:
        return _compact(_visible(answer.value))
    if answer.failed:
        return _compact({"error": answer.text})
    if answer.own:
        return answer.text
    return answer.text.replace("\n", "\\u{A}")


def for_program(answer: Answer) -> str:
    """Return the answer as it came, as one line of ASCII JSON."""
    return json.dumps(answer.raw)


def _page(value: Mapping[str, Json]) -> str | None:
    """Return a page of events or stanzas, a line each; None for any other object."""
    entries = value.get("entries")
    if not isinstance(entries, list) or not all(
        isinstance(one, dict) and "at" in one and ("kind" in one or "xml" in one) for one in entries
    ):
        return None
    lines = [_stanza(one) if "xml" in one else format_event(one) for one in entries]
    around = {k: value[k] for k in SHOWN_BESIDE_ENTRIES if value.get(k) not in (None, False)}
    return "\n".join([*(lines or ["(nothing)"]), _compact(_visible(around))])


def _stanza(entry: Mapping[str, Json]) -> str:
    arrow = "<-" if entry.get("direction") == "in" else "->"
    return f"{one_line(str(entry['at']))} {arrow} {one_line(str(entry['xml']))}"


def _block(block: Json) -> str:
    """Return one piece of content (MCP, "Tool Result")."""
    if not isinstance(block, dict):
        return _compact(_visible(block))
    match block.get("type"):
        case "text":
            return visible(str(block.get("text")))
        case "resource" if isinstance(block.get("resource"), dict):
            return contents({"contents": [block["resource"]]}, 0).text
        case "resource_link":
            return f"[{one_line(str(block.get('name')))} {one_line(str(block.get('uri')))}]"
        case _:
            data = block.get("data", block.get("blob"))
            size = f", {len(data)} characters of base64" if isinstance(data, str) else ""
            kind = block.get("type") or block.get("uri") or "something"
            mime = one_line(str(block.get("mimeType") or "of no type"))
            return f"[{one_line(str(kind))}, {mime}{size}]"


def objects(result: Json, key: str) -> list[dict[str, Json]]:
    """Return the objects of the list that an object has under `key`; leave out anything else."""
    found = result.get(key) if isinstance(result, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _says(content: Sequence[Json], structured: Json) -> bool:
    """Whether the texts say only what the object does: else they are made for reading."""
    match content:
        case []:
            return True
        case [{"type": "text", "text": str(text)}]:
            return _read(text) == structured
        case _:
            return False


def _read(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _laid_out_text(text: str) -> str:
    try:
        return _laid_out(json.loads(text))
    except (ValueError, RecursionError):
        return visible(text)


def _row(item: Mapping[str, Json]) -> Sequence[str]:
    name = item.get("uri", item.get("name"))
    said = str(item.get("title") or "")
    about = gist(str(item.get("description") or ""))
    shown = (one_line(said, FIRST_LINE_CHARACTERS), about)
    return one_line(str(name), FIRST_LINE_CHARACTERS), ": ".join(one for one in shown if one)


def _table(rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{name:{width}}  {said}".rstrip() for name, said in rows)


def _laid_out(value: Json) -> str:
    return json.dumps(_visible(value), ensure_ascii=False, indent=2, allow_nan=False)


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _visible(value: Json) -> Json:
    # Within the strings, since JSON has another escape for the same characters.
    match value:
        case str():
            return visible(value)
        case list():
            return [_visible(one) for one in value]
        case dict():
            return {visible(str(name)): _visible(one) for name, one in value.items()}
        case _:
            return value
