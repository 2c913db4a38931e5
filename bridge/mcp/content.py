"""What tools, resources and prompts may return, and what content their caller gets. Pure.

MCP has content blocks and, since 2025-06-18, structured content (2025-11-25, "Tool Result"). A bare
call has the tool's name as its method. If its tool returns an object, the result is that object.
"""

from base64 import b64encode
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from bridge.mcp.jsonrpc import Json, compact
from bridge.mcp.revisions import V2025_03_26, V2025_06_18, Revision
from bridge.mcp.schema import render

Data = TypeVar("Data", covariant=True)


class Image(NamedTuple):
    """A picture."""

    data: bytes
    mime_type: str
    """Such as `image/png`."""


class Audio(NamedTuple):
    """A sound. Revisions before 2025-03-26 have no form for it: a text describes it there."""

    data: bytes
    mime_type: str
    """Such as `audio/wav`."""


class ResourceLink(NamedTuple):
    """The address of a resource that the caller may read; before 2025-06-18 it is sent as text."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    """In bytes."""


class EmbeddedResource(NamedTuple):
    """A resource with its content."""

    uri: str
    content: str | bytes
    mime_type: str


class Message(NamedTuple):
    """One message of a prompt. Content without a `Message` is the user's."""

    role: Literal["user", "assistant"]
    content: "Content"


class Interpret(NamedTuple, Generic[Data]):
    """Data, and an instruction to the model on how to report it to a person.

    Under MCP the data is the structured content, and also the first part of the content, as text.
    The prompt is the second part, for the assistant. Clients drop that part if there is structured
    content, so the prompt is also a field `interpret` of the data. In a revision with `typed_parts`
    and in a bare call, data and prompt are two parts of the types `json` and `interpret`, each with
    a text.
    """

    data: Data
    """A dataclass."""
    prompt: str
    """Words of the tool's author. No text from outside may go into them."""


INTERPRET = {"interpret": {"type": "string", "description": "how to report this to a person"}}
"""The property that the output schema has for the instruction of an `Interpret`."""

Content: TypeAlias = str | Image | Audio | ResourceLink | EmbeddedResource
"""A value that becomes one block of content; a `str` becomes a block of type `text`."""

CONTENT_TYPES = get_args(Content)

SINCE: dict[type, Revision] = {Audio: V2025_03_26, ResourceLink: V2025_06_18}
"""The revision that brought a kind of content. Before, such content is sent as text."""


def text_block(text: str) -> dict[str, Json]:
    """Return a content block of type `text`."""
    return {"type": "text", "text": text}


def content_block(value: object, revision: Revision) -> dict[str, Json]:
    """Return the content block of a `Content`; any other value becomes a text with its JSON.

    If the revision has `typed_parts`, the block has a `text` in any case: its clients read nothing
    else. Raises `SchemaError` for a value without a JSON form.
    """
    block = _block(value, revision)
    if revision.typed_parts:
        block["text"] = block.get("text", _in_words(value))
    return block


def _in_words(value: object) -> str:
    """Return the text of a block that is not text."""
    match value:
        case ResourceLink(uri=uri, name=name):
            return f"{name}: {uri}"
        case EmbeddedResource(content=str(text)):
            return text
        case Image(data=data) | Audio(data=data) | EmbeddedResource(content=bytes(data)):
            return f"[{value.mime_type}, {len(data)} bytes]"
    return ""


def _block(value: object, revision: Revision) -> dict[str, Json]:
    if revision < SINCE.get(type(value), revision):
        value = _in_words(value)
    match value:
        case str():
            return text_block(value)
        case Image(data=data, mime_type=mime_type):
            return {"type": "image", "data": _base64(data), "mimeType": mime_type}
        case Audio(data=data, mime_type=mime_type):
            return {"type": "audio", "data": _base64(data), "mimeType": mime_type}
        case ResourceLink():
            optional: dict[str, Json] = {"title": value.title, "description": value.description}
            optional |= {"mimeType": value.mime_type, "size": value.size}
            link: dict[str, Json] = {"type": "resource_link", "uri": value.uri, "name": value.name}
            return link | {name: about for name, about in optional.items() if about is not None}
        case EmbeddedResource(uri=uri, content=content, mime_type=mime_type):
            return {"type": "resource", "resource": resource_contents(uri, content, mime_type)}
    return text_block(compact(render(value)))


def resource_contents(uri: str, content: object, mime_type: str) -> dict[str, Json]:
    """Return the contents of a resource: text as it is, bytes in base64, an object as JSON."""
    contents: dict[str, Json] = {"uri": uri, "mimeType": mime_type}
    match content:
        case str():
            return contents | {"text": content}
        case bytes():
            return contents | {"blob": _base64(content)}
    return contents | {"text": compact(render(content))}


def bare_result(value: object, revision: Revision) -> Json:
    """Return the result of a bare call; raises `SchemaError` for a value without a JSON form.

    `revision` decides the form of content blocks.
    """
    revision = revision._replace(typed_parts=True)
    if isinstance(value, Interpret):
        return {"content": _typed_parts(value)}
    if isinstance(value, (list, *CONTENT_TYPES)):
        return {"content": _blocks(value, revision)}
    return render(value)


def tool_result(value: object, revision: Revision) -> dict[str, Json]:
    """Return the result of `tools/call`; raises `SchemaError` for a value without a JSON form."""
    if isinstance(value, (list, *CONTENT_TYPES)):
        return {"content": _blocks(value, revision), "isError": False}
    blocks: list[Json] = []
    if isinstance(value, Interpret):
        if revision.typed_parts:
            return {"content": _typed_parts(value), "isError": False}
        value, prompt = value
        blocks = [{**text_block(prompt), "annotations": {"audience": ["assistant"]}}]
    json = render(value)
    if blocks and isinstance(json, dict):
        json["interpret"] = prompt
    result = {"content": [text_block(compact(json)), *blocks], "isError": False}
    return result | {"structuredContent": json} if revision >= V2025_06_18 else result


def prompt_messages(value: object, revision: Revision) -> list[Json]:
    """Return the messages of a prompt that returned `value`: a `Content`, or a list of messages."""
    messages: list[Json] = []
    for part in value if isinstance(value, list) else [value]:
        role, content = part if isinstance(part, Message) else ("user", part)
        messages.append({"role": role, "content": content_block(content, revision)})
    return messages


def _blocks(value: object, revision: Revision) -> list[Json]:
    parts = value if isinstance(value, list) else [value]
    return [content_block(part, revision) for part in parts]


def _typed_parts(value: Interpret[object]) -> list[Json]:
    json = render(value.data)
    return [
        {"type": "json", "json": json, "text": compact(json)},
        {"type": "interpret", "prompt": value.prompt, "text": value.prompt},
    ]


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
