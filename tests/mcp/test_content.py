import json
from base64 import b64encode
from typing import Any

import pytest
from mcp_types import methods

from bridge.mcp.content import (
    Audio,
    EmbeddedResource,
    Image,
    Interpret,
    Message,
    ResourceLink,
    bare_result,
    prompt_messages,
    tool_result,
)
from bridge.mcp.revisions import V2024_11_05, V2025_03_26, V2025_11_25, Revision
from bridge.mcp.schema import SchemaError
from tests.mcp.sample_tools import EVERY, Count

COUNT = Count(2, "ü\ud800")
JSON = {"words": 2, "longestWord": "ü\ud800"}
AS_TEXT = json.dumps(JSON, ensure_ascii=False, separators=(",", ":"))

DATA = b"\x89PNG\xff"
BASE64 = b64encode(DATA).decode()
LINK = ResourceLink("file:///a", "a", title="A", description="an a", mime_type="text/x", size=0)
BLOCKS: list[Any] = [
    "text",
    Image(DATA, "image/png"),
    Audio(DATA, "audio/wav"),
    LINK,
    ResourceLink("file:///b", "b"),
    EmbeddedResource("file:///c", "said", "text/plain"),
    EmbeddedResource("file:///d", DATA, "image/png"),
    COUNT,
]
WIRE: list[Any] = [
    {"type": "text", "text": "text"},
    {"type": "image", "data": BASE64, "mimeType": "image/png"},
    {"type": "audio", "data": BASE64, "mimeType": "audio/wav"},
    {
        "type": "resource_link",
        "uri": "file:///a",
        "name": "a",
        "title": "A",
        "description": "an a",
        "mimeType": "text/x",
        "size": 0,
    },
    {"type": "resource_link", "uri": "file:///b", "name": "b"},
    {
        "type": "resource",
        "resource": {"uri": "file:///c", "mimeType": "text/plain", "text": "said"},
    },
    {
        "type": "resource",
        "resource": {"uri": "file:///d", "mimeType": "image/png", "blob": BASE64},
    },
    {"type": "text", "text": AS_TEXT},
]
NO_AUDIO = "[audio/wav, 5 bytes]"


@EVERY
def test_content_is_what_the_revision_has_a_form_for(revision: Revision) -> None:
    for content in (BLOCKS, *BLOCKS[:-1]):
        result = tool_result(content, revision)
        if revision.handshake:
            methods.validate_server_result("tools/call", revision.date, result)
        assert "structuredContent" not in result


def test_a_list_is_content_in_its_own_order() -> None:
    assert tool_result(BLOCKS, V2025_11_25) == {"content": WIRE, "isError": False}


TEXTS = [
    "text",
    "[image/png, 5 bytes]",
    "[audio/wav, 5 bytes]",
    "a: file:///a",
    "b: file:///b",
    "said",
    "[image/png, 5 bytes]",
    AS_TEXT,
]
"""What each of the blocks is in words."""


def test_in_a_bare_call_every_part_has_a_text_whatever_else_it_is() -> None:
    parts = [each | {"text": text} for each, text in zip(WIRE, TEXTS, strict=True)]
    assert bare_result(BLOCKS, V2025_11_25) == {"content": parts}


@pytest.mark.parametrize(
    ("revision", "position", "text"),
    [
        (V2024_11_05, 2, NO_AUDIO),
        (V2024_11_05, 3, "a: file:///a"),
        (V2025_03_26, 3, "a: file:///a"),
    ],
)
def test_what_an_older_revision_has_no_block_for_is_told_as_text(
    revision: Revision, position: int, text: str
) -> None:
    (block,) = bare_result([BLOCKS[position]], revision)["content"]  # type: ignore[index]
    assert block == {"type": "text", "text": text}


def test_a_prompt_is_the_users_unless_a_message_says_otherwise() -> None:
    written = [BLOCKS[0], Message("assistant", BLOCKS[1])]
    first, second = (
        {"role": "user", "content": WIRE[0]},
        {"role": "assistant", "content": WIRE[1]},
    )
    assert prompt_messages(written, V2025_11_25) == [first, second]
    assert prompt_messages(BLOCKS[0], V2025_11_25) == [first]


@pytest.mark.parametrize("value", [{"x": float("nan")}, object, Interpret(b"", "Say it."), [b""]])
def test_what_has_no_json_form_has_no_result(value: object) -> None:
    for encode in (bare_result, tool_result):
        with pytest.raises(SchemaError):
            encode(value, V2024_11_05)
